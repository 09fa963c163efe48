// The tab of one task again and again: ten inputs a press, each answer a row that is drawn while it is written, and beside them the curve.
// Each answer is an event of its own, so that nobody waits for all of them; the rows are kept in this browser alone.
import { drawLearned } from "../answer/learned.js";
import { guessed, newAnswer, readAnswer, readLines } from "../answer/records.js";
import { colourKey, tokenSpan, tokensBox, watchTokens } from "../answer/tokens.js";
import { chat } from "../chat/chat.js";
import { asAnswer, filmOf, makeFilm, mostSteps, paceBars, recordedRun, savedSteps, saver } from "./film.js";
import { roundsOf } from "../replay/lanes.js";
import { replay } from "../replay/replay.js";
import { drawChart, plotAgain } from "../shared/charts.js";
import { calm, clickable, counted, el, fill, say } from "../shared/dom.js";
import { field, makeQuestion, select, topicTitle, when, whileVisible } from "../shared/fields.js";
import { format, joined, plural, whole } from "../shared/format.js";
import { makeJob } from "../shared/job.js";
import { labels } from "../shared/labels.js";
import { saveCsv } from "../shared/save.js";
import { NO_ANSWER } from "../shared/server.js";
import { load, save, saveFitting } from "../shared/storage.js";
import { visitor } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

const TEN = 10,
  TYPED = 600; // ms without a key after which a schema is checked
const board = {
  chosen: "json",
  topic: "code", // what the drafter knows least of when it comes, of what it learns soon
  all: {}, // by task: {rows: [{row, lines}], next: inputs that were answered, pair: [target, drafter], system, lines, kept}
  live: null, // the answer under way: {number, input, answer, row, none}
  busy: false,
  stopping: false,
  left: 0,
  error: "",
};
export { board as task };
let draw = () => {},
  drawLive = () => {};
// Each topic has rows of its own.
const shelf = () => (board.chosen === "topic" ? `topic ${board.topic}` : board.chosen);
const now = () => (board.all[shelf()] ??= { rows: [], next: 0, pair: null, system: "", lines: "" });
const own = () => board.chosen === "own";

// ── what is asked for ───────────────────────────────────────────────────────────────────────────────────────
// The two switches below the chat; they stand in the page as soon as the chat does.
const switches = () =>
  [...document.querySelectorAll("#omni-privacy input[type=checkbox]")].map(one => one.checked);
board.asked = () => {
  const { next, system, lines, schema } = now(),
    [learn = true, keep = true] = switches();
  const texts = own()
    ? { system: whole(system), lines: whole(lines), schema: whole(schema ?? "") }
    : { topic: board.topic };
  return { task: board.chosen, first: next, learn, keep, ...texts };
};
board.csv = () => now().rows.map(one => one.row);
// The row that is written comes into view where the one before it was.
const seen = node => {
  const { top, bottom } = node.getBoundingClientRect();
  return top < innerHeight && bottom > 0;
};
const follow = node => node?.scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" });
const answerNext = () => {
  const before = document.querySelector(".task-rows > li:last-child"),
    goOn = board.left === TEN || !before || seen(before);
  const one = now(),
    pair = chat.picked;
  if (one.pair && one.pair.join() !== pair.join()) Object.assign(one, { rows: [], next: 0 }); // another target has learned nothing of this
  one.pair = pair;
  board.live = { number: one.next + 1, input: "", answer: newAnswer() };
  job.start("run", board.asked());
  draw();
  if (goOn) follow(document.querySelector(".task-rows > li:last-child"));
};
const start = () => {
  if (board.busy) return;
  Object.assign(board, { busy: true, stopping: false, left: TEN, error: "" });
  answerNext();
};
const stop = () => {
  if (!board.busy || board.stopping) return;
  board.stopping = true;
  job.stop();
  draw();
};
const begin = next => {
  Object.assign(now(), { rows: [], next, kept: "" });
  Object.assign(board, { live: null, error: "" });
  keep();
  draw();
};

