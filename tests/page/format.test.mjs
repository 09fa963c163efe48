// Numbers and words as the page writes them.
import assert from "node:assert/strict";
import test from "node:test";
import { format, plural, random, whole } from "../../assets/ui/shared/format.js";

test("a number has three digits or so, and none is a dash", () => {
  const shown = [1.234, 12.34, 123.4].map(one => format(one, "number"));
  assert.deepEqual(shown, ["1.23", "12.3", "123"]);
  assert.deepEqual(
    [null, undefined, NaN].map(one => format(one, "number")),
    ["–", "–", "–"],
  );
});

test("each form has its unit", () => {
  assert.equal(format(0.256, "percent"), "26 %");
  assert.equal(format(0.2564, "share"), "25.6 %");
  assert.deepEqual([format(0.0123, "seconds"), format(12.34, "seconds")], ["12 ms", "12.3 s"]);
  assert.equal(format(0.0012, "milliseconds"), "1.20 ms");
  assert.deepEqual([format(12345, "count"), format(1.5, "times")], ["12,345", "1.50 ×"]);
});

test("one is singular, all else plural", () => {
  assert.deepEqual(
    [plural(0, "token"), plural(1, "token"), plural(1200, "token")],
    ["0 tokens", "1 token", "1,200 tokens"],
  );
});

test("an id has 32 hexadecimal digits, and no two are the same", () => {
  const made = new Set(Array.from({ length: 100 }, random));
  assert.equal(made.size, 100);
  for (const one of made) assert.match(one, /^[0-9a-f]{32}$/);
});

test(
  "half a character becomes what is shown for it",
  { skip: !"".toWellFormed && "this node has no toWellFormed" },
  () => {
    assert.deepEqual([whole("duck\ud83e"), whole("🦆"), whole(null)], ["duck\ufffd", "🦆", null]);
  },
);
