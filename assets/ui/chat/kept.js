// Which chat is open, and what of it the browser keeps: after each answer it is written, a reload or another tab's work brings it back.
import { readAnswer } from "../answer/records.js";
import { chat } from "./chat.js";
import { chats } from "./chats.js";
import { compare } from "../compare/compare.js";
import { random } from "../shared/format.js";
import { task } from "../task/task.js";

const KEEP_TURNS = 60,
  KEEP_LINES = 1_200_000,
  KEEP_TEXT = 40_000, // of a chat: answers, characters of tokens, characters of a question
  KEEP_VERSIONS = 8; // of its last answer, beside the one that is shown

// ── a turn as it is kept, and back ──────────────────────────────────────────────────────────────────────────
const META =
  "method version line topic target name drafter temperature top_p top_k min_p repetition_penalty".split(" ");
const kept = turns => {
  let room = KEEP_LINES;
  const item = ({ run, user, system, answer }) => {
    const { text, blocks, open, read, figures, counts, context, error, end, lines, meta } = answer;
    room -= lines.length;
    const said = { run, user: user.slice(0, KEEP_TEXT), system, text, blocks: [...blocks, ...open], read },
      finish = end?.finish ?? answer.finish,
      facts = { figures, counts, context, error, finish, ended: finish !== undefined };
    return {
      ...said,
      ...facts,
      meta: Object.fromEntries(META.map(name => [name, meta[name]])), // what is undefined is not written
      stopped: Boolean(meta.stopped),
      lines: room > 0 ? lines : "",
    };
  };
  const items = list => list.reverse().map(item).reverse(); // the newest have the room
  const found = items(turns.slice(-KEEP_TURNS)),
    last = turns.at(-1),
    all = last?.versions ?? [], // nobody comes back to those of an answer that the chat went on from
    others = all.filter(one => one !== last).slice(-KEEP_VERSIONS);
  if (others.length) {
    const place = others.filter(one => all.indexOf(one) < all.indexOf(last)).length;
    Object.assign(found.at(-1), { place, versions: items(others) });
  }
  return found;
};
const revive = item => {
  if (typeof item?.user !== "string") return null;
  const bare = { k: "t", i: 0, t: String(item.text), s: "plain", r: 0, n: 0, p: null };
  const answer = readAnswer(item.lines || (item.text ? JSON.stringify(bare) : ""));
  if (!item.lines) answer.lines = "";
  if (Array.isArray(item.blocks)) Object.assign(answer, { blocks: item.blocks, read: item.read ?? 0 });
  Object.assign(answer, {
    figures: answer.figures ?? item.figures,
    counts: answer.counts ?? item.counts,
    context: answer.context ?? item.context ?? null,
    error: answer.error ?? item.error,
    meta: { ...item.meta, ...answer.meta },
    finish: item.finish,
  });
  if (!item.ended && !answer.error) answer.meta[item.stopped ? "stopped" : "cut"] = true;
  const { run = random(), user, system = "" } = item,
    turn = { run, user, system, answer, state: "done" };
  const all = turnsOf(item.versions ?? []);
  all.splice(item.place, 0, turn);
  all.forEach(one => (one.versions = all));
  return turn;
};
const turnsOf = items => items.map(revive).filter(Boolean);

let offered = ""; // the system prompt with which a chat begins
let wrote = 0; // when this tab wrote the open chat, 0 for not yet
const CROSSED = 5000; // what two tabs write within so many milliseconds may cross: each learns of the other's a little later
// ── the open chat ───────────────────────────────────────────────────────────────────────────────────────────
const named = text => {
  const line = text.trim().split("\n", 1)[0];
  return line.length > 60 ? `${line.slice(0, 59).trimEnd()}…` : line;
};
const open = (facts, turns) => {
  const { id, name = "", named = false, system = "", at = 0 } = facts;
  chat.now = { id, name, named, system };
  chat.known = at;
  wrote = 0;
  chats.opened(chat.now.id);
  chat.drawFacts();
  chat.show(turns);
};
chat.fresh = () => {
  if (chat.busy()) return;
  open({ id: random(), system: offered }, []);
};
// The system prompt that goes with the target, for chats that begin with it; what somebody wrote stays.
chat.offerSystem = text => {
  const untouched = !chat.turns.length && chat.now.system === offered && !chats.facts(chat.now.id);
  offered = text;
  if (untouched) chat.now.system = text;
  chat.drawFacts();
};
chat.switchTo = id => {
  const facts = chats.facts(id);
  if (!chat.busy() && facts) open(facts, turnsOf(chats.turns(id)));
};
chat.giveName = () => {
  if (!chat.now.named && chat.turns.length) chat.now.name = named(chat.turns[0].user);
  chat.drawFacts();
};
chat.keep = () => {
  const { now, turns } = chat,
    stored = chats.facts(now.id);
  if (!turns.length && ["", offered].includes(now.system.trim()) && !stored) return;
  if (stored && stored.at !== chat.known) {
    // another tab went on with it: neither writes over the other's
    now.id = random();
    chats.opened(now.id);
    chat.say("Another tab went on with this chat, so this one is kept as a chat of its own.");
  }
  chat.giveName();
  const { at, dropped, kept: written } = chats.write(now, kept(turns));
  const gone =
    dropped.length === 1 ? `chat was dropped: “${dropped[0]}”` : `${dropped.length} chats were dropped`;
  if (written) chat.known = wrote = at;
  if (!written) chat.say("This browser has no room for this chat; export it if you want to keep it.");
  else if (dropped.length) chat.say(`There was no more room, so the oldest ${gone}.`);
  chat.drawList();
};
chat.restore = () => {
  const id = chats.opened() ?? chats.list()[0]?.id,
    facts = id ? chats.facts(id) : null;
  if (facts) chat.switchTo(id);
  else open({ id: id ?? random() }, []);
};
// Everything that this browser keeps of chats, of Compare and of a task, and what is on the page.
chat.forget = () => {
  chats.forget();
  compare.forget();
  task.forget();
  chat.forgetDraft();
  if (chat.parts) chat.fresh();
  chat.drawList();
};
window.addEventListener("pagehide", () => {
  if (chat.busy()) chat.keep();
});
chats.listen((id, there) => {
  chat.drawList();
  if (id !== chat.now.id || chat.busy() || !chat.parts) return;
  const mine = chat.turns.at(-1),
    at = chats.facts(id)?.at;
  if (
    there &&
    mine &&
    at !== chat.known &&
    Date.now() - wrote < CROSSED &&
    !chats.turns(id).some(turn => turn.run === mine.run)
  )
    return chat.keep();
  if (!there) chat.fresh();
  else if (chats.facts(id)?.at !== chat.known || chats.facts(id)?.name !== chat.now.name) chat.switchTo(id);
});
