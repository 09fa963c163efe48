// The hand-picked examples: cards in an empty chat, chips above the composer. Their order is fixed.
(() => {
  const { el } = omni;
  let list = [], place = null;
  const names = { stories: "story", maths: "sum", code: "code", howto: "how-to", news: "news", chat: "chat" };
  const button = (one, style) => el("button", { type: "button", class: style, title: one.prompt, onclick: () => place.pick(one.prompt) }, el("small", {}, names[one.topic] ?? one.topic), el("span", {}, one.label));
  const legend = (key) => omni.labels.legend.find((item) => item.key === key).title;
  const draw = () => {
    if (!place) return;
    place.chips.replaceChildren(...list.map((one) => button(one, "chip")));
    const demo = [["There", "ngram"], [" was", "direct"], [" a", "direct"], [" fox", "corrected"], [" in", "direct"], [" the", "direct"], [" garden", "ngram"], [".", "bonus"], [" A", "corrected"], [" fox", "direct"], [" in", "copied"], [" the", "copied"], [" garden", "copied"], ["!", "corrected"]];
    place.empty.replaceChildren(
      el("h2", {}, "Watch a small model guess for a big one"),
      el("p", { class: "demo toks", "aria-hidden": "true" }, ...demo.map(([text, source]) => el("span", { class: `tok s-${source}` }, text))),
      el("p", { class: "lead" }, `The small model guesses some words ahead. The big one checks them all in one step, keeps those that are right and fixes the first wrong one. Pink and yellow were guessed, green was copied from what stands there already, blue was ${legend("corrected")}. The text is the big model's own; it is only there sooner. “Tokens”, above the answers, shows them in these colours.`),
      el("div", { class: "cards" }, ...list.map((one) => button(one, "card"))),
      el("p", { class: "lead small" }, list.length ? "Pick one, or type your own below." : "Type a message below."));
  };
  omni.examples = {
    set: (value) => { list = value; draw(); },
    place: (chips, empty, pick) => { place = { chips, empty, pick }; draw(); },
  };
})();
