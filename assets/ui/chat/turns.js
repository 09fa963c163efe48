// A question and its answer on the page: the answer as Markdown and as coloured tokens, what became of it, its figures and buttons. And how
// much of the model's window the chat takes.
import { drawLearned } from "../answer/learned.js";
import { outcomeOf, verdictOf, whySlower } from "../answer/outcome.js";
import { appendTokens, tokensBox, watchTokens } from "../answer/tokens.js";
import { chat } from "./chat.js";
import { examples } from "./examples.js";
import { askAgain, ghost, sameAgain } from "./ghost.js";
import { speeds } from "./speeds.js";
import { replay } from "../replay/replay.js";
import { copyButton } from "../shared/copy.js";
import { clickable, counted, dots, el, fill, makeMeter } from "../shared/dom.js";
import { methodTitle, topicTitle } from "../shared/fields.js";
import { format, joined, plural } from "../shared/format.js";
import { drawMarkdown } from "../shared/markdown.js";
import { linkTo } from "../shared/places.js";

const LONG = 1200,
  LINES = 14; // characters and lines of a question above which it is folded

chat.draw = turn => {
  const tokens = tokensBox("Answer. The arrow keys step through its tokens.");
  const long = turn.user.length > LONG || turn.user.split("\n").length > LINES,
    user = el("div.say", { dir: "auto", class: long && "folded" }, turn.user);
  const unfold = event => {
    event.stopPropagation();
    const folded = user.classList.toggle("folded");
    whole.setAttribute("aria-expanded", String(!folded));
    whole.textContent = folded ? "Show all of it" : "Show less";
  };
  const whole = long && clickable("link whole", "Show all of it", unfold, { "aria-expanded": "false" });
  turn.parts = {
    tokens,
    text: el("div.md"),
    counter: el("p.counter", { hidden: true }),
    ghost: turn.first ? ghost(turn) : null,
    status: el("div.status"),
    foot: el("div.foot"),
    who: el("span.who", "Model"),
  };
  turn.node = el(
    "article.turn",
    {
      onclick: () => chat.select(turn),
      onfocusin: () => {
        if (chat.selected !== turn) chat.select(turn);
      },
    },
    el("div.user", el("span.who", "You"), user, whole),
    el(
      "div.answer",
      turn.parts.who,
      turn.parts.text,
      tokens,
      turn.parts.counter,
      turn.parts.ghost?.node ?? "",
      turn.parts.status,
      turn.parts.foot,
    ),
  );
  watchTokens(tokens, turn.answer, chat.announce);
  chat.parts.log.append(turn.node);
  turn.answer.first = !chat.before(turn).length && !turn.system; // its prompt is this message alone
  turn.drawn = 0;
  chat.append(turn, turn.answer.tokens);
  chat.status(turn);
  if (turn.state === "done") chat.foot(turn);
};
chat.append = (turn, lines) => {
  appendTokens(turn.parts.tokens, lines, turn.drawn, turn.answer.ahead);
  turn.drawn += lines.length;
  drawCounter(turn);
  chat.drawText(turn);
};
// What guessing brings, beside the text from its first token on: each round is a step of the big model.
const drawCounter = ({ parts: { counter, ghost }, answer: { tokens, rounds } }) => {
  const steps = rounds.length,
    written = tokens.reduce((sum, line) => sum + (line.k === "t"), 0);
  counter.hidden = !steps;
  fill(counter, counted(steps, written));
  ghost?.draw();
};
// Only what is seen is kept up to date.
chat.drawText = turn => {
  if (chat.view() === "text")
    drawMarkdown(turn.parts.text, turn.answer, chat.isLive(turn) && turn.state !== "done");
};

const endings = {
  length: "Ended at the longest answer allowed; raise it under Advanced (with Expert on).",
  cancelled: "Stopped by you.",
  context: "Ended because the model's context is full; ask for less at once, or start a new chat.",
};
const far = ({ reading: { read, total } }) => `${format(read, "count")} of ${format(total, "count")} tokens`;
// How far the model is with a long text. The bar stays the same element, so that it moves.
const drawReading = turn => {
  const { status: box } = turn.parts,
    { answer } = turn,
    what = chat.before(turn).length ? "the chat" : "your text",
    { read, total, kept } = answer.reading;
  if (!turn.parts.reading) {
    const meter = makeMeter(`How far ${what} is read`),
      words = el("span");
    turn.parts.reading = { node: el("div.reading", words, meter.node), words, set: meter.set };
    chat.announce(`The model reads ${what}, ${plural(total, "token")}.`);
  }
  const { node, words, set } = turn.parts.reading,
    before = kept > total / 20 ? `, after ${format(kept, "count")} that it had read before` : "";
  if (box.firstChild !== node) box.replaceChildren(node);
  words.textContent = `Reading ${what}: ${far(answer)}${before}`;
  set(read / total);
};
chat.status = turn => {
  const { status: box } = turn.parts,
    answer = turn.answer,
    live = chat.isLive(turn);
  turn.parts.who.textContent = answer.meta.name ?? "Model";
  turn.node.setAttribute("aria-busy", String(live));
  turn.node.classList.toggle("live", live && turn.state !== "done");
  box.className = "status";
  turn.node.classList.toggle("refused", Boolean(answer.error) && !answer.text); // the page says that, not the model
  if (turn.state === "waiting" && !answer.error)
    return answer.reading
      ? drawReading(turn)
      : box.replaceChildren(
          dots(),
          live && chat.place() ? `Waiting: place ${chat.place()} in the line` : "Waiting for the first token",
        );
  box.classList.toggle("error", Boolean(answer.error));
  box.textContent = answer.error || (turn.state === "stopping" ? "Stopping…" : ending(answer));
};
const ending = ({ meta, end, finish: kept, reading, text }) => {
  const finish = meta.stopped ? "cancelled" : (end?.finish ?? kept);
  if (finish === "cancelled" && reading && !text)
    return `Stopped by you, with ${far({ reading })} read. Again goes on from there.`;
  return (
    endings[finish] ??
    (meta.cut ? "Cut off by a reload." : end && !text ? "The model ended its answer at once." : "")
  );
};

