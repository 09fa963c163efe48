// The Adaptation tab: the curves, the lines, the versions.
import { showAnswers } from "./answers.js";
import { drawChart, plotAgain, resetZoom } from "../shared/charts.js";
import { clickable, el, fill, say } from "../shared/dom.js";
import { expert, onExpert } from "../shared/expert.js";
import { table, td, th, tick, when, whileVisible } from "../shared/fields.js";
import { format, joined, plural } from "../shared/format.js";
import { load, save } from "../shared/storage.js";
import { visitor } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

const forms = { ".0%": "percent", ",.0f": "count", ".3f": "loss" };
const print = (value, form) => format(value, forms[form] ?? "number");

const EMPTY = {
  loss: "The trainer has made no step for this memory: it starts after a few answers.",
  calibration: "No guess is judged: write something, or teach it a topic.",
};

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
page.request = (target, drafter) => {
  const { line, window, every, only, key: seen, version } = page;
  return [target, drafter, { line, window, every, only, seen, version }];
};
const MARKS = {
  swap: "newest adapter",
  rollback: "rolled back",
  target: "other target",
  topic: "other topic",
};
const NOTED = 12000; // so long a refusal stays, though the page asks for its state again and again
const again = () => {
  page.key = "";
  page.trigger("poll");
};