board.forgotten = () => !board.busy && begin(0);

// ── what comes ──────────────────────────────────────────────────────────────────────────────────────────────
const take = text => {
  const { live } = board,
    others = [];
  for (const raw of text.split("\n")) {
    const line = JSON.parse(raw);
    if (line.k === "row") live.row = line;
    else if (line.k === "input") live.input = line.text;
    else if (line.k === "none") live.none = true;
    else others.push(raw);
  }
  readLines(live.answer, others.join("\n"));
  if (live.answer.error) board.error = live.answer.error;
  drawLive();
};
const settled = () => {
  const { live } = board;
  const { k, ...row } = live.row ?? {};
  if (k) {
    const one = now();
    one.rows.push({ row, lines: live.answer.lines });
    one.next = row.number;
    one.kept = new Date().toISOString();
    board.left -= 1;
    board.live = null;
    keep();
    if (board.left > 0 && !board.stopping) return answerNext();
  } else if (live.none && !board.stopping) {
    board.error = own()
      ? "All your inputs are answered. Add further lines, or begin again."
      : "There are no further inputs of this task. Choose another one.";
    board.live = null;
  } else if (!live.answer.error && !live.answer.end && !board.stopping) {
    board.error = `${NO_ANSWER} Press again.`;
  }
  if (!live.answer.tokens.length) board.live = null;
  Object.assign(board, { busy: false, stopping: false });
  draw();
};
const job = makeJob("task", { got: take, ended: settled, drawn: () => drawLive() });

// ── what this browser keeps: of all tasks, or where that is too long, the texts of the one that is shown, or none ─
const keep = () => {
  const without = spare =>
    Object.fromEntries(
      Object.entries(board.all).map(([name, one]) => [
        name,
        name === spare ? one : { ...one, rows: one.rows.map(({ row }) => ({ row })) },
      ]),
    );
  const less = [board.all, without(shelf()), without("")];
  saveFitting(
    "task",
    less.map(all => ({ chosen: board.chosen, topic: board.topic, all })),
  );
};
const restore = () => {
  const kept = load("task", null);
  if (!kept?.all) return;
  board.all = kept.all;
  if (kept.chosen) board.chosen = kept.chosen;
  if (kept.topic) board.topic = kept.topic;
};
board.forget = () => {
  save("task", null);
  if (board.busy) return;
  Object.assign(board, { all: {}, live: null, error: "" });
  draw();
};

// ── a row ───────────────────────────────────────────────────────────────────────────────────────────────────
const count = answer => {
  const written = answer.tokens.filter(line => line.k === "t"),
    tokens = written.length,
    by = source => written.filter(line => line.s === source).length,
    [copied, forced] = [by("copied"), by("forced")],
    proposed = written.filter(guessed).length;
  return {
    steps: answer.rounds.length,
    tokens,
    copied,
    forced,
    guessed: proposed - copied - forced,
    own: tokens - proposed,
  };
};
const shares = ({ forced, copied, guessed, own }) =>
  `${forced ? `${forced} of the form · ` : ""}${copied} copied · ${guessed} guessed · ${own} by the big model`;
