// The Adaptation tab: the curves, the lines, the versions.
import { showAnswers } from "./answers.js";
import { drawChart, plotAgain, resetZoom } from "../shared/charts.js";
import { clickable, el } from "../shared/dom.js";
import { expert, onExpert } from "../shared/expert.js";
import { td, th, when, whileVisible } from "../shared/fields.js";
import { format, plural } from "../shared/format.js";
import { load, save } from "../shared/storage.js";
import { visitor } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

const forms = {
  ".0%": "percent",
  ".2f": "number",
  ".1f": "number",
  ".0f": "number",
  ",.0f": "count",
  ".3f": "loss",
};
const print = (value, form) =>
  value === null || value === undefined
    ? "–"
    : forms[form] === "loss"
      ? value.toFixed(3)
      : format(value, forms[form]);

// ── curves ──────────────────────────────────────────────────────────────────────────────────────────────────
const page = {
  key: "",
  window: load("window", 8),
  every: false,
  only: false,
  line: "default",
  version: 0,
  trigger: () => {},
};
export { page as adaptation };
// What the server calls a view.
page.request = (target, drafter) => [
  target,
  drafter,
  {
    line: page.line,
    window: page.window,
    every: page.every,
    only: page.only,
    seen: page.key,
    version: page.version,
  },
];
const NOTED = 12000; // so long a refusal stays, though the page asks for its state again and again
const again = () => {
  page.key = "";
  page.trigger("poll");
};

// A headline such as "64 % of the guesses · “code” · what pays for itself, ▲ 21 points" since the first requests of that kind.
const headline = card => {
  const parts = [
    el("b", print(card.latest, card.form)),
    el(
      "span.unit",
      {
        title: card.scope
          ? "Live figures depend on topic and draft policy; the learning curve above does not"
          : null,
      },
      card.scope && card.latest !== null ? `${card.unit} · ${card.scope}` : card.unit,
    ),
  ];
  if (card.latest !== null && card.first !== null && card.latest !== card.first) {
    const points = card.form === ".0%",
      gap = card.latest - card.first;
    const size = points ? plural(Math.round(Math.abs(100 * gap)), "point") : print(Math.abs(gap), card.form);
    const good = card.key === "loss" ? gap < 0 : gap > 0;
    if (!/^0(\.0+)?( points)?$/.test(size))
      parts.push(
        el(
          "span",
          {
            class: `gap ${["cache_entries", "draft_length"].includes(card.key) ? "" : good ? "good" : "bad"}`,
            title: `The last requests against the first ones of the same kind: ${card.scope || "this pair"}, same target, line and method`,
          },
          `${gap > 0 ? "▲" : "▼"} ${size}`,
        ),
      );
  }
  return parts;
};

