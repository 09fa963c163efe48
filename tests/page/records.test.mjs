// An answer's records: the server's lines as the page reads them.
import assert from "node:assert/strict";
import test from "node:test";
import { newAnswer, readLines } from "../../assets/ui/answer/records.js";

const lines = (...records) => records.map(one => `${JSON.stringify(one)}\n`).join("");
const token = (t, more = {}) => ({ k: "t", i: 1, t, s: "plain", r: 0, n: 0, p: 0.5, ...more });

test("the tokens joined are the text, byte for byte, in whatever pieces they come", () => {
  const text = ["<b>", "${1+1}", "\n", "é", "", " 🦊"];
  const whole = lines(...text.map(one => token(one)));
  const answer = newAnswer();
  for (const end of [...whole.matchAll(/\n/g)].map(found => found.index + 1))
    readLines(answer, whole.slice(answer.lines.length, end));
  assert.equal(answer.text, text.join(""));
  assert.equal(answer.lines, whole);
  assert.equal(answer.tokens.length, text.length);
});

test("a discarded guess is a token without text, and only new tokens are returned", () => {
  const answer = newAnswer();
  readLines(answer, lines(token("a")));
  const fresh = readLines(
    answer,
    lines({ k: "x", i: 2, t: "no", s: "direct", r: 1, n: 0, j: true }, token("b")),
  );
  assert.deepEqual(
    fresh.map(one => one.t),
    ["no", "b"],
  );
  assert.equal(answer.text, "ab");
});

test("live figures, progress and Markdown are shown, and not kept with the lines", () => {
  const answer = newAnswer();
  readLines(
    answer,
    lines(
      token("abc"),
      { k: "m", b: [["p", ["abc"]]], o: [["p", ["d"]]] },
      { k: "p", read: 1, total: 2 },
      { k: "f", f: { tokens: 1 }, c: { plain: 1 } },
    ),
  );
  assert.deepEqual([answer.blocks, answer.open, answer.read], [[["p", ["abc"]]], [["p", ["d"]]], 3]);
  assert.deepEqual([answer.reading.read, answer.figures, answer.counts], [1, { tokens: 1 }, { plain: 1 }]);
  assert.equal(answer.lines, lines(token("abc")));
});

test("the end adds to the figures, and says how much of the window is taken", () => {
  const answer = newAnswer();
  readLines(
    answer,
    lines({ k: "run", run: "r1", temperature: 0 }, { k: "f", f: { tokens: 1, copied: 2 }, c: {} }),
  );
  readLines(
    answer,
    lines({
      k: "end",
      f: { tokens: 5 },
      c: { plain: 5 },
      finish: "end",
      method: "m",
      context_limit: 100,
      context_tokens: 40,
    }),
  );
  assert.deepEqual(answer.figures, { tokens: 5, copied: 2 });
  assert.deepEqual(answer.context, { tokens: 40, limit: 100, dropped: 0 });
  assert.deepEqual([answer.meta.temperature, answer.meta.method, answer.end.finish], [0, "m", "end"]);
});

test("what is no JSON is passed over, and an error is the answer's", () => {
  const answer = newAnswer();
  readLines(answer, `{"k": "t", \n\n${lines({ k: "error", text: "It broke." }, { k: "speed", speedup: 2 })}`);
  assert.deepEqual([answer.tokens, answer.error, answer.speed.speedup], [[], "It broke.", 2]);
});
