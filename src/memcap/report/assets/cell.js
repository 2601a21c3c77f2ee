// The panel of the selected cell: its settings, its results by seed, and the curves that run through it.
"use strict";
report.starts = [...(report.starts || []), startCell];

function startCell() {
  const dock = document.getElementById("dock"), minis = document.getElementById("minis");
  const facts = document.getElementById("facts"), title = document.getElementById("picked");
  const axes = report.cells.axes;
  document.getElementById("close").addEventListener("click", () => pick(null));
  report.followers.push(follow);

  function entry(name, value) {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    facts.append(term, text);
  }

  function follow() {
    dock.hidden = !report.picked;
    document.body.classList.toggle("docked", Boolean(report.picked));
    if (!report.picked) return;
    const cells = report.cellRows.filter((row) => matches(row, report.picked));
    title.textContent = `${describe(report.picked)} · ${cells.length} ${cells.length === 1 ? "cell" : "cells"}`;
    facts.replaceChildren();
    for (const name of report.cells.results) {
      const label = report.labels[name], values = cells.map((row) => row[name]).filter((v) => typeof v === "number");
      if (!values.length) continue;
      const mean = values.reduce((a, b) => a + b, 0) / values.length;
      const low = Math.min(...values), high = Math.max(...values);
      const range = values.length > 1 && low !== high ? ` (${shown(Number(low.toPrecision(3)))} … ${shown(Number(high.toPrecision(3)))})` : "";
      entry(label.name, shown(Number(mean.toPrecision(4))) + range);
    }
    const states = {};
    for (const row of cells) states[row.state] = (states[row.state] || 0) + 1;
    entry("cells", Object.entries(states).map(([s, n]) => `${n} ${s}`).join(", "));
    if (cells.length === 1) entry("identity", cells[0].cell);
    for (const error of new Set(cells.map((row) => row.error).filter(Boolean))) entry("error", error);
    curves(cells);
  }

  // Curves run along one axis at the cell's other settings; they need one setting for each of the others.
  function curves(cells) {
    minis.replaceChildren();
    for (const axis of axes) {
      const chart = report.minis[axis];
      const others = axes.filter((name) => name !== axis);
      if (!chart || !cells.length || others.some((name) => new Set(cells.map((row) => row[name])).size !== 1)) continue;
      const line = report.cellRows.filter((row) => others.every((name) => row[name] === cells[0][name]) && typeof row[report.outcome] === "number");
      const rows = line.map((row) => ({ x: row[axis], x_at: report.places[axis][report.values[axis].indexOf(row[axis])], value: row[report.outcome], predicted: report.predicted ? row[report.predicted] : null, here: cells.includes(row) }));
      if (new Set(rows.map((row) => row.x)).size > 1) mini(chart, { points: rows });
    }
    for (const name of report.cells.traces) {
      const rows = cells.flatMap((row) => (row[name] || []).map((value, i) => ({ i, value, seed: row.seed === undefined ? row.cell : row.seed })));
      if (rows.length) mini(report.minis[`trace:${name}`], { points: rows });
    }
  }

  async function mini(chart, rows) {
    const node = document.createElement("div");
    minis.append(node);
    const look = report.themes[theme()];
    const spec = structuredClone(chart);
    Object.assign(spec, { params: look.params, datasets: rows, width: "container", height: 150, autosize: { type: "fit-x", contains: "padding" } });
    try {
      await vegaEmbed(node, spec, { config: look.config, actions: false, ast: true, renderer: "svg", tooltip: { theme: "custom" } });
    } catch (error) { report.errors.push(error.message); console.error(error); }
  }
}
