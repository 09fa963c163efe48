// The settings of a pair: grouped, changed one at a time, refused with a sentence. What they are comes from the server (ui/tabs/settings_panel.py).
import { clickable, el, fill, say } from "../shared/dom.js";
import { select, tick } from "../shared/fields.js";
import { labels } from "../shared/labels.js";
import { widgets } from "../shared/widgets.js";

let pending = {};
export const controls = {
  take: () => {
    const changes = pending;
    pending = {};
    return changes;
  },
};

const kinds = {
  choice: (item, change) => select(item.label, item.options, item.default, change),
  line: (item, change) => select(item.label, [], "", change),
  switch: (item, change) => tick(item.label, false, change),
  number: (item, change) => {
    const box = el("input", {
      type: "number",
      "aria-label": item.label,
      min: item.min,
      max: item.max,
      step: item.step,
      inputmode: "decimal",
      onchange: () => {
        if (box.value !== "") change(+box.value);
        else box.value = box.defaultValue;
      },
    }); // an emptied box takes its value back
    return box;
  },
  slider: (item, change) =>
    el("input", {
      type: "range",
      "aria-label": item.label,
      min: item.min,
      max: item.max,
      step: item.step,
      onchange: event => change(+event.target.value),
    }),
};
const shownAs = (item, value) =>
  item.kind === "switch"
    ? value
      ? "on"
      : "off"
    : (item.options?.find(([key]) => key === value)?.[1] ?? String(value));

// One setting: {item, root, set(value, lines)}.
const row = (item, send) => {
  const change = value => {
    if (item.kind === "slider") number.textContent = value;
    send(item.name, value);
  };
  const control = kinds[item.kind](item, change),
    number = el("output");
  let usual = item.default; // of this pair: a drafter may have one of its own
  const back = clickable("link back", "↺", () => send(item.name, usual));
  const root = el(
    "div",
    { class: `setting ${item.kind}`, "data-name": item.name },
    el(
      "label",
      el("span.name", item.label),
      el("span.what", control, item.kind === "slider" ? number : null, back),
    ),
    el("p.small", item.help),
  );
  if (item.kind === "slider")
    control.addEventListener("input", () => {
      number.textContent = control.value;
    });
  return {
    item,
    root,
    control,
    set: (value, lines, given = item.default) => {
      usual = given;
      back.title = `Back to the default: ${shownAs(item, usual)}`;
      back.ariaLabel = `${item.label}: back to the default, ${shownAs(item, usual)}`;
      if (item.kind === "line") {
        const titles = { auto: "automatic, by the prompt", default: "default, one for everything" },
          names = [...new Set(["auto", ...lines, value])];
        fill(
          control,
          names.map(name => el("option", { value: name }, titles[name] ?? name)),
        );
      }
      if (item.kind === "switch") control.checked = Boolean(value);
      else control.value = value;
      if (item.kind === "number") control.defaultValue = value;
      number.textContent = value;
      back.hidden = value === usual;
    },
  };
};

// `groups`: the ones to show; the first stands open, the others fold. `lead`: a sentence above.
const panel =
  (title, groups, lead) =>
  (host, { trigger }) => {
    const alert = el("p.alert", { role: "alert", hidden: true });
    const send = (name, value) => {
      pending[name] = value;
      trigger("adjust");
    };
    const rows = [];
    const boxes = groups.map(group => {
      const own = group.items.map(item => row(item, send));
      rows.push(...own);
      const body = el("div.settings", ...own.map(one => one.root));
      return group.title
        ? el("details", el("summary", el("b", group.title), el("span.small", group.help)), body)
        : body;
    });
    host.append(el("h3", title), ...(lead ? [el("p.small", lead)] : []), alert, ...boxes);
    host.classList.add("steering");
    return {
      update: value => {
        const s = JSON.parse(value);
        say(alert, s.error);
        for (const one of rows) {
          if (
            one.control !== document.activeElement ||
            s.error ||
            one.control.tagName === "SELECT" ||
            one.control.type === "checkbox"
          )
            one.set(s.values[one.item.name], s.lines, s.defaults[one.item.name]);
          const when = one.item.when;
          one.root.hidden = Boolean(when) && !when[1].includes(s.values[when[0]]);
        }
      },
    };
  };

const all = labels.controls,
  named = key => all.find(group => group.key === key);
widgets.controls = panel(
  "Settings",
  all,
  "They hold for everybody and every pair, from the next answer or update on.",
);
// Under Advanced in the chat: only how far to guess ahead.
const policy = named("first").items.find(item => item.name === "draft_policy");
widgets.ahead = panel(
  "Guessing ahead",
  [{ title: "", items: [policy, ...named("ahead").items] }],
  "Holds for everybody and every pair.",
);
