// The Compare tab: lanes on one clock, a table, the progress of a batch.
import { howFast, range, secondsOf, unsteady } from "../answer/outcome.js";
import { readAnswer } from "../answer/records.js";
import { colourKey, tokenSpan, tokensBox, watchTokens } from "../answer/tokens.js";
import { clickable, el, fill, heading, makeMeter, say } from "../shared/dom.js";
import { table, td, th, when, whileVisible } from "../shared/fields.js";
import { format, joined, plural } from "../shared/format.js";
import { makeJob } from "../shared/job.js";
import { labels } from "../shared/labels.js";
import { saveCsv } from "../shared/save.js";
import { NO_ANSWER } from "../shared/server.js";
import { load, save, saveFitting } from "../shared/storage.js";
import { visitor } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

const board = { last: null };
export { board as compare };
let draw = () => {};

board.show = state => draw(state);
// Pressed below one prompt or many; the fields are Gradio's.
board.start = event => {
  if (job.busy) return;
  job.start(event, {});
  draw({ state: "asked", done: 0, total: 0 });
};
const take = text => {
  const s = JSON.parse(text);
  draw(s.k === "error" ? { ...board.last, state: "error", error: s.text } : s);
  if (s.done && ["done", "stopped"].includes(s.state)) board.keep(s);
};
const job = makeJob("compare", {
  whole: true,
  got: lines => lines.includes("\n") && take(lines.split("\n").at(-1)), // behind the head
  ended: () => {
    const failed = { ...board.last, state: "error", error: `${NO_ANSWER} Run it again.` };
    draw(RUNNING.includes(board.last.state) ? failed : board.last);
  },
  drawn: () => draw(board.last),
});
const RUNNING = ["asked", "running"];
// The last run that ended, kept in this browser alone. Where it is too long, its rows are left out, then its answers.
board.keep = state => {
  const lanes = state.lanes.map(({ lines, ...one }) => one),
    at = new Date().toISOString();
  const less = [{}, { csv: null }, { csv: null, lanes }];
  saveFitting(
    "compared",
    less.map(one => ({ ...state, ...one, kept: at })),
  );
};
board.forget = () => {
  save("compared", null);
  if (!job.busy) draw({ state: "empty" });
};
const restore = () => {
  const kept = load("compared", null);
  try {
    draw(kept?.state ? kept : { state: "empty" });
  } catch {
    board.forget(); // it is of another version
  }
};
board.picked = () => [board.picked_prompt ?? ""];

widgets.examples = (host, context) => {
  const line = el("div.chips", { role: "group", "aria-label": "Example prompts" });
  host.append(line);
  const chip = ({ label, prompt }) => {
    const pick = () => {
      board.picked_prompt = prompt;
      context.trigger("pick");
    };
    return clickable("chip", el("span", label), pick, { title: prompt });
  };
  return { update: value => fill(line, JSON.parse(value).map(chip)) };
};

// ── one prompt: a lane per method ───────────────────────────────────────────────────────────────────────────
const same = identical =>
  identical === true
    ? el("span.badge.good", "✓ same text as the big model alone")
    : identical === false
      ? el("span.badge.bad", "✗ another text")
      : null;
const guessed = result => Boolean(result.drafted || result.copies_proposed);
// [median, least, most] of several runs, in words: a gain is one where every run was faster, and else there is none to tell.
const paceOf = result => {
  const [speedup, low, high] = result.speedup ?? [];
  return howFast({ speedup, low, high }, result.block_efficiency);
};
// Whether a lane's verdict has the least and the most of its runs in brackets.
const brackets = result =>
  result.method !== "autoregressive" && guessed(result) && Boolean(paceOf(result)?.spread);
