// The last question once more, with the same seed and so with the same text, beside the ghost of its first answer.
import { chat } from "./chat.js";
import { laneOf, placeAt, roundsOf } from "../replay/lanes.js";
import { calm, clickable, el } from "../shared/dom.js";
import { plural } from "../shared/format.js";

const FRAME = 60, // milliseconds
  WORTH = 4; // steps of the big model below which there is nothing to watch

const stepsOf = turn => turn.answer.rounds.length;
// The chip below an answer that has not been asked again; nothing below others.
export const askAgain = turn => {
  const { end, meta, text } = turn.answer,
    fixed = end?.seed != null || meta.temperature === 0, // so that the text comes again
    act = event => {
      event.stopPropagation();
      chat.repeat(turn);
    };
  const title = "The same question and seed, beside the ghost of this answer: what does it remember?";
  return (
    !turn.first &&
    text &&
    fixed &&
    end &&
    end.finish !== "cancelled" &&
    stepsOf(turn) >= WORTH &&
    clickable("replay-button hint last", "↻ Ask it again", act, { title })
  );
};

// What became of it, in a sentence.
export const sameAgain = ({ first, answer }) => {
  const [then, now] = [first, { answer }].map(stepsOf);
  if (first.answer.text !== answer.text)
    return "This time it wrote another text, so the steps do not compare.";
  const why =
    now < then
      ? "it remembered what it had written"
      : "nothing that it remembers made it shorter. Memory needs “Learn from this chat”";
  return `Asked again: ${plural(then, "step")} then, ${now} now: ${why}.`;
};

// Two bars of steps on one clock, which begins with the first token: those of the first answer, by its recorded times, and those of this one. A full bar
// is all that the first answer took.
export const ghost = turn => {
  const lane = laneOf("", roundsOf(turn.first.answer)),
    row = (cls, name) => {
      const bar = el("i"),
        steps = el("span");
      return { bar, name, steps, node: el("div", { class: cls }, steps, el("span.again-bar", bar)) };
    },
    then = row("was", "first time"),
    now = row("is", "now");
  const node = el("div.again-bars", { "aria-hidden": "true" }, then.node, now.node);
  const grow = (one, steps) => {
    one.bar.style.width = `${Math.min(100, (100 * steps) / lane.rounds.length)}%`;
    one.steps.textContent = `${one.name}: ${plural(steps, "step")}`;
  };
  let began = 0;
  const tick = () => {
    const passed = calm() || !lane.timed ? Infinity : 1000 * (performance.now() - began),
      rounds = placeAt(lane.ends, passed);
    grow(then, rounds);
    if (rounds < lane.rounds.length && node.isConnected) setTimeout(tick, FRAME);
  };
  const draw = () => {
    const steps = stepsOf(turn);
    if (steps && !began) {
      began = performance.now();
      tick();
    }
    grow(now, steps);
  };
  return { node, draw };
};
