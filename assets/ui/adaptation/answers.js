// The answers of a memory, from the first one on: tokens a step, whose tokens they are, and how many guesses were right. Before there is one: a recorded run.
// What is shown comes from the server (ui/live_answers.py).
import { prices } from "./prices.js";
import { drawing, el, fill, heading, hint, svg } from "../shared/dom.js";
import { whenResized } from "../shared/fields.js";
import { format, plural } from "../shared/format.js";
import { widgets } from "../shared/widgets.js";

// Whose tokens an answer's are, from the bottom of its bar: key, name, what it means.
const SHARES = [
  ["memory", "memory", "Copied from earlier answers, which it can do from the second answer on"],
  ["guessed", "small model", "Guesses of the small model that the big one accepted"],
  ["chat", "copied from the chat", "Copied from the question, the chat or this answer"],
  ["own", "big model itself", "What the big model wrote itself"],
  ["forced", "the form", "What the answer's form left no choice about"],
];
const HALVES = [
  [0.5, "50 %"],
  [1, "100 %"],
];
const LETTER = 7.5, // pixels, at the size of a phone's labels
  LEFT = 44,
  RIGHT = 14;
const sharesOf = one => SHARES.filter(([key]) => one[key] != null);
const two = x => (x >= 10 ? x.toFixed(1) : x.toFixed(2));
const share = (part, whole) => format(whole ? part / whole : null, "percent");
const told = one =>
  [
    `Answer ${one.number}: ${two(one.steps)} tokens for one step of the big model`,
    one.memory == null
      ? plural(one.tokens, "token")
      : `${plural(one.tokens, "token")}: ${sharesOf(one)
          .map(([key, name]) => `${one[key]} ${name}`)
          .join(", ")}`,
    one.alpha == null
      ? "no guess of the small model was judged"
      : `${format(one.alpha, "percent")} of the small model's judged guesses accepted`,
    one.version ? `version ${one.version} of the small model` : "fresh small model",
  ].join("; ");

// An empty chart over the answers: what draws into it.
const chart = (answers, width, height, most, ticks, label, bottom = 6) => {
  const top = 20,
    slot = (width - LEFT - RIGHT) / Math.max(answers.length, 10),
    x = place => LEFT + slot * (place + 0.5),
    y = value => height - bottom - (value / most) * (height - top - bottom);
  const made = drawing(width, height, "answers", label);
  const across = (value, cls) => made.line(LEFT, y(value), width - RIGHT, y(value), cls);
  for (const [value, text] of ticks) {
    across(value, "grid");
    made.write(text, LEFT - 7, y(value) + 4, "tick", "end");
  }
  // A point for each value, and a line through those that stand beside each other.
  const curve = (values, cls) => {
    const runs = [[]];
    values.forEach((value, place) =>
      value == null ? runs.push([]) : runs.at(-1).push([x(place), y(value)]),
    );
    runs.filter(run => run.length).forEach(run => made.path(run, cls));
    values.forEach(
      (value, place) =>
        value != null && made.point(x(place), y(value), slot > 8 ? 3.5 : 1.5, cls, told(answers[place])),
    );
  };
  return { ...made, width, x, y, slot, top, across, curve };
};

// Versions: a line where another one drafts from then on, with its name where there is room.
const markVersions = ({ line, x, y, slot, top, write, width }, marks) => {
  let until = Infinity; // where the name of the mark behind begins; the newest is named first
  for (const { before, kind, version } of [...marks].reverse()) {
    const at = Math.min(x(before) - slot / 2, width - RIGHT),
      back = kind === "rolled back",
      name = `${back ? "↩" : "▲"} v${version}`,
      half = (LETTER * name.length) / 2,
      look = back ? "back" : "published";
    line(at, top - 4, at, y(0), `mark ${look}`, `Version ${version} of the small model was ${kind} here`);
    const middle = Math.min(at, width - half);
    if (middle + half > until) continue;
    write(name, middle, top - 8, `mark ${look}`, "middle");
    until = middle - half - LETTER;
  }
};

const steps = (s, width) => {
  const values = s.answers.map(one => one.steps),
    without = s.answers.map(one => one.nothing_learned ?? null),
    most = 1.12 * Math.max(2, ...values, ...without),
    gap = most > 8 ? 4 : most > 4 ? 2 : 1,
    ticks = Array.from({ length: Math.floor(most / gap) + 1 }, (_, i) => [i * gap, String(i * gap)]);
  const made = chart(
    s.answers,
    width,
    width > 460 ? 150 : 130,
    most,
    ticks.filter(([value]) => value),
    `Tokens for one step of the big model, of ${plural(values.length, "answer")}: first ${two(values[0])}, newest ${two(values.at(-1))}; 1 without guessing`,
  );
  made.across(1, "plain");
  markVersions(made, s.marks);
  if (without.some(value => value != null))
    made.path(
      without.map((value, place) => [made.x(place), made.y(value ?? 1)]),
      "without",
    );
  made.curve(values, "steps");
  return made.node;
};

