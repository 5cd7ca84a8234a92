"use strict";
for (const link of document.querySelectorAll(".card a")) {
  const place = document.querySelector(`${link.hash} .thumb`); // copy the plot from the gallery, so that it is stored once
  if (place && !place.firstElementChild) place.append(link.firstElementChild.cloneNode(true));
}

// A click on a picture enlarges it, and offers to save it.
const dialog = document.createElement("dialog");
document.body.append(dialog);
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

function button(text, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", action);
  return made;
}

function save(address, name) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

async function weights(row) { // as stored by Arrays.floats
  const [, prefix, part] = /^(.*)part-(\d+)$/.exec(row.id);
  const { weights: { at }, width, names } = JSON.parse(document.getElementById("page-data").textContent)[prefix];
  const packed = Uint8Array.from(atob(document.getElementById("page-arrays").textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const values = new Float32Array(await new Response(stream).arrayBuffer(), at + 4 * width * part, width);
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return `feature,weight\n${Array.from(values, (value, i) => `${names ? cell(names[i]) : i},${value}`).join("\n")}\n`;
}

async function save_weights(row) {
  const address = URL.createObjectURL(new Blob([await weights(row)], { type: "text/csv" }));
  save(address, `${row.id}.csv`);
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function enlarge(picture, row) {
  const copy = picture.cloneNode(true);
  const buttons = document.createElement("p");
  buttons.className = "buttons";
  if (copy.src) buttons.append(button("Download PNG", () => save(copy.src, `${copy.alt}.png`)));
  if (!picture.closest("ol") && document.getElementById("page-data")) {
    buttons.append(button("Download CSV", () => save_weights(row)));
  }
  buttons.append(button("Close", () => dialog.close()));
  dialog.setAttribute("aria-label", copy.alt || copy.getAttribute("aria-label"));
  dialog.replaceChildren(copy, buttons);
  dialog.showModal();
}

for (const picture of document.querySelectorAll("tbody img, tbody .thumb svg")) {
  const opener = button("", () => enlarge(picture, picture.closest("tr")));
  opener.className = "zoom";
  opener.setAttribute("aria-label", `enlarge ${picture.alt || picture.getAttribute("aria-label")}`);
  picture.replaceWith(opener);
  opener.append(picture);
}
for (const row of document.getElementById("page-data") ? document.querySelectorAll("tbody tr") : []) {
  if (row.querySelector(".thumb")) continue; // its enlarged picture has the button
  const saver = button("CSV", () => save_weights(row));
  saver.className = "csv";
  saver.setAttribute("aria-label", `download part ${row.cells[0].dataset.key} as CSV`);
  row.cells[0].append(saver);
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
