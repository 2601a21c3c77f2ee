// The report's figures and the one selection that they share.  `picked` maps settings to lists of allowed values
// (null: nothing selected); a click or a drawn rectangle sets it, and figures, table and cell panel follow.
// Data comes from the page itself; nothing is fetched.
"use strict";
const report = JSON.parse(document.getElementById("report-data").textContent);
report.picked = null;
report.views = new Map();
report.followers = [];
report.errors = [];

function rowsOf(packed) {
  const names = Object.keys(packed);
  const rows = [];
  for (let i = 0; names.length && i < packed[names[0]].length; i++) {
    const row = {};
    for (const name of names) row[name] = packed[name][i];
    rows.push(row);
  }
  return rows;
}
for (const figure of report.figures) {
  figure.rows = {};
  for (const [name, packed] of Object.entries(figure.tables)) figure.rows[name] = rowsOf(packed);
}
report.cellRows = rowsOf(report.cells.columns);

function theme() { return document.documentElement.dataset.theme; }

function matches(row, picked) {
  return !picked || Object.entries(picked).every(([name, allowed]) => !(name in row) || allowed.includes(row[name]));
}

// What a figure may show of the selection: a panel at other fixed settings shows that nothing in it is selected.
function pickedFor(figure) {
  if (!report.picked) return null;
  const elsewhere = Object.entries(figure.fixed || {}).some(([k, v]) => report.picked[k] && !report.picked[k].includes(v));
  if (!elsewhere) return report.picked;
  return Object.fromEntries(Object.values(figure.link).map((name) => [name, []]));
}

function pick(next, announce = true) {
  report.picked = next && Object.keys(next).length ? next : null;
  for (const [name, view] of report.views) {
    const figure = report.figures.find((f) => f.name === name);
    view.signal("picked", pickedFor(figure)).runAsync();
  }
  for (const follow of report.followers) follow();
  if (announce) say();
}

function shown(value) {
  if (typeof value === "number" && Number.isFinite(value)) {
    const plain = Number.isInteger(value) && Math.abs(value) < 1e6 ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString();
    return plain.replace("-", "−");
  }
  return value === null || value === undefined ? "–" : String(value);
}

function describe(picked) {
  return Object.entries(picked).map(([name, allowed]) => {
    const symbol = report.labels[name] ? report.labels[name].short : name;
    if (allowed.length === 1) return `${symbol} = ${shown(allowed[0])}`;
    const numeric = allowed.every((v) => typeof v === "number");
    if (!numeric || allowed.length < 3) return `${symbol} = ${allowed.map(shown).join(", ")}`;
    return `${symbol} = ${shown(Math.min(...allowed))} … ${shown(Math.max(...allowed))}`;
  }).join(", ");
}

function say() {
  const found = report.cellRows.filter((row) => matches(row, report.picked));
  const values = found.map((row) => row[report.outcome]).filter((v) => typeof v === "number");
  const mean = values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  const words = report.picked ? `${describe(report.picked)}: ${found.length} cells, ${report.labels[report.outcome].name} ${shown(mean)}` : "selection cleared";
  document.getElementById("live").textContent = words;
}

// A clicked mark as a selection; only values that are settings count (a boundary's height is not one).
function pickOf(figure, datum) {
  const next = {};
  for (const [column, setting] of Object.entries(figure.link)) {
    const value = datum[column];
    if ((report.values[setting] || []).includes(value)) next[setting] = [value];
  }
  if (!Object.keys(next).length) return null;
  for (const [setting, value] of Object.entries(figure.fixed || {})) next[setting] = [value];
  return next;
}

function same(a, b) { return JSON.stringify(a) === JSON.stringify(b); }

