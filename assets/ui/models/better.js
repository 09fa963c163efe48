// The line below the head about a better target: how far it is, the press that changes over, and whether the chosen one is too slow here.
import { clickable, el, makeMeter } from "../shared/dom.js";
import { load, save } from "../shared/storage.js";
import { widgets } from "../shared/widgets.js";

const mb = bytes => Math.round(bytes / 1e6).toLocaleString("en");

const SAYS = {
  fetching: value =>
    `${value.title}, a better target, is being fetched: ${mb(value.done)} of ${mb(value.size)} MB${value.source ? ` from ${value.source}` : ""}.`,
  compiling: value => `${value.title} is here; its machine code is being compiled, about a minute, once.`,
  ready: value => `${value.title} is ready. Better answers, slow enough to watch.`,
  stopped: value => `${value.title} was stopped at ${mb(value.done)} of ${mb(value.size)} MB.`,
  failed: value => value.error,
  changed: value => `Switched to ${value.title}, for new pages, Compare and the endpoint, too.`,
  slow: value =>
    `${value.slow_title} writes ${value.pace} tokens a second here. ${value.title} is smaller and faster.`,
};
const PRESS = {
  fetching: ["Stop", "stop"],
  ready: ["Switch to it", "use"],
  stopped: ["Go on", "again"],
  failed: ["Try again", "again"],
  slow: ["Use it", "use"],
};

widgets.better = (host, { trigger }) => {
  const words = el("span.words", { role: "status" });
  const meter = makeMeter("Fetching a better target", "span");
  const press = clickable("toggle", "");
  const hide = clickable("link", "Hide", null, { "aria-label": "Hide this line" });
  let event = "",
    hidden = "",
    told = ""; // to which target it was said to have changed, once in a browser
  press.addEventListener("click", () => trigger(event));
  hide.addEventListener("click", () => {
    hidden = host.dataset.stage;
    host.hidden = true;
  });
  host.append(words, meter.node, press, hide);
  host.hidden = true;
  return {
    update: given => {
      const value = JSON.parse(given || "{}"),
        say = SAYS[value.stage];
      host.dataset.stage = value.stage ?? "none";
      if (value.stage === "changed" && load("changed", "") !== value.name)
        save("changed", (told = value.name));
      host.hidden = !say || hidden === value.stage || (value.stage === "changed" && told !== value.name);
      if (!say) return;
      words.textContent = say(value);
      meter.node.hidden = value.stage !== "fetching";
      meter.set(value.size ? value.done / value.size : 0);
      press.hidden = !PRESS[value.stage];
      [press.textContent, event] = PRESS[value.stage] ?? ["", ""];
    },
  };
};
