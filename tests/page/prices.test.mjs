// What guessing brings by a cost table.
import assert from "node:assert/strict";
import test from "node:test";
import "./dom.mjs";
import { timesOf, tokensOf } from "../../assets/ui/adaptation/prices.js";

test("tokens a step are one, and each guess with all before it right", () => {
  assert.equal(tokensOf(0, 5), 1);
  assert.equal(tokensOf(1, 5), 6);
  assert.ok(Math.abs(tokensOf(0.5, 2) - 1.75) < 1e-12);
});

test("longer drafts pay until their cost outgrows what they bring", () => {
  const costs = Array.from({ length: 13 }, (_, n) => 1 + 0.1 * n),
    times = timesOf(0.6, costs),
    best = times.indexOf(Math.max(...times));
  assert.equal(times[0], 1);
  assert.ok(best > 0 && best < 12 && times[best] > times[12]);
  assert.ok(Math.max(...timesOf(0, costs)) === 1, "without a right guess nothing pays");
});
