// Elements and drawings. Text always goes through textContent.
import { plural } from "./format.js";

// What `el` and `fill` put into an element: nodes, texts, and lists of these; what is null, undefined or false is left out.
const nodes = children =>
  children.flat().filter(child => child !== null && child !== undefined && child !== false);
export const fill = (node, ...children) => node.replaceChildren(...nodes(children));
// An element, as in el("p.small.warn", { title: "…" }, "text", node): tag and classes, attributes if any, children.
export const el = (what, ...rest) => {
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") classes.push(value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  if (classes.length) node.className = classes.join(" ");
  node.append(...nodes(rest));
  return node;
};
// Shows a sentence; without one its element is hidden.
export const say = (node, text) => {
  node.textContent = text ?? "";
  node.hidden = !text;
};
// A tab's heading, for who hears the page: its name stands on its tab already.
export const heading = name => el("h2.omni-offscreen", name);
// A button: its class, what stands on it (one node or text, or a list), what a press does, and further attributes.
export const clickable = (cls, face, onclick = null, more = {}) =>
  el("button", { type: "button", class: cls || null, onclick, ...more }, face);

export const svg = (tag, attributes = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
// A picture of one line, 16 by 16, and a button that shows nothing else.
export const picture = (path, cls = "") =>
  svg("svg", { viewBox: "0 0 16 16", class: cls, "aria-hidden": "true" }, svg("path", { d: path }));
export const icon = (cls, label, path, act, title = label) =>
  clickable(`icon ${cls}`, picture(path), act, { "aria-label": label, title });
// What is said where the pointer rests on a part of a drawing.
export const hint = text => (text ? [svg("title", {}, text)] : []);
// Whether a key belongs to an input method, such as the Enter that takes its proposal. Safari says so by the code alone.
export const composing = event => event.isComposing || event.keyCode === 229;
// How many tokens were written in how many steps of the big model.
export const counted = (steps, tokens) => [
  el("b", { title: "Tokens of the answer" }, plural(tokens, "token")),
  " in ",
  el("b", { title: "Steps of the big model" }, plural(steps, "step")),
];
// A press beside a dialog closes it, but not the second of two presses that opened it.
export const closesBeside = box =>
  box.addEventListener("click", event => {
    if (event.target === box && event.detail < 2) box.close();
  });
// Three dots: something is waited for.
export const dots = () => el("span.dots", { "aria-hidden": "true" }, el("i"), el("i"), el("i"));
// Whether less motion is asked for.
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
// An empty drawing for eye and screen reader, and what draws into it.
export const drawing = (width, height, cls, label) => {
  const size = { viewBox: `0 0 ${width} ${height}`, width, height },
    node = svg("svg", { ...size, class: `drawn ${cls}`, role: "img", "aria-label": label });
  const write = (text, x, y, kind, anchor = "start") =>
    node.append(svg("text", { x, y, class: kind, "text-anchor": anchor }, text));
  // What stands at a line or point is said where the pointer rests on it.
  const line = (x1, y1, x2, y2, kind, said = null) =>
    node.append(svg("line", { x1, y1, x2, y2, class: kind }, ...hint(said)));
  const point = (cx, cy, r, kind, said) =>
    node.append(svg("circle", { cx, cy, r, class: kind }, ...hint(said)));
  const path = (points, kind) =>
    node.append(svg("polyline", { points: points.map(at => at.join(",")).join(" "), class: kind }));
  return { node, write, line, point, path };
};

// A bar that fills: its node, and what sets the share of it, 0 to 1.
export const makeMeter = (label, tag = "div") => {
  const fill = el("i"),
    node = el(
      tag,
      { class: "meter", role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 },
      fill,
    );
  return {
    node,
    set: share => {
      fill.style.width = `${100 * share}%`;
      node.setAttribute("aria-valuenow", Math.round(100 * share));
    },
  };
};
