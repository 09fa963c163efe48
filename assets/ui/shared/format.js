// Texts and numbers as the page writes them.

export const random = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("");

// Half a character, as some programs paste it, becomes what is shown for it; the server takes whole ones alone.
export const whole = value =>
  typeof value === "string" && value.toWellFormed ? value.toWellFormed() : value;
const formats = {
  number: x => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2)),
  percent: x => `${(100 * x).toFixed(0)} %`,
  share: x => `${(100 * x).toFixed(1)} %`,
  seconds: x => (x < 1 ? `${Math.round(1000 * x)} ms` : `${x.toFixed(1)} s`),
  milliseconds: x => `${formats.number(1000 * x)} ms`,
  count: x => Math.round(x).toLocaleString("en"),
  times: x => `${x.toFixed(2)} ×`,
  loss: x => x.toFixed(3),
};
export const format = (value, form) =>
  value === null || value === undefined || Number.isNaN(value) ? "–" : formats[form](value);
export const ordinal = n =>
  `${n}${n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th")}`;
export const capital = text => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
// What there is of some parts, in one line.
export const joined = (parts, by = " · ") => parts.filter(Boolean).join(by);
export const plural = (n, word) => `${format(n, "count")} ${word}${Math.round(n) === 1 ? "" : "s"}`;
