// What a round chose from: one table and one sentence, below an answer whose token is looked at and in slow motion.
import { el } from "../shared/dom.js";
import { format, plural } from "../shared/format.js";

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
  ["price", "How many steps without guessing the step lasts, by the price list"],
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
  return [
    `The step took ${figures(taken)}.`,
    others.length
      ? `The best other offer was ${plural(best(others)[1], "token")} ${whose[best(others)[0]] ?? best(others)[0]}, with ${number(rate(best(others)))} per price.`
      : "",
    proposed ? "" : "Nothing was proposed in the end.",
  ]
    .filter(Boolean)
    .join(" ");
};

// A row for each source, as `generate --explain` prints it, and the sentence, folded; `lead` stands before it.
export const offersTable = () => {
  const body = el("tbody"),
    told = el("p.small");
  const node = el(
    "details.offers",
    el("summary", "What this step chose from"),
    told,
    el(
      "table",
      el(
        "thead",
        el("tr", ...columns.map(([title, help]) => el("th", { scope: "col", title: help }, title))),
      ),
      body,
    ),
  );
  const row = ([source, length, tokens, price, chance, taken]) =>
    el(
      "tr",
      { class: taken ? "taken" : null },
      el("th", { scope: "row" }, names[source] ?? source, taken ? el("span", " ✓ taken") : null),
      ...[
        String(length),
        length ? number(chance) : "–",
        number(tokens),
        number(price),
        number(tokens / price),
      ].map(cell => el("td", cell)),
    );
  const draw = (offers, proposed, lead = "") => {
    body.replaceChildren(...(offers ?? []).map(row));
    body.parentNode.hidden = !offers?.length;
    told.textContent = lead + whyChosen(offers, proposed);
  };
  return { node, draw };
};

// Of the round of a token: its offers, and how many tokens it proposed.
const guessed = line => line.k === "x" || ["direct", "ngram", "copied"].includes(line.s);
export const offersOf = (answer, round) => [
  answer.rounds.find(one => one.r === round)?.o,
  answer.tokens.filter(one => one.r === round && guessed(one)).length,
];