// An answer without a guess is plain decoding: a ratio of the two would only show how the machine's pace varied.
const pace = result => {
  const [value, low, high] = result.speedup ?? [];
  if (!guessed(result)) return el("span.pace", "as fast as without guessing: it made no guesses");
  if (value == null) return null;
  const {
    value: times,
    words,
    side,
  } = paceOf(result) ?? {
    value: "its runs differ too much to tell:",
    words: `${range(low, high)} the speed without guessing`,
    side: 0,
  };
  return el("span", { class: `pace ${["bad", "", "good"][side + 1]}` }, `${times} ${words}`);
};
// Each lane's bar has the length of its seconds on one axis; the ruler under the lanes names them.
const NAMES = { draft_seconds: "drafting", verify_seconds: "verifying", rest_seconds: "the rest" };
const clock = (lane, longest) => {
  const total = format(lane.seconds || 0, "seconds"),
    parts = Object.entries(secondsOf(lane)).map(([name, value]) => {
      const style = `width:${longest ? (100 * value) / longest : 0}%`;
      return el("i", { class: name, style, title: `${NAMES[name]} ${format(value, "seconds")}` });
    });
  const label = `${total}: ${parts.map(part => part.title).join(", ")}`;
  return el("div.clock", { role: "img", "aria-label": label }, parts, el("b", total));
};
const dot = method => el("i.swatch-dot", { style: `background:${method.colour}` });
const opened = new Set(); // lanes whose answer is open stay so while others are being measured
const lane = (method, result, state, longest, voice, ties) => {
  const head = el("header", dot(method), el("h3", method.title)),
    box = el("section.lane", { "aria-label": method.title }, head),
    plain = method.name === "autoregressive";
  if (!result) {
    const states = { running: "running or waiting for its turn…", stopped: "stopped before it finished" };
    box.classList.add("pending");
    box.append(el("p.small", states[state] ?? "not measured"));
    return box;
  }
  const figures = [
    ["tokens a step", result.block_efficiency, "number", ""],
    ["guesses right", result.guesses_right, "percent", ""],
    ["copied", result.copied_share, "percent", ""],
    ["tok/s", result.tokens_per_second, "number", "omni-expert"],
  ];
  const answer = readAnswer(result.lines);
  const tokens = tokensBox(`Answer of ${method.title}; arrow keys walk through the tokens`);
  answer.tokens.forEach((line, i) => line.k === "t" && tokens.append(tokenSpan(line, i)));
  watchTokens(tokens, answer, said => {
    voice.textContent = said;
  });
  box.append(
    clock(result, longest),
    el(
      "p.verdict",
      plain ? el("span.pace", "the clock to beat") : [pace(result), same(result.identical)],
      result.best &&
        !plain &&
        ties > 0 &&
        el("span.badge", ties > 1 ? `tie of ${ties}: not to be told apart` : "the fastest"),
    ),
    el(
      "dl.figures",
      figures.map(([title, value, form, who]) =>
        el("div", { class: who }, el("dd", format(value, form)), el("dt", title)),
      ),
    ),
    result.guessing === "alone" && !result.drafted
      ? el(
          "p.small",
          "Guesses of the small model would not have been faster here, so the big model wrote alone.",
        )
      : "",
    result.lines === undefined
      ? ""
      : el(
          "details",
          {
            open: opened.has(method.name),
            ontoggle: event => opened[event.target.open ? "add" : "delete"](method.name),
          },
          el("summary", "The answer"),
          tokens,
          colourKey(answer.tokens),
        ),
    el(
      "p.small.omni-expert",
      joined([
        plural(result.tokens ?? 0, "token"),
        `first token ${format(result.time_to_first_token, "seconds")}`,
        result.version ? `adapter v${result.version}` : "base drafter",
        !method.lossless && labels.approximate,
        result.total_variation != null &&
          `total variation ${format(result.total_variation, "share")} a token`,
      ]),
    ),
  );
  return box;
};
const LABEL = 80; // pixels that a tick's label has
const axis = (longest, width) => {
  // The finest of 1, 2, 5 × a power of ten seconds with at most six ticks beside 0, and as many as there is room for: an answer may take a few milliseconds or minutes.
  const decade = 10 ** Math.floor(Math.log10(longest || 1)),
    most = Math.min(6, Math.max(1, Math.floor(width / LABEL))),
    step = [0.1, 0.2, 0.5, 1, 2, 5, 10].map(part => part * decade).find(size => longest / size <= most);
  const line = el("div.axis", { "aria-hidden": "true" });
  if (!longest) return line;
  for (let at = 0; at <= longest * 1.0001; at += step)
    line.append(el("span", { style: `left:${(100 * at) / longest}%` }, format(at, "seconds")));
  return line;
};