const number = value => format(value, "number");
const replays = row => {
  const known = [
    ["with an empty memory", row.empty_memory_tokens_per_round],
    ["with the fresh small model", row.fresh_drafter_tokens_per_round],
    ["with nothing learned", row.nothing_learned_tokens_per_round],
  ].map(([name, value]) => value != null && `${name} ${number(value)} tokens a step`);
  return known.some(Boolean)
    ? `The same answer: ${joined(known, ", ")}.`
    : "What the same answer would have taken with less learned is not known.";
};
// A row's nodes, and what draws it: its facts, and the tokens from the one that was drawn last.
const makeRow = (voice, place) => {
  const no = el("b.no", String(place)),
    given = el("span.given.small"),
    line = el("span.toks.line", { "aria-hidden": "true" }),
    facts = el("span.facts"),
    whole = el("div.whole");
  const details = el(
    "details",
    { ontoggle: () => details.open && open() },
    el("summary", no, given, line, facts),
    whole,
  );
  const node = el("li", details);
  const tokens = tokensBox(`Answer ${place}; arrow keys walk through the tokens`);
  const input = el("p.say"),
    key = el("div"),
    more = el("p.small");
  let answer = null,
    row = null,
    filled = false;
  const drawn = new Map(); // box → how many of the answer's lines it has
  // The tokens that a box has not got yet; of an answer whose colours were not kept, its text.
  const write = box => {
    const { tokens: all } = answer,
      at = drawn.get(box) ?? 0;
    all.slice(at).forEach((one, place) => one.k === "t" && box.append(tokenSpan(one, at + place)));
    drawn.set(box, all.length);
    if (!all.length && row) box.textContent = row.answer;
  };
  const open = () => {
    if (!filled) {
      whole.append(el("p.label", "Input"), input, el("p.label", "Answer"), tokens, key, more);
      watchTokens(tokens, answer, said => {
        voice.textContent = said;
      });
      filled = true;
    }
    write(tokens);
    fill(key, colourKey(answer.tokens));
    if (!row) return;
    const { memory_tokens: memory, alpha, adapter_version: version, finish_reason: finish } = row;
    more.textContent = joined(
      [
        replays(row),
        memory != null && `It could copy from ${plural(memory, "token")} of earlier answers.`,
        alpha != null && `${format(alpha, "percent")} of the judged guesses were right.`,
        version && `Version ${version} of the small model.`,
        finish === "length" && "It was cut at its longest.",
      ],
      " ",
    );
  };
  const show = (text, one, done, stopped) => {
    answer = one;
    row = done;
    given.textContent = input.textContent = text;
    write(line);
    const live = count(answer),
      without = row?.nothing_learned_tokens_per_round;
    node.classList.toggle("live", !row && !stopped);
    const pace = row
      ? [
          el("b", number(row.tokens_per_round)),
          " tokens a step",
          without != null && el("span.small", ` · nothing learned ${number(without)}`),
          paceBars(asAnswer(row)),
        ]
      : counted(live.steps, live.tokens);
    const whose = row
      ? {
          forced: row.forced_tokens,
          copied: row.copied_tokens,
          guessed: row.guessed_tokens,
          own: row.own_tokens,
        }
      : live;
    const json = row?.valid_json == null ? "" : row.valid_json ? " · valid JSON" : " · not valid JSON";
    fill(facts, el("span.pace", pace), el("span.small", stopped ? "stopped" : shares(whose) + json));
    if (!row && !stopped) line.scrollTop = line.scrollHeight;
    if (details.open) open();
  };
  // Opens the row; returns the box of its tokens.
  const reveal = () => {
    details.open = true;
    open();
    return tokens;
  };
  return { node, show, reveal };
};

