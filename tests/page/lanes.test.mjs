// What was recorded of an answer, as rounds and as lanes on one clock.
import assert from "node:assert/strict";
import test from "node:test";
import { readAnswer } from "../../assets/ui/answer/records.js";
import { clockOf, laneOf, placeAt, roundsOf, wordOf } from "../../assets/ui/replay/lanes.js";

const lines = (...records) => records.map(one => `${JSON.stringify(one)}\n`).join("");
const token = (r, t, s) => ({ k: "t", i: 1, t, s, r, n: 0, p: 0.5 });
const gone = (r, t, judged) => ({ k: "x", i: 2, t, s: "direct", r, n: 0, ...(judged ? { j: true } : {}) });
const recorded = lines(
  { k: "r", r: 0, d: 3, s: [10, 20, 3, 2], o: [["drafter", 3, 2, 1.5, 0.4, true]] },
  token(0, "a", "direct"),
  gone(0, "no", true),
  gone(0, "never", false),
  token(0, "b", "corrected"),
  { k: "r", r: 1, d: 0, s: [0, 20, 0, 5] },
  token(1, "c", "plain"),
);

test("a round has its guesses in their order, what became of each, and what the big model wrote", () => {
  const [first, second] = roundsOf(readAnswer(recorded));
  assert.deepEqual(
    first.guesses.map(one => [one.t, one.state]),
    [
      ["a", "kept"],
      ["no", "wrong"],
      ["never", "unseen"],
    ],
  );
  assert.deepEqual([first.wrote.t, first.tokens.map(one => one.t)], ["b", ["a", "b"]]);
  assert.deepEqual([first.times, first.offers[0][0]], [[10, 20, 5], "drafter"]);
  assert.deepEqual([second.guesses, second.wrote.t, second.offers], [[], "c", null]);
});

test("a lane lays rounds end to end, in microseconds where all were timed", () => {
  const lane = laneOf("with guessing", roundsOf(readAnswer(recorded)), { note: "x" });
  assert.deepEqual([lane.timed, lane.starts, lane.ends, lane.total], [true, [0, 35], [35, 60], 60]);
  assert.deepEqual([lane.written, lane.count, lane.note], [[2, 3], 3, "x"]);
  const [one, other] = roundsOf(readAnswer(recorded));
  const untimed = laneOf("", [one, { ...other, times: null }]);
  assert.deepEqual([untimed.timed, untimed.ends], [false, [1e6, 2e6]]);
});

test("a place on the clock is found between the ends of rounds", () => {
  const found = [0, 34, 35, 59, 60, 99].map(t => placeAt([35, 60], t));
  assert.deepEqual(found, [0, 0, 1, 1, 2, 2]);
});

test("a clock is read in the unit that suits, and a word without letters is still seen", () => {
  assert.deepEqual([500, 2500, 250_000, 12_000_000].map(clockOf), ["0.50 ms", "2.5 ms", "0.25 s", "12.0 s"]);
  assert.deepEqual([" a\n", "  ", "", "\t"].map(wordOf), ["a⏎", "␣", "▫", "⇥"]);
});
