"use strict";
// The number in `512.3 MB` or `+1.20 (-3.40 .. +5.80) GB`, in KB. A text without a number is the lowest.
const UNITS = { KB: 1, MB: 1024, GB: 1024 ** 2, TB: 1024 ** 3 };
const amount = text => {
  const found = text.match(/[-+]?\d[\d.]*/);
  return found ? found[0] * (UNITS[text.match(/[KMGT]B/)] ?? 1) : -Infinity;
};
// A click on a heading sorts the table by that column.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const value = cell => cell.classList.contains("n") ? amount(cell.textContent) : cell.textContent.trim();
  const compare = (a, b) => a === b ? 0 : typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.classList.contains("n") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      body.append(...[...body.rows].sort((a, b) => sign * compare(value(a.cells[column]), value(b.cells[column]))));
    });
  });
}
// A table that does not fit says so.
const measure = () => document.querySelectorAll(".wide").forEach(wide => wide.classList.toggle("scrolls", wide.scrollWidth > wide.clientWidth + 1));
measure();
addEventListener("resize", measure);
// Only processes whose row contains all words of the filter are shown, with their charts.
const rows = [...document.querySelectorAll("#processes tbody tr")];
if (rows.length > 1) {
  const box = document.createElement("div"), input = document.createElement("input"), found = document.createElement("output");
  box.className = "filter";
  input.type = "search";
  input.placeholder = "site, process, pid or verdict";
  input.setAttribute("aria-label", "Filter the processes");
  box.append("Filter ", input, found);
  document.querySelector("#processes").before(box);
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(word => word);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      const link = row.querySelector("a");
      if (link) document.querySelector(link.hash).hidden = row.hidden;
    }
    const shown = rows.filter(row => !row.hidden);
    found.textContent = words.length ? `${shown.length} of ${rows.length} processes` : "";
  };
  input.addEventListener("input", filter);
  filter();
}
// A link to a process unfolds it.
const unfold = () => document.querySelector(location.hash || "main")?.querySelector(":scope > details")?.setAttribute("open", "");
addEventListener("hashchange", unfold);
unfold();
// Tables have no size while they are folded.
for (const details of document.querySelectorAll("article > details")) details.addEventListener("toggle", measure);