// ── the headline and the curve ──────────────────────────────────────────────────────────────────────────────
// Inputs differ, so several answers are compared, and with what they would have taken with nothing learned.
const headline = rows => {
  if (!rows.length) return "";
  const pace = some => {
      const [tokens, steps] = ["tokens", "steps"].map(name =>
        some.reduce(
          (sum, row) => sum + (name === "tokens" ? row.tokens : row.tokens / row.tokens_per_round),
          0,
        ),
      );
      return number(tokens / steps);
    },
    few = rows.length < 5,
    known = rows.filter(row => row.nothing_learned_tokens_per_round),
    saved = known.reduce(
      (sum, row) =>
        sum + row.tokens / row.nothing_learned_tokens_per_round - row.tokens / row.tokens_per_round,
      0,
    ),
    begun = few
      ? `${plural(rows.length, "answer")}: ${pace(rows)} tokens a step`
      : `First two answers: ${pace(rows.slice(0, 2))} tokens a step, last ${Math.min(5, rows.length - 2)}: ${pace(rows.slice(Math.max(2, rows.length - 5)))}`;
  if (!known.length) return `${begun}. What it would have been with nothing learned is not known.`;
  const without = known.reduce((sum, row) => sum + row.tokens / row.nothing_learned_tokens_per_round, 0),
    [taken, before] = [without - saved, without].map(Math.round);
  return taken < before
    ? `${begun}. ${taken} steps, where nothing learned would have taken ${before}: ${format(saved / without, "percent")} fewer.`
    : `${begun}. Learning has saved no steps yet.`;
};
// What an answer owes to the memory and to what the small model has learned; a difference that the curve hardly shows is none.
const SEEN = 0.05;
const owed = row => {
  const { tokens_per_round: now, empty_memory_tokens_per_round: empty } = row,
    fresh = row.fresh_drafter_tokens_per_round;
  if (empty == null || fresh == null) return "";
  const brought = without =>
    `${now - without > SEEN ? "helped" : without - now > SEEN ? "lowered it slightly" : now === without ? "changed nothing" : "changed next to nothing"} (${number(without)} without)`;
  const memory = row.memory_tokens ? brought(empty) : "was empty";
  return `In answer ${row.number} the memory ${memory}; training ${brought(fresh)}.`;
};
// Of the rows where a replay is known: along the upper edge and back along the lower one, in pieces; where learning has lost, there is no gap.
const gap = (rows, below) => {
  const [x, y] = [[], []];
  let piece = [];
  for (const row of [...rows, {}]) {
    if (row[below] != null) {
      piece.push(row);
      continue;
    }
    const back = [...piece].reverse(),
      lower = back.map(one => Math.min(one[below], one.tokens_per_round));
    if (piece.length > 1) {
      x.push(...[...piece, ...back].map(one => one.number), null);
      y.push(...piece.map(one => one.tokens_per_round), ...lower, null);
    }
    piece = [];
  }
  return { x, y };
};
const filled = (template, rows) => {
  const figure = structuredClone(template);
  for (const trace of figure.data) {
    const { column, below } = trace.meta;
    Object.assign(
      trace,
      below ? gap(rows, below) : { x: rows.map(row => row.number), y: rows.map(row => row[column]) },
    );
  }
  const start = rows[0]?.number ?? 1;
  figure.layout.xaxis.autorangeoptions = { include: [start, start + TEN - 1] };
  return figure;
};