// What has taught the small model of today's lane, which is that of one adapter line.
const learnsFrom = line =>
  line === "default"
    ? "learns from what is asked and taught here, but for topics with a small model of their own"
    : `is the one of the topic “${line}”, and learns from that alone`;

// ── the table of both modes ─────────────────────────────────────────────────────────────────────────────────
const spread = ([middle, low, high], form) => [
  format(middle, form),
  low != null && low !== high && el("small", ` (${format(low, form)}–${format(high, form)})`),
];
const COLUMNS = [
  ["tok/s", "Target tokens per second", "tokens_per_second", "number"],
  ["speedup", "Measured against plain decoding of the same prompt", "speedup", "times"],
  [
    "guesses right",
    "Accepted ÷ proposed tokens of the small model, over the whole answer",
    "guesses_right",
    "percent",
  ],
  [
    "tokens a step",
    "Block efficiency, or mean accepted length τ (MAT): tokens per forward pass of the target, its own one included",
    "block_efficiency",
    "number",
  ],
  ["c", "What a step of the small model takes, ÷ a step of the big one", "cost_ratio", "number"],
  ["first token", "Time to the first token", "time_to_first_token", "seconds"],
  ["per token", "Time per output token, after the first", "time_per_output_token", "milliseconds"],
];
const AWAY = [
  "away",
  "Not lossless: mean total variation between the law by which each token was written and the target's own",
  "total_variation",
  "share",
];
const tableOf = s => {
  const lossy = s.table.some(row => row.total_variation?.[0] != null),
    batch = s.prompts > 1,
    rows = s.methods
      .map(method => [method, s.table.find(row => row.method === method.name)])
      .filter(([, row]) => row);
  const cells = (row, columns) => columns.map(([, , key, form]) => td(spread(row[key], form), true));
  const heads = columns => columns.map(([name, help]) => th(name, help, true)),
    away = lossy ? [AWAY] : [];
  const verdict = ({ checked, identical }) =>
    td(!checked ? "–" : checked > 1 ? `${identical} of ${checked}` : identical ? "✓" : "✗", true, {
      class: checked && identical < checked ? "bad" : checked ? "good" : "",
    });
  const line = ([method, row]) =>
    el(
      "tr",
      el("th", { scope: "row" }, dot(method), method.title),
      batch && td(row.n, true),
      cells(row, COLUMNS),
      verdict(row),
      cells(row, away),
    );
  const titles = [
    th("method"),
    batch && th("n", "Prompts measured", true),
    ...heads(COLUMNS),
    th("identical", "Same token ids as plain decoding", true),
    ...heads(away),
  ];
  const caption = batch
    ? "median, with the least and the most of all prompts"
    : `the same prompt, seed and budget for all: median of ${s.runs} interleaved runs, with the least and the most`;
  return el("div.rolls", table(titles, rows.map(line), el("caption.small", caption)));
};

