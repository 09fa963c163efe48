// An answer's Markdown: the server's tree as elements, and what of it is never made.
import assert from "node:assert/strict";
import test from "node:test";
import { box } from "./dom.mjs";
import { drawMarkdown } from "../../assets/ui/shared/markdown.js";

const drawn = (blocks, more = {}, at = box()) => {
  drawMarkdown(at, { blocks, open: [], text: "", read: 0, ...more }, false);
  return at;
};

test("only listed elements are made, and all else is text", () => {
  const at = drawn([
    ["p", ["a ", ["strong", ["b"]], ["script", ["alert(1)"]], ["img", []], 3, null]],
    ["h1", ["<i>title</i>"]],
  ]);
  assert.equal(at.outline, "<main><p>a <strong>b</></><h3><i>title</i></></>");
});

test("a link leads to the web or to a letter, and nowhere else", () => {
  const href = given => drawn([["p", [["a", ["x"], given]]]]).lastChild.lastChild.attributes.href;
  assert.equal(href("https://example.org/a"), "https://example.org/a");
  assert.equal(href("mailto:a@example.org"), "mailto:a@example.org");
  for (const given of ["javascript:alert(1)", " https://x", "data:text/html,x", "//example.org", null])
    assert.equal(href(given), undefined);
});

test("what is there already stays the same nodes while the answer grows", () => {
  const at = drawn([], { open: [["ul", [["li", ["one"]]]]], text: "one", read: 3 });
  const item = at.lastChild.lastChild;
  drawn(
    [],
    {
      open: [
        [
          "ul",
          [
            ["li", ["one more"]],
            ["li", ["two"]],
          ],
        ],
      ],
      text: "one more",
      read: 8,
    },
    at,
  );
  assert.equal(at.lastChild.childNodes[0], item);
  assert.equal(at.outline, "<main><ul><li>one more</><li>two</></></>");
});

test("text that the tree has not read yet goes on where it stands", () => {
  const at = drawn([["p", ["first"]]], { open: [["p", ["sec"]]], text: "firstsecond", read: 8 });
  assert.equal(at.outline, "<main><p>first</><p>sec<span>ond</></></>");
  drawn(
    [
      ["p", ["first"]],
      ["p", ["second"]],
    ],
    { text: "firstsecond", read: 11 },
    at,
  );
  assert.equal(at.outline, "<main><p>first</><p>second</></>");
});

test("a tree that is too deep ends", () => {
  let deep = "end";
  for (let i = 0; i < 1000; i += 1) deep = ["em", [deep]];
  assert.ok(drawn([["p", [deep]]]).outline.split("<em>").length <= 121);
});