widgets.task = (host, context) => {
  job.trigger = context.trigger;
  let config = null;
  const voice = el("div.omni-offscreen", { "aria-live": "polite" });
  const cards = el("fieldset.task-cards", el("legend.omni-offscreen", "The task"));
  const text = (name, rows, placeholder, then = () => {}) => {
    const oninput = event => {
      now()[name] = event.target.value;
      changed();
      then();
    };
    return el("textarea", { rows, placeholder, oninput });
  };
  const example = "For example: Turn each line into one JSON object with the keys name and city.";
  const system = text("system", 2, example),
    lines = text("lines", 5, 'One input on each line, as text or as {"input": "…"}'),
    schema = text(
      "schema",
      2,
      'For example: {"type": "object", "properties": {"name": {"type": "string"}}}',
      () => checkSoon(),
    ),
    wrong = el("p.alert", { role: "status", hidden: true });
  // The server says what is wrong with a schema as soon as nobody types; what it says of an older text is not shown.
  let edits = 0,
    late = 0;
  const checkSoon = () => {
    edits += 1;
    say(wrong, "");
    clearTimeout(late);
    late = setTimeout(
      () => context.trigger("check", { asked: { schema: schema.value, number: edits } }),
      TYPED,
    );
  };
  const checked = ({ number, said }) => number === edits && say(wrong, said);
  const file = el("input", {
    type: "file",
    accept: ".jsonl,.json,.txt",
    onchange: async () => {
      const [chosen] = file.files;
      if (!chosen) return;
      const text = chosen.size > config.most ? null : (await chosen.text()).replace(/^\ufeff/, "");
      board.error =
        text === null
          ? `“${chosen.name}” has more than ${format(config.most, "count")} characters; give fewer inputs.`
          : text.includes("\ufffd")
            ? `“${chosen.name}” is not UTF-8 text; give a JSON Lines file.`
            : "";
      if (!board.error) {
        now().lines = lines.value = text;
        changed();
      }
      file.value = "";
      draw();
    },
  });
  const form = el(
    "div.own",
    { hidden: true },
    field("Instruction (system prompt; may be empty)", system),
    field("Inputs", lines),
    field("Or a JSON Lines file", file),
    field("JSON schema that each answer obeys (may be empty)", schema),
    wrong,
  );
  const topic = el("span"),
    kind = el("div.own", { hidden: true }, field("Topic", topic));
  const changed = () => {
    if (now().next)
      begin(0); // other inputs: the old rows are of another task
    else keep();
  };
  const go = clickable("primary", "", start),
    halt = clickable("halt", "■ Stop", stop),
    clear = clickable("link", "Clear the rows", () => begin(own() ? 0 : now().next), {
      title: "Remove these rows; what was learned stays, and the next inputs are other ones",
    }),
    anew = clickable("link", "Forget and begin again", () =>
      really.ask(
        visitor.guest
          ? "This deletes all that was learned from you here, also from chats."
          : "This deletes what was learned from this task: the answers to copy from, and the small model's versions.",
        () => context.trigger("reset", { asked: board.asked() }),
      ),
    ),
    film = saver(
      () => rowsAsRun(),
      labels.legend,
      "These rows in their colours, to be played without a server",
    ),
    really = makeQuestion("Forget?", "Forget it", "Keep it"),
    status = el("span.small", { role: "status" });
  const csv = clickable("link", "↓ Rows as CSV", () => saveCsv("omnidemo-task", config.columns, board.csv()));
  const whose = el("p.small.whose");
  visitor.watch(() => {
    whose.textContent = visitor.guest
      ? "The memory is yours alone: no other visitor's answers are in it, and yours are in no other."
      : visitor.public
        ? "You are the operator: the memory of a task is yours, and no visitor has it."
        : "Task memory is shared by all users.";
  });
  const raceBefore = () => {
    const [target, drafter] = now().pair;
    replay.open("former", { target, drafter, task: board.asked() });
  };
  const race = clickable("toggle", "⇄ Race it against what it was", raceBefore, {
    title: "One more input, by the line as it was before the first answer and by the line of now",
  });
  const error = el("p.alert", { role: "alert", hidden: true });
  const list = el("ol.task-rows"),
    colours = el("div"),
    empty = el("div.nothing");
  const said = el("p.task-headline"),
    total = el("p.counter"),
    key = el("div.task-key"),
    plot = el("div.plot", { role: "img" }),
    note = el("p.small"),
    whence = el("p"),
    learned = el("p.learned");
  const side = el(
    "section.panel.task-side",
    { "aria-label": "What was learned" },
    el("h3", "Tokens for one step of the big model"),
    said,
    whence,
    learned,
    total,
    race,
    key,
    plot,
    note,
  );
  host.append(
    el("h2", "The same task, ten times"),
    el(
      "p.soft",
      "Ten different inputs of one task. The memory keeps each answer and the small model learns from it, so more of the next ones can be guessed. The big model checks every token.",
    ),
    whose,
    cards,
    form,
    kind,
    el("div.task-acts", go, halt, clear, anew, csv, film, status),
    really.box,
    error,
    el("div.task-board", el("div.task-answers", list, colours, empty), side),
    voice,
  );
  whileVisible(host, 0, plotAgain);

  const rows = new Map(); // number → what `makeRow` made
  let shownTask = "";
  const drop = place => {
    rows.get(place)?.node.remove();
    rows.delete(place);
  };
  // The row of an answer; one that was stopped gives way to the next try.
  const row = (place, answer) => {
    if (rows.has(place) && rows.get(place).answer !== answer) drop(place);
    if (!rows.has(place)) {
      const made = { ...makeRow(voice, place), answer };
      rows.set(place, made);
      list.append(made.node);
    }
    return rows.get(place);
  };
  // What the colours of all rows mean.
  const drawColours = () => {
    const lines = [...rows.values()].flatMap(one => one.answer.tokens);
    fill(colours, lines.length > 0 && colourKey(lines));
  };
  const watchFilm = async () => {
    const run = await recordedRun();
    fill(
      empty,
      run ? makeFilm(run, labels.legend, [saver(() => run, labels.legend)]) : "This app has no recorded run.",
    );
  };
  const rowsAsRun = () => {
    const { rows: done, pair, kept } = now(),
      about = { task: shelf(), title: pair[0], drafter: pair[1], date: kept || new Date().toISOString() },
      told = done
        .filter(one => one.lines)
        .map(({ row, lines }) => ({ row, rounds: roundsOf(readAnswer(lines)) }));
    return filmOf(
      about,
      told,
      labels.legend.map(one => one.key),
    );
  };
  let spoken = "";
  drawLive = () => {
    const live = board.live,
      done = now().rows;
    if (live && !live.none && (board.busy || live.answer.tokens.length)) {
      const made = row(live.number, live.answer);
      made.show(live.input, live.answer, live.row ?? null, !board.busy);
      if (!colours.childElementCount && live.answer.tokens.length) drawColours();
      made.whole = Boolean(live.row);
    }
    const answers = done.map(one => asAnswer(one.row)),
      under = live && !live.none ? count(live.answer) : null;
    if (under?.steps) answers.push({ tokens: under.tokens, steps: under.tokens / under.steps });
    const [steps, tokens] = [one => one.tokens / one.steps, one => one.tokens].map(of =>
      Math.round(answers.reduce((sum, one) => sum + of(one), 0)),
    );
    total.hidden = !tokens;
    const saved = savedSteps(answers);
    fill(total, counted(steps, tokens), saved.length > 0 && ": ", ...saved);
    list.style.setProperty("--most", mostSteps(answers));
    const words = board.busy && live ? doing(live) : done.length ? kept(done.length) : "";
    if (words !== spoken) status.textContent = spoken = words;
  };
  const kept = count =>
    `${plural(count, "answer")}${now().kept ? `, the last one at ${when(now().kept)}` : ""}`;
  const doing = ({ number, answer, row, input }) => {
    const { reading } = answer;
    if (board.stopping) return "stopping";
    if (row) return `answer ${number} is written`;
    if (answer.tokens.length) return `answer ${number} is being written`;
    if (reading)
      return `reading the prompt: ${format(reading.read, "count")} of ${format(reading.total, "count")} tokens`;
    return input
      ? `the big model reads the prompt of answer ${number}`
      : job.place
        ? `answer ${number} waits: place ${job.place} in the line`
        : `answer ${number} begins`;
  };
  const drawCurve = () => {
    const done = now().rows.map(one => one.row),
      last = done.at(-1);
    side.hidden = !done.length;
    race.hidden = board.busy || !now().pair;
    if (!last) return;
    said.textContent = headline(done);
    whence.textContent = owed(last);
    const { answer, reveal } = rows.get(last.number),
      which = `Right in answer ${last.number} only because of what was learned:`;
    drawLearned(learned, which, last.learned ?? [], answer, reveal);
    const known = Object.entries(config.lines).filter(([column]) => done.some(one => one[column] != null));
    const named = ([column, name]) => {
      const swatch = el("i", { class: column.replace("_tokens_per_round", ""), "aria-hidden": "true" });
      return el("span", swatch, `${name} `, el("b", number(last[column])));
    };
    fill(key, known.map(named));
    note.textContent =
      known.length > 1
        ? `The numbers above are of answer ${last.number}. The dashed lines are the same answers, replayed without memory or without training; the shaded gap is the gain.`
        : "What the same answers would have taken with less learned is not known here.";
    if (switches()[0] === false)
      note.textContent += " Learning is switched off below the chat, so no answer is remembered.";
    plot.setAttribute(
      "aria-label",
      `Tokens a step of ${plural(done.length, "answer")}: ${done.map(one => `${one.number}: ${number(one.tokens_per_round)}`).join(", ")}`,
    );
    drawChart(plot, filled(config.figure, done));
  };
  draw = () => {
    if (!config) return;
    const one = now(),
      { busy } = board;
    host.dataset.state = busy ? "running" : one.rows.length ? "done" : "empty";
    cards.disabled = busy;
    for (const input of cards.querySelectorAll("input")) input.checked = input.value === board.chosen;
    form.hidden = !own();
    kind.hidden = board.chosen !== "topic";
    topic.firstChild.disabled = busy;
    for (const [box, text] of [
      [system, one.system],
      [lines, one.lines],
      [schema, one.schema],
    ]) {
      box.disabled = busy;
      if (own() && box.value !== (text ?? "")) box.value = text ?? "";
    }
    file.disabled = busy;
    go.hidden = busy;
    go.textContent = one.next ? `▶ The next ten, from ${one.next + 1}` : "▶ Run ten";
    halt.hidden = !busy;
    halt.disabled = board.stopping;
    csv.hidden = !one.rows.length;
    clear.hidden = busy || !one.rows.length;
    film.hidden = busy || !one.rows.some(row => row.lines);
    anew.hidden = busy || !one.next || board.chosen === "topic"; // what the chat has learned, too, is reset in Adaptation
    if (busy) really.box.hidden = true;
    say(error, board.error);
    // Only the rows that are shown: of another task all go.
    const numbers = one.rows.map(({ row }) => row.number),
      wanted = new Set([...numbers, board.live?.number]);
    for (const place of [...rows.keys()]) if (shownTask !== shelf() || !wanted.has(place)) drop(place);
    shownTask = shelf();
    for (const { row: done, lines: kept } of one.rows) {
      if (rows.get(done.number)?.whole) continue;
      const answer = readAnswer(kept),
        made = row(done.number, answer);
      made.show(done.input, answer, done, false);
      made.whole = true;
    }
    empty.hidden = Boolean(one.rows.length || board.live);
    if (!empty.childElementCount)
      fill(
        empty,
        config.learns
          ? "Press the button: the first answer appears here while it is written. Or "
          : "Press the button. Learning is switched off in this app, so the answers do not get quicker to guess. Or ",
        clickable("link", "watch a recorded run", watchFilm),
        ".",
      );
    drawLive();
    drawColours();
    drawCurve();
  };
  restore();
  return {
    update: value => {
      if (value.startsWith('{"k":"schema"')) return checked(JSON.parse(value));
      if (!value.startsWith('{"cards"')) return job.receive(value);
      config = JSON.parse(value);
      if (!config.cards.some(one => one.name === board.chosen)) board.chosen = config.cards[0].name;
      const card = ({ name: value, title, sentence }) => {
        const onchange = () => {
          Object.assign(board, { chosen: value, live: null, error: "" });
          keep();
          draw();
        };
        const radio = el("input", { type: "radio", name: "omni-task", value, onchange });
        return el("label.task-card", radio, el("b", title), el("span.small", sentence));
      };
      cards.append(...config.cards.map(card));
      const topics = config.cards.find(one => one.topics).topics;
      if (!topics.includes(board.topic)) [board.topic] = topics;
      const choose = one => {
        Object.assign(board, { topic: one, live: null, error: "" });
        keep();
        draw();
      };
      topic.append(
        select(
          "Topic",
          topics.map(one => [one, topicTitle(one)]),
          board.topic,
          choose,
        ),
      );
      draw();
    },
  };
};
