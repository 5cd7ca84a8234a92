"use strict";
for (const link of document.querySelectorAll(".card a")) {
  const place = document.querySelector(`${link.hash} .thumb`); // copy the plot from the gallery, so that it is stored once
  if (place) place.append(link.firstElementChild.cloneNode(true));
}
// Clicking a heading sorts the table ascending, then descending; numbers by value, missing values last.
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const headings = [...heading.parentNode.children];
    const column = headings.indexOf(heading);
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of headings) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = heading.closest("table").tBodies[0];
    const key = (row) => row.cells[column].dataset.key;
    const missing = (text) => text === "" || text === "nan";
    const order = (a, b) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const difference = Number(a) - Number(b);
      const sign = Number.isNaN(difference) ? a.localeCompare(b, undefined, { numeric: true }) : difference;
      return up ? sign : -sign;
    };
    body.append(...[...body.rows].sort((a, b) => order(key(a), key(b))));
  });
}
