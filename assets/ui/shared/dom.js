// Elements and drawings. Text always goes through textContent.

// An element, as in el("p.small.warn", { title: "…" }, "text", node): tag and classes, attributes if any, children. What is null is left out.
export const el = (what, ...rest) => {
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") classes.push(value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  if (classes.length) node.className = classes.join(" ");
  for (const child of rest) if (child !== null && child !== undefined) node.append(child);
  return node;
};
// A button: its class, what stands on it (one node or text, or a list), what a press does, and further attributes.
export const clickable = (cls, face, onclick = null, more = {}) =>
  el("button", { type: "button", class: cls || null, onclick, ...more }, ...[face].flat());

export const svg = (tag, attributes = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
// An empty drawing for eye and screen reader, and what writes into it.
export const drawing = (width, height, cls, label) => {
  const node = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    class: cls,
    role: "img",
    "aria-label": label,
  });
  const write = (text, x, y, kind, anchor = "start") => {
    const words = svg("text", { x, y, class: kind, "text-anchor": anchor });
    words.textContent = text;
    node.append(words);
  };
  return { node, write };
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
