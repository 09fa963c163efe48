// Replays of an answer: the buttons below it, the window, the clock and its controls. Views are in race.js and slow.js.
import { STEP, clockOf, roundsOf } from "./lanes.js";
import { readAnswer } from "../answer/records.js";
import { chat } from "../chat/chat.js";
import { setSpeed } from "../chat/speeds.js";
import { calm, clickable, closesBeside, el, fill, icon, picture } from "../shared/dom.js";
import { format } from "../shared/format.js";
import { makeJob, received } from "../shared/job.js";
import { widgets } from "../shared/widgets.js";

export const replay = { views: {} };

// ── the server ──────────────────────────────────────────────────────────────────────────────────────────────
let page = null;
const ask = (question, patience) =>
  new Promise((resolve, reject) => {
    if (!page) return reject(new Error("The page is not connected to the server. Try it again in a moment."));
    const end = value => {
      value?.k === "lanes" ? resolve(value) : reject(new Error(value?.text ?? "The server gave no answer."));
      clearTimeout(late);
      job.over();
    };
    const job = makeJob("replay", {
      got: lines => {
        const last = JSON.parse(lines.split("\n").at(-1));
        if (last.k !== "run") end(last);
      },
      ended: () => end(),
    });
    const late = setTimeout(end, patience);
    job.trigger = page.trigger;
    job.start("measure", question);
  });
widgets.replay = (host, context) => {
  page = context;
  return { update: value => received("replay", value) };
};
const context = turn => {
  const { user: message, system = "", answer } = turn;
  const { target, drafter, method, line = "default", ...meta } = answer.meta,
    { temperature = 0, top_p = 1, top_k = 0, min_p = 0, repetition_penalty = 1 } = meta,
    { seed = null, key = "" } = answer.end ?? {},
    asked = { target, drafter, message, history: chat.before(turn), system, seed, key, method, line },
    tokens = answer.tokens.filter(one => one.k === "t").length;
  return { ...asked, temperature, top_p, top_k, min_p, repetition_penalty, tokens };
};
// Measured once per answer (and version, where that matters) and kept with it while the page lives; a refusal may be tried again.
const once = (turn, name, make) =>
  (turn.beside ??= {})[name] ??
  (turn.beside[name] = make().catch(error => {
    delete turn.beside[name];
    throw error;
  }));
const lanes = value => value.lanes.map(lane => ({ ...lane, rounds: roundsOf(readAnswer(lane.lines)) }));
replay.plain = (turn, again = false) => {
  if (again) delete turn.beside?.plain;
  return once(turn, "plain", () =>
    ask({ kind: "plain", again, ...context(turn) }, 120_000).then(value => {
      setSpeed(turn, value.speed, again);
      const [plain, guessed] = lanes(value);
      return { ...plain, guessed };
    }),
  );
};
// An input of a task by the line as it was before its first answer, and by the line of now.
replay.former = asked =>
  ask({ kind: "former", ...asked }, 180_000).then(value => ({ ...value, lanes: lanes(value) }));

// ── the buttons below an answer ─────────────────────────────────────────────────────────────────────────────
// The views: name, title, picture.
const views = {
  race: [
    "Race",
    "With and without guessing, side by side, in real time proportions",
    "M3 5h9l-2-2M13 11H4l2 2",
  ],
  slow: [
    "Slow motion",
    "Watch this answer being written: guess by guess, with its real times",
    "M4 3v10l8-5z",
  ],
  former: ["Then and now"], // of a task, which has the button
};
replay.drafts = turn =>
  turn.answer.tokens.some(line => line.k === "x" || (line.s !== "plain" && line.k === "t"));
replay.buttons = turn => {
  const bar = el("span.replay-bar");
  if (!turn.answer.rounds.length || !(turn.answer.end || turn.state === "done")) return bar;
  for (const mode of ["race", "slow"]) {
    const [name, title, path] = views[mode];
    const open = event => {
      event.stopPropagation();
      replay.open(mode, turn);
    };
    const cls = `replay-button ${mode}`;
    bar.append(clickable(cls, [picture(path, `pic ${mode}`), name], open, { title }));
  }
  // The race of a first answer can start at once.
  if (chat.turns.length === 1 && turn.here && replay.drafts(turn)) replay.plain(turn).catch(() => {});
  return bar;
};

// ── the window and its clock ────────────────────────────────────────────────────────────────────────────────
const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const near = factor =>
  SPEEDS.reduce(
    (best, one) => (Math.abs(Math.log(one / factor)) < Math.abs(Math.log(best / factor)) ? one : best),
    1,
  );
