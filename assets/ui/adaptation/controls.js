// The settings that the page changes: one at a time, refused with a sentence. What they are comes from the server (ui/tabs/settings_panel.py).
import { clickable, el, say } from "../shared/dom.js";
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

// One setting: {item, root, set(value)}.
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
    set: (value, given = item.default) => {
      usual = given;
      back.title = `Back to the default: ${shownAs(item, usual)}`;
      back.ariaLabel = `${item.label}: back to the default, ${shownAs(item, usual)}`;
      if (item.kind === "switch") control.checked = Boolean(value);
      else control.value = value;
      if (item.kind === "number") control.defaultValue = value;
      number.textContent = value;
      back.hidden = value === usual;
    },
  };
};

// Under Advanced in the chat: how far to guess ahead. All other settings are the environment's.
widgets.ahead = (host, { trigger }) => {
  const alert = el("p.alert", { role: "alert", hidden: true });
  const send = (name, value) => {
    pending[name] = value;
    trigger("adjust");
  };
  const rows = labels.controls.map(item => row(item, send));
  const lead = el("p.small", "Applies to all users and models.");
  host.append(
    el("h3", "Guessing ahead"),
    lead,
    alert,
    el(
      "div.settings",
      rows.map(one => one.root),
    ),
  );
  return {
    update: value => {
      const s = JSON.parse(value);
      say(alert, s.error);
      for (const one of rows) {
        const { control, item, root } = one;
        if (control !== document.activeElement || s.error || control.tagName === "SELECT")
          one.set(s.values[item.name], s.defaults[item.name]);
        root.hidden = Boolean(item.when) && !item.when[1].includes(s.values[item.when[0]]);
      }
    },
  };
};
