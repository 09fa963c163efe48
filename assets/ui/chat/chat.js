// The conversation: turns, requests, composer. The server sees a request and streams lines back. turns.js draws turns, views.js views and
// legend; kept.js keeps chats in the browser.
import { newAnswer, readLines } from "../answer/records.js";
import { examples } from "./examples.js";
import { clickable, composing, el, heading } from "../shared/dom.js";
import { joined, plural, random, whole } from "../shared/format.js";
import { makeJob } from "../shared/job.js";
import { NO_ANSWER } from "../shared/server.js";
import { widgets } from "../shared/widgets.js";

// `now`: facts of the open chat, `known`: when it was last written, as far as this tab has seen, 0 for never.
export const chat = {
  turns: [],
  selected: null,
  listeners: [],
  parts: null,
  now: { id: random(), name: "", named: false, system: "" },
  known: 0,
};
let parts = null,
  live = null,
  began = 0,
  pair = { ready: false, why: "", reads: "", instead: "", names: null },
  queued = false, // what the composer holds is sent as soon as the models are ready
  editing = null, // the turn that it is to replace
  draft = ""; // what it held before an edit

const busy = () => live !== null; // until the server's stream is closed
chat.busy = busy;
chat.isLive = turn => turn === live;

// ── requests ────────────────────────────────────────────────────────────────────────────────────────────────
// `former`: the turn that stood there; `first`: the one that is asked once more, with its seed.
chat.ask = (text, former = null, first = null) => {
  if (!text.trim() || busy() || !pair.ready || !job.trigger) return false;
  if (chat.turns.includes(editing)) leaveEdit(); // this is another question
  const turn = {
    run: random(),
    user: whole(text),
    system: whole(chat.now.system),
    answer: newAnswer(),
    state: "waiting",
    here: true, // written since the page was opened
    first,
    versions: former?.versions ?? [],
  };
  turn.versions.push(turn);
  chat.turns.push(turn);
  live = turn;
  began = Date.now();
  parts.log.querySelectorAll(".link.last").forEach(node => node.remove()); // only the last answer can be written anew
  chat.draw(turn);
  select(turn);
  chat.giveName();
  toEnd();
  refresh();
  job.start("run", question(turn), turn.run);
  return true;
};
// The messages before a turn; all of them for none of this chat.
chat.before = turn => {
  const place = chat.turns.indexOf(turn),
    before = place < 0 ? chat.turns : chat.turns.slice(0, place);
  return before
    .filter(one => one.answer.text)
    .flatMap(one => [
      { role: "user", content: one.user },
      { role: "assistant", content: one.answer.text },
    ]);
};
// What only the browser knows of a question (ui/chat_request.py); the fields of the page are beside it.
const question = ({ user: message, system, first }) => {
  const [target, drafter] = pair.names ?? [],
    seed = first?.answer.end?.seed,
    options = seed == null ? {} : { seed: String(seed) };
  const asked = { message, history: chat.before(live), system, ahead: chat.ahead(), options };
  return { ...asked, ...(pair.names && { target, drafter }) };
};
// A second click on Send, which has become Stop in its place, stops nothing.
const DOUBLE = 400;
chat.stop = event => {
  if (event && Date.now() - began < DOUBLE) return;
  if (!busy() || live.state === "stopping" || live.state === "done") return;
  live.state = "stopping";
  job.stop();
  refresh();
};
const job = makeJob("chat", {
  got: lines => {
    const turn = live,
      stick = atEnd(),
      fresh = readLines(turn.answer, lines);
    chat.append(turn, fresh);
    if (turn.state === "waiting" && fresh.length) turn.state = "streaming";
    if (turn.answer.end || turn.answer.error) finish(turn);
    else status(turn);
    if (chat.selected === turn) notify();
    if (stick) toEnd(); // last, for the meter that comes with an answer takes room
    if (stick && turn.state === "done") keepInSight(turn);
  },
  ended: () => {
    const turn = live,
      { answer } = turn;
    if (!answer.end && !answer.error) {
      if (turn.state === "stopping") answer.meta.stopped = true;
      else
        answer.error = answer.text
          ? "The connection broke before the answer was finished. Press Again."
          : `${NO_ANSWER} Send the message again.`;
    }
    live = null;
    if (turn.state !== "done") finish(turn);
    status(turn);
    refresh();
    notify();
  },
  drawn: () => status(live),
});
chat.place = () => job.place;
const finish = turn => {
  turn.state = "done";
  turn.answer.ahead = null;
  chat.append(turn, []);
  chat.foot(turn);
  status(turn);
  refresh();
  chat.keep();
  announce(turn.answer.error || `Answer finished, ${plural(turn.answer.figures?.tokens ?? 0, "token")}.`);
};
chat.setPair = state => {
  // another pair answers until the one that is picked is ready
  const ready = state.stage === "ready",
    names = ready || state.stage === "gone" ? null : (state.meanwhile ?? null),
    off = {
      failed: `${names ? "" : "Send is off: "}${state.error}`,
      absent: names
        ? `${state.target} is not loaded.`
        : `Send is off: ${state.target} is not loaded. Press “Load” above.`,
      gone: "Send is off: the server does not answer.",
    };
  const { reads = "" } = state;
  pair = {
    ready: ready || names !== null,
    why: off[state.stage] ?? "",
    reads,
    instead: names ? state.instead : "",
    names,
  };
  chat.reads = reads;
  chat.picked = state.asked ?? [];
  if (!parts) return;
  if (["downloading", "failed"].includes(state.stage)) examples.playFilm();
  if (ready) chat.offerSystem(state.system ?? "");
  refresh();
  chat.drawContext();
  if (pair.ready && queued) send();
};