widgets.adaptation = (host, { trigger }) => {
  page.trigger = trigger;
  const shown = el("output", String(page.window));
  const slider = el("input", {
    type: "range",
    min: 1,
    max: 40,
    value: page.window,
    "aria-label": "Smoothing window in requests",
    oninput: () => {
      shown.textContent = slider.value;
    },
    onchange: () => {
      page.window = +slider.value;
      save("window", page.window);
      again();
    },
  });
  const tick = (name, label, title = null) => {
    const box = el("input", {
      type: "checkbox",
      onchange: () => {
        page[name] = box.checked;
        again();
      },
    });
    box.checked = page[name];
    return el("label.field.inline", { title }, box, el("span", label));
  };
  const onlyLine = tick("only", "Only this line");
  const legend = el("span.keys");
  const bar = el(
    "div.bar.omni-expert",
    el("label.field.inline", el("span", "Smoothing"), slider, shown),
    tick("every", "All targets", "Every target that this drafter guesses for"),
    onlyLine,
    el("span.grow"),
    clickable("toggle", "Reset zoom", resetZoom, {
      title: "Show all requests again; a double click on a chart does the same for it",
    }),
  );
  const wanted = () => load("charts", null) ?? expert(); // whoever has opened or closed them finds them so again
  const grid = el("div"),
    others = el("div.charts");
  const more = el(
    "details.more-charts",
    {
      ontoggle: () => {
        if (more.open !== wanted()) save("charts", more.open);
        plotAgain();
      },
    },
    el("summary", "Charts of all requests"),
    bar,
    legend,
    others,
  );
  onExpert(() => {
    more.open = wanted();
  });
  grid.append(more);
  const refused = el("p.alert", { role: "alert", hidden: true });
  let since = 0;
  host.append(refused, grid);
  grid.hidden = true;
  whileVisible(host, 2000, () => trigger("poll"));
  whileVisible(host, 0, plotAgain);
  const cards = new Map();
  const card = item => {
    if (!cards.has(item.key)) {
      const head = el("p.headline"),
        box = el("div.plot", { role: "img" });
      others.append(el("section.panel", el("h3", { title: item.help }, item.title), head, box));
      cards.set(item.key, { head, box });
    }
    return cards.get(item.key);
  };
  return {
    update: value => {
      const s = JSON.parse(value);
      if (s.line !== page.line) return; // an older line's last words
      page.key = s.key;
      if (s.note) {
        refused.textContent = s.note;
        refused.hidden = false;
        since = Date.now();
      } else if (Date.now() - since > NOTED) refused.hidden = true;
      onlyLine.hidden = s.domains.length < 2 && !page.only;
      onlyLine.lastChild.textContent = `Only the line “${s.line}”`;
      grid.hidden = !s.charts.length;
      showAnswers(s.answers);
      legend.replaceChildren(
        ...(s.targets.length > 1
          ? s.targets.map((name, i) =>
              el("span", el("i", { style: `background:${s.palette[i % s.palette.length]}` }), name),
            )
          : []),
        ...[
          ["swap", "newest adapter"],
          ["rollback", "rolled back"],
          ["target", "other target"],
          ["topic", "other topic"],
        ]
          .filter(([kind]) => kind === "swap" || s.kinds.includes(kind))
          .map(([kind, title]) => el("span", el("i", { class: `mark ${kind}` }), title)),
        el("span", "dots: single requests · line: smoothed"),
      );
      for (const item of s.charts) {
        const { head, box } = card(item);
        head.replaceChildren(...headline(item));
        const latest = print(item.latest, item.form),
          first = print(item.first, item.form);
        box.setAttribute(
          "aria-label",
          `${item.title}, ${item.unit}: first ${first}, latest ${latest}, over ${item.key === "loss" ? plural(s.steps, "step") : plural(s.requests, "request")}`,
        );
        const lost = item.latest === null;
        box.parentElement.classList.toggle("blank", lost);
        box.dataset.empty =
          item.key === "loss"
            ? "The trainer has made no step for this memory: it starts after a few answers."
            : item.key === "calibration"
              ? "No guess is judged: write something, or teach it a topic."
              : s.requests
                ? "Not measured for these requests."
                : "No requests: teach it a topic, or write in the Chat tab.";
        drawChart(box, item.figure);
      }
      lines(s);
      versions(s);
    },
  };
};

// ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────
let list = null;
widgets.lines = host => {
  list = host;
  host.append(el("h3", "Topic memory"), el("p.small", "Asking for the lines…"));
};
const lines = s => {
  if (!list) return;
  const entry = one =>
    clickable(
      "",
      [
        el("b", one.domain),
        el(
          "span.small",
          {
            title: one.in_memory
              ? "Its trainer is open"
              : "Its trainer is closed; it comes back with the next request",
          },
          [
            one.version ? `v${one.version}` : "base drafter",
            plural(one.requests_seen, "request"),
            one.in_memory ? "in memory" : "on disk",
          ].join(" · "),
        ),
      ],
      () => {
        page.line = one.domain;
        again();
      },
      { role: "radio", "aria-checked": String(one.domain === s.line) },
    );
  list.replaceChildren(
    el("h3", "Topic memory"),
    el(
      "p.small",
      "Each topic may have a memory (an adapter line) of its own. Choose one to look at; the Chat tab chooses which one guesses.",
    ),
    el("div.pick", { role: "radiogroup", "aria-label": "Topic memory to look at" }, ...s.lines.map(entry)),
  );
};

