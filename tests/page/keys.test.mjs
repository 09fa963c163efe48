// Keys that belong to an input method.
import assert from "node:assert/strict";
import test from "node:test";
import "./dom.mjs";
import { composing } from "../../assets/ui/shared/dom.js";

test("a key of an input method is known in every browser", () => {
  const found = (isComposing, keyCode) => composing({ key: "Enter", isComposing, keyCode });
  assert.deepEqual([found(true, 229), found(false, 229), found(true, 13)], [true, true, true]); // the second is Safari's
  assert.equal(found(false, 13), false);
});
