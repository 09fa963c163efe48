// What the measuring tabs share: polling while visible, fields, cells of tables, downloads.
import { clickable, el } from "./dom.js";
import { joined } from "./format.js";
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

// A moment, given as text or in milliseconds.
export const when = moment => {
  const at = new Date(moment),
    now = new Date();
  if (Number.isNaN(+at)) return String(moment ?? "–");
  const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const year = at.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return at.toDateString() === now.toDateString()
    ? clock
    : `${at.toLocaleDateString([], { month: "short", day: "numeric", year })} ${clock}`;
};
export const topicTitle = name => labels.topics[name] ?? name;
export const methodTitle = name => labels.methods[name]?.title ?? name;
export const field = (label, control) => el("label.field", el("span", label), control);
export const select = (label, options, value, act) =>
  el(
    "select",
    { "aria-label": label, onchange: event => act(event.target.value) },
    options.map(([key, title]) => el("option", { value: key, selected: key === value }, title)),
  );
const looks = (number, cls) => joined([number && "num", cls], " ") || null;
export const th = (title, help = null, number = false, cls = "") =>
  el("th", { scope: "col", title: help, class: looks(number, cls) }, title);
export const td = (value, number = false, more = {}) =>
  el("td", { ...more, class: looks(number, more.class) }, value);
export const table = (heads, rows = [], caption = null) =>
  el("table", caption, el("thead", el("tr", heads)), el("tbody", rows));
export const tick = (label, checked, act) =>
  el("input", {
    type: "checkbox",
    "aria-label": label,
    checked,
    onchange: event => act(event.target.checked),
  });
// A question before something is lost: its box, and `ask(sentence, act)`. Esc and the second button keep everything.
export const makeQuestion = (name, yes, no) => {
  let act = null,
    opener = null;
  const words = el("p"),
    close = () => {
      box.hidden = true;
      if (opener?.isConnected) opener.focus();
    };
  const keep = clickable("", no, close);
  const go = clickable("danger", yes, () => {
    close();
    act();
  });
  const onkeydown = event => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    close();
  };
  const about = { role: "alertdialog", "aria-label": name, hidden: true, onkeydown },
    box = el("div.really", about, words, el("div.acts", go, keep));
  const ask = (sentence, then) => {
    [act, opener] = [then, document.activeElement];
    words.textContent = sentence;
    box.hidden = false;
    keep.focus();
  };
  return { box, ask };
};