// ── versions ────────────────────────────────────────────────────────────────────────────────────────────────
let shelf = null;
const none = "There is no version. The trainer publishes the first one after a few answers.";
widgets.versions = host => {
  shelf = host;
  host.append(el("h3", "Adapter versions"), el("p.small", none));
};
const effect = one => {
  const { acceptance_before: before, acceptance_after: after, requests } = one.effect;
  if (before == null || after == null)
    return el("span.soft", { title: "It is judged on answers that come after it" }, "–");
  return el(
    "span",
    {
      class: after >= before ? "good" : "bad",
      title: `Acceptance on ${plural(requests ?? 0, "new answer")}: under the last version that was found better → under this one`,
    },
    `${(100 * before).toFixed(0)} → ${format(after, "percent")}`,
  );
};
const button = (event, version, title, label, face) =>
  clickable(
    "link",
    face,
    () => {
      page.version = version;
      page.trigger(event);
    },
    { title, "aria-label": label },
  );
const versionRow = one => {
  const name = el("th", { scope: "row" }, one.version ? `v${one.version}` : "base");
  if (one.live) name.append(" ", el("span.badge.good", { title: "This version drafts now" }, "live"));
  if (one.effect.rolled_back)
    name.append(
      " ",
      el(
        "span.badge.bad",
        { title: "It guessed worse than the last version that was found better, and was rolled back" },
        "rolled back",
      ),
    );
  const facts = one.version
    ? [
        when(one.created_at),
        plural(one.steps, "step"),
        one.loss == null ? null : `loss ${one.loss.toFixed(3)}`,
        one.parent != null ? `from v${one.parent}` : null,
      ]
    : ["the drafter without any adapter"];
  return el(
    "tr",
    { title: facts.filter(Boolean).join(" · ") },
    name,
    td(one.version ? format(one.requests_seen, "count") : "", true),
    td(one.version ? effect(one) : ""),
    td(
      one.version && !one.stored
        ? el(
            "span.soft",
            { title: "Only the newest versions keep their files, and the last one that was found better" },
            "files deleted",
          )
        : el(
            "span.twice",
            one.live
              ? ""
              : button(
                  "rollback",
                  one.version,
                  "Let this version draft",
                  one.version ? `Roll back to version ${one.version}` : "Roll back to the base drafter",
                  "Use",
                ),
            one.version
              ? button(
                  "export",
                  one.version,
                  "Download as a zip in PEFT's format",
                  `Export version ${one.version}`,
                  "↓ zip",
                )
              : "",
          ),
    ),
  );
};
const versions = s => {
  if (!shelf) return;
  const all = s.versions.length ? [...s.versions, { version: 0, live: s.live === 0, effect: {} }] : [];
  const table = el(
    "table",
    el(
      "thead",
      el(
        "tr",
        th("version"),
        th("seen", "Requests that the topic memory had seen", true),
        th(
          "accepted",
          "Share of the tokens whose guess is accepted: under the last version that was found better → under this one, on answers neither had learned from",
        ),
        el("td"),
      ),
    ),
    el("tbody", ...all.map(versionRow)),
  );
  shelf.replaceChildren(
    el("h3", s.line === "default" ? "Adapter versions" : `Adapter versions · ${s.line}`),
    all.length ? el("div.rolls", table) : el("p.small", none),
    el(
      "p.small",
      `“zip” downloads a version in the format of the PEFT library.${visitor.guest ? "" : " Below you can import one that was trained for the same drafter."}`,
    ),
  );
};
