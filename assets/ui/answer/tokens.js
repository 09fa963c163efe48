// One answer as coloured tokens: lines → spans, the tooltip, arrow keys. The spans joined are the answer's text.
import { offersOf, offersTable, whyChosen } from "./offers.js";
import { el, fill } from "../shared/dom.js";
import { plural } from "../shared/format.js";
import { labels } from "../shared/labels.js";

export const visible = text => text.replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll(" ", "␣");

// `index`: its place in the answer's lines, where its tooltip is shown.
export const tokenSpan = (line, index = null) => {
  if (line.k === "x")
    // shown by CSS from the attribute: never part of the text, of a selection or of a copy
    return el("span", {
      class: `gone s-${line.s}${line.j ? " judged" : ""}`,
      "data-text": line.t.replaceAll("\n", "↵") || "▫",
      "data-i": index,
    });
  const span = el("span", { class: `tok s-${line.s}`, "data-i": index }, line.t);
  if (line.g && line.g.length > 1) span.dataset.pieces = line.g.join("|");
  if (line.t.startsWith("\n")) span.classList.add("breaks"); // the mark stands before the text, where the break is
  return span;
};

// Appends an answer's lines from `first` on to a box, and behind them the guesses that are checked now. Of the ones that stood there before,
// what was right is among the lines, and what was wrong falls away.
export const appendTokens = (box, lines, first, ahead) => {
  const spans = lines.map((line, place) => tokenSpan(line, first + place)),
    wrong = lines.filter(line => line.k === "x" && line.r === box.ahead?.r),
    fallen = wrong.length && tokenSpan({ k: "x", s: "fallen", t: wrong.map(line => line.t).join("") });
  if (fallen) {
    fallen.addEventListener("animationend", () => fallen.remove());
    spans.splice(lines.indexOf(wrong[0]), 0, fallen);
  }
  box.guesses?.forEach(span => span.remove());
  box.ahead = ahead;
  box.guesses = ahead?.t.map(t => tokenSpan({ k: "x", s: "ahead", t })) ?? [];
  box.append(...spans, ...box.guesses);
};

// A box of tokens, which the arrow keys step through.
export const tokensBox = (label, cls = null) =>
  el("div.toks", { dir: "auto", tabindex: 0, role: "group", "aria-label": label, class: cls });

// What the colours of some lines mean, in the order of the legend.
export const colourKey = lines => {
  const sources = new Set(lines.filter(line => line.k !== "x").map(line => line.s));
  return el(
    "div.small.colour-key",
    labels.legend
      .filter(one => sources.has(one.key) && one.key !== "plain")
      .map(({ key, help, title }) =>
        el("span", { class: `s-${key}`, title: help }, el("i.swatch", { "aria-hidden": "true" }), title),
      ),
  );
};

const names = Object.fromEntries(labels.legend.map(item => [item.key, item]));
const tip = el("div.omni-tip", { role: "tooltip", id: "omni-tip", hidden: true });
const row = (label, value) => value != null && el("div.tip-row", el("span", label), el("b", value));
const probability = x => (x == null ? null : x > 0 && x < 0.001 ? x.toPrecision(2) : x.toFixed(3));

// What a token without text is: the end of the answer, or bytes that wait for the rest of their character.
const nameless = (line, answer) => {
  if (line.k === "x") return "(the end, or part of a character)";
  const last = answer.tokens.findLast(one => one.k === "t");
  return line === last && answer.end?.finish === "end" ? "(the end of the answer)" : "(part of a character)";
};

// Where the text went on like this before.
const origins = answer => ({
  prompt: answer.first === false ? "the chat so far" : "your message",
  answer: "this answer",
  earlier: "an earlier answer",
  phrase: "a phrase that the big model often writes",
});
const matched = ([length, origin], answer) =>
  `matches ${plural(length, "token")} of ${origins(answer)[origin]}`;

