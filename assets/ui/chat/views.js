// What stands around the answers: the row of buttons above, the system prompt, the legend; and which view of the answers is shown.
import { hideTip } from "../answer/tokens.js";
import { chat } from "./chat.js";
import { calm, clickable, composing, el } from "../shared/dom.js";
import { onExpert } from "../shared/expert.js";
import { labels } from "../shared/labels.js";
import { load, save } from "../shared/storage.js";

const VIEWS = [
  ["text", "Text", "The answer as it is meant to be read"],
  ["tokens", "Tokens", "Every token coloured by where it came from"],
  [
    "pieces",
    "Pieces",
    "Where several guesses make one word, each of them, as in There|fore → Therefore (the drafter's sub-tokens)",
  ],
];
const settings = { view: "tokens", discarded: false, only: "", still: false, ...load("view", {}) };
if (!VIEWS.some(([key]) => key === settings.view)) settings.view = "tokens";
chat.view = () => settings.view;
// Whether guesses are shown ahead of the text.
chat.ahead = () => !settings.still && !calm();
// The view in which colours are seen.
const coloured = () => (settings.view === "text" ? "tokens" : settings.view);

const apply = () => {
  const { log, views, discard, still, legend } = chat.parts;
  Object.assign(log.dataset, {
    view: settings.view,
    discarded: settings.discarded ? "on" : "off",
    only: settings.only,
  });
  views.forEach(([key, button]) => button.setAttribute("aria-pressed", String(key === settings.view)));
  discard.setAttribute("aria-pressed", String(settings.discarded));
  still.setAttribute("aria-pressed", String(settings.still));
  legend.forEach(item =>
    item.button.setAttribute("aria-pressed", String(item.key === settings.only && settings.view !== "text")),
  );
  hideTip();
  chat.turns.forEach(chat.drawText);
  chat.drawLegend();
  save("view", settings);
};
// The legend stands where there are colours to explain: among tokens of which not every one is the big model's alone.
chat.drawLegend = () => {
  const drafted = ({ answer }) =>
    Object.entries(answer.counts ?? {}).some(([key, n]) => n && key !== "plain");
  chat.parts.root.classList.toggle("colours", settings.view !== "text" && chat.turns.some(drafted));
};
// The answer in sight stays in sight: the two views of what stands above it are not equally high.
const change = changes => {
  const { scroll } = chat.parts,
    top = scroll.getBoundingClientRect().top,
    stick = chat.atEnd();
  const seen = chat.turns.find(turn => turn.node.getBoundingClientRect().bottom > top + 40),
    before = seen?.node.getBoundingClientRect().top;
  Object.assign(settings, changes);
  apply();
  if (stick) chat.toEnd();
  else if (seen) scroll.scrollTop += seen.node.getBoundingClientRect().top - before;
};

chat.showColours = () => change({ view: coloured() });

chat.toolbar = () => {
  const { parts } = chat;
  parts.views = VIEWS.map(([key, title, help]) => [
    key,
    clickable(key === "pieces" ? "omni-expert" : null, title, () => change({ view: key }), { title: help }),
  ]);
  parts.discard = clickable(
    "toggle omni-expert",
    "Thrown-away guesses",
    () => change({ discarded: !settings.discarded, view: coloured() }),
    { title: "Show guesses that were thrown away, struck through (discarded drafts)" },
  );
  parts.fresh = clickable(
    "toggle fresh",
    [el("span", { "aria-hidden": "true" }, "+"), el("span.wide", "New chat")],
    () => {
      chat.fresh();
      parts.box.focus();
    },
    { title: "Start a new chat; this one is kept under Chats", "aria-label": "New chat" },
  );
  parts.name = el("span.wide");
  parts.chats = clickable(
    "toggle chats",
    [el("span", { "aria-hidden": "true" }, "☰"), parts.name],
    () => chat.openDrawer(),
    { "aria-haspopup": "dialog" },
  );
  parts.systemButton = clickable(
    "toggle system",
    ["System", el("span.wide", " prompt"), el("i.dot", { hidden: true })],
    () => openSystem(parts.system.hidden),
    {
      "aria-expanded": "false",
      "aria-controls": "omni-system",
      title: "What the model is told before the chat begins",
    },
  );
  return el(
    "div.bar",
    parts.chats,
    el(
      "div.segments",
      { role: "group", "aria-label": "View of the answers" },
      parts.views.map(([, button]) => button),
    ),
    parts.discard,
    el("span.grow"),
    parts.systemButton,
    parts.fresh,
  );
};

// ── the system prompt of the open chat ──────────────────────────────────────────────────────────────────────
const openSystem = open => {
  const { system, systemButton, systemBox } = chat.parts;
  system.hidden = !open;
  systemButton.setAttribute("aria-expanded", String(open));
  if (open) systemBox.focus();
};
chat.systemField = () => {
  const { parts } = chat;
  parts.systemBox = el("textarea", {
    id: "omni-system-text",
    rows: 3,
    maxlength: labels.most_system,
    dir: "auto",
    placeholder:
      "Empty: what the model's own template says, if anything. For example: Answer in one sentence.",
    oninput: () => {
      chat.now.system = parts.systemBox.value;
      chat.drawFacts();
    },
    onchange: () => {
      if (!chat.busy()) chat.keep();
    },
    onkeydown: event => {
      if (event.key === "Escape" && !composing(event)) {
        event.preventDefault();
        openSystem(false);
        parts.systemButton.focus();
      }
    },
  });
  parts.system = el(
    "div.system-prompt",
    { id: "omni-system", hidden: true },
    el("label", { for: "omni-system-text" }, "System prompt"),
    parts.systemBox,
    el(
      "p.small",
      "Sent before the chat with every question from now on, and kept with this chat in this browser.",
    ),
  );
  return parts.system;
};
// Name and system prompt of the open chat, wherever they stand.
chat.drawFacts = () => {
  const { parts, now } = chat,
    name = now.name || "Chats";
  parts.name.textContent = name;
  parts.chats.title = parts.chats.ariaLabel = now.name
    ? `Chats. This one: ${name}`
    : "Chats. This one is new";
  if (parts.systemBox.value !== now.system) parts.systemBox.value = now.system;
  const set = Boolean(now.system.trim());
  parts.systemButton.lastChild.hidden = !set;
  parts.systemButton.ariaLabel = set ? "System prompt, written" : "System prompt";
};

chat.legend = () => {
  const { parts } = chat;
  parts.legend = labels.legend.map(({ key, title, help }) => {
    const count = el("b", "0");
    const act = () => {
      const only = settings.only === key && settings.view !== "text" ? "" : key;
      change({ only, view: coloured(), ...(key === "discarded" ? { discarded: Boolean(only) } : {}) });
    };
    const button = clickable(`s-${key}`, [el("i.swatch", { "aria-hidden": "true" }), title, count], act, {
      title: help,
      "aria-pressed": "false",
    });
    return { key, count, button };
  });
  parts.still = clickable("still", "Still", () => change({ still: !settings.still }), {
    title: "Show no guesses ahead of the text while the big model checks them",
  });
  return el(
    "div.legend",
    { role: "group", "aria-label": "Where the tokens of this answer came from. Press one to isolate it." },
    parts.legend.map(item => item.button),
    parts.still,
  );
};
chat.watchViews = () =>
  onExpert(on => {
    // what only experts can switch off again goes with the switch
    if (!on)
      Object.assign(settings, {
        view: settings.view === "pieces" ? "tokens" : settings.view,
        discarded: settings.only === "discarded",
      });
    apply();
  });
