"use strict";
// A click on a heading sorts the table by that column.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
  const compare = (a, b) => a === b ? 0 : a === "" ? -1 : b === "" ? 1 : isNaN(a - b) ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
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
      body.append(...[...body.rows].sort((a, b) => sign * compare(value(a, column), value(b, column))));
    });
  });
}
// A table that does not fit says so.
const measure = () => document.querySelectorAll(".wide").forEach(wide => wide.classList.toggle("scrolls", wide.scrollWidth > wide.clientWidth + 1));
measure();
addEventListener("resize", measure);
// Only processes whose row contains all words of the filter are shown, with their charts.
const rows = [...document.querySelectorAll("#process-table tbody tr")];
if (rows.length > 1) {
  const box = document.createElement("div"), input = document.createElement("input"), found = document.createElement("output");
  box.className = "filter";
  input.type = "search";
  input.placeholder = "site, process, pid or verdict";
  input.setAttribute("aria-label", "Filter the processes");
  box.append("Filter ", input, found);
  document.querySelector("#process").closest("section").before(box);
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(word => word);
    for (const row of rows) {
      const text = `${row.textContent} ${row.dataset.text}`.toLowerCase();
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