const former = turn => {
  const face = `Version ${turn.versions.indexOf(turn) + 1} of ${turn.versions.length}`,
    title = "Show the one before; this browser keeps them with the chat, until it goes on";
  const act = event => {
    event.stopPropagation();
    chat.former(turn);
  };
  return clickable("link last former", face, act, { title });
};
// What is said of the answer, written anew where more is known: nothing else is touched, for somebody may be on a button.
chat.tell = turn => {
  const outcome = outcomeOf(turn.answer),
    why = whySlower(turn.answer),
    { foot } = turn.parts,
    said = foot.querySelector(".said"),
    verdict = foot.querySelector(".verdict");
  if (verdict) {
    const { side, lead, words } = verdictOf(turn.answer, turn.here && speeds.wanted(turn));
    verdict.className = `verdict ${side}`;
    fill(verdict, el("b", lead), words && ` ${words}`);
  }
  if (outcome && said)
    fill(said, outcome[0] && el("b", outcome[0]), outcome[1], why && el("span.why", ` ${why}`));
};
chat.drawLearned = ({ learned, answer, parts: { foot, tokens } }) => {
  if (!learned) return;
  const [version, pieces] = learned,
    said = version
      ? `Version ${version} of the small model guesses right here:`
      : "It just learned to guess:",
    box = () => {
      chat.showColours();
      return tokens;
    };
  drawLearned(foot.querySelector(".learned"), said, pieces, answer, box);
};
chat.foot = turn => {
  const { figures, meta, text } = turn.answer,
    foot = turn.parts.foot,
    last = chat.turns.at(-1) === turn;
  const facts = el("span.facts");
  if (figures) {
    const technical = [
      figures.tokens_per_second != null && `${format(figures.tokens_per_second, "number")} tok/s`,
      meta.method && methodTitle(meta.method),
      meta.version !== undefined && (meta.version ? `adapter v${meta.version}` : "base drafter"),
    ];
    const known = [
      ...technical,
      meta.topic && meta.topic !== "other" && `topic: ${topicTitle(meta.topic)}`,
      meta.line && meta.line !== "default" && `topic memory ${meta.line}`,
      meta.why,
    ];
    facts.append(el("span.omni-expert", joined(known)));
  }
  const named = examples.named(turn.user); // an example has an address
  const button = (title, act) => last && clickable("link last", title, () => act(turn));
  fill(
    foot,
    outcomeOf(turn.answer) && el("p.verdict", { role: "status" }),
    turn.first && figures && el("p.again", sameAgain(turn)),
    el("p.learned"),
    el(
      "details.whence",
      el("summary", outcomeOf(turn.answer) ? "Why?" : "Facts"),
      outcomeOf(turn.answer) && el("p.said"),
      facts,
    ),
    el(
      "span.acts",
      last && askAgain(turn),
      replay.buttons(turn),
      text && copyButton(() => text),
      named && copyButton(() => linkTo(`example-${named}`), "Link", "Copy a link to this example"),
      button("Again", chat.again),
      button("Edit", chat.edit),
      last && turn.versions?.length > 1 && former(turn),
    ),
  );
  chat.tell(turn);
  chat.drawLearned(turn);
  chat.drawText(turn);
};

// ── the model's window ──────────────────────────────────────────────────────────────────────────────────────
const HELP =
  "What the model had before it at the end of the newest answer, of what it can read at once: instructions, questions and answers.";
chat.contextMeter = () => {
  const meter = makeMeter("How full the model's window is", "span"),
    words = el("span");
  chat.parts.context = {
    node: el("span.window", { title: HELP, hidden: true }, meter.node, words),
    words,
    set: meter.set,
  };
  return chat.parts.context.node;
};
// The meter, and a line below the oldest messages where the newest answer was written without them.
chat.drawContext = () => {
  const { context, log } = chat.parts,
    at = chat.turns.findLast(turn => turn.answer.context),
    found = at?.answer.context;
  context.node.hidden = !found;
  log.querySelector(".unread")?.remove();
  if (!found) return;
  const { tokens, limit, dropped } = found,
    share = Math.min(1, tokens / limit);
  context.set(share);
  context.node.classList.toggle("full", share > 0.9);
  context.words.textContent = `${format(tokens, "count")} of ${format(limit, "count")} tokens`;
  if (!(dropped > 0)) return;
  let count = 0;
  const read = chat.turns.slice(0, chat.turns.indexOf(at) + 1).find(turn => {
    if (count >= dropped) return true;
    count += turn.answer.text ? 2 : 0;
    return false;
  });
  const [which, fit, is] =
    dropped === 1 ? ["message", "fits", "is"] : [`${format(dropped, "count")} messages`, "fit", "are"];
  const why = chat.reads ? "" : ` no longer ${fit} and`; // a small model reads fewer than fit
  const said = `The oldest ${which}${why} ${is} not read any more.`;
  read?.node.before(el("p.unread", { role: "note" }, said));
};