const whose = (s, width) => {
  const made = chart(
    s.answers,
    width,
    width > 460 ? 130 : 120,
    1,
    HALVES,
    `Whose tokens they are: of the newest answer ${sharesOf(s.answers.at(-1))
      .map(([key, name]) => `${s.answers.at(-1)[key]} ${name}`)
      .join(", ")}`,
  );
  s.answers.forEach((one, place) => {
    if (one.memory == null || !one.tokens) return;
    let below = 0;
    const wide = Math.max(1, Math.min(0.76 * made.slot, 34)),
      bar = svg("g", { class: "bar" }, ...hint(told(one)));
    for (const [key] of sharesOf(one)) {
      const from = made.y(below),
        y = made.y((below += one[key] / one.tokens));
      bar.append(svg("rect", { x: made.x(place) - wide / 2, width: wide, y, height: from - y, class: key }));
    }
    made.node.append(bar);
  });
  return made.node;
};

const right = (s, width) => {
  const values = s.answers.map(one => one.alpha),
    known = values.filter(value => value != null);
  const made = chart(
    s.answers,
    width,
    width > 460 ? 150 : 140,
    1,
    HALVES,
    `Accepted of the small model's judged guesses: ${known.length ? `first ${format(known[0], "percent")}, newest ${format(known.at(-1), "percent")}` : "none was judged"}`,
    26,
  );
  made.across(0, "grid");
  made.curve(values, "right");
  const [from, to] = [s.answers[0].number, s.answers.at(-1).number],
    last = made.x(values.length - 1),
    room = last - made.x(0) > LETTER * `answer ${from}  ${to}`.length;
  const text = room || from === to ? `answer ${from}` : `answers ${from} to ${to}`;
  made.write(text, made.x(0), made.y(0) + 18, "tick");
  if (room) made.write(String(to), last, made.y(0) + 18, "tick", "middle");
  return made.node;
};

const sentence = s => {
  const first = s.answers[0],
    last = s.answers.at(-1);
  return [
    `Answer ${last.number}: `,
    el("b", two(last.steps)),
    " tokens for one step of the big model",
    s.answers.length > 1 && ` (answer ${first.number}: ${two(first.steps)})`,
    last.nothing_learned == null
      ? ". "
      : `; with nothing learned it would have been ${two(last.nothing_learned)}. `,
    last.memory != null &&
      `Memory gave ${share(last.memory, last.tokens)} of its tokens, the small model ${share(last.guessed, last.tokens)}. `,
    last.alpha == null
      ? "No guess of the small model was judged in it."
      : `The big model accepted ${format(last.alpha, "percent")} of the small model's judged guesses.`,
  ];
};
const about = ({ title, task, target, drafter, date }, count) =>
  `A recording: ${plural(count, "answer")} to the task “${task}” by ${title} (${target}) with ${drafter}, made on ${new Date(`${date}T12:00:00Z`).toLocaleDateString([], { dateStyle: "long" })}. Ask something in the Chat tab or run a task in Same task, and your own answers take its place.`;

const REPLAYED =
  "Computed from the recorded rows: the same answer with an empty memory and the fresh small model";
export let showAnswers = () => {};
widgets.answers = host => {
  let state = null,
    shown = "";
  const draw = () => {
    const s = state;
    if (!s) return;
    host.dataset.recorded = String(Boolean(s.recorded));
    const head = el(
      "h3",
      s.recorded
        ? "How it learns, recorded"
        : s.line === "default"
          ? "Your answers, one by one"
          : `The answers of “${s.line}”, one by one`,
    );
    const none = "Ask something in the Chat tab or run a task in Same task: each answer is drawn here.";
    if (!s.answers.length) return host.replaceChildren(heading("Adaptation"), head, el("p.small", none));
    const width = Math.max(240, host.clientWidth - 2 * 16),
      swaps = kind => s.marks.some(one => one.kind === kind);
    const title = (text, help) => el("h4", { title: help }, text);
    fill(
      host,
      heading("Adaptation"),
      head,
      s.recorded && el("p.recording", { role: "note" }, about(s.recorded, s.answers.length)),
      el("p.now", sentence(s)),
      title("Tokens for one step of the big model", "Of each answer, as it was written; 1 without guessing"),
      steps(s, width),
      el(
        "p.small.legendline",
        el("span.key.plain", "— 1, without guessing"),
        s.answers.some(one => one.nothing_learned != null) &&
          el("span.key.without", { title: REPLAYED }, "┅ the same answer with nothing learned"),
        swaps("published") && el("span.key.published", "▲ version published"),
        swaps("rolled back") && el("span.key.back", "↩ version rolled back"),
      ),
      title(
        "Whose tokens they are",
        "The two learners: the memory at once, the small model after tens of answers",
      ),
      whose(s, width),
      el(
        "p.small.legendline",
        SHARES.filter(([key]) => key !== "forced" || s.answers.some(one => one.forced)).map(
          ([key, name, help]) =>
            el("span", { title: help }, el("i", { class: `square ${key}`, "aria-hidden": "true" }), name),
        ),
      ),
      title(
        "Accepted of the small model's guesses",
        "Accepted ÷ judged tokens of the small model; what stands behind a wrong guess is not judged (alpha in the CSV)",
      ),
      right(s, width),
    );
  };
  whenResized(host, draw);
  showAnswers = s => {
    const now = JSON.stringify(s);
    if (now === shown) return;
    shown = now;
    state = s;
    prices.answers(s.recorded ? [] : s.answers);
    draw();
  };
  return { update: () => {} };
};
