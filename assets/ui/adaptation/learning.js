// The learning panel: what the trainer of a line does.
import { adaptation } from "./adaptation.js";
import { prices } from "./prices.js";
import { clickable, el, fill, say } from "../shared/dom.js";
import { makeQuestion, when } from "../shared/fields.js";
import { format, plural } from "../shared/format.js";
import { visitor } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

widgets.trainer = (host, { trigger }) => {
  const button = (title, name) => clickable("", title, () => trigger(name, adaptation.view()));
  const warning = el("p.alert", { role: "alert", hidden: true });
  const head = el("h3", "In the background"),
    dot = el("i.dot", { "aria-hidden": "true" }),
    state = el("b"),
    why = el("p.small", "Asking the trainer…"),
    facts = el("p.small.facts");
  const plain = el("p.small", { role: "status", hidden: true }),
    ahead = el("p.small.ahead.omni-expert"),
    numbers = el("dl.numbers.omni-expert");
  const really = makeQuestion("Reset the small model?", "Yes, reset", "Keep it");
  const pause = button("Pause", "pause"),
    resume = button("Resume", "resume");
  const reset = clickable("", "Reset", () =>
    really.ask(
      visitor.guest
        ? "Forget what your own small model has learned? Nobody else's is touched. Which guesses make one word (your n-grams) stays."
        : "Forget what the small model has learned here, for everybody? With the default memory, which guesses make one word (its n-grams) goes too.",
      () => trigger("reset", adaptation.view()),
    ),
  );
  const acts = el("div.acts", { hidden: true }, pause, resume, reset);
  host.append(
    warning,
    el("div.line", head, el("span.state", { role: "status" }, dot, state)),
    why,
    plain,
    ahead,
    facts,
    numbers,
    acts,
    really.box,
    prices.node,
  );
  return {
    update: value => {
      const s = JSON.parse(value);
      host.dataset.state = s.state;
      prices.costs(s.drafting?.costs);
      acts.hidden = !s.loaded; // nothing can be paused or forgotten before there is a pair
      state.textContent = !s.loaded ? "" : s.version ? `${s.title} · v${s.version}` : s.title;
      why.textContent = !s.loaded ? "It starts when both models are loaded." : s.error || s.why;
      const seen = `${plural(s.requests_seen, "answer")} seen`,
        effort = [s.step && plural(s.step, "step"), s.loss != null && `loss ${s.loss.toFixed(2)}`];
      fill(
        facts,
        seen,
        el(
          "span.omni-expert",
          effort.filter(Boolean).map(one => ` · ${one}`),
        ),
      );
      head.textContent = s.domain === "default" ? "In the background" : `In the background · ${s.domain}`;
      const d = s.requests_seen ? s.drafting : null; // before its first answer only the warm-up has drafted
      say(
        plain,
        d?.off
          ? "Guessing is switched off: the draft length is 0."
          : d && !d.speculating
            ? "By the cost table guessing would not be faster, so the big model writes alone."
            : "",
      );
      ahead.hidden = !d || !plain.hidden;
      if (!ahead.hidden) {
        ahead.replaceChildren(
          el("b", d.length ? `Guesses ${d.length.toFixed(1)} tokens ahead` : "Guesses ahead"),
          ` · ${d.title}`,
        );
        ahead.title = d.untrained
          ? "The acceptance head has no training so far; the drafter's own probabilities stand in for it."
          : d.length
            ? "Drafter tokens of the newest drafts"
            : "Nothing has been drafted so far.";
      }
      fill(
        numbers,
        [
          ["learns", s.mode, "When training runs (OMNIDEMO_TRAINING)"],
          [
            "rolled back",
            plural(s.rolled_back, "time"),
            "Versions that guessed worse on new answers than the last one that was found better, and were rolled back",
          ],
          [
            "live since",
            s.last_swap ? when(s.last_swap) : s.version ? "–" : "the start",
            `Since when these weights draft${s.seconds ? `; the last update trained for ${format(s.seconds, "seconds")}` : ""}`,
          ],
        ].map(([name, value, help]) => el("div", { title: help }, el("dt", name), el("dd", value))),
      );
      pause.hidden = s.state === "paused" || s.state === "off";
      resume.hidden = s.state !== "paused";
      const waiting = s.store.pending ? ` ${plural(s.store.pending, "write")} waiting.` : "";
      say(warning, s.store.ok ? "" : `${s.store.message}${waiting} Chatting goes on.`);
    },
  };
};