async function draw(figure) {
  const node = document.querySelector(`#figure-${CSS.escape(figure.name)} .plot`);
  const spec = structuredClone(figure.chart);
  const look = report.themes[theme()];
  spec.params = [...look.params.map((p) => (p.name === "picked" ? { ...p, value: pickedFor(figure) } : p)), ...(spec.params || [])];
  spec.datasets = figure.rows;
  spec.width = "container";
  spec.height = figure.height > 300 ? Math.min(figure.height, Math.max(260, Math.round(node.clientWidth * 0.95))) : figure.height;
  spec.autosize = { type: "fit-x", contains: "padding" };
  report.touch = matchMedia("(pointer: coarse)").matches;
  if (figure.brush && !report.touch) {
    const select = { type: "interval", mark: { fillOpacity: 0.08, strokeWidth: 1.5, stroke: look.ink, fill: look.ink } };
    spec.layer[0].params = [{ name: "brush", select }];
  }
  const config = structuredClone(look.config);
  config.range.ordinal = figure.ordinal[theme()];
  const count = Object.values(figure.rows).reduce((n, rows) => n + rows.length, 0);
  const options = { config, actions: false, ast: true, renderer: count > 2500 ? "canvas" : "svg", tooltip: { theme: "custom" } };
  const { view } = await vegaEmbed(node, spec, options);
  report.views.set(figure.name, view);
  let down = null;
  node.onpointerdown = (e) => { down = [e.clientX, e.clientY]; };
  view.addEventListener("click", (event, item) => {
    if (!item || !item.datum || (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 5)) return;
    const next = pickOf(figure, item.datum);
    if (next) pick(same(next, report.picked) ? null : next);
  });
  if (figure.brush && !report.touch) {
    let drawn = null;
    view.addSignalListener("brush", (name, range) => { drawn = range && range.x_low && range.y_low ? range : null; });
    node.onpointerup = () => setTimeout(() => {  // after Vega has seen the release
      if (!drawn) return;
      pick(pickOfRange(figure, drawn));
      drawn = null;
      view.data("brush_store", []).runAsync();
    });
  }
}

function pickOfRange(figure, range) {
  const next = {};
  for (const axis of ["x", "y"]) {
    const [a, b] = [...range[`${axis}_low`]].sort((p, q) => p - q);
    const inside = figure.rows.cells.filter((row) => row[`${axis}_high`] > a && row[`${axis}_low`] < b).map((row) => row[axis]);
    next[figure.link[axis]] = [...new Set(inside)];
  }
  for (const [setting, value] of Object.entries(figure.fixed || {})) next[setting] = [value];
  return next;
}

// Arrow keys walk over the cells of a focused phase diagram.
function walk(figure, event) {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!step || !figure.brush) return;
  event.preventDefault();
  const xs = [...new Set(figure.rows.cells.map((row) => row.x))];
  const ys = [...new Set(figure.rows.cells.map((row) => row.y))];
  const now = report.picked || {};
  const at = (list, name) => (now[name] && now[name].length === 1 ? list.indexOf(now[name][0]) : -1);
  let i = at(xs, figure.link.x), j = at(ys, figure.link.y);
  if (i < 0 || j < 0) [i, j] = [0, 0];
  else [i, j] = [Math.min(Math.max(i + step[0], 0), xs.length - 1), Math.min(Math.max(j + step[1], 0), ys.length - 1)];
  const next = { [figure.link.x]: [xs[i]], [figure.link.y]: [ys[j]] };
  for (const [setting, value] of Object.entries(figure.fixed || {})) next[setting] = [value];
  pick(next);
}

function download(name, text, type) {
  const link = document.createElement("a");
  link.href = type === "url" ? text : URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
}

function csv(rows, names) {
  const quote = (v) => { const s = v === null || v === undefined ? "" : String(v); return /[",\r\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s; };
  return [names, ...rows.map((row) => names.map((n) => row[n]))].map((line) => line.map(quote).join(",")).join("\n") + "\n";
}

async function save(figure, kind) {
  const view = report.views.get(figure.name);
  if (kind === "svg") download(`${figure.name}.svg`, await view.toSVG(), "image/svg+xml");
  if (kind === "png") download(`${figure.name}.png`, await view.toImageURL("png", 3), "url");
  if (kind === "csv") {
    const [name, rows] = Object.entries(figure.rows)[0];
    download(`${figure.name}-${name}.csv`, csv(rows, Object.keys(figure.tables[name])), "text/csv");
  }
}

async function drawAll() {
  for (const figure of report.figures) {
    try { await draw(figure); } catch (error) { report.errors.push(`${figure.name}: ${error.message}`); console.error(error); }
  }
  document.documentElement.dataset.ready = "yes";
}

function setTheme(next) {
  document.documentElement.dataset.theme = next;
  const button = document.getElementById("theme");
  button.textContent = next === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `switch to ${next === "dark" ? "light" : "dark"} colours`);
}

document.addEventListener("DOMContentLoaded", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  const change = async (next) => { setTheme(next); await drawAll(); for (const follow of report.followers) follow(); };
  dark.addEventListener("change", (e) => change(e.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => change(theme() === "dark" ? "light" : "dark"));
  document.addEventListener("keydown", (e) => { if (e.key === "Escape" && report.picked) pick(null); });
  for (const figure of report.figures) {
    const node = document.getElementById(`figure-${figure.name}`);
    node.querySelector(".plot").addEventListener("keydown", (e) => walk(figure, e));
    for (const button of node.querySelectorAll("[data-save]")) button.addEventListener("click", () => save(figure, button.dataset.save));
  }
  for (const start of report.starts || []) start();
  drawAll();
});