let parts = null,
  view = null,
  state = null,
  opener = null,
  mode = "",
  of = null,
  frame = 0;

const build = () => {
  const box = el("dialog.omni-widget.omni-replay", {
    "aria-labelledby": "omni-replay-title",
    onkeydown: keys,
  });
  parts = {
    box,
    title: el("h2", { id: "omni-replay-title" }),
    tabs: el("div.segments", { role: "group", "aria-label": "What to watch" }),
    body: el("div.replay-body"),
    back: icon("back", "To the start (Home)", "M3 3v10M13 3v10L5 8z", () => seek(0)),
    prev: icon("prev", "Step back (left arrow)", "M11 3L5 8l6 5z", () => step(-1)),
    play: icon("play", "Play (space)", "M4 2v12l9-6z", () => toggle()),
    next: icon("next", "Step forward (right arrow)", "M5 3l6 5-6 5z", () => step(1)),
    last: icon("last", "To the end (End)", "M13 3v10M3 3v10l8-5z", () => seek(state.total)),
    scrub: el("input", {
      type: "range",
      max: 1000,
      value: 0,
      "aria-label": "Place in the answer",
      oninput: () => {
        pause();
        seek((+parts.scrub.value / 1000) * state.total);
      },
    }),
    time: el("span.replay-time"),
    speed: el("select", {
      "aria-label": "How much slower than it was",
      onchange: () => {
        state.factor = +parts.speed.value;
        show();
      },
    }),
    voice: el("p.omni-offscreen", { "aria-live": "polite" }),
    still: el(
      "p.small.replay-still",
      { hidden: true },
      "Your system asks for less motion, so nothing plays by itself: step with the arrow keys or the buttons.",
    ),
  };
  const close = icon("close", "Close (Esc)", "M4 4l8 8M12 4l-8 8", () => box.close());
  parts.controls = el(
    "div.replay-controls",
    el("div.replay-keys", parts.back, parts.prev, parts.play, parts.next, parts.last),
    parts.scrub,
    el("div.replay-pace", parts.time, parts.speed),
    parts.still,
  );
  box.append(el("header", parts.title, parts.tabs, close), parts.body, parts.controls, parts.voice);
  box.addEventListener("close", () => {
    pause();
    view = state = of = null;
    if (opener?.isConnected) opener.focus();
    else document.getElementById("omni-message")?.focus();
  });
  closesBeside(box);
  document.addEventListener("keydown", event => {
    if (event.target === document.body && box.open) keys(event);
  }); // a press beside the controls takes the focus away
  (document.querySelector(".gradio-container .contain") ?? document.body).append(box); // Gradio rewrites our @media rules to hold inside this
};
const keys = event => {
  event.stopPropagation(); // Esc must not stop an answer that is being written
  if (!state || event.ctrlKey || event.metaKey || event.altKey) return;
  const tag = event.target.tagName;
  if (tag === "SELECT" || (event.key === " " && ["BUTTON", "SUMMARY"].includes(tag))) return;
  const act = {
    " ": toggle,
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    ArrowUp: () => step(-1, true),
    ArrowDown: () => step(1, true),
    PageUp: () => step(-1, true),
    PageDown: () => step(1, true),
    Home: () => seek(0),
    End: () => seek(state.total),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  if (event.key !== " ") pause();
  act();
};

// The clock: `at` in the unit of the lanes; each view says where it may rest (`stops`) and for how long it holds there while it plays.
const show = () => {
  if (!state) return;
  const said = view.draw(state.at, state.playing);
  parts.scrub.value = state.total ? Math.round((1000 * state.at) / state.total) : 0;
  const place = state.timed
    ? `${clockOf(state.at)} of ${clockOf(state.total)}`
    : `${(state.at / STEP).toFixed(0)} of ${(state.total / STEP).toFixed(0)} steps`;
  parts.time.textContent = place;
  parts.scrub.setAttribute("aria-valuetext", `${said}. ${place}`);
  const path = parts.play.querySelector("path"),
    label = state.playing ? "Pause (space)" : state.at >= state.total ? "Play again (space)" : "Play (space)";
  path.setAttribute("d", state.playing ? "M4 2h3v12H4zM9 2h3v12H9z" : "M4 2v12l9-6z");
  if (parts.play.title !== label) {
    parts.play.title = label;
    parts.play.setAttribute("aria-label", label);
  }
  if (!state.playing && state.said !== said) {
    state.said = said;
    parts.voice.textContent = said;
  }
};
const seek = to => {
  if (!state) return;
  state.at = Math.max(0, Math.min(state.total, to));
  state.hold = 0;
  show();
};
const step = (way, far = false) => {
  if (!state) return;
  pause();
  const stops = far && view.rounds ? view.rounds : view.stops;
  const next =
    way > 0 ? stops.find(one => one > state.at + 1e-6) : stops.findLast(one => one < state.at - 1e-6);
  seek(next ?? (way > 0 ? state.total : 0));
};
const pause = () => {
  if (state?.playing) {
    state.playing = false;
    cancelAnimationFrame(frame);
    show();
  }
};
const toggle = () => {
  if (state && !calm()) state.playing ? pause() : play();
};
const play = () => {
  if (state.at >= state.total) state.at = 0;
  state.playing = true;
  state.then = null; // the first frame begins the clock: its time may be before that of this call
  state.hold = 0;
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(tick);
  show();
};
const tick = now => {
  if (!state?.playing) return;
  let passed = Math.min(now - (state.then ?? now), 100); // a tab that slept goes on from where it was
  state.then = now;
  if (state.hold > 0) {
    const used = Math.min(state.hold, passed);
    state.hold -= used;
    passed -= used;
  }
  if (passed > 0) {
    const before = state.at,
      to = before + (passed * 1000) / state.factor;
    const rest = view.holds?.find(one => one > before + 1e-6 && one <= to);
    state.at = Math.min(rest ?? to, state.total);
    if (rest !== undefined) state.hold = (view.pause * state.factor) / state.usual;
    if (state.at >= state.total) state.playing = false;
  }
  show();
  if (state.playing) frame = requestAnimationFrame(tick);
};

// Puts a view on the clock: {draw(at, playing) → sentence, stops, rounds, holds, pause, total, timed, usual: factor at which an eye follows}.
replay.start = (made, autoplay = true) => {
  if (!parts.box.open) return;
  view = made;
  const usual = near(made.usual),
    { total, timed } = made;
  state = { at: 0, total, timed, factor: usual, usual, playing: false, hold: 0, said: "" };
  const pace = one =>
    !timed
      ? `${((STEP * one) / 1e6).toFixed(one < 10 ? 1 : 0)} s a step`
      : one === 1
        ? "as fast as it was"
        : `${format(one, "count")} × slower`;
  const slower = SPEEDS.filter(one => one <= 5 * usual);
  fill(
    parts.speed,
    slower.map(one => el("option", { value: one }, pace(one))),
  );
  parts.speed.value = String(usual);
  parts.controls.hidden = false;
  parts.play.hidden = parts.speed.hidden = calm();
  parts.still.hidden = !calm();
  show();
  if (parts.opened) (calm() ? parts.next : parts.play).focus(); // later on whoever pressed something stays there
  parts.opened = false;
  if (autoplay && !calm()) play();
};
// A view that has nothing to play yet: `nodes` are shown, the controls wait.
replay.wait = (...nodes) => {
  pause();
  view = state = null;
  parts.controls.hidden = true;
  parts.body.replaceChildren(...nodes);
};
replay.body = () => parts.body;
replay.current = (wanted, turn) => parts?.box.open && mode === wanted && of === turn;

replay.open = (wanted, turn) => {
  if (!parts) build();
  if (!parts.box.open) {
    opener = document.activeElement;
    parts.box.showModal();
    parts.opened = true;
  }
  mode = wanted;
  of = turn;
  parts.title.textContent = views[wanted][0];
  const modes = turn.answer && !turn.recalled ? ["slow", "race"] : [];
  const tab = name => {
    const [face, title] = views[name];
    const act = () => {
      replay.open(name, turn);
      parts.tabs.querySelector("[aria-pressed=true]").focus();
    };
    return clickable("", face, act, { title, "aria-pressed": String(name === wanted) });
  };
  fill(parts.tabs, modes.map(tab));
  replay.wait(el("p.small", "…"));
  replay.views[wanted](turn);
};
// An answer of the history: its recorded rounds come from the server.
replay.recall = async request => {
  const value = await page.server.recorded(request);
  if (!value || value.error) throw new Error(value?.error ?? "The server gave no answer.");
  const answer = readAnswer(value.lines);
  Object.assign(answer, {
    end: { finish: value.finish_reason },
    meta: { method: value.method, version: value.version, target: value.target, drafter: value.drafter },
  });
  replay.open("slow", {
    user: value.prompt,
    answer,
    state: "done",
    recalled: true,
    cut:
      value.kept < value.rounds
        ? `Only the first ${value.kept} of ${value.rounds} rounds of this long answer were kept.`
        : "",
  });
};
