// What is being taught, in the main pane: the newest examples with their answers, coloured, written round by round as they were. They belong
// to no chat, and go with the next question.
import { players } from "../adaptation/teach.js";
import { readAnswer } from "../answer/records.js";
import { tokenSpan, watchTokens } from "../answer/tokens.js";
import { chat } from "./chat.js";
import { calm, clickable, el } from "../shared/dom.js";
import { format, joined, plural } from "../shared/format.js";

const SHOWN = 3,
  WRITE = 900; // examples that stay, milliseconds in which an answer is written out
let box = null,
  title = null,
  list = null,
  act = null,
  done = 0;

const clear = () => {
  if (!box) return;
  box.remove();
  box = chat.taught = null;
  chat.parts.root.classList.remove("lesson-shown");
  chat.notify();
};
export { clear as clearLesson };
const build = () => {
  clear();
  title = el("h3");
  act = clickable("link", "", () => (players.teach.busy ? players.teach.stop() : clear()));
  list = el("div.lessons");
  box = el("section.lesson", { "aria-label": "What is being taught" }, el("div.line", title, act), list);
  chat.parts.scroll.append(box);
  chat.parts.root.classList.add("lesson-shown");
  done = 0;
  chat.taught = {};
  box.scrollIntoView({ block: "nearest" }); // on a phone it stands a screen above the button
  chat.toEnd();
};
const write = (tokens, answer) => {
  const rounds = Math.max(1, ...answer.tokens.map(line => line.r + 1)),
    start = performance.now(),
    still = calm();
  let at = 0;
  const frame = now => {
    const until = still ? Infinity : ((now - start) / WRITE) * rounds;
    const stick = chat.atEnd();
    while (at < answer.tokens.length && answer.tokens[at].r < until) {
      tokens.append(tokenSpan(answer.tokens[at], at));
      at += 1;
    }
    if (stick) chat.toEnd();
    if (at < answer.tokens.length && tokens.isConnected) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
};
// `s`: what the server says of a play (ui/tabs/traffic_panel.py), `said`: the sentence above, `starts`: whether it has just begun.
export const lesson = (s, said, starts) => {
  if (!chat.parts || chat.busy()) return;
  if (starts || (s.state === "playing" && !box && !s.done)) build();
  if (!box) return;
  title.textContent = said;
  act.textContent = players.teach.busy ? "Stop" : "Close";
  if (!s.lines || s.done === done) return;
  done = s.done;
  const answer = readAnswer(s.lines),
    tokens = el("div.toks", { dir: "auto" });
  answer.meta = { version: s.version };
  const f = s.figures,
    facts = joined([
      plural(f.tokens ?? 0, "token"),
      f.block_efficiency != null && `${format(f.block_efficiency, "number")} tokens a step`,
      s.version ? `version ${s.version} of the small model` : "fresh small model",
    ]);
  watchTokens(tokens, answer, chat.announce);
  list.append(el("article", el("p.asked", s.prompt), tokens, el("p.small", facts)));
  while (list.children.length > SHOWN) list.firstChild.remove();
  for (const line of answer.tokens) {
    const key = line.k === "x" ? "discarded" : line.s;
    chat.taught[key] = (chat.taught[key] ?? 0) + 1;
  }
  chat.notify();
  chat.toEnd();
  write(tokens, answer);
};
chat.listeners.push(() => {
  if (chat.busy()) clear();
});
