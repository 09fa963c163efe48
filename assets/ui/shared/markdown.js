// An answer's Markdown: the server's tree of texts and named elements (ui/markdown_tree.py) as nodes. Only what is listed here is made, and
// no text is parsed as HTML. What is there already is changed in place, so that nothing flickers while an answer grows.
import { copyButton } from "./copy.js";
import { el } from "./dom.js";

const SAME = "p ul ol li blockquote strong em del code br hr table thead tbody tr th td a span".split(" ");
const HEADS = { h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6" }; // below the page's own headings
const TAGS = { ...Object.fromEntries(SAME.map(name => [name, name])), ...HEADS };
const ANY_WAY = ["p", "h3", "h4", "h5", "h6", "ul", "ol", "blockquote", "table"]; // written from the right or the left, as their text is
const FLOWS = ["P", "H3", "H4", "H5", "H6", "LI", "UL", "OL", "BLOCKQUOTE", "TD", "TH"]; // that the text may go on in
const KINDS = ["comment", "keyword", "text", "number", "name"]; // of parts of code (ui/code_colours.py)
const DEEPEST = 120;

const known = node =>
  Array.isArray(node) && (node[0] === "fence" || Object.hasOwn(TAGS, node[0])) && Array.isArray(node[1]);
const address = given => (/^(https?:\/\/|mailto:)/i.test(given) ? String(given) : null);
const kind = ([name, , attribute]) => (name === "fence" ? name : `${name} ${attribute ?? ""}`);
const make = ([name, , attribute]) => {
  if (name === "fence") {
    const code = el("code"),
      label = el("span");
    const copy = copyButton(() => code.textContent, "Copy", "Copy this code"),
      box = el("pre", { tabindex: 0, role: "group", "aria-label": "Code" }, code);
    const made = el("figure.code", { dir: "ltr" }, el("figcaption", label, copy), box);
    return Object.assign(made, { inner: code, label });
  }
  const tag = TAGS[name],
    given = {};
  if (ANY_WAY.includes(tag)) given.dir = "auto";
  const href = tag === "a" && address(attribute);
  if (href) Object.assign(given, { href, target: "_blank", rel: "noopener noreferrer", title: href });
  if (tag === "ol" && Number.isInteger(attribute)) given.start = attribute;
  if (tag === "span" && KINDS.includes(attribute)) given.class = `code-${attribute}`;
  const inner = el(tag, given);
  if ((tag === "th" || tag === "td") && ["left", "right", "center"].includes(attribute))
    inner.style.textAlign = attribute;
  if (tag !== "table") return Object.assign(inner, { inner });
  const box = el("div.md-table", { tabindex: 0, role: "group", "aria-label": "Table" }, inner);
  return Object.assign(box, { inner });
};
// The children of a box from a place on.
const put = (box, from, nodes, depth = 0) => {
  nodes.forEach((node, place) => {
    let there = box.childNodes[from + place];
    const element = known(node) && depth < DEEPEST,
      text = element ? "" : typeof node === "string" ? node : "";
    if (!there || (element ? there.kind !== kind(node) : there.nodeType !== Node.TEXT_NODE)) {
      const made = element ? Object.assign(make(node), { kind: kind(node) }) : document.createTextNode(text);
      if (there) there.replaceWith(made);
      else box.append(made);
      there = made;
    }
    if (element) {
      if (there.label) there.label.textContent = String(node[2] ?? "") || "code";
      put(there.inner, 0, node[1], depth + 1);
    } else if (there.data !== text) {
      if (text.startsWith(there.data)) there.appendData(text.slice(there.data.length));
      else there.data = text;
    }
  });
  while (box.childNodes.length > from + nodes.length) box.lastChild.remove();
};
// Where the text goes on: in the last open block, and there in the last of what it holds.
const end = (box, open) => {
  let at = open ? box.lastChild : null;
  if (!at) return null;
  if (at.label) return at.inner;
  if (!FLOWS.includes(at.tagName)) return null;
  while (at.lastElementChild && (FLOWS.includes(at.lastElementChild.tagName) || at.lastElementChild.label))
    at = at.lastElementChild.inner;
  return at;
};

// Brings a box up to date with an answer; `live`: it is being written.
export const drawMarkdown = (box, answer, live) => {
  const settled = box.settled ?? 0;
  put(box, settled, [...answer.blocks.slice(settled), ...answer.open]);
  box.settled = answer.blocks.length;
  const rest = answer.text.slice(answer.read),
    place = /^\s*\n/.test(rest) ? null : end(box, answer.open.length);
  const tail = [rest ? el("span.tail", rest) : "", live ? el("i.caret", { "aria-hidden": "true" }) : ""];
  if (place) place.append(...tail);
  else if (rest.trim() || live) box.append(el("p.plain", { dir: "auto" }, ...tail));
};
