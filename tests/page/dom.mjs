// As much of a browser's document as the page's Markdown and tokens need.
class Text {
  nodeType = 3;
  constructor(text) {
    this.data = text;
  }
  get textContent() {
    return this.data;
  }
  appendData(text) {
    this.data += text;
  }
}
class Element {
  nodeType = 1;
  childNodes = [];
  attributes = {};
  style = {};
  className = "";
  constructor(tag) {
    this.tagName = tag.toUpperCase();
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  addEventListener() {}
  append(...nodes) {
    for (const node of nodes) {
      const made = typeof node === "string" ? new Text(node) : node;
      made.parent = this;
      this.childNodes.push(made);
    }
  }
  replaceChildren(...nodes) {
    this.childNodes = [];
    this.append(...nodes);
  }
  get childElementCount() {
    return this.childNodes.filter(node => node.nodeType === 1).length;
  }
  classList = { toggle: () => {} };
  get lastChild() {
    return this.childNodes.at(-1) ?? null;
  }
  get lastElementChild() {
    return this.childNodes.findLast(node => node.nodeType === 1) ?? null;
  }
  get textContent() {
    return this.childNodes.map(node => node.textContent).join("");
  }
  set textContent(text) {
    this.childNodes = [];
    if (text) this.append(text);
  }
  // The tree as text, to compare it.
  get outline() {
    const inside = this.childNodes.map(node => node.outline ?? node.data).join("");
    return `<${this.tagName.toLowerCase()}>${inside}</>`;
  }
}
for (const kind of [Text, Element]) {
  kind.prototype.remove = function () {
    this.parent.childNodes.splice(this.parent.childNodes.indexOf(this), 1);
  };
  kind.prototype.replaceWith = function (node) {
    node.parent = this.parent;
    this.parent.childNodes.splice(this.parent.childNodes.indexOf(this), 1, node);
  };
}
globalThis.Node = { TEXT_NODE: 3 };
globalThis.document = {
  createElement: tag => new Element(tag),
  createTextNode: text => new Text(text),
  getElementById: () => ({ textContent: '{"legend": []}' }),
  addEventListener: () => {},
};
export const box = () => new Element("main");