widgets.compare = (host, context) => {
  job.trigger = context.trigger;
  const how =
      "Pick a prompt and press Run: the big model alone, then with the small one as it came, then with what it has learned here. All on one clock.",
    empty = el("div.nothing", el("h3", "Nothing is compared"), el("p", how));
  const error = el("p.alert", { role: "alert", hidden: true }),
    voice = el("div.omni-offscreen", { "aria-live": "polite" });
  const meter = makeMeter("Comparisons done"),
    line = el("span.small", { role: "status" });
  const stop = clickable("halt", "■ Stop", () => job.stop());
  const csv = clickable("link", "↓ All rows as CSV", () =>
    saveCsv("omnidemo-compare", Object.keys(board.last.csv[0]), board.last.csv),
  );
  const title = "This browser keeps the last run that ended; remove it";
  const remove = () => {
    board.forget();
    document.querySelector("#omni-compare-prompt textarea")?.focus({ preventScroll: true });
  };
  const clear = clickable("link", "Clear", remove, { title });
  const progress = el("div.progress", { hidden: true }, meter.node, line, stop, csv, clear),
    lanes = el("div.lanes"),
    ruler = el("div.ruler"),
    figures = el("div.results.omni-expert"),
    note = el("p.small");
  host.append(heading("Compare"), error, progress, lanes, ruler, note, figures, empty, voice);
  let longest = 0;
  const rule = () => fill(ruler, longest > 0 && axis(longest, ruler.clientWidth - 90));
  whileVisible(host, 0, rule); // what was kept is drawn before it is seen, when nothing has a width
  draw = s => {
    board.last = s;
    const busy = job.busy && RUNNING.includes(s.state);
    host.dataset.state = s.state;
    empty.hidden = s.state !== "empty";
    say(error, s.error);
    progress.hidden = s.state === "empty" || (s.state === "error" && !s.total);
    stop.hidden = !busy;
    stop.disabled = job.stopping;
    clear.hidden = busy;
    csv.hidden = !s.csv?.length;
    for (const button of document.querySelectorAll("#omni-compare-run, #omni-compare-batch"))
      button.disabled = busy; // the engine makes one comparison at a time
    meter.set(s.total ? s.done / s.total : 0);
    const ends = { stopped: "stopped; what was measured stays", done: "done" };
    line.textContent =
      s.state === "asked"
        ? job.place
          ? `waiting: place ${job.place} in the line`
          : "begins…"
        : joined([
            s.kept && `Kept from ${when(s.kept)}, with ${s.target}${s.prompt ? `: “${s.prompt}”` : ""}`,
            `${s.done} of ${s.total} answers`,
            s.prompts > 1 ? `${s.prompts} prompts` : s.runs > 1 && `${s.runs} runs of each`,
            job.stopping && busy ? "stopping" : ends[s.state],
          ]);
    longest = Math.max(0, ...(s.lanes ?? []).map(one => one.seconds || 0));
    const single = s.prompts === 1,
      best = (s.lanes ?? []).filter(one => one.best && one.method !== "autoregressive"),
      ties = best.some(one => one.speedup?.[0] && unsteady(one.speedup[1], one.speedup[2])) ? 0 : best.length; // runs that differ too much rank nothing
    const measured = method => s.lanes.find(one => one.method === method.name);
    fill(
      lanes,
      single && s.methods.map(method => lane(method, measured(method), s.state, longest, voice, ties)),
    );
    rule();
    const ranges = s.lanes?.some(brackets) ? "; in brackets the least and the most of them" : "";
    const today = [
      s.lanes?.some(one => one.method === "ngram-exact" && one.version === 0) &&
        "is the fresh one, for it has learned nothing here",
      !visitor.guest && s.line && learnsFrom(s.line),
    ].filter(Boolean);
    note.hidden = !s.methods?.length;
    note.textContent = joined(
      [
        single && longest && "All bars share one clock.",
        !s.base && "Without the lane “Without guessing” there is no speedup: tick it to get one.",
        today.length && `Today’s small model ${today.join("; it ")}.`,
        single && longest && s.runs > 1 && `Each lane is the median of ${s.runs} alternating runs${ranges}.`,
        single &&
          "Pink: guessing. Indigo: checking. Grey: the rest. The prompt was answered once before, so which guesses make one word is known, as in a chat that goes on.",
      ],
      " ",
    );
    figures.hidden = !s.done;
    if (!s.done) return;
    fill(figures, el("section.panel.tables", tableOf(s)));
  };
  return {
    update: value => {
      if (job.busy) job.receive(value);
      else if (!board.last) restore();
    },
  };
};
