// What guessing brought an answer, in one sentence made of the answer's own figures; and how fast it was, where that was measured.
import { guessed } from "./records.js";
import { format, joined, plural } from "../shared/format.js";

const RARE = 1.05,
  NONE = 1.005; // tokens a step below which guessing has brought next to nothing, and nothing that can be shown
// What became of the small model's own guesses, and of copied tokens.
const guesses = (right, made) => {
  const all = format(made, "count");
  if (made === 1) return `the one guess of the small model was ${right ? "right" : "wrong"}`;
  if (right === made) return `all ${all} guesses of the small model were right`;
  return right
    ? `${format(right, "count")} of the small model’s ${all} guesses ${right === 1 ? "was" : "were"} right`
    : `none of the small model’s ${all} guesses was right`;
};
const copiesOf = (right, made) =>
  `of ${plural(made, "token")} suggested from earlier text, ${right === made && made > 1 ? "all" : right ? format(right, "count") : "none"} ${right > 1 ? "were" : "was"} right`;

// Why nothing was guessed; `guessing` is how the answer was set up (`Generation.guessing`).
const none = (figures, guessing) =>
  ({
    none: "Nothing was guessed: the method chosen never guesses.",
    off: "Nothing was guessed: guessing is switched off.",
    alone: "Guessing would not have been faster here, so the big model wrote alone.",
  })[guessing] ?? (figures.tokens > 1 ? "No guess seemed worth a try, so the big model wrote alone." : "");

// How fast an answer was, where that was measured: {value, words, spread, side: 1 where the whole range is faster, -1 slower, 0 neither}. Where the passes differ by more than
// WILD, something else has kept the machine busy: where then some were faster and some slower they tell nothing. Nor does a speed that is more than
// the tokens `perStep`, by more than ABOVE: a step with guesses is no shorter than one without.
const STEADY = 1.1,
  WILD = 1.5,
  ABOVE = 1.05,
  SAME = 0.005;
const short = x => (x < 1.2 ? x.toFixed(2) : x < 10 ? x.toFixed(1) : x.toFixed(0));
const digits = low => (low < 1.2 ? 2 : low < 10 ? 1 : 0);
export const range = (low, high) => `${low.toFixed(digits(low))}–${high.toFixed(digits(low))} ×`;
export const unsteady = (low, high) => high / low > WILD;
export const wild = (low, high) => unsteady(low, high) && low <= 1 && high >= 1;
export const howFast = (speed, perStep) => {
  const most = perStep || Infinity,
    found = [speed?.speedup, speed?.low, speed?.high];
  if (!found[0] || wild(found[1], found[2]) || found[0] > ABOVE * most) return null;
  const [speedup, low, high] = found.map(value => Math.min(value, most)),
    spread = high - low > SAME,
    places = digits(low),
    above = speedup.toFixed(places) > most, // nor is it rounded above them
    shown = above ? Math.floor(speedup * 10 ** places) / 10 ** places : speedup;
  return {
    value: `${shown.toFixed(places)} ×`,
    words: `the speed without guessing${spread ? ` (${range(low, high).replace(" ×", "")})` : ""}`,
    spread,
    side: low > 1 + SAME ? 1 : high < 1 - SAME ? -1 : 0,
  };
};

// What is said in place of a speed: that it is being measured, or why there is none. Nothing where nothing was guessed.
export const speedNote = ({ figures, speed, measuring }) => {
  if (!figures?.proposed || howFast(speed, figures.block_efficiency)) return "";
  const why = speed?.speedup ? "the machine is busy" : speed?.why;
  return why ? `no speed: ${why}` : measuring ? "measuring the speed…" : "";
};