// What a token is, in words, and its class.
const lookOf = line => {
  const copied = line.s === "copied";
  if (line.k !== "x") return { ...names[line.s], look: line.s };
  return {
    title: line.j ? "a wrong guess" : "a guess nobody judged",
    help: line.j
      ? `${copied ? "Copied from the text before" : "The small model guessed it"}, and the big one wrote something else (“rejected”).`
      : `${copied ? "Copied" : "Guessed"} behind a wrong guess, so the big model never judged it.`,
    look: "discarded",
  };
};
const showTip = (span, answer) => {
  const line = answer.tokens[+span.dataset.i];
  if (!line) return;
  const { title, help, look } = lookOf(line);
  const { temperature, top_p = 1, top_k = 0, min_p = 0, repetition_penalty = 1, method } = answer.meta;
  const plain = temperature === 1 && top_p === 1 && !top_k && !min_p && repetition_penalty === 1; // else p is of the model itself, and q of what the settings make of it
  const greedy = temperature === 0, // then p and q decide nothing
    rule = plain && method !== "string-exact-match" ? (line.m ? ", p" : ", min(1, p/q)") : "",
    first = line.a > 0.5 ? "yes, so it is kept" : "no, so it wrote its own",
    big = plain ? "the big model's probability, p" : "the big model's, at temperature 1",
    guesses = line.g?.map((piece, i) => `${visible(piece)} ${line.gi[i]}`).join(" | ");
  const [offers, proposed] = offersOf(answer, line.r);
  fill(
    tip,
    el("div", { class: `tip-title s-${look}` }, el("i.swatch"), title),
    row("token", visible(line.t) || nameless(line, answer)),
    row("id", line.i),
    row("round · position", `${line.r + 1} · ${line.n + 1}`),
    (line.k !== "x" || line.j) && row(big, probability(line.p) ?? "–"),
    row(plain ? "the small model's, q" : "the small model's", probability(line.q)),
    greedy && line.a != null && row("the big model's first choice", first),
    line.m && line.s !== "forced" && row("copied", matched(line.m, answer)),
    !greedy && row(`chance to be kept${rule}`, probability(line.a)),
    guesses && row("the small model's guesses", guesses),
    el("p", help),
    offers && !proposed && el("p", whyChosen(offers, 0)), // why nothing was guessed
  );
  if (!tip.isConnected) (document.querySelector(".gradio-container main") ?? document.body).append(tip);
  hideTip();
  tip.hidden = false;
  span.classList.add("at");
  const box = [...span.getClientRects()].at(-1) ?? span.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = Math.min(Math.max(8, box.left), document.documentElement.clientWidth - width - 8);
  const below = box.bottom + 8 + height < window.innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? box.bottom + 8 : Math.max(8, box.top - height - 8)}px`;
};
export const hideTip = () => {
  tip.hidden = true;
  document.querySelector(".tok.at, .gone.at")?.classList.remove("at");
};

// Delegated: hover, tap, focus and arrow keys on one answer's tokens. A step that scrolls must not hide what it shows. What comes to lie
// under a pointer at rest is not pointed at: browsers report that like a move, at the place of the last one.
const STILL = 300;
let still = 0,
  rest = "";
const place = event => `${event.clientX} ${event.clientY}`;
for (const kind of ["pointermove", "pointerdown", "pointerup"])
  document.addEventListener(kind, event => {
    rest = place(event);
  });
export const watchTokens = (box, answer, announce) => {
  const at = event => event.target.closest?.(".tok, .gone");
  const plain = () => box.closest("[data-view]")?.dataset.view === "text";
  // Below the answer: what the round of the token that was pressed or stepped to chose from.
  let choice = null;
  const look = span => {
    const line = span && !plain() ? answer.tokens[+span.dataset.i] : null;
    if (!line) return;
    choice ??= offersTable();
    if (!choice.node.isConnected) box.after(choice.node);
    choice.draw(...offersOf(answer, line.r), `Step ${line.r + 1}: `);
  };
  const show = span => {
    if (span && !plain()) showTip(span, answer);
  };
  box.addEventListener("pointermove", event => {
    const span = event.pointerType !== "touch" && place(event) !== rest ? at(event) : null;
    if (span && (tip.hidden || !span.classList.contains("at"))) show(span);
  });
  box.addEventListener("pointerout", event => {
    if (event.pointerType !== "touch") hideTip();
  });
  box.addEventListener("click", event => {
    show(at(event));
    look(at(event));
  });
  box.addEventListener("blur", hideTip);
  box.addEventListener("keydown", event => {
    const spans = [...box.querySelectorAll(".tok, .gone")].filter(
      span => span.dataset.i && span.offsetParent !== null,
    );
    const here = spans.findIndex(span => span.classList.contains("at"));
    const go = { ArrowRight: here + 1, ArrowLeft: here < 0 ? 0 : here - 1, Home: 0, End: spans.length - 1 }[
      event.key
    ];
    if (go === undefined || plain()) return;
    event.preventDefault();
    const span = spans[Math.min(Math.max(go, 0), spans.length - 1)];
    if (!span) return;
    still = performance.now() + STILL;
    span.scrollIntoView({ block: "nearest" });
    showTip(span, answer);
    look(span);
    const line = answer.tokens[+span.dataset.i];
    announce(`${line.t.trim() || visible(line.t)}: ${tip.firstChild.textContent}`);
  });
};
document.addEventListener("keydown", event => {
  if (event.key !== "Escape" || tip.hidden) return;
  event.preventDefault(); // it closes the tooltip, and stops no answer
  hideTip();
});
document.addEventListener(
  "scroll",
  () => {
    if (performance.now() > still) hideTip();
  },
  true,
);
document.addEventListener("pointerdown", event => {
  if (!event.target.closest?.(".tok, .gone")) hideTip();
});
