// What a round chose from: one table and one sentence, below an answer whose token is looked at and in slow motion.
import { guessed } from "./records.js";
import { el, fill } from "../shared/dom.js";
import { table, th } from "../shared/fields.js";
import { format, joined, plural } from "../shared/format.js";

const names = {
  plain: "no guess",
  drafter: "small model",
  copy: "copied",
  fused: "copied, then the small model",
};
const whose = {
  drafter: "of the small model",
  copy: "from memory",
  fused: "from memory and the small model",
};
const columns = [
  ["source", "Who could guess"],
  ["tokens", "How many it would guess"],
  ["chance", "That all of them are right, by what was learned of such guesses"],
  ["expected", "Tokens that the step is expected to write"],
  ["price", "How many steps without guessing the step lasts, by the cost table"],
  ["per price", "Expected tokens by price; without guessing it is 1"],
];
const number = x => format(x, "number");
const rate = ([, , tokens, price]) => tokens / price;
const best = offers => offers.reduce((one, other) => (rate(other) > rate(one) ? other : one));
const figures = ([source, length, tokens, price]) =>
  `${plural(length, "token")} ${whose[source] ?? source}, with ${number(tokens)} tokens expected for the price of ${number(price)} steps, so ${number(tokens / price)} per price`;

// Why a round was drafted as it was, in words. `offers`: its lines [source, tokens, expected, price, chance, taken]; `proposed`: the tokens that it proposed.
export const whyChosen = (offers, proposed) => {
  if (!offers?.length)
    return "This answer was not drafted by chances, or it was stored before they were, so nothing is known.";
  const taken = offers.find(one => one[5]),
    others = offers.filter(one => one[1] && !one[5]);
  if (!taken?.[1])
    return others.length
      ? `The big model wrote alone. The best offer was ${figures(best(others))}. Without a guess it is 1${rate(best(others)) > 1 ? ", and a guess has to bring more by a margin and to fit into the answer" : ""}.`
      : "The big model wrote alone, for no source offered a guess. A source offers none where it knows no likely continuation, or where the answer has no room for one.";
  const other = others.length ? best(others) : null;
  return joined(
    [
      `The step took ${figures(taken)}.`,
      other &&
        `The best other offer was ${plural(other[1], "token")} ${whose[other[0]] ?? other[0]}, with ${number(rate(other))} per price.`,
      !proposed && "Nothing was proposed in the end.",
    ],
    " ",
  );
};

// A row for each source, as `generate --explain` prints it, and the sentence, folded; `lead` stands before it.
export const offersTable = () => {
  const sheet = table(columns.map(([title, help]) => th(title, help))),
    told = el("p.small"),
    node = el("details.offers", el("summary", "What this step chose from"), told, sheet);
  const row = ([source, length, tokens, price, chance, taken]) =>
    el(
      "tr",
      { class: taken ? "taken" : null },
      el("th", { scope: "row" }, names[source] ?? source, taken ? el("span", " ✓ taken") : null),
      [length, length ? number(chance) : "–", ...[tokens, price, tokens / price].map(number)].map(cell =>
        el("td", cell),
      ),
    );
  const draw = (offers, proposed, lead = "") => {
    fill(sheet.tBodies[0], (offers ?? []).map(row));
    sheet.hidden = !offers?.length;
    told.textContent = lead + whyChosen(offers, proposed);
  };
  return { node, draw };
};

// Of the round of a token: its offers, and how many tokens it proposed.
export const offersOf = (answer, round) => [
  answer.rounds.find(one => one.r === round)?.o,
  answer.tokens.filter(one => one.r === round && guessed(one)).length,
];
