// A recorded run as a film, on the page and in one file.
import assert from "node:assert/strict";
import test from "node:test";
import { readFileSync } from "node:fs";
import vm from "node:vm";
import { box } from "./dom.mjs";
import { filmOf, filmPage, makeFilm, savedSteps } from "../../assets/ui/task/film.js";
import { readAnswer } from "../../assets/ui/answer/records.js";
import { roundsOf } from "../../assets/ui/replay/lanes.js";

const run = JSON.parse(readFileSync(new URL("../../assets/recorded.json", import.meta.url)));
const legend = run.sources.map(key => ({ key, title: key, help: "" }));
const texts = ({ rounds }) =>
  rounds.flatMap(([, ...tokens]) => tokens.filter((_, at) => at % 2 === 0)).join("");
globalThis.matchMedia = () => ({ matches: true }); // less motion: everything at once

test("the recorded run is ten answers of the default target, each with all its tokens", () => {
  assert.equal(run.target, "qwen2.5-coder-1.5b");
  assert.ok(run.machine && /^\d{4}-\d\d-\d\d$/.test(run.date));
  assert.equal(run.answers.length, 10);
  for (const one of run.answers) {
    assert.ok(JSON.parse(texts(one)));
    assert.ok(Math.abs(one.tokens / one.rounds.length - one.steps) < 0.001);
  }
});

test("a film shows every answer and says that it is a recording, where and when it was made", () => {
  const shown = makeFilm(run, legend).textContent;
  for (const one of run.answers) assert.ok(shown.includes(texts(one)));
  for (const said of ["A recording", run.title, run.machine, "nothing is computed now"])
    assert.ok(shown.includes(said));
});

test("saved steps are those of plain decoding less those taken, and what learning brought of them", () => {
  const said = answers =>
    savedSteps(answers)
      .map(one => one.textContent ?? one)
      .join("");
  assert.equal(
    said([{ tokens: 30, steps: 3, nothing_learned: 2 }]),
    "20 steps saved so far, 5 of them by what was learned",
  );
  assert.equal(said([{ tokens: 30, steps: 2, nothing_learned: null }]), "15 steps saved so far");
  assert.equal(said([{ tokens: 30, steps: 1 }]), "");
});

test("rows that were watched make a film of their recorded rounds", () => {
  const line = one => `${JSON.stringify(one)}\n`,
    token = (t, s, r) => line({ k: "t", i: 1, t, s, r, n: 0, p: 1 }),
    lines = token("a", "direct", 0) + token("b", "bonus", 0) + line({ k: "r", r: 0, d: 1, s: [1, 2, 3, 4] });
  const row = { number: 4, input: "x", tokens: 2, tokens_per_round: 2 },
    made = filmOf({ task: "own" }, [{ row, rounds: roundsOf(readAnswer(lines)) }], run.sources);
  assert.deepEqual(made.answers[0].rounds, [[10, "a", 0, "b", 5]]);
  assert.equal(made.task, "own");
});

test("the saved file needs no other: its script alone shows the same film", () => {
  const names = ["shared/format.js", "shared/dom.js", "task/film.js"],
    modules = names.map(name => readFileSync(new URL(`../../assets/ui/${name}`, import.meta.url), "utf-8")),
    evil = { ...run, task: "</script><b>" };
  const page = filmPage(evil, legend, modules, [".tok { color: red; }", ".other { color: blue; }"]);
  assert.ok(page.includes(".tok { color: red; }") && !page.includes(".other"));
  const begun = '<script type="module">',
    script = page.slice(page.indexOf(begun) + begun.length, page.lastIndexOf("</script>"));
  assert.ok(!script.includes("</script") && !script.includes("<!--"));
  const body = box();
  const document = { ...globalThis.document, body, documentElement: { classList: { toggle: () => {} } } };
  const world = { document, matchMedia, clearTimeout, performance };
  vm.runInNewContext(script.replaceAll("import.meta.url", '""'), world);
  for (const one of run.answers) assert.ok(body.textContent.includes(texts(one)));
});
