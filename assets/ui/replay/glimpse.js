// A glimpse of slow motion by itself: two rounds of a visitor's first answer, below it. Where less motion is asked for there is none.
import { roundsOf, wordOf } from "./lanes.js";
import { chat } from "../chat/chat.js";
import { replay } from "./replay.js";
import { calm, clickable, el } from "../shared/dom.js";
import { plural } from "../shared/format.js";

const CHIP = 220,
  READ = 1900,
  ROUNDS = 2; // milliseconds from guess to guess, and to read what became of a round
const sleep = ms => new Promise(done => setTimeout(done, ms));

// The first rounds that show something: guesses of which one was wrong, and guesses that were all right.
const telling = rounds => {
  const guessed = rounds.filter(round => round.guesses.length && round.tokens.length);
  const wrong = guessed.find(
      round => round.guesses.some(one => one.state === "wrong") && round.guesses.length > 1,
    ),
    right = guessed.find(round => round.guesses.every(one => one.state === "kept"));
  const found = [...new Set([right, wrong, ...guessed])].filter(Boolean);
  return found.slice(0, ROUNDS).sort((a, b) => a.index - b.index);
};

replay.glimpse = async turn => {
  const rounds = telling(roundsOf(turn.answer));
  if (!rounds.length || calm() || turn.node.querySelector(".glimpse")) return;
  const caption = el("p.caption", { "aria-live": "polite" }),
    chips = el("div.chips-line", { "aria-hidden": "true" });
  const close = clickable("icon close", "×", () => box.remove(), { "aria-label": "Close this" }),
    label = "How two rounds of this answer were written",
    box = el("section.glimpse", { "aria-label": label }, chips, caption, close);
  turn.parts.foot.before(box);
  const { scroll } = chat.parts,
    there = () => box.isConnected;
  let top = scroll.scrollTop; // who has scrolled meanwhile is left alone
  const seen = () => {
    if (scroll.scrollTop >= top - 4) {
      scroll.scrollTop = scroll.scrollHeight;
      top = scroll.scrollTop;
    }
  }; // what stands below the answer stays in sight
  const word = one => wordOf(one.t);
  seen();
  for (const round of rounds) {
    caption.textContent = replay.words.proposed(round);
    chips.replaceChildren();
    const made = round.guesses.map(one => replay.words.chipOf(word, one, "pending"));
    for (const chip of made) {
      if (!there()) return;
      chips.append(chip);
      await sleep(CHIP);
    }
    await sleep(READ / 2);
    if (!there()) return;
    caption.textContent =
      round.guesses.length === 1
        ? `One step of the big model checks the ${replay.words.named(round)(1)}.`
        : `One step of the big model checks all ${round.guesses.length} at once.`;
    made.forEach(chip => {
      chip.classList.replace("pending", "checking");
    });
    await sleep(READ / 2);
    chips.replaceChildren(...round.guesses.map(one => replay.words.judgedChip(word, one, round)));
    caption.textContent = replay.words.verdict(round, word);
    seen();
    await sleep(READ);
    if (!there()) return;
  }
  const answer = roundsOf(turn.answer),
    tokens = answer.reduce((sum, round) => sum + round.tokens.length, 0);
  caption.append(
    el("b", ` In all: ${plural(tokens, "token")} in ${plural(answer.length, "step")} of the big model.`),
  );
  seen();
};
