// What the measuring tabs share: polling while visible, fields, cells of tables, downloads.
import { clickable, el } from "./dom.js";
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

// Calls `act` when the width of `host` has changed.
export const whenResized = (host, act) => {
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (Math.abs(now - width) <= 4) return;
    width = now;
    act();
  }).observe(host);
};
// A panel that somebody asks for: a button that calls `ask`, and what the server then says, drawn by `draw` as nodes, until it is hidden.
// The pickers change it too, whether anybody looks or not.
export const askedPanel = (host, title, ask, draw) => {
  let wanted = false;
  const body = el("div.body", { "aria-live": "polite" });
  const fold = on => {
    wanted = !on;
    body.hidden = close.hidden = on;
    open.hidden = !on;
  };
  const open = clickable("toggle", title, () => {
      wanted = true;
      ask();
    }),
    close = clickable("link", "Hide", () => fold(true));
  host.append(el("div.line", open, close), body);
  fold(true);
  return {
    update: value => {
      if (!wanted) return;
      body.replaceChildren(...draw(JSON.parse(value)).filter(Boolean));
      fold(false);
    },
  };
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
export const field = (label, control) => el("label.field", el("span", label), control);
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
