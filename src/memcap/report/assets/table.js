// The per-cell table: sorted by a heading, filtered by words and comparisons and by the shared selection.
"use strict";
report.starts = [...(report.starts || []), startTable];

const PAGE = 60;
const OPERATORS = { "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "!=": (a, b) => a !== b, "=": (a, b) => a === b, "<": (a, b) => a < b, ">": (a, b) => a > b };

// `dimension>=32 failed` -> tests that a row must pass; a comparison on an unknown column is reported, not ignored.
function parseFilter(text) {
  const tests = [], problems = [];
  for (const term of text.trim().split(/\s+/).filter(Boolean)) {
    const found = term.match(/^([^<>=!]+)(<=|>=|!=|=|<|>)(.+)$/);
    if (!found) { tests.push((row) => row.text.includes(term.toLowerCase())); continue; }
    const name = Object.keys(report.cells.columns).find((c) => c === found[1] || (report.labels[c] && report.labels[c].symbol === found[1]));
    if (!name) { problems.push(found[1]); continue; }
    const wanted = found[3].replaceAll(",", "");
    const number = Number(wanted);
    tests.push((row) => {
      const value = row.cell[name];
      if (value === null || value === undefined) return false;
      return typeof value === "number" && !Number.isNaN(number) ? OPERATORS[found[2]](value, number) : OPERATORS[found[2]](String(value), found[3]);
    });
  }
  return { tests, problems };
}

function startTable() {
  const table = document.getElementById("cells");
  if (!table) return;
  const body = table.tBodies[0], input = document.getElementById("filter"), count = document.getElementById("count");
  const more = document.getElementById("more");
  const names = report.cells.shown;
  const rows = report.cellRows.map((cell) => ({ cell, text: names.map((n) => `${n}=${cell[n]} ${cell[n]}`).join(" ").toLowerCase() }));
  let sort = { name: null, up: true }, limit = PAGE, found = rows;

  function apply() {
    const { tests, problems } = parseFilter(input.value);
    found = rows.filter((row) => matches(row.cell, report.picked) && tests.every((test) => test(row)));
    if (sort.name) {
      const key = (row) => row.cell[sort.name];
      const sign = sort.up ? 1 : -1;  // cells without a value come last in both directions
      const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -sign : sign);
      found = [...found].sort((p, q) => compare(key(p), key(q)));
    }
    const known = problems.length ? `no column ${problems.join(", ")}; ` : "";
    const among = report.picked ? ` with ${describe(report.picked)}` : "";
    count.textContent = `${known}${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} cells${among}`;
    input.setAttribute("aria-invalid", problems.length ? "true" : "false");
    document.getElementById("clear").hidden = !report.picked && !input.value;
    fill();
  }

  function fill() {
    body.replaceChildren(...found.slice(0, limit).map(({ cell }) => {
      const line = document.createElement("tr");
      line.tabIndex = 0;
      line.dataset.cell = cell.cell;
      for (const name of names) {
        const box = line.insertCell();
        if (name === "state") {
          const mark = document.createElement("span");
          mark.className = `state ${cell.state}`;
          mark.textContent = cell.state;
          box.append(mark);
          box.className = "text";
        } else {
          box.textContent = shown(cell[name]);
          box.className = report.cells.text.includes(name) ? (name === "error" ? "long" : "text") : "";
        }
      }
      const choose = () => pick(Object.fromEntries(report.cells.axes.map((n) => [n, [cell[n]]])));
      line.addEventListener("click", choose);
      line.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(); } });
      return line;
    }));
    more.hidden = found.length <= limit;
    more.textContent = `Show more (${(found.length - limit).toLocaleString("en")} left)`;
  }

  table.tHead.addEventListener("click", (e) => {
    const head = e.target.closest("th");
    if (!head) return;
    sort = { name: head.dataset.name, up: sort.name === head.dataset.name ? !sort.up : true };
    for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sort.up ? "ascending" : "descending");
    apply();
  });
  input.addEventListener("input", () => { limit = PAGE; apply(); });
  more.addEventListener("click", () => { limit += 10 * PAGE; fill(); });
  document.getElementById("clear").addEventListener("click", () => { input.value = ""; if (report.picked) pick(null); else apply(); });
  document.getElementById("csv").addEventListener("click", () => download("cells.csv", csv(found.map((r) => r.cell), Object.keys(report.cells.columns)), "text/csv"));
  report.followers.push(() => { limit = PAGE; apply(); });
  apply();
}
