const { themes, specifications } = JSON.parse(document.getElementById("charts").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const filter = document.getElementById("filter");
const drawn = new Map();

// What is folded has no width: its charts are drawn when it is opened.
async function drawCharts() {
  const scheme = dark.matches ? "dark" : "light";
  document.documentElement.dataset.charts = "drawing";
  const wanted = Object.entries(specifications).filter(
    ([id]) => !drawn.has(id) && document.getElementById(id).checkVisibility(),
  );
  await Promise.all(
    wanted.map(async ([id, specification]) => {
      const chart = await window.vegaEmbed(document.getElementById(id), specification, {
        actions: false,
        ast: true, // no eval, which the page's security policy forbids
        config: themes[scheme],
        renderer: "svg",
        tooltip: { theme: scheme },
      });
      drawn.set(id, chart);
    }),
  );
  document.documentElement.dataset.charts = scheme;
}

function drawAnew() {
  drawn.forEach((chart) => chart.finalize());
  drawn.clear();
  return drawCharts();
}

function reveal() {
  const [id, wanted] = location.hash.slice(1).split("?");
  if (filter) filter.value = new URLSearchParams(`words=${wanted ?? ""}`).get("words") || filter.value;
  if (filter?.value) filterRows();
  const folded = document.getElementById(id);
  for (let one = folded; one; one = one.parentElement) {
    const part = one === folded && one.matches("section") ? one.querySelector(":scope > details") : one;
    if (part?.matches("details")) part.open = true;
  }
  folded?.scrollIntoView();
}

// One at a time: a chart must not be finalized while it is being embedded.
let drawing = drawCharts().then(reveal);
dark.addEventListener("change", () => (drawing = drawing.then(drawAnew)));
document.addEventListener("toggle", () => (drawing = drawing.then(drawCharts)), true);
window.addEventListener("hashchange", reveal);

function sortKey(row, column, numeric) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  if (text === "") return null;
  return numeric ? Number(text) : text;
}

function compare(left, right, direction) {
  if (left === null || right === null) return (left === null) - (right === null);
  const order = typeof left === "number" ? left - right : left.localeCompare(right);
  return order * direction;
}

function sortTable(table, header) {
  const before = header.getAttribute("aria-sort");
  const descending = before ? before === "ascending" : header.classList.contains("down");
  const order = descending ? "descending" : "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  const numeric = header.classList.contains("number");
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [sortKey(row, header.cellIndex, numeric), row]);
  keyed.sort((a, b) => compare(a[0], b[0], descending ? -1 : 1));
  body.append(...keyed.map(([, row]) => row));
  const name = header.querySelector("button").textContent;
  document.getElementById("sorted").textContent = `Sorted by ${name}, ${order}`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const header = event.target.closest("button")?.closest("th");
    if (header) sortTable(table, header);
  });
}

// Words that are typed stand in the address too: it leads to the same rows.
function filterRows() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...document.querySelector("table.sortable").tBodies[0].rows];
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  const shown = rows.filter((row) => !row.hidden).length;
  document.getElementById("shown").textContent = `${shown} of ${rows.length}`;
}
filter?.addEventListener("input", () => {
  filterRows();
  const wanted = filter.value.trim() && `?${encodeURIComponent(filter.value)}`;
  history.replaceState(null, "", `#results${wanted}`);
});
