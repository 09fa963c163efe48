// Places: each tab has an address, so that a reload, a link and the Back button lead where they should, and so have an example and a stored
// answer; a way past everything to the message box; and what stands at the foot of the page.
import { examples } from "../chat/examples.js";
import { historyTab } from "../history/history.js";
import { copyButton } from "./copy.js";
import { el } from "./dom.js";
import { labels } from "./labels.js";
import { widgets } from "./widgets.js";

const TABS = ["chat", "same-task", "adaptation", "compare", "history"];
const button = name => document.getElementById(`omni-tab-${name}-button`);
const asked = () => {
  const name = location.hash.slice(1).replace(/^answer-.*/, "history");
  return TABS.includes(name) ? name : TABS[0];
};
const shown = () => TABS.find(name => button(name)?.getAttribute("aria-selected") === "true") ?? TABS[0];

export const goTo = name => {
  if (shown() !== name) button(name)?.click();
};
document.addEventListener("click", event => {
  const name = TABS.find(one => event.target.closest?.(`#omni-tab-${one}-button`));
  if (name && name !== asked()) history.pushState(null, "", `#${name}`);
});
export const linkTo = place => new URL(`#${place}`, location.href.split("#", 1)[0]).href;

// A press is lost where Gradio does not hear its tabs yet, as while the app starts: it is made again until the tab is there.
const AGAIN = 100,
  TIMES = 100; // milliseconds between two presses, and how many
const insist = times => {
  goTo(asked());
  if (times && shown() !== asked()) setTimeout(() => insist(times - 1), AGAIN);
};

// #example-even-or-odd asks that example in a chat of its own, once: a reload does not ask again. #answer-12 shows one answer of the history.
const follow = () => {
  const [, kind, name] = /^#(example|answer)-([a-z0-9-]+)$/.exec(location.hash) ?? [];
  if (kind === "answer") historyTab.alone(Number(name));
  insist(TIMES);
  if (kind === "example" && examples.ready()) {
    history.replaceState(null, "", "#chat");
    examples.open(name);
  }
};
export const followLink = follow;
window.addEventListener("popstate", follow);

const toMessage = event => {
  event.preventDefault();
  goTo("chat");
  document.getElementById("omni-message")?.focus();
};
widgets.brand = host => {
  host.append(
    el("a.skip", { href: "#omni-message", onclick: toMessage }, "Skip to the message box"),
    el("h1", labels.title),
  );
};

widgets.about = host => {
  const { paper, code } = labels.about,
    base = new URL("v1", document.baseURI).href;
  const link = (title, href) => el("a", { href, target: "_blank", rel: "noopener" }, title);
  const text = `from openai import OpenAI\nclient = OpenAI(base_url="${base}", api_key="none")`;
  host.append(
    el("span", "The method: ", link(paper.title, paper.href)),
    ...(code ? [link("Code", code)] : []),
    el(
      "details",
      el("summary", "Use it from a program"),
      el(
        "div.program",
        el(
          "p",
          "Any client of OpenAI's format talks to the same models at ",
          el("code", base),
          ". The README lists what it takes.",
        ),
        el("pre", { tabindex: 0, role: "group", "aria-label": "Code" }, text),
        copyButton(() => text),
      ),
    ),
  );
  follow(); // mounted last, when the tabs are there
};
