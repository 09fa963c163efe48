// The one curve: tokens per step of the big model on a topic's probe prompts, over the examples that the drafter has learned from.
import { drawing, el, fill, hint, svg } from "../shared/dom.js";
import { select, whenResized } from "../shared/fields.js";
import { format, plural } from "../shared/format.js";
import { widgets } from "../shared/widgets.js";

export const hero = { wanted: "" };
const HELP = s =>
  `Tokens per step of the big model, 1 without guessing. Measured on ${plural(s.prompts, "prompt")} of this topic that nobody plays: the big model's answers were recorded once, and the fresh drafter and each later version that drafted in a quiet moment guess through them, ${s.draft_length} guesses a step, with the same n-grams (several guesses that make one word). So neither settings nor the machine's speed move this curve, only what was learned. Other prompts of the topic would give other figures: what chance alone would make in 19 of 20 cases is called no difference.`;
const BEYOND = 2.45; // standard errors from which on a change is one: of seven prompts, chance makes less in 19 of 20 cases
const LETTER = 7; // pixels, at the size of a phone's labels
const two = x => x.toFixed(x >= 10 ? 1 : 2);
const NUMBERS = "no one two three four five six seven eight nine ten".split(" "),
  word = n => NUMBERS[n] ?? String(n);
// What was measured, in a word: nothing of it is the visitor's own answers.
const measured = s =>
  `${word(s.prompts)} fixed prompt${s.prompts === 1 ? "" : "s"}, no memory, always ${word(s.draft_length)} guesses`;

const picture = (s, width) => {
  const points = s.points.filter(one => one.steps != null),
    fresh = s.fresh?.steps ?? null;
  const height = width > 460 ? 210 : 150,
    left = 26,
    right = matchMedia("(max-width: 800px)").matches ? 96 : 78, // room for a name behind the curve
    top = 18,
    bottom = 22;
  const most = Math.max(4, ...points.map(one => one.examples), ...s.marks.map(one => one.x));
  const now = newest(s),
    spread = fresh != null && now?.version && now.steps != null ? BEYOND * (now.error ?? 0) * fresh : 0;
  const values = [1, fresh ?? 1, ...points.map(one => one.steps), (now?.steps ?? 1) + spread],
    high = Math.max(1.5, ...values) * 1.08,
    low = 0.9;
  const x = n => left + (n / most) * (width - left - right),
    y = v => height - bottom - ((v - low) / (high - low)) * (height - top - bottom);
  const last = points.at(-1);
  const label = `Tokens per step on ${s.label}: ${fresh == null ? "the fresh drafter is not measured" : `fresh ${two(fresh)}`}${last ? `, after ${plural(last.examples, "example")} ${two(last.steps)}` : ""}; 1 without guessing`;
  const { node, write, line, point, path } = drawing(width, height, "curve", label);
  const across = (v, cls) => line(left, y(v), width - right, y(v), cls);
  for (let v = 1; v <= high; v += high > 5 ? 2 : high > 2.5 ? 1 : 0.5) {
    if (v > 1) across(v, "grid");
    write(String(v), left - 7, y(v) + 4, "tick", "end");
  }
  across(1, "plain");
  write("1 = no guessing", left + 3, y(1) - 4, "tick");
  const half = Math.round(most / 2),
    ends = `${most} examples`,
    room = x(most) - LETTER * (ends.length + 2) - x(half) - (LETTER * String(half).length) / 2;
  write("0", x(0), height - 6, "tick");
  if (room >= 0) write(String(half), x(half), height - 6, "tick", "middle");
  write(ends, x(most), height - 6, "tick", "end");
  for (const { kind, label, x: place } of s.marks) {
    const at = x(place),
      d = `M ${at - 4} ${height - bottom + 1} l 8 0 l -4 -7 z`;
    if (kind === "swap") node.append(svg("path", { d, class: "swap" }, ...hint(`${label} drafts now`)));
    else line(at, top - 4, at, height - bottom, `mark ${kind}`, label);
    if (kind === "rollback") write("↩", at, top - 6, "mark rollback", "middle");
  }
  let until = Infinity; // the newest topic is named, and those before it whose names do not run into the one behind
  for (const mark of s.marks.filter(one => one.kind === "topic").reverse()) {
    const long = LETTER * mark.label.length,
      from = Math.min(Math.max(x(mark.x) - long / 2, 2), width - right - long);
    if (from + long > until) continue;
    write(mark.label, from, top - 7, "mark topic");
    until = from - LETTER;
  }
  if (fresh != null) {
    across(fresh, "fresh");
    write(`fresh ${two(fresh)}`, width - right + 8, y(fresh) + 4, "freshname");
  }
  if (!last) return node;
  const all = points.map(one => [x(one.examples), y(one.steps)]);
  path(fresh == null ? all : [[x(0), y(fresh)], ...all], "learned");
  if (spread)
    line(
      x(now.examples),
      y(now.steps + spread),
      x(now.examples),
      y(Math.max(1, now.steps - spread)),
      "spread",
      `v${now.version}: ${two(now.steps)} ± ${two(spread)}, which 19 of 20 cases are within; where this reaches the dashed line, these prompts tell no difference`,
    );
  points.forEach((one, place) =>
    point(
      ...all[place],
      one === last ? 4 : 2,
      one.rolled_back ? "gone" : "learned",
      `v${one.version}: ${two(one.steps)} tokens per step after ${plural(one.examples, "example")}${one.rolled_back ? ", taken back" : ""}`,
    ),
  );
  const clear =
    fresh != null && Math.abs(y(last.steps) - y(fresh)) < 13
      ? y(fresh) + (last.steps >= fresh ? -11 : 17)
      : y(last.steps) + 4;
  const name = s.today?.version === last.version ? "today" : `v${last.version}`;
  write(`${name} ${two(last.steps)}`, width - right + 8, clear, "todayname");
  return node;
};
const newest = s => s.today ?? s.points.filter(one => !one.rolled_back).at(-1); // what drafts now, or the last version measured before it
// What the prompts tell of a change: "good", "bad" or "" (nothing that may be coloured), and the words.
const against = (now, fresh, prompts) => {
  const change = 100 * (now.steps / fresh.steps - 1),
    error = now.error == null ? null : 100 * now.error,
    exact = size => size.toFixed(error != null && error < 2 ? 1 : 0),
    size = exact(Math.abs(change)),
    signed = `${+size ? (change > 0 ? "+" : "−") : ""}${size}`;
  if (error == null) return ["", `${signed}\u00a0%, error not known`];
  const figure = `\u00a0±\u00a0${exact(error)}\u00a0%`;
  if (Math.abs(change) > BEYOND * error)
    return change > 0 ? ["good", `▲\u00a0${size}${figure}`] : ["bad", `▼\u00a0${size}${figure}`];
  return error
    ? ["", `no difference that ${plural(prompts, "prompt")} can tell (${signed}${figure})`]
    : ["", `no difference on any of ${plural(prompts, "prompt")}`];
};
const sentence = s => {
  const now = newest(s),
    fresh = s.fresh;
  if (!now?.version || now.steps == null)
    return [
      el("b", fresh ? two(fresh.steps) : "…"),
      fresh
        ? ` tokens per step of the big model with the fresh small model, which guesses now${s.points.length && s.today ? ": the versions since were taken back" : ""}.`
        : " The app measures the fresh small model on these prompts while no request is running.",
    ];
  const parts = [el("b", two(now.steps)), " tokens per step of the big model"];
  if (fresh?.steps == null) return parts;
  const [told, words] = against(now, fresh, s.prompts),
    about = s.today ? "The version that drafts now" : `Version ${now.version}, the newest that is measured,`,
    title = `${about} against the fresh drafter, on the same recorded answers of this topic; ± is the standard error over its prompts`;
  return [
    ...parts,
    `, ${two(fresh.steps)} when fresh${told ? " " : ": "}`,
    el("span", { class: `gap ${told}`, title }, words),
  ];
};

