// The small widgets around the chat: prompts, notice, method help, this answer's figures.
import { howFast, secondsOf, speedNote } from "../answer/outcome.js";
import { chat } from "./chat.js";
import { examples } from "./examples.js";
import { clickable, el, say } from "../shared/dom.js";
import { methodTitle } from "../shared/fields.js";
import { format, joined } from "../shared/format.js";
import { labels } from "../shared/labels.js";
import { widgets } from "../shared/widgets.js";

widgets.prompts = () => ({ update: value => examples.set(JSON.parse(value)) });
// What becomes of a chat, with the two switches below that change it.
widgets.notice = host => {
  const page = document.documentElement;
  const change = () => {
    const open = page.dataset.privacy !== "on";
    page.dataset.privacy = open ? "on" : "off";
    button.setAttribute("aria-expanded", String(open));
    if (open) document.querySelector("#omni-privacy input")?.focus();
  };
  const text = el("span"),
    button = clickable("link", "Change", change, {
      "aria-expanded": "false",
      "aria-controls": "omni-privacy",
    });
  const failed = el("p.alert", { role: "alert", hidden: true });
  host.append(failed, text, button);
  return {
    update: value => {
      const [notice, why] = JSON.parse(value);
      text.textContent = notice;
      say(failed, why);
    },
  };
};

export let showMethod = () => {};
widgets.method = host => {
  showMethod = name => {
    const method = labels.methods[name];
    if (!method) return;
    const badge = method.lossless
      ? el("span.badge.good", labels.lossless)
      : el("span.badge.warn", labels.approximate);
    host.replaceChildren(badge, el("p", method.help));
  };
  showMethod(labels.method);
};

widgets.answer = host => {
  const title = el("h3", "This answer"),
    main = el("dl.three"),
    grid = el("dl.figures.omni-expert"),
    split = el("div.split.omni-expert"),
    foot = el("p.small.omni-expert");
  const empty = el(
    "p.small",
    "Figures appear here while an answer is written: how many tokens one step of the big model brings, how many guesses were right, and how much was copied.",
  );
  host.append(title, empty, main, grid, split, foot);
  const cells = labels.figures.map((item, place) => {
    const value = el("dd", "–"),
      name = el("dt", item.title);
    const node = el("div", { title: item.help, class: item.key }, value, name);
    (place < labels.main_figures ? main : grid).append(node);
    return { ...item, value, node };
  });
  const pace = el("dd"),
    words = el("dt"),
    speed = el(
      "div",
      {
        hidden: true,
        title:
          "While no request is running, the app writes the answer again with and without guessing, in turns",
      },
      pace,
      words,
    );
  main.firstChild.after(speed);
  const bar = el("div.split-bar", { role: "img" }),
    key = el("div.split-key");
  split.append(bar, key);
  const segments = Object.entries(labels.split).map(([name, label]) => {
    const piece = el("i", { class: name }),
      text = el("span", { class: name }, el("i.swatch", { "aria-hidden": "true" }), "");
    bar.append(piece);
    key.append(text);
    return { name, label, piece, text };
  });
  const draw = (turn, index, count, live) => {
    const figures = turn?.answer.figures?.tokens ? turn.answer.figures : null; // a stopped answer may have none
    host.classList.toggle("idle", !figures);
    title.textContent = live
      ? "This answer · live"
      : count > 1 && index
        ? `Answer ${index} of ${count}`
        : "This answer";
    if (!figures) return;
    for (const { key, as, value, node } of cells) {
      const found = figures[key],
        untold = found == null && (main.contains(node) || key === "total_variation");
      value.textContent = format(found, as);
      node.hidden = untold || (key === "copied_share" && !found); // nothing to tell
    }
    const fast = howFast(turn.answer.speed, figures.block_efficiency),
      note = live ? "" : speedNote(turn.answer);
    speed.hidden = !fast && !note;
    pace.textContent = fast?.value ?? (turn.answer.speed ? "–" : "…");
    words.textContent = fast?.words ?? note;
    const seconds = secondsOf(figures),
      total = Object.values(seconds).reduce((sum, one) => sum + one);
    split.hidden = !total;
    for (const { name, label, piece, text } of segments) {
      const share = total ? seconds[name] / total : 0;
      piece.style.width = `${100 * share}%`;
      text.lastChild.textContent = `${label} ${format(share, "percent")}`;
    }
    bar.setAttribute("aria-label", `Time: ${segments.map(({ text }) => text.textContent).join(", ")}`);
    const { method, version, line } = turn.answer.meta;
    foot.textContent = joined([
      methodTitle(method),
      version === undefined ? null : version ? `adapter v${version}` : "base drafter",
      line && line !== "default" && `topic memory ${line}`,
      figures.context_mismatch &&
        "the small model cannot spell all of this text, so it guesses worse; the answer is right",
    ]);
  };
  chat.listeners.push(draw);
  draw(chat.selected, chat.turns.length, chat.turns.length, false);
};
