// A run of a task as a film: each row fills with its coloured tokens by the recorded times. It also plays in one HTML file without a server, made
// of this text, dom.js and format.js (`filmPage`), so it needs nothing else of the page.
import { calm, clickable, el, fill } from "../shared/dom.js";
import { format, joined, plural } from "../shared/format.js";
import { saveFile } from "../shared/save.js";

const FRAME = 60, // milliseconds
  LONGEST = 30_000; // of a film: a longer run is played faster, and says so

// Tokens a step with nothing learned as a hollow bar, and of the answer as a filled one; `--most` of the rows is the longest.
export const paceBars = ({ steps, nothing_learned: without }) =>
  el(
    "span.pace-bars",
    { "aria-hidden": "true" },
    without != null && el("i.hollow", { style: `--pace: ${without}` }),
    el("i.filled", { style: `--pace: ${steps}` }),
  );
export const mostSteps = answers =>
  Math.max(1, ...answers.flatMap(one => [one.steps, one.nothing_learned ?? 0]));
// Of answers, each {tokens, steps: tokens a step, nothing_learned}: the steps of the big model that were saved.
export const savedSteps = answers => {
  const sum = of => Math.round(answers.reduce((all, one) => all + of(one), 0)),
    taken = one => one.tokens / one.steps,
    saved = sum(one => one.tokens - taken(one)),
    learned = sum(one => (one.nothing_learned ? one.tokens / one.nothing_learned - taken(one) : 0));
  return saved > 0
    ? [
        el("b", plural(saved, "step")),
        ` saved so far${learned > 0 ? `, ${learned} of them by what was learned` : ""}`,
      ]
    : [];
};

// `run`: {task, title, drafter, date, machine, sources, answers}, see `lab recorded-run`. `legend`: of the page. `more`: further buttons.
export const makeFilm = (run, legend, more = []) => {
  const { answers, sources } = run,
    date = new Date(run.date).toLocaleDateString("en-GB", { dateStyle: "long" });
  const rows = answers.map(one => {
    const box = el("span.toks.line"),
      facts = el("span.facts"),
      node = el(
        "li",
        { hidden: true },
        el("b.no", String(one.number)),
        el("span.given.small", one.input),
        facts,
        box,
      );
    const spans = one.rounds.map(([, ...tokens]) =>
      tokens.flatMap((text, at) =>
        at % 2 ? [] : [el("span", { class: `tok s-${sources[tokens[at + 1]]}` }, text)],
      ),
    );
    return { one, node, box, facts, spans, drawn: 0 };
  });
  const clock = rows.flatMap((row, at) =>
    row.one.rounds.map(([time], round) => ({ row, at, round, time: time / 1000 })),
  );
  const seconds = clock.reduce((sum, one) => sum + one.time, 0),
    pace = Math.max(1, Math.ceil(seconds / LONGEST)),
    total = el("p.counter", { role: "status" }),
    again = clickable("toggle", "▶ Play again", () => play());
  const used = new Set(
    answers.flatMap(one => one.rounds.flatMap(round => round.filter((_, at) => at > 0 && at % 2 === 0))),
  );
  const key = legend
    .filter(one => used.has(sources.indexOf(one.key)))
    .map(({ key, title, help }) =>
      el("span", { class: `s-${key}`, title: help }, el("i.swatch", { "aria-hidden": "true" }), title),
    );
  let at = 0,
    over = 0,
    timer = 0;
  const draw = until => {
    for (; at < until; at++) {
      const { row, round } = clock[at],
        { one } = row;
      row.node.hidden = false;
      row.node.classList.toggle("live", round < one.rounds.length - 1);
      row.box.append(...row.spans[round]);
      if (round === one.rounds.length - 1)
        fill(
          row.facts,
          el("span.pace", el("b", format(one.steps, "number")), " tokens a step"),
          paceBars(one),
        );
    }
    const done = rows.filter(row => row.facts.childElementCount);
    fill(total, savedSteps(done.map(row => row.one)));
  };
  const tick = began => {
    const now = (performance.now() - began) * pace;
    let until = at;
    while (until < clock.length && over + clock[until].time <= now) over += clock[until++].time;
    if (until > at) draw(until);
    again.hidden = at < clock.length;
    if (at < clock.length && node.isConnected) timer = setTimeout(tick, FRAME, began);
  };
  const play = () => {
    clearTimeout(timer);
    at = over = 0;
    for (const row of rows) {
      row.node.hidden = true;
      fill(row.box);
      fill(row.facts);
    }
    if (calm()) draw(clock.length);
    else timer = setTimeout(tick, FRAME, performance.now());
  };
  const where = joined([run.machine && `on ${run.machine}`, `on ${date}`], ", "),
    speed =
      pace > 1
        ? ` It took ${format(seconds / 1000, "seconds")} of writing and plays ${pace} times as fast.`
        : "";
  const node = el(
    "section.film",
    { "aria-label": "A recorded run" },
    el(
      "p.recording",
      el("b", "A recording. "),
      `${run.title} answered ${plural(answers.length, "input")} of the task “${run.task}” ${where}, with ${run.drafter}; nothing is computed now.${speed}`,
    ),
    el(
      "ol.task-rows",
      { style: `--most: ${mostSteps(answers)}` },
      rows.map(row => row.node),
    ),
    el("div.small.colour-key", key),
    el("p.small", "Hollow bar: tokens a step with nothing learned. Filled bar: as it was."),
    total,
    el("div.task-acts", again, more),
  );
  play();
  return node;
};