// A headline such as "64 % of the guesses · “code” · what pays for itself, ▲ 21 points" since the first requests of that kind.
const headline = card => {
  const { key, form, unit, scope, latest, first } = card;
  const depends = "Live figures depend on topic and draft policy";
  const parts = [
    el("b", print(latest, form)),
    el("span.unit", { title: scope ? depends : null }, joined([unit, latest !== null && scope])),
  ];
  if (latest === null || first === null || latest === first) return parts;
  const gap = latest - first,
    size = form === ".0%" ? plural(Math.round(Math.abs(100 * gap)), "point") : print(Math.abs(gap), form);
  if (/^0(\.0+)?( points)?$/.test(size)) return parts;
  const good = key === "loss" ? gap < 0 : gap > 0,
    look = ["cache_entries", "draft_length"].includes(key) ? "" : good ? "good" : "bad",
    title = `The last requests against the first ones of the same kind: ${scope || "this pair"}, same target, line and method`;
  return [...parts, el("span", { class: `gap ${look}`, title }, `${gap > 0 ? "▲" : "▼"} ${size}`)];
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
  const choice = (name, label, title = null) => {
    const box = tick(null, page[name], on => {
      page[name] = on;
      again();
    });
    return el("label.field.inline", { title }, box, el("span", label));
  };
  const onlyLine = choice("only", "Only this line");
  const legend = el("span.keys");
  const bar = el(
    "div.bar.omni-expert",
    el("label.field.inline", el("span", "Smoothing"), slider, shown),
    choice("every", "All targets", "Every target that this drafter guesses for"),
    onlyLine,
    el("span.grow"),
    clickable("toggle", "Reset zoom", resetZoom, {
      title: "Show all requests again; a double click on a chart does the same for it",
    }),
  );
  const wanted = () => load("charts", null) ?? expert(); // whoever has opened or closed them finds them so again
  const others = el("div.charts");
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
  const grid = el("div", { hidden: true }, more),
    refused = el("p.alert", { role: "alert", hidden: true });
  let since = 0;
  host.append(refused, grid);
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
      if (s.note) since = Date.now();
      if (s.note || Date.now() - since > NOTED) say(refused, s.note);
      onlyLine.hidden = s.domains.length < 2 && !page.only;
      onlyLine.lastChild.textContent = `Only the line “${s.line}”`;
      grid.hidden = !s.charts.length;
      showAnswers(s.answers);
      const colour = i => ({ style: `background:${s.palette[i % s.palette.length]}` }),
        kinds = Object.keys(MARKS).filter(kind => kind === "swap" || s.kinds.includes(kind));
      fill(
        legend,
        s.targets.length > 1 && s.targets.map((name, i) => el("span", el("i", colour(i)), name)),
        kinds.map(kind => el("span", el("i", { class: `mark ${kind}` }), MARKS[kind])),
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
        box.parentElement.classList.toggle("blank", item.latest === null);
        box.dataset.empty =
          EMPTY[item.key] ??
          (s.requests
            ? "Not measured for these requests."
            : "No requests: teach it a topic, or write in the Chat tab.");
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
  const entry = ({ domain, version, requests_seen: seen, in_memory: open }) => {
    const title = open ? "Its trainer is open" : "Its trainer is closed; it comes back with the next request";
    const facts = [
      version ? `v${version}` : "base drafter",
      plural(seen, "request"),
      open ? "in memory" : "on disk",
    ];
    const choose = () => {
      page.line = domain;
      again();
    };
    return clickable("", [el("b", domain), el("span.small", { title }, joined(facts))], choose, {
      role: "radio",
      "aria-checked": String(domain === s.line),
    });
  };
  list.replaceChildren(
    el("h3", "Topic memory"),
    el(
      "p.small",
      "Each topic may have a memory (an adapter line) of its own. Choose one to look at; the Chat tab chooses which one guesses.",
    ),
    el("div.pick", { role: "radiogroup", "aria-label": "Topic memory to look at" }, s.lines.map(entry)),
  );
};

// ── versions ────────────────────────────────────────────────────────────────────────────────────────────────
let shelf = null;
const none = "There is no version. The trainer publishes the first one after a few answers.";
widgets.versions = host => {
  shelf = host;
  host.append(el("h3", "Adapter versions"), el("p.small", none));
};
const judged = ({ acceptance_before: before, acceptance_after: after, requests }) => {
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
const GONE = "Only the newest versions keep their files, and the last one that was found better";
const ROLLED_BACK = "It guessed worse than the last version that was found better, and was rolled back";
const versionRow = one => {
  const { version, effect } = one,
    press = (face, event, title, label) => {
      const act = () => {
        page.version = version;
        page.trigger(event);
      };
      return clickable("link", face, act, { title, "aria-label": label });
    };
  const back = version ? `Roll back to version ${version}` : "Roll back to the base drafter",
    use = !one.live && press("Use", "rollback", "Let this version draft", back),
    zip =
      version > 0 &&
      press("↓ zip", "export", "Download as a zip in PEFT's format", `Export version ${version}`);
  const facts = version
    ? [
        when(one.created_at),
        plural(one.steps, "step"),
        one.loss != null && `loss ${one.loss.toFixed(3)}`,
        one.parent != null && `from v${one.parent}`,
      ]
    : ["the drafter without any adapter"];
  return el(
    "tr",
    { title: joined(facts) },
    el(
      "th",
      { scope: "row" },
      version ? `v${version}` : "base",
      one.live && [" ", el("span.badge.good", { title: "This version drafts now" }, "live")],
      effect.rolled_back && [" ", el("span.badge.bad", { title: ROLLED_BACK }, "rolled back")],
    ),
    td(version ? format(one.requests_seen, "count") : "", true),
    td(version ? judged(effect) : ""),
    td(
      version && !one.stored ? el("span.soft", { title: GONE }, "files deleted") : el("span.twice", use, zip),
    ),
  );
};
const versions = s => {
  if (!shelf) return;
  const all = s.versions.length ? [...s.versions, { version: 0, live: s.live === 0, effect: {} }] : [];
  const heads = [
    th("version"),
    th("seen", "Requests that the topic memory had seen", true),
    th(
      "accepted",
      "Share of the tokens whose guess is accepted: under the last version that was found better → under this one, on answers neither had learned from",
    ),
    el("td"),
  ];
  shelf.replaceChildren(
    el("h3", s.line === "default" ? "Adapter versions" : `Adapter versions · ${s.line}`),
    all.length ? el("div.rolls", table(heads, all.map(versionRow))) : el("p.small", none),
    el(
      "p.small",
      `“zip” downloads a version in the format of the PEFT library.${visitor.guest ? "" : " Below you can import one that was trained for the same drafter."}`,
    ),
  );
};
