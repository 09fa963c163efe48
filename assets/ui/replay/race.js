// Two lanes on one clock: the race with and without guessing, and a task then and now. The slower lane is shown slower.
import { ageOf, clockOf, laneOf, placeAt, roundsOf } from "./lanes.js";
import { howFast, range } from "../answer/outcome.js";
import { colourKey, tokenSpan, tokensBox } from "../answer/tokens.js";
import { replay } from "./replay.js";
import { clickable, dots, el, fill } from "../shared/dom.js";
import { format, plural } from "../shared/format.js";

const untimed = rounds => rounds.map(round => ({ ...round, times: null }));
const LENGTH = 8e6,
  SAME = 0.01; // microseconds in which an eye watches a race; a smaller difference is none

// lanes: [first, second] of laneOf; the figure says what the second gained over the first: `value(ratio)` and `words` for faster, slower
// and same. `gain`: by what else than tokens per second that is judged.
const show = (lanes, { lead, notes, words, again, gain, value = ratio => format(ratio, "times") }) => {
  const timed = lanes.every(lane => lane.timed),
    axis = timed ? lanes : lanes.map(lane => ({ ...lane, ...laneOf(lane.title, untimed(lane.rounds)) }));
  const total = Math.max(...axis.map(lane => lane.total));
  const rate = lane => lane.count / lane.total,
    ratio = gain ?? rate(axis[1]) / rate(axis[0]);
  const won = Math.abs(ratio - 1) < SAME ? "same" : ratio > 1 ? "faster" : "slower";
  const big = el("b"),
    unit = el("span"),
    figure = el("div.race-figure", big, unit);
  const made = axis.map((lane, index) => {
    const text = tokensBox(`${lane.title}: the text so far`, "replay-text"),
      bar = el("i"),
      tally = el("span.tally");
    const node = el(
      "section",
      { class: `race-lane ${index ? "second" : "first"}` },
      el("div.lane-head", el("b", lane.title), tally),
      el("div.race-bar", { "aria-hidden": "true" }, bar),
      text,
      lane.note && el("p.small", lane.note),
    );
    return { lane, text, bar, tally, node, spans: lane.tokens.map(one => tokenSpan(one)), shown: 0 };
  });
  fill(
    replay.body(),
    lead && el("p.caption", lead),
    figure,
    el(
      "div.race-lanes",
      made.map(one => one.node),
    ),
    colourKey(axis.flatMap(lane => lane.tokens)),
    notes.filter(Boolean).map(note => el("p.small", note)),
    again,
  );
  replay.body().scrollTop = 0;
  const draw = at => {
    const counts = made.map(one => {
      const { lane } = one,
        rounds = placeAt(lane.ends, at + 1e-6),
        count = rounds ? lane.written[rounds - 1] : 0,
        done = rounds >= lane.rounds.length;
      if (count !== one.shown) {
        one.text.replaceChildren(...one.spans.slice(0, count));
        one.text.scrollTop = one.text.scrollHeight;
        one.shown = count;
      }
      one.bar.style.width = `${lane.count ? (100 * count) / Math.max(...made.map(other => other.lane.count)) : 0}%`;
      one.node.classList.toggle("done", done);
      const spent = timed ? clockOf(Math.min(at, lane.total)) : plural(rounds, "step");
      one.tally.textContent = done
        ? `${timed ? "" : "done after "}${spent} · ${plural(count, "token")}`
        : `${plural(count, "token")} · ${spent}`;
      return count;
    });
    const ahead = counts[1] - counts[0],
      over = at >= total;
    figure.className = `race-figure ${over ? won : ""}`;
    if (over) {
      big.textContent = value(ratio);
      unit.textContent = words[won];
    } else {
      big.textContent = String(Math.abs(ahead));
      unit.textContent = ahead
        ? `${Math.abs(ahead) === 1 ? "token" : "tokens"} ${ahead > 0 ? "ahead" : "behind"} ${words.leading}`
        : "level";
    }
    return over
      ? `${big.textContent} ${words[won]}`
      : `${axis[1].title}: ${counts[1]} of ${axis[1].count} tokens; ${axis[0].title}: ${counts[0]} of ${axis[0].count}`;
  };
  const stops = [...new Set(axis.flatMap(lane => lane.ends))].sort((a, b) => a - b);
  replay.start({
    draw,
    stops,
    total,
    timed,
    usual: timed ? LENGTH / total : Math.max(1, Math.min(5, 20 / (total / 1e6))) * 0.2,
  });
};

// ── the race ────────────────────────────────────────────────────────────────────────────────────────────────
const waiting = text => replay.wait(el("p.replay-wait", { role: "status" }, dots(), text));
const button = (title, act) => clickable("toggle", title, act);
const refuse = (text, ...buttons) => replay.wait(el("p.replay-wait", text), ...buttons);
// `act` for a view that may be left meanwhile: what goes wrong is said there, with a press that does `anew`.
const attempt = async (mode, turn, act, anew) => {
  try {
    await act();
  } catch (error) {
    if (replay.current(mode, turn)) refuse(error.message, button("Try again", anew));
  }
};
const runs = lane =>
  lane.runs > 1 ? `; the middle one of ${lane.runs} runs` : lane.runs === 1 ? "; one run" : "";
