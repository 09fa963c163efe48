// What guessing brought an answer, in words.
import assert from "node:assert/strict";
import test from "node:test";
import { howFast, outcomeOf, speedNote, verdictOf, whySlower, wild } from "../../assets/ui/answer/outcome.js";

const figures = {
  tokens: 30,
  block_efficiency: 3,
  proposed: 20,
  accepted: 15,
  copies_proposed: 8,
  copied: 8,
};

test("copies and guesses are told apart, and what was thrown away is counted", () => {
  const [first, rest] = outcomeOf({ figures });
  assert.equal(first, "3.00 tokens for one step of the big model");
  assert.equal(
    rest,
    ": of 8 tokens suggested from earlier text, all were right; 7 of the small model’s 12 guesses were right; 5 were thrown away.",
  );
});

test("what the form wrote and changed is told", () => {
  const form = { ...figures, tokens: 86, proposed: 56, accepted: 51, forced: 36, changed: 1 };
  assert.match(
    outcomeOf({ figures: form })[1],
    /^: the form wrote 36 of 86 tokens and changed 1; of 8 tokens/,
  );
  const alone = { tokens: 4, block_efficiency: 2, proposed: 2, accepted: 2, forced: 2, changed: 0 };
  assert.equal(outcomeOf({ figures: alone })[1], ": the form wrote 2 of 4 tokens and changed none.");
});

test("a speed is told only where its runs agree", () => {
  const told = howFast({ speedup: 1.46, low: 1.4, high: 1.5 });
  assert.deepEqual([told.value, told.words, told.side], ["1.5 ×", "the speed without guessing (1.4–1.5)", 1]);
  assert.equal(howFast({ speedup: 0.9, low: 0.85, high: 0.95 }).side, -1);
  assert.equal(howFast({ speedup: 1, low: 0.97, high: 1.05 }).side, 0);
  assert.equal(wild(0.6, 1.8), true);
  assert.deepEqual([howFast({ speedup: 1, low: 0.6, high: 1.8 }), howFast(null)], [null, null]);
});

test("more speed than tokens a step is never shown", () => {
  const shown = (speedup, low, high, perStep) => howFast({ speedup, low, high }, perStep)?.value;
  assert.equal(shown(3.6, 3.1, 3.9, 1.89), undefined); // of an opening, as it was once stored
  assert.equal(shown(1.43, 1.2, 1.5, 1.31), undefined);
  assert.equal(shown(1.9, 1.7, 2.1, 1.88), "1.8 ×"); // within what runs differ by, and never rounded up
  assert.equal(
    howFast({ speedup: 1.9, low: 1.7, high: 2.1 }, 1.88).words,
    "the speed without guessing (1.7–1.9)",
  );
  assert.equal(shown(1.049, 1.01, 1.05, 1.046), "1.04 ×");
  for (let perStep = 1; perStep < 4; perStep += 0.013)
    for (let speedup = 0.5; speedup < 5; speedup += 0.017)
      assert.ok(parseFloat(shown(speedup, speedup, speedup, perStep) ?? 0) <= perStep);
});

test("a speed that is being measured says so, and one that cannot be had says why", () => {
  const said = more => outcomeOf({ figures, ...more })[0];
  assert.equal(said({ measuring: true }), "3.00 tokens for one step of the big model (measuring the speed…)");
  assert.match(
    said({ measuring: true, speed: { why: "newer answers came first" } }),
    /no speed: newer answers/,
  );
  assert.match(said({ speed: { speedup: 1, low: 0.6, high: 1.8 } }), /\(no speed: the machine is busy\)$/);
  assert.match(said({ measuring: true, speed: { speedup: 1.5, low: 1.4, high: 1.6 } }), /1\.5 × the speed/);
  assert.equal(speedNote({ figures: { proposed: 0 }, measuring: true }), "");
});

test("an answer without a guess says why", () => {
  const alone = { ...figures, proposed: 0, accepted: 0, copies_proposed: 0, copied: 0 };
  const why = guessing => outcomeOf({ figures: alone, end: { guessing } })[1];
  assert.match(why("none"), /the method chosen never guesses/);
  assert.match(why("alone"), /would not have been faster here/);
  assert.match(why("on"), /No guess seemed worth a try/);
  assert.equal(outcomeOf({ figures: null }), null);
});

test("a step that took longer is explained by the two figures", () => {
  const tokens = Array.from({ length: 12 }, (_, i) => ({
    k: "t",
    s: i % 4 ? "direct" : "bonus",
    r: Math.floor(i / 4),
  }));
  const answer = {
    figures: { proposed: 9, block_efficiency: 4, draft_seconds: 1, verify_seconds: 3 },
    tokens,
    speed: { speedup: 2, low: 2, high: 2.1 },
  };
  assert.equal(
    whySlower(answer),
    "Each step took 2.0 times as long: it checked up to 3 tokens at once, and guessing took 25 % of its time.",
  );
  assert.equal(whySlower({ ...answer, speed: { speedup: 4, low: 4, high: 4.1 } }), "");
});

test("one line says faster, slower, no gain or that it is being measured", () => {
  const f = { ...figures, tokens: 700, block_efficiency: 2 };
  const told = (speed, awaited, more = {}) => {
    const { side, lead, words } = verdictOf({ figures: f, speed, ...more }, awaited);
    return [side, `${lead} ${words}`];
  };
  assert.deepEqual(told({ speedup: 1.46, low: 1.4, high: 1.5 }), [
    "faster",
    "▲ 1.5 × the speed without guessing (1.4–1.5 ×)",
  ]);
  assert.deepEqual(told({ speedup: 1.46, low: 1.46, high: 1.46, first: 200, tokens: 256 }), [
    "faster",
    "▲ 1.5 × the speed without guessing, measured on 256 tokens from its middle",
  ]);
  assert.deepEqual(told({ speedup: 0.91, low: 0.88, high: 0.94 }), [
    "slower",
    "▼ 9 % slower than without guessing: this text is hard to guess (0.88–0.94 ×)",
  ]);
  assert.equal(told({ speedup: 1, low: 0.97, high: 1.04 })[0], "same");
  assert.deepEqual([told(null, true)[0], told(null, false)[0]], ["measuring", "unknown"]);
  assert.equal(told(null, false, { measuring: true })[0], "measuring");
  assert.match(told({ why: "newer answers came first" }, true)[1], /^2\.00 tokens a step .*newer answers/);
  assert.equal(verdictOf({ figures: { ...f, proposed: 0 } }).lead, "= No guesses");
});