// ── the last turn again ─────────────────────────────────────────────────────────────────────────────────────
const dropFrom = turn => {
  const index = chat.turns.indexOf(turn);
  if (index < 0) return;
  for (const gone of chat.turns.splice(index)) gone.node?.remove();
  if (chat.turns.length) chat.foot(chat.turns.at(-1));
};
chat.again = turn => {
  if (busy() || !pair.ready) return;
  leaveEdit();
  dropFrom(turn);
  chat.ask(turn.user, turn);
};
chat.repeat = turn => {
  if (busy() || !pair.ready) return;
  leaveEdit();
  dropFrom(turn);
  chat.ask(turn.user, turn, turn);
};
// A turn that was asked anew keeps what stood there before: `versions`, the oldest first. Shows the one before.
chat.former = turn => {
  if (busy() || chat.turns.at(-1) !== turn) return;
  const { versions } = turn,
    back = versions.at(versions.indexOf(turn) - 1);
  leaveEdit();
  dropFrom(turn);
  chat.turns.push(back);
  chat.draw(back);
  select(back);
  refresh();
  chat.keep();
  toEnd();
  back.node.querySelector(".former")?.focus({ preventScroll: true });
};
// The turn stays until its new text is sent.
chat.edit = turn => {
  if (busy()) return;
  if (!editing) draft = parts.box.value;
  editing?.node?.classList.remove("edited");
  editing = turn;
  turn.node.classList.add("edited");
  compose(turn.user);
  refresh();
};
const leaveEdit = () => {
  if (!editing) return;
  editing.node?.classList.remove("edited");
  editing = null;
  parts.box.value = draft;
  draft = "";
  grow();
  refresh();
};

// Shows other turns in place of these: those of another chat, or none.
chat.show = turns => {
  leaveEdit();
  chat.turns.splice(0).forEach(turn => turn.node?.remove());
  chat.turns.push(...turns);
  turns.forEach(turn => chat.draw(turn));
  chat.selected = null;
  select(turns.at(-1) ?? null);
  refresh();
  toEnd();
};
chat.forgetDraft = () => {
  draft = "";
  queued = false;
  chat.dropFiles();
  if (parts && !editing) {
    parts.box.value = "";
    grow();
  }
};

const status = turn => chat.status(turn);
const select = (chat.select = turn => {
  chat.selected = turn;
  parts?.log.querySelectorAll(".turn.selected").forEach(node => node.classList.remove("selected"));
  if (chat.turns.length > 1) turn?.node?.classList.add("selected");
  notify();
});
const notify = (chat.notify = () => {
  const counts = chat.selected?.answer.counts;
  for (const { key, count, button } of parts?.legend ?? []) {
    count.textContent = counts?.[key] ?? "0";
    button.hidden = !counts?.[key] && button.getAttribute("aria-pressed") !== "true";
  }
  if (parts) {
    chat.drawContext();
    chat.drawLegend();
  }
  const place = chat.turns.indexOf(chat.selected) + 1;
  chat.listeners.forEach(listen =>
    listen(chat.selected, place, chat.turns.length, chat.selected === live && busy()),
  );
});

