// The hand-picked examples: cards in an empty chat, chips above the composer. Their order is fixed.
import { colourKey } from "../answer/tokens.js";
import { chat } from "./chat.js";
import { clickable, el, fill } from "../shared/dom.js";
import { labels } from "../shared/labels.js";
import { followLink, goTo } from "../shared/places.js";
import { makeFilm, recordedRun, saver } from "../task/film.js";

let list = [],
  place = null,
  film = null; // while no model is here
const button = (one, style) =>
  clickable(style, [el("small", one.kind), el("span", one.label)], () => place.pick(one.prompt), {
    title: one.prompt,
  });
const draw = () => {
  if (!place) return;
  place.chips.replaceChildren(...list.map(one => button(one, "chip")));
  // Four rounds, which come one after the other; | is where two guesses make one word.
  const demo = [
    { direct: "There, was, a", corrected: " fox" },
    { direct: " in, the", ngram: " gar|den", corrected: "." },
    { corrected: " A" },
    { direct: " fox", copied: " in, the, garden", corrected: "!" },
  ];
  const tokens = demo.flatMap((round, at) =>
    Object.entries(round).flatMap(([s, texts]) => texts.split(",").map(text => ({ s, text, at }))),
  );
  const span = ({ s, text, at }) =>
    el(
      "span",
      { class: `tok s-${s}`, style: `animation-delay: ${0.4 + 0.7 * at}s` },
      text.split("|").flatMap((part, place) => (place ? [el("i"), part] : [part])),
    );
  fill(
    place.empty,
    el("h2", labels.subtitle),
    el("p.demo.toks", { "aria-hidden": "true" }, tokens.map(span)),
    colourKey(tokens),
    clickable(
      "first-task",
      [
        el("b", "Ten orders into JSON: watch it need fewer steps"),
        el("span", "One task, ten inputs: see what it remembers from answer to answer"),
      ],
      () => goTo("same-task"),
    ),
    film,
    el("span.small", "Or ask something:"),
    el(
      "div.cards",
      list.map(one => button(one, "card")),
    ),
  );
};
const slug = one =>
  one.label
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
export const examples = {
  // Plays the recorded run in the empty chat, once.
  playFilm: async () => {
    if (film !== null) return;
    film = false;
    const run = await recordedRun();
    const hide = clickable("link", "Hide", () => film.remove());
    film = run && makeFilm(run, labels.legend, [saver(() => run, labels.legend), hide]);
    draw();
  },
  set: value => {
    list = value;
    draw();
    chat.turns.forEach(turn => turn.parts && turn.state === "done" && chat.foot(turn)); // an example's answer has a link
    if (location.hash.startsWith("#example-")) followLink();
  },
  place: (chips, empty, pick) => {
    place = { chips, empty, pick };
    draw();
  },
  ready: () => Boolean(list.length && place),
  // Its name in a link; undefined for a question that is no example.
  named: prompt => {
    const one = list.find(item => item.prompt === prompt);
    return one && slug(one);
  },
  open: name => {
    const one = list.find(item => slug(item) === name);
    if (!one)
      return chat.say("The link names an example that there is not for this model. Choose another one.");
    chat.fresh();
    place.pick(one.prompt);
  },
};
