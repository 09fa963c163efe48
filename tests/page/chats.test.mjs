// Chats in the browser's storage: what is kept, what goes first where there is no more room, what comes back.
import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import { chats } from "../../assets/ui/chat/chats.js";

// As a browser's: its keys are its own, its methods are not; `most` characters fit.
const storage = (most = Infinity) => {
  const methods = {
    getItem: name => (Object.hasOwn(kept, name) ? kept[name] : null),
    removeItem: name => {
      delete kept[name];
    },
    setItem: (name, value) => {
      const others = Object.entries(kept).filter(([one]) => one !== name);
      if (
        others.reduce((sum, [one, text]) => sum + one.length + text.length, name.length + value.length) > most
      )
        throw new Error("QuotaExceededError");
      kept[name] = String(value);
    },
  };
  const kept = Object.create(methods);
  return kept;
};
let now = 0;
beforeEach(() => {
  globalThis.localStorage = storage();
  globalThis.sessionStorage = storage();
  Date.now = () => (now += 1);
});
const turn = (user, lines = "{}\n") => ({ run: `run of ${user}`, user, text: `answer to ${user}`, lines });

test("a chat comes back as it was written, with its colours", () => {
  const versions = [turn("old"), turn("new")];
  const { kept, dropped } = chats.write({ id: "a", name: "First", system: "Be brief." }, [
    { ...turn("new"), versions },
  ]);
  assert.deepEqual([kept, dropped], [true, []]);
  const { name, system, answers, id } = chats.facts("a");
  assert.deepEqual(
    { name, system, answers, id },
    { name: "First", system: "Be brief.", answers: 1, id: "a" },
  );
  const [found] = chats.turns("a");
  assert.deepEqual([found.user, found.lines], ["new", "{}\n"]);
  assert.deepEqual(
    found.versions.map(one => [one.user, one.lines]),
    [
      ["old", "{}\n"],
      ["new", "{}\n"],
    ],
  );
});

test("the list begins with the chat that was written last, and another name changes no turn", () => {
  for (const id of ["a", "b", "c"]) chats.write({ id, name: id }, [turn(id)]);
  chats.write({ id: "a", name: "a" }, [turn("a")]);
  assert.deepEqual(
    chats.list().map(one => one.id),
    ["a", "c", "b"],
  );
  chats.rename("b", "Another\nname");
  assert.deepEqual(
    [chats.facts("b").name, chats.facts("b").named, chats.turns("b")[0].user],
    ["Another\nname", true, "b"],
  );
});

test("colours of the oldest chats go first, then these chats, and never the one that is written", () => {
  for (const id of ["a", "b"]) chats.write({ id, name: `chat ${id}` }, [turn(id, "c".repeat(1_500_000))]);
  const long = { ...turn("c", ""), text: "x".repeat(1_000_000) };
  assert.deepEqual(chats.write({ id: "c", name: "chat c" }, [long]).dropped, []);
  assert.deepEqual(
    ["a", "b"].map(id => chats.turns(id)[0].lines.length),
    [0, 1_500_000],
  );
  const longer = { ...turn("d", ""), text: "x".repeat(2_700_000) };
  const { dropped, kept } = chats.write({ id: "d", name: "chat d" }, [longer]);
  assert.deepEqual([dropped, kept], [["chat a", "chat b", "chat c"], true]);
  assert.ok(chats.size() <= chats.room);
  const most = { ...turn("e", ""), text: "x".repeat(chats.room) };
  assert.equal(chats.write({ id: "e", name: "chat e" }, [most]).kept, false);
});

test("a browser with less room than the page allows drops, too", () => {
  globalThis.localStorage = storage(1000);
  chats.write({ id: "a", name: "chat a" }, [turn("a", "c".repeat(500))]);
  chats.write({ id: "b", name: "chat b" }, [turn("b", "c".repeat(500))]);
  assert.deepEqual([chats.turns("a")[0].lines, chats.turns("b")[0].lines.length], ["", 500]);
});

test("what was deleted can be brought back", () => {
  chats.write({ id: "a", name: "a" }, [turn("a")]);
  const undo = chats.remove("a");
  assert.equal(chats.facts("a"), null);
  undo();
  assert.equal(chats.turns("a")[0].lines, "{}\n");
});

test("storage that is forbidden or nonsense is an empty one", () => {
  localStorage.setItem("omnidemo.chat.a", "nonsense");
  localStorage.setItem("omnidemo.chat.b", '{"name": "b"}\n{"no": "list"}');
  assert.deepEqual(
    chats.list().map(one => one.id),
    ["b"],
  );
  assert.deepEqual(chats.turns("b"), []);
  globalThis.localStorage = undefined;
  assert.deepEqual([chats.list(), chats.facts("a"), chats.turns("a"), chats.size()], [[], null, [], 0]);
});