const atEnd = (chat.atEnd = () => {
  const { scrollHeight, scrollTop, clientHeight } = parts.scroll;
  return scrollHeight - scrollTop - clientHeight < 80;
});
// What stands below a finished answer may be higher than a phone has room for: the end of the text stays where it is read.
const keepInSight = ({ parts: { counter } }) => {
  const { scroll } = parts,
    below = counter.getBoundingClientRect().top - scroll.getBoundingClientRect().top;
  scroll.scrollTop += Math.min(0, below - scroll.clientHeight / 2);
};
const toEnd = (chat.toEnd = () => {
  parts.scroll.scrollTop = parts.scroll.scrollHeight;
});
const announce = (chat.announce = text => {
  parts.voice.textContent = text;
});
const compose = text => {
  parts.box.value = text;
  grow();
  parts.box.focus();
};
const grow = () => {
  parts.box.style.height = "auto";
  parts.box.style.height = `${Math.min(parts.box.scrollHeight + 2, 180)}px`;
};
const refresh = () => {
  parts.root.classList.toggle("busy", busy());
  parts.root.classList.toggle("empty", !chat.turns.length);
  parts.send.disabled = busy() || !pair.ready;
  const loading = "The models are still being loaded; Enter sends as soon as they are ready";
  parts.send.title = pair.ready ? "" : pair.why || loading;
  parts.stop.disabled = !busy() || (live.state !== "waiting" && live.state !== "streaming");
  parts.fresh.disabled = parts.chats.disabled = busy();
  if (queued && !chat.withFiles(parts.box.value).trim()) queued = false;
  parts.hint.textContent = pair.why
    ? joined([pair.why, pair.instead], " ")
    : editing
      ? "Enter sends the question anew in place of the last one; Esc leaves it as it was."
      : queued && !pair.ready
        ? "This is sent as soon as the models are ready."
        : pair.instead || (chat.turns.length ? pair.reads : "");
  parts.hint.classList.toggle("warn", Boolean(pair.why));
};
const send = () => {
  const text = chat.withFiles(parts.box.value);
  if (!text.trim()) return parts.box.focus();
  const old = editing;
  if (old && !busy() && pair.ready) {
    old.node.classList.remove("edited");
    dropFrom(old);
  }
  if (chat.ask(text, old)) {
    chat.dropFiles();
    parts.box.value = old ? draft : "";
    draft = "";
    editing = null;
    queued = false;
    grow();
    refresh();
  } else if (!pair.ready) {
    queued = true;
    refresh();
  }
};
// An example. The card that was pressed goes, so the focus moves on: to the box, or where that would raise a keyboard, to the answers.
const pick = prompt => {
  if (!chat.ask(prompt)) {
    if (busy() && parts.box.value.trim()) return;
    compose(prompt);
    if (!busy()) send();
  }
  (matchMedia("(pointer: coarse)").matches ? parts.scroll : parts.box).focus({ preventScroll: true });
  if (parts.root.getBoundingClientRect().top < 0) parts.root.scrollIntoView({ block: "start" });
};

widgets.chat = (host, context) => {
  job.trigger = context.trigger;
  parts = chat.parts = { root: host };
  const bar = chat.toolbar(),
    classes = chat.legend();
  parts.empty = el("section.empty-state");
  parts.log = el("div.log", { role: "log", "aria-label": "Conversation", "aria-live": "polite" });
  parts.scroll = el("div.scroll", { tabindex: -1 }, parts.empty, parts.log);
  parts.chips = el("div.chips", { role: "group", "aria-label": "Example prompts" });
  parts.voice = el("div.omni-offscreen", { "aria-live": "polite" });
  parts.note = el("p.chat-note", { hidden: true });
  parts.hint = el("p.hint", { role: "status" });
  parts.box = el("textarea", {
    rows: 1,
    id: "omni-message",
    dir: "auto",
    placeholder: matchMedia("(max-width: 800px)").matches
      ? "Ask something"
      : "Ask something. Enter sends, Shift+Enter breaks the line.",
    "aria-label": "Message",
    oninput: () => {
      grow();
      if (queued) {
        queued = false;
        refresh();
      }
    }, // what is being edited is not sent
    onkeydown: event => {
      if (event.key === "Enter" && !event.shiftKey && !composing(event)) {
        event.preventDefault();
        send();
      }
    },
  });
  parts.send = clickable("send", "Send", send);
  parts.stop = clickable("stop", "Stop", chat.stop, { "aria-label": "Stop the answer", title: "Esc" });
  const files = chat.fileRow();
  const composer = el(
    "div.composer",
    parts.note,
    parts.chips,
    files.box,
    el("div.entry", files.button, files.chosen, parts.box, parts.send, parts.stop),
    el("div.under", parts.hint, chat.contextMeter()),
  );
  host.append(
    heading("Chat"),
    bar,
    chat.systemField(),
    parts.scroll,
    classes,
    composer,
    parts.voice,
    chat.drawer(),
  );
  chat.watchViews();
  examples.place(parts.chips, parts.empty, pick);
  if (chat.turns.length) {
    live = null;
    chat.turns.forEach(turn => chat.draw(turn));
    select(chat.turns.at(-1));
    chat.drawFacts();
  } else chat.restore();
  refresh();
  if (document.activeElement === document.body && !matchMedia("(pointer: coarse)").matches)
    parts.box.focus({ preventScroll: true });
  return { update: job.receive };
};
document.addEventListener("keydown", event => {
  if (event.key !== "Escape" || event.defaultPrevented || composing(event)) return;
  if (busy()) chat.stop();
  else leaveEdit();
});
