// Slow motion: one round at a time. Draft, check, keep, write, with words and small pictures for somebody who has never heard of it.
import { MARKS, clockOf, laneOf, placeAt, roundsOf, wordOf } from "./lanes.js";
import { offersTable } from "../answer/offers.js";
import { unsteady } from "../answer/outcome.js";
import { colourKey, tokenSpan, tokensBox } from "../answer/tokens.js";
import { replay } from "./replay.js";
import { el, fill, picture } from "../shared/dom.js";
import { format, joined, ordinal, plural } from "../shared/format.js";

const PAUSE = 1100,
  CHECK = 900e3; // milliseconds to read what became of a round; microseconds in which an eye follows one check
const stages = [
  [
    "draft",
    "Draft",
    "A small, quick model guesses the next tokens, pieces of words; or they are copied from the text.",
    "M3 13l1-4 7-7 3 3-7 7zM9 4l3 3",
  ],
  ["check", "Check", "The big model reads all guesses in one step.", "M7 3a4 4 0 1 0 .1 0zM10 10l4 4"],
  ["keep", "Keep", "Guesses it agrees with stay.", "M3 9l3 3 7-8"],
  [
    "fix",
    "Write",
    "At the first wrong one the big model writes its own word.",
    "M4 4l5 5M9 4L4 9M9 13h5M11.5 10.5v5",
  ],
];
const card = ([name, title, help, path]) =>
  el("li", { class: name }, picture(path), el("div", el("b", title), el("span", help)));

// Who proposed a round's tokens, in one sentence: the small model, or nobody, where they stand in the text already.
const proposed = round => {
  const copied = round.guesses.filter(one => one.s === "copied"),
    forced = round.guesses.filter(one => one.s === "forced").length,
    own = round.guesses.length - copied.length - forced,
    match = copied[0]?.m;
  const where = {
    prompt: "the question or the chat before",
    answer: "this answer",
    earlier: "an earlier answer",
    phrase: "a phrase that the big model often writes",
  }[match?.[1]];
  return joined(
    [
      forced && `The answer’s form leaves no choice about ${plural(forced, "token")}.`,
      match &&
        `${plural(copied.length, "token")} suggested from earlier text: the last ${match[0] === 1 ? "token" : `${match[0]} tokens`} occurred in ${where}, so it suggests what followed.`,
      own && `The small model guesses ${plural(own, "token")} ${copied.length + forced ? "more" : "ahead"}.`,
    ],
    " ",
  );
};
// So many of what a round proposed, by its source.
const named = round => {
  const copied = round.guesses.filter(one => one.m).length, // or forced
    of = round.guesses.some(one => one.s === "forced") ? "proposal" : "copied token",
    word = copied === 0 ? "guess" : copied === round.guesses.length ? of : "proposal";
  return (n, before = "") => `${before}${word}${n === 1 ? "" : word === "guess" ? "es" : "s"}`;
};
// What became of a round, in one sentence.
const verdict = (round, word) => {
  const kept = round.guesses.filter(one => one.state === "kept").length,
    wrong = round.guesses.find(one => one.state === "wrong"),
    unseen = round.guesses.length - kept - (wrong ? 1 : 0);
  const own = round.wrote ? `“${word(round.wrote)}”` : "",
    of = named(round);
  if (!round.guesses.length) return `No guess this time: the big model writes ${own} by itself.`;
  if (wrong)
    return `${kept ? `The big model agrees with the first ${kept === 1 ? of(1) : of(kept, `${kept} `)}: kept. The ${ordinal(kept + 1)} is` : of(1, "The first ") + " is"} wrong: ${kept ? "it" : "the big model"} writes ${own} instead${unseen ? `, and what came after that is dropped` : ""}.`;
  if (unseen)
    return `${kept === 1 ? of(1, "One ") + " is" : of(kept, `${kept} `) + " are"} kept; the answer ends here, so the rest is dropped.`;
  return `${kept === 1 ? of(1, "The ") : of(kept, kept === 2 ? "Both " : `All ${kept} `)} right${round.wrote ? `, and the same step added the next word: ${own}` : ""}.`;
};