const fast = "the speed without guessing, in this run",
  slower = `${fast}: guesses cost more time than they saved`,
  words = { faster: fast, slower, same: fast, leading: "with guessing" };
const lead =
  "Both lanes write with the same big model. In the first it writes alone; in the second it checks what a small model guesses or what is copied from the text before. The times are real.";
const alone = measured =>
  laneOf("without guessing", measured.rounds, {
    note: `Measured ${ageOf(measured.at)}: the big model alone answered this prompt again${runs(measured)}.`,
  });
const differ = (lanes, answer) => {
  const free = (answer.meta.temperature ?? 0) > 0 && (answer.end?.seed ?? null) === null; // no number fixes such a text
  const [one, other] = lanes.map(lane => lane.tokens.map(token => token.t).join(""));
  return one === other
    ? null
    : `${free ? "Above temperature 0 and without a seed every run draws its own text" : "The two texts are not the same"}, so the figure compares tokens per second.`;
};
replay.views.race = async (turn, anew = false) => {
  const { answer } = turn,
    own = laneOf("with guessing", roundsOf(answer)),
    again = button("Measure again", () => replay.views.race(turn, true));
  if (!replay.drafts(turn))
    return refuse(
      "Nothing was guessed in this answer, so the big model wrote it alone and there is no race.",
    );
  waiting("This answer is written again with and without guessing, in turns, which takes up to 30 seconds…");
  let measured;
  try {
    measured = await replay.plain(turn, anew);
  } catch (error) {
    if (replay.current("race", turn)) refuse(`There is nothing to race against. ${error.message}`, again);
    return;
  }
  if (!replay.current("race", turn)) return;
  if (measured.guessed && answer.speed?.speedup) {
    // both lanes of one measurement, whose figure stands beside the answer, where its passes agree
    const { low, high, first = 0, tokens } = answer.speed,
      wild = `The runs differ too much to tell: ${range(low, high)} the speed without guessing`,
      pace = howFast(answer.speed, answer.figures?.block_efficiency) ?? { value: "", words: wild, side: 0 },
      which = `Tokens ${first + 1} to ${first + tokens} of ${own.count}, so that it takes about 30 seconds.`,
      part =
        tokens < own.count
          ? ` ${which} How much longer a step takes is of these, tokens for one step are of the whole answer.`
          : "";
    const two = [
      laneOf("without guessing", measured.rounds),
      laneOf("with guessing", measured.guessed.rounds),
    ];
    const said = { faster: pace.words, slower: pace.words, same: pace.words, leading: words.leading };
    return show(two, {
      lead,
      words: said,
      gain: 1 + pace.side,
      value: () => pace.value,
      notes: [
        `Measured: this answer was rewritten several times with and without guessing, in turns, using only what it knew then. These are other runs than the answer in the chat, so the colours may differ.${part}`,
        pace.value ? null : "The machine is busy. Try again later.",
        differ(two, answer),
        turn.cut,
      ],
      again,
    });
  }
  if (!own.timed) return refuse("The times of this answer were not recorded, so there is nothing to race.");
  const plain = alone(measured);
  show([plain, own], { lead, words, notes: [differ([plain, own], answer), turn.cut] });
};

// ── then and now ────────────────────────────────────────────────────────────────────────────────────────────
const perStep = lane => (lane.rounds.length ? lane.count / lane.rounds.length : 0);
// `asked`: the task and its next input, which neither lane has seen (ui/replay_data.py).
replay.views.former = asked => {
  waiting("One more input, by the line as it was before the first answer and by the line of now, in turns…");
  const measure = async () => {
    const { lanes: two, input } = await replay.former(asked);
    if (!replay.current("former", asked)) return;
    const title = ["then: before the first answer", "now"],
      lanes = two.map((one, index) => laneOf(title[index], one.rounds)),
      [then, now] = lanes.map(perStep);
    for (const [index, one] of [then, now].entries())
      lanes[index].note =
        `${plural(lanes[index].rounds.length, "step")} of the big model, ${format(one, "number")} tokens each${runs(two[index])}.`;
    const [slow, quick] = two.map(one => one.seconds),
      ends = [Math.min(...slow) / Math.max(...quick), Math.max(...slow) / Math.min(...quick)],
      ratio = lanes[0].total / lanes[1].total,
      spread = slow.length > 1 ? ` (${range(...ends).replace(" ×", "")})` : "",
      said = `tokens a step then and now; ${format(ratio, "times")} as fast${spread}`;
    show(lanes, {
      lead: input,
      gain: ends[0] > 1 || ends[1] < 1 ? ratio : 1,
      value: () => `${format(then, "number")} → ${format(now, "number")}`,
      notes: [
        "Neither lane has seen this input. The first one has an empty memory and the small model as it came; both write at temperature 0, in turns and in real times. Nothing of it is stored or learned.",
      ],
      words: { faster: said, slower: said, same: said, leading: "now" },
    });
  };
  return attempt("former", asked, measure, () => replay.open("former", asked));
};