// An answer of a run that was watched on this page, and the run, of its rows and their recorded rounds (`roundsOf`).
export const asAnswer = ({
  number,
  input,
  tokens,
  tokens_per_round: steps,
  nothing_learned_tokens_per_round: nothing_learned,
}) => ({ number, input, tokens, steps, nothing_learned });
export const filmOf = (about, rows, sources) => ({
  ...about,
  sources,
  answers: rows.map(({ row, rounds }) => ({
    ...asAnswer(row),
    rounds: rounds.map(({ times, tokens }) => [
      (times ?? [1e5]).reduce((sum, one) => sum + one, 0),
      ...tokens.flatMap(({ t, s }) => [t, sources.indexOf(s)]),
    ]),
  })),
});

// The film as one HTML file: the two modules it needs and this one as one script, and those of the page's rules that it uses.
const LOOKS =
  /^(:root|\.dark)\b|\.(tok|film|task-rows|task-acts|pace|pace-bars|swatch|colour-key|counter|recording|toggle|link)\b|^\.s-/;
const alone = text => text.replace(/^import[^;]*;\n/gm, "").replace(/^export /gm, "");
export const filmPage = (run, legend, modules, rules) => {
  const data = JSON.stringify([run, legend]).replaceAll("<", "\\u003c"),
    css = rules.filter(rule => LOOKS.test(rule)).join("\n");
  const script = `${modules.map(alone).join("\n")}
document.documentElement.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
document.body.append(makeFilm(...${data}));`;
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>OmniDemo: a recorded run</title>
<style>body { margin: 0 auto; max-width: 1100px; padding: 16px; font: 15px/1.5 system-ui, sans-serif; background: var(--o-bg); color: var(--o-ink); }
${css}</style>
<body><h1>OmniDemo</h1>
<script type="module">${script.replaceAll("</script", "<\\/script")}</script></body></html>
`;
};
// The recorded run that the app has; null where it has none.
export const recordedRun = async () => {
  const found = await fetch(new URL("../recorded.json", import.meta.url)).catch(() => null);
  return found?.ok ? found.json() : null;
};
const MODULES = ["../shared/format.js", "../shared/dom.js", "./film.js"];
export const saver = (run, legend, title = null) =>
  clickable("link", "Save as one HTML file", () => saveFilm(run(), legend), { title });
const saveFilm = async (run, legend) => {
  const modules = await Promise.all(
      MODULES.map(async name => (await fetch(new URL(name, import.meta.url))).text()),
    ),
    rules = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules].map(rule => rule.cssText));
  saveFile(
    filmPage(run, legend, modules, rules),
    "text/html",
    `omnidemo-${run.task.replace(/\W+/g, "-")}-${run.date.slice(0, 10)}.html`,
  );
};