const KEYS = { swap: "▲ drafts now", rollback: "↩ taken back", topic: "┆ other topic" };
const AGREEMENT =
  "Agreement: mean over all answer positions of Σ min(p, q) at temperature 1; same first choice: share of positions where both find the same token most probable";
// What stands below the curve: its marks, and for experts how far the two models agree.
const below = (s, now) => {
  const change = key => `${format(s.fresh?.[key], "percent")} → ${format(now?.[key], "percent")}`;
  return [
    el(
      "p.small.legendline",
      s.measuring && el("span", "measuring the newest version…"),
      Object.keys(KEYS)
        .filter(kind => s.marks.some(one => one.kind === kind))
        .map(kind => el("span", { class: `key ${kind}` }, KEYS[kind])),
    ),
    el(
      "p.small.omni-expert",
      { title: AGREEMENT },
      `agreement ${change("agreement")} · same first choice ${change("same_first")}`,
    ),
  ];
};

// Why there is no curve.
const why = s => {
  if (!s.learns) return "Learning is switched off, so there is no curve.";
  if (!s.replays) return "On ZeroGPU the app measures nothing between answers, so there is no curve.";
  if (s.taught) return "The app measures this topic while no request is running, and draws the curve then.";
  return s.topics.length
    ? "The newest question belongs to none of the topics that it was taught; choose one of them to see how the small model guesses on its fixed prompts."
    : "Ask something or teach it a topic: this curve shows how many tokens one step of the big model brings, before and after.";
};

widgets.hero = (host, { trigger }) => {
  let state = null,
    pick = null,
    drawn = "";
  const draw = () => {
    const s = state;
    if (!s) return;
    const known = s.taught && (Boolean(s.fresh) || s.points.length > 0);
    const head = el(
      "h3",
      { title: known ? HELP(s) : null },
      s.taught ? `The small model on “${s.label}”` : "The small model on fixed prompts",
    );
    const places = JSON.stringify([s.topics, s.names, s.chosen]);
    if (places !== drawn)
      pick =
        s.topics.length > 1 || s.chosen
          ? select(
              "Topic of the curve",
              [["", "newest topic"], ...s.topics.map(name => [name, s.names[name] ?? name])],
              s.chosen,
              name => {
                hero.wanted = name;
                trigger("look");
              },
            )
          : null;
    drawn = places;
    const held = pick && pick.contains(document.activeElement); // the picker lives on, for somebody may be choosing in it
    const now = newest(s);
    const words = known ? sentence(s) : why(s);
    host.classList.toggle("blank", !known && s.learns && s.replays && !s.taught);
    const box = el("div.box");
    fill(
      host,
      el("div.line", head, pick),
      known && el("p.small", { title: HELP(s) }, `On ${measured(s)}.`),
      el("p", { class: known ? "now" : "small" }, words),
      known && [box, ...below(s, now)],
    );
    if (held) (pick.querySelector("select") ?? pick).focus();
    if (known && host.clientWidth) box.append(picture(s, Math.max(240, box.clientWidth)));
  };
  whenResized(host, draw);
  return {
    update: value => {
      state = JSON.parse(value);
      host.dataset.topic = state.topic;
      draw();
    },
  };
};
