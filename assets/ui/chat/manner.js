// How the model writes: its own temperature, top-p, top-k, min-p and repetition penalty, and what the visitor made of them. A number that was
// changed holds until it is given back, or until another target is chosen; of the others nothing is sent, so the server takes the model's own.
import { clickable, el } from "../shared/dom.js";
import { labels } from "../shared/labels.js";
import { widgets } from "../shared/widgets.js";

let target = "",
  own = null,
  changed = {};

export const manner = {
  // What was changed of a target's numbers, by name.
  changed: of => (of === target ? changed : {}),
};

widgets.manner = host => {
  const giveBack = () => {
    changed = {};
    draw();
  };
  const said = el("p.small"),
    back = clickable("link", "The model's own again", giveBack, { hidden: true });
  const rows = labels.manner.map(({ name, label, help, step }) => {
    const onchange = () => {
      if (box.value === "" || +box.value === own[name]) delete changed[name];
      else changed[name] = +box.value; // an emptied field takes the model's own back
      draw();
    };
    const about = { type: "number", "aria-label": label, min: 0, step, inputmode: "decimal" },
      box = el("input", { ...about, disabled: true, onchange }),
      mark = el("span.small", { "aria-hidden": "true" }),
      named = el("label", el("span.name", label, mark), el("span.what", box));
    return { name, box, mark, root: el("div.setting.number", { title: help }, named) };
  });
  host.classList.add("steering");
  host.append(
    el("h3", "How it writes"),
    said,
    el(
      "div.settings",
      rows.map(one => one.root),
    ),
    back,
  );
  const draw = () => {
    back.hidden = !Object.keys(changed).length;
    for (const { name, box, mark } of rows) {
      box.disabled = !own;
      box.value = own ? (changed[name] ?? own[name]) : "";
      mark.textContent = name in changed ? `its own: ${own[name]}` : "";
    }
  };
  return {
    update: value => {
      const now = JSON.parse(value);
      if (now.target !== target) changed = {};
      target = now.target;
      own = now.own;
      said.textContent = own ? now.source : "Shown as soon as the model is ready.";
      draw();
    },
  };
};