// The one line below an answer: {side: faster, slower, same, measuring, unknown, lead, words}. `awaited`: its speed is asked for.
export const verdictOf = (answer, awaited = false) => {
  const { figures: f, speed, measuring } = answer,
    pace = howFast(speed, f.block_efficiency),
    perStep = `${format(f.block_efficiency, "number")} tokens a step`;
  if (!f.proposed) return { side: "same", lead: "= No guesses", words: "in this answer" };
  if (!pace) {
    if (!speed && (measuring || awaited))
      return { side: "measuring", lead: "measuring…", words: `how much faster it was · ${perStep}` };
    return {
      side: "unknown",
      lead: perStep,
      words: `of the big model, ${speedNote(answer) || "speed not measured"}`,
    };
  }
  const [low, high] = [speed.low, speed.high].map(one => Math.min(one, f.block_efficiency)),
    spread = pace.spread ? ` (${range(low, high)})` : "",
    stretch =
      speed.tokens && speed.tokens < f.tokens
        ? `, measured on ${plural(speed.tokens, "token")} from its middle`
        : "";
  if (pace.side > 0)
    return {
      side: "faster",
      lead: `▲ ${pace.value} the speed`,
      words: `without guessing${spread}${stretch}`,
    };
  if (pace.side < 0)
    return {
      side: "slower",
      lead: `▼ ${format(1 - speed.speedup, "percent")} slower`,
      words: `than without guessing: this text is hard to guess${spread}${stretch}`,
    };
  return { side: "same", lead: "= No gain", words: `about as fast as without guessing${spread}${stretch}` };
};

// The seconds of an answer's rounds: drafting, verifying, and the rest.
export const secondsOf = figures => ({
  draft_seconds: figures.draft_seconds || 0,
  verify_seconds: figures.verify_seconds || 0,
  rest_seconds: (figures.settle_seconds || 0) + (figures.other_seconds || 0),
});

// What the form of the answer wrote of it, and where it ruled out what the big model would have said.
export const formed = ({ forced, changed, tokens }) =>
  forced || changed
    ? `the form wrote ${format(forced || 0, "count")} of ${plural(tokens, "token")} and changed ${changed ? format(changed, "count") : "none"}`
    : "";

// The sentence on an answer: [what one step brought and how fast that was, why]; nothing while there are no figures.
export const outcomeOf = answer => {
  const f = answer.figures,
    guessing = answer.end?.guessing;
  if (!f || !f.tokens) return null;
  const copies = f.copies_proposed || 0,
    copied = f.copied || 0,
    forced = f.forced || 0,
    made = (f.proposed || 0) - copies - forced,
    right = (f.accepted || 0) - copied - forced;
  if (!made && !copies && !forced) {
    const why = none(f, guessing);
    return why ? ["", why] : null;
  }
  const pace = howFast(answer.speed, f.block_efficiency),
    note = speedNote(answer),
    fast = pace
      ? `, ${pace.side < 0 ? "but " : ""}${pace.value} ${pace.words}`
      : f.block_efficiency < NONE
        ? ", as without guessing"
        : f.block_efficiency < RARE
          ? ", hardly more than without guessing"
          : "";
  const own = made ? guesses(right, made) : "",
    alone = !made && guessing === "alone" ? "the small model’s guesses would not have been faster" : "";
  const copy = copies ? copiesOf(copied, copies) : "",
    lost = made + copies - right - copied; // those that the legend counts
  const gone =
    lost && made + copies > 1 ? `${format(lost, "count")} ${lost === 1 ? "was" : "were"} thrown away` : "";
  return [
    `${format(f.block_efficiency, "number")} tokens for one step of the big model${fast}${note && ` (${note})`}`,
    `: ${joined([formed(f), copy, own, gone, alone], "; ")}.`,
  ];
};

// Why an answer is less faster than it has tokens per step: a step with guesses takes longer. By how much is the one figure divided by the other, so the
// sentence fits both; what of that was guessing and what one step read are of the answer's own rounds. Nothing where there is no figure, or the difference is too small to puzzle.
const DEARER = 1.1;
export const whySlower = answer => {
  const f = answer.figures,
    { speedup, low, high } = answer.speed ?? {};
  if (!f?.proposed || !speedup || unsteady(low, high)) return "";
  const times = f.block_efficiency / speedup;
  if (times < DEARER) return "";
  const { draft_seconds: draft, verify_seconds: verify, rest_seconds: rest } = secondsOf(f),
    share = draft / (draft + verify + rest || 1);
  const guessing = share >= 0.03 ? `, and guessing took ${format(share, "percent")} of its time` : "",
    about = high / low > STEADY ? "about " : "";
  const checked = new Map();
  for (const { r } of answer.tokens.filter(guessed)) checked.set(r, (checked.get(r) ?? 0) + 1);
  return `Each step took ${about}${short(times)} times as long: it checked up to ${plural(Math.max(0, ...checked.values()), "token")} at once${guessing}.`;
};
