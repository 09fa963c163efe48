// What the measuring tabs share: polling while visible, fields, cells of tables, downloads.
import { el } from "./dom.js";
import { labels } from "./labels.js";

// Calls `act` when `host` comes into view and, if `ms` is given, again every `ms` while it stays there.
export const whileVisible = (host, ms, act) => {
  const visible = () => host.offsetParent !== null && !document.hidden;
  let was = false;
  const look = () => {
    if (!host.isConnected) return clearInterval(clock);
    const now = visible();
    if (now && (!was || (ms && Date.now() - last >= ms))) {
      last = Date.now();
      act();
    }
    was = now;
  };
  let last = 0;
  const clock = setInterval(look, 200);
};

// Presses the hidden button that has just been given a file.
export const pressDownload = id => {
  const press = tries => {
    const box = document.getElementById(id),
      link = box?.matches("a, button") ? box : box?.querySelector("a, button");
    if (link) link.click();
    else if (tries) setTimeout(() => press(tries - 1), 100);
  };
  setTimeout(() => press(20), 100);
};

export const when = iso => {
  const at = new Date(iso);
  if (Number.isNaN(+at)) return String(iso ?? "–");
  const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return at.toDateString() === new Date().toDateString()
    ? clock
    : `${at.toLocaleDateString([], { month: "short", day: "numeric" })} ${clock}`;
};
export const methodTitle = name => labels.methods[name]?.title ?? name;
export const field = (label, control) => el("label", { class: "field" }, el("span", {}, label), control);
export const select = (label, options, value, onchange) => {
  const box = el(
    "select",
    { "aria-label": label, onchange: () => onchange(box.value) },
    ...options.map(([key, title]) => el("option", { value: key, selected: key === value }, title)),
  );
  return box;
};
export const th = (title, help = null, number = false) =>
  el("th", { scope: "col", title: help, class: number ? "num" : null }, title);
export const td = (value, number = false, extra = {}) =>
  el("td", { ...extra, class: [number ? "num" : "", extra.class ?? ""].join(" ").trim() || null }, value);