// Time of a token without guessing, by the measured runs of this answer; null where they tell nothing. What the answer's own plain rounds took is
// no measure: a machine that wanders makes another figure of it than the race shows.
const measuredPace = (speed, lane) =>
  speed?.speedup && lane.timed && !unsteady(speed.low, speed.high)
    ? (lane.total * speed.speedup) / lane.count
    : null;

// A token as a chip: its looks, its mark, and what was written instead.
const chipOf = (word, one, state, mark = "", instead = "") =>
  el(
    "span",
    { class: `chip-token ${state}${one.s === "copied" && state !== "plain" ? " copied" : ""}` },
    word(one),
    mark && el("i", { "aria-label": { "✓": "right", "✗": "wrong" }[mark] ?? "not looked at" }, mark),
    instead && el("span.instead", ` → ${instead}`),
  );
const judgedChip = (word, one, { wrote }) =>
  chipOf(word, one, ...MARKS[one.state], one.state === "wrong" && wrote ? word(wrote) : "");

replay.words = { proposed, verdict, named, chipOf, judgedChip };

replay.views.slow = turn => {
  const rounds = roundsOf(turn.answer),
    lane = laneOf("", rounds),
    pace = measuredPace(turn.answer.speed, lane);
  const end = turn.answer.end?.finish === "end" ? lane.tokens.at(-1)?.i : null,
    word = one => (one.i === end && !one.t.trim() ? "(end)" : wordOf(one.t));
  if (!rounds.length) return replay.wait(el("p.replay-wait", "Nothing was recorded of this answer."));
  const line = (name, what) => {
    const row = { chips: el("div.chips-line"), fact: el("span.fact") };
    row.node = el("div", { class: `slow-row ${name}` }, el("b", what), row.chips, row.fact);
    return row;
  };
  const rows = {
    draft: line("draft", "guessed or copied"),
    check: line("check", "the big one checks"),
    keep: line("keep", "kept"),
    plain: line("plain", "without guessing"),
  };
  rows.plain.node.hidden = !pace;
  const steps = el("ol.stages", ...stages.map(card)),
    text = tokensBox("The answer so far", "replay-text"),
    where = el("b.round-of"),
    caption = el("p.caption"),
    choice = offersTable();
  fill(
    replay.body(),
    steps,
    el("p.asked.small", turn.user),
    text,
    el("div.slow-head", where, caption),
    Object.values(rows).map(row => row.node),
    choice.node,
    colourKey(lane.tokens),
    turn.cut && el("p.small", turn.cut),
    el(
      "p.small",
      lane.timed
        ? `The times are the real ones of this answer; while it plays, the clock stops for a moment after each step.${pace ? " Without guessing: at the pace of the measured runs." : ""}`
        : "The times of this answer were not recorded, so each step of the big model is drawn equally long.",
    ),
    el(
      "p.small.replay-help",
      "Space plays and pauses, ← → go step by step, ↑ ↓ round by round, Home and End to the ends, Esc closes.",
    ),
  );

  const spans = lane.tokens.map(one => tokenSpan(one));
  const guess = (one, state) =>
    el("span", { class: `guess ${state}${one.t.startsWith("\n") ? " breaks" : ""}` }, one.t || "▫");
  const chip = (one, ...how) => chipOf(word, one, ...how);
  // Where the clock may rest: all guessed, all checked, what became of it.
  const stops = [],
    ends = [];
  rounds.forEach((round, k) => {
    const [draft, verify] = lane.parts[k],
      at = lane.starts[k];
    if (round.guesses.length && draft > 2) stops.push(at + draft - 1);
    if (round.guesses.length && verify > 2) stops.push(at + draft + verify - 1);
    ends.push(lane.ends[k] - 0.5);
    stops.push(k === rounds.length - 1 ? lane.ends[k] : lane.ends[k] - 0.5);
  });
  ends[ends.length - 1] = lane.total;
  let key = "",
    said = "";
  const draw = at => {
    const k = Math.min(placeAt(lane.ends, at), rounds.length - 1),
      round = rounds[k],
      [draft, verify] = lane.parts[k],
      inside = at - lane.starts[k];
    const over = inside >= draft + verify || (k === rounds.length - 1 && at >= lane.total),
      stage = over ? 2 : inside < draft && round.guesses.length ? 0 : 1;
    const shown = stage
      ? round.guesses.length
      : Math.min(round.guesses.length, Math.floor((inside / draft) * (round.guesses.length + 1)));
    const plain = pace ? Math.min(lane.count, Math.floor(at / pace)) : 0,
      now = `${k} ${stage} ${shown} ${plain}`;
    if (now === key) return said;
    key = now;
    const before = k ? lane.written[k - 1] : 0,
      until = over ? lane.written[k] : before;
    const wrong = round.guesses.find(one => one.state === "wrong");
    where.textContent = `round ${k + 1} of ${rounds.length}`;
    choice.draw(round.offers, round.guesses.length);
    const many = round.guesses.length,
      checks = many === 1 ? "the guess" : `${many === 2 ? "both" : `all ${many}`} guesses at once`;
    const words = [
      proposed(round),
      many ? `One step of the big model checks ${checks}.` : "The big model writes by itself.",
      verdict(round, word),
    ][stage];
    caption.textContent = words;
    const on = [
      stage === 0,
      stage === 1,
      stage === 2 && round.guesses.some(guess => guess.state === "kept"),
      stage === 2 && wrong,
    ];
    [...steps.children].forEach((one, index) => {
      one.classList.toggle("on", Boolean(on[index]));
      if (on[index]) one.setAttribute("aria-current", "step");
      else one.removeAttribute("aria-current");
    });
    // The answer so far, the guesses where they were made, and where plain decoding would be.
    const tail = over
      ? []
      : round.guesses.slice(0, shown).map(one => guess(one, stage ? "checking" : "pending"));
    const news = over ? spans.slice(before, until) : [];
    spans.forEach(span => span.classList.remove("fresh"));
    news.forEach(span => span.classList.add("fresh"));
    const gone = over
      ? round.guesses.filter(one => one.state !== "kept").map(one => guess(one, one.state))
      : [];
    const own = over && round.wrote && wrong ? 1 : 0;
    const pieces = [...spans.slice(0, until - own), ...gone, ...spans.slice(until - own, until), ...tail];
    if (pace && plain < before)
      pieces.splice(
        plain,
        0,
        el("span.ghost", { title: "Without guessing it would be here", "aria-hidden": "true" }),
      );
    text.replaceChildren(...pieces);
    text.scrollTop = text.scrollHeight;
    rows.draft.chips.replaceChildren(...round.guesses.slice(0, shown).map(one => chip(one, "pending")));
    rows.draft.fact.textContent = many
      ? `${named(round)(many, `${many} `)}${lane.timed ? `, ${clockOf(draft)}` : ""}`
      : "no guess";
    const judged = one => judgedChip(word, one, round);
    fill(
      rows.check.chips,
      stage > 0 && round.guesses.map(one => (stage === 1 ? chip(one, "checking") : judged(one))),
    );
    rows.check.fact.textContent = stage < 1 ? "" : `one step${lane.timed ? `, ${clockOf(verify)}` : ""}`;
    const kept = one => chip(one, one !== round.wrote ? "right" : one.s === "bonus" ? "next" : "own");
    fill(rows.keep.chips, over && round.tokens.map(kept));
    rows.keep.fact.textContent = over ? `${plural(round.tokens.length, "token")} for one step` : "";
    if (pace) {
      rows.plain.chips.replaceChildren(
        ...lane.tokens.slice(Math.max(0, plain - 4), plain).map(one => chip(one, "plain")),
      );
      rows.plain.fact.textContent = `${plural(plain, "token")} in the same time, ${format(until, "count")} with guessing`;
    }
    return (said = `Round ${k + 1} of ${rounds.length}. ${words}`);
  };
  const guessed = rounds.some(round => round.guesses.length),
    times = lane.parts
      .filter((_, k) => !guessed || rounds[k].guesses.length)
      .map(([, verify]) => verify)
      .sort((a, b) => a - b);
  const holds = ends.filter((_, k) => rounds[k].guesses.length && k < rounds.length - 1); // a round without a guess needs no second look
  replay.start({
    draw,
    stops,
    rounds: ends,
    holds,
    pause: PAUSE,
    total: lane.total,
    timed: lane.timed,
    usual: lane.timed ? (guessed ? CHECK : CHECK / 4) / Math.max(1, times[times.length >> 1]) : 2,
  });
};
