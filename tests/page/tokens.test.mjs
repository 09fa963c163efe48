// Tokens in a box, and ahead of them the guesses that are being checked.
import assert from "node:assert/strict";
import test from "node:test";
import { box } from "./dom.mjs";
import { newAnswer, readLines } from "../../assets/ui/answer/records.js";
import { appendTokens } from "../../assets/ui/answer/tokens.js";

const texts = (shown, cls) =>
  shown.childNodes
    .filter(node => node.className.split(" ").includes(cls))
    .map(node => node.attributes["data-text"] ?? node.textContent);
// What a box shows after each update of an answer.
const play = updates => {
  const answer = newAnswer(),
    shown = box();
  let drawn = 0;
  const looks = updates.map(lines => {
    const fresh = readLines(answer, lines.map(one => `${JSON.stringify(one)}\n`).join(""));
    appendTokens(shown, fresh, drawn, answer.ahead);
    drawn += fresh.length;
    return ["tok", "s-ahead", "s-fallen"].map(cls => texts(shown, cls));
  });
  return { looks, answer, text: shown.textContent };
};
const token = (t, r, s = "direct") => ({ k: "t", i: 1, t, s, r, n: 0, p: 1 });
const gone = (t, r, j) => ({ k: "x", i: 1, t, s: "direct", r, n: 0, j });
const round = r => ({ k: "r", r, d: 1 });

test("guesses stand ahead of the text, then take their colour or fall away; the text has none of them", () => {
  const { looks, answer, text } = play([
    [{ k: "g", r: 0, t: ["a", " b", " c"] }],
    [token("a", 0), gone(" b", 0, true), gone(" c", 0, false), token(" x", 0, "corrected"), round(0)],
    [{ k: "g", r: 1, t: [" d"] }],
    [token(" d", 1), round(1), gone("!", 2, true), token(".", 2, "corrected"), { k: "g", r: 3, t: ["e"] }],
    [token("e", 3), round(3), { k: "end", f: {}, c: {}, text: "a x d.e" }],
  ]);
  assert.deepEqual(looks, [
    [[], ["a", " b", " c"], []],
    [["a", " x"], [], [" b c"]],
    [["a", " x"], [" d"], [" b c"]],
    [["a", " x", " d", "."], ["e"], [" b c"]], // of round 2 nothing had been shown ahead, so nothing falls
    [["a", " x", " d", ".", "e"], [], [" b c"]],
  ]);
  assert.equal(text, answer.end.text);
  assert.equal(answer.text, text);
  assert.ok(!answer.lines.includes('"k":"g"'));
});
