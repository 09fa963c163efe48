// What a job of the page makes of the stream of its run.
import assert from "node:assert/strict";
import test from "node:test";
import "./dom.mjs";

const { makeJob, settled } = await import("../../assets/ui/shared/job.js");
const { csvOf } = await import("../../assets/ui/shared/save.js");

const job = (name, more = {}) => {
  const told = [],
    asked = [],
    made = makeJob(name, { got: text => told.push(text), ended: () => told.push("over"), ...more });
  made.trigger = (event, { asked: given }) => asked.push([event, given]);
  return { made, told, asked };
};
const head = run => `{"k":"run","run":"${run}"}\n`;

test("only what is new of this run arrives, and a place in the line is no line of it", () => {
  const { made, told, asked } = job("grows");
  made.start("run", { message: "hi" }, "r1");
  assert.deepEqual(asked, [["run", { message: "hi", run: "r1" }]]);
  let value = `${head("r1")}{"k":"wait","place":2}\n`;
  made.receive(value);
  assert.equal(made.place, 2);
  assert.deepEqual(told, []);
  value += '{"k":"t"}\n{"k":"half';
  made.receive(value);
  assert.equal(made.place, 0);
  made.receive(`${value}"}\n`);
  made.receive(`${head("another")}{"k":"t"}\n`);
  assert.deepEqual(told, ['{"k":"t"}', '{"k":"half"}']);
  settled("grows", `${head("another")}`);
  assert.ok(made.busy);
  settled("grows", `${value}"}\n{"k":"end"}\n`);
  assert.deepEqual(told.slice(2), ['{"k":"end"}', "over"]);
  made.receive(value);
  assert.equal(told.length, 4);
  made.over();
});

test("a value that is replaced arrives whole, each time", () => {
  const { made, told } = job("whole", { whole: true });
  made.start("one", {}, "r2");
  made.receive(`${head("r2")}{"done":1,"long":"long"}\n`);
  made.receive(`${head("r2")}{"done":2}\n`);
  assert.deepEqual(
    told.map(text => JSON.parse(text.split("\n").at(-1)).done),
    [1, 2],
  );
  made.over();
});

test("what was refused before it began is over, and a stop is asked for once", () => {
  const { made, told, asked } = job("refused");
  made.start("run", {}, "r3");
  made.stop();
  made.stop();
  assert.deepEqual(asked.slice(1), [["halt", { run: "r3" }]]);
  settled("refused");
  assert.deepEqual(told, ["over"]);
  assert.ok(!made.busy);
  made.over();
});

test("rows become CSV that no spreadsheet takes for formulas", () => {
  const rows = [{ a: "=SUM(A1)", b: -1.5 }, { a: 'x "y",\nz' }];
  assert.equal(csvOf(["a", "b"], rows), 'a,b\r\n\'=SUM(A1),-1.5\r\n"x ""y"",\nz",\r\n');
});
