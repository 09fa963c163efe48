// A text as a file of the browser.
import { el } from "./dom.js";

export const saveFile = (text, type, name) => {
  const address = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};
// Text that a spreadsheet would take for a formula gets an apostrophe before it, as in the server's CSV (storage/csv_export.py).
const cell = value => {
  const text = String(value ?? ""),
    safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
export const csvOf = (columns, rows) =>
  [columns, ...rows.map(row => columns.map(name => row[name]))]
    .map(cells => `${cells.map(cell).join(",")}\r\n`)
    .join("");
// The mark at the beginning tells spreadsheets the encoding.
export const saveCsv = (name, columns, rows) =>
  saveFile(`\ufeff${csvOf(columns, rows)}`, "text/csv", `${name}.csv`);
