// Teaching a topic: sample prompts of it, one after another, in turns so that nobody waits for all of them. Two widgets, one machinery:
// the small one of the chat ends after some seconds, the large one of the Adaptation tab after a number of examples.
import { learned } from "./learned.js";
import { outcomeOf } from "../answer/outcome.js";
import { lesson } from "../chat/lesson.js";
import { clickable, el, heading, makeMeter, say } from "../shared/dom.js";
import { field, select, topicTitle } from "../shared/fields.js";
import { joined, plural, random } from "../shared/format.js";
import { NO_ANSWER } from "../shared/server.js";
import { session } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

const SECONDS = 30,
  MOST = 200,
  TICK = 500;
export const players = {};

const make = (name, draw) => {
  const play = { run: "", busy: false, stopping: false, topic: "", count: 40, last: null, draw: () => {} };
  players[name] = play;
  play.request = values => [session(), play.run, ...values.slice(2, 4), play.topic, play.count, values[6]];
  play.current = () => [session(), play.run];
  play.start = () => {
    Object.assign(play, {
      run: random(),
      busy: true,
      stopping: false,
      last: { topic: play.topic, count: play.count, done: 0, state: "playing" },
    });
    play.draw();
    play.trigger("play");
  };
  play.stop = () => {
    if (!play.busy || play.stopping) return;
    play.stopping = true;
    play.draw();
    play.trigger("halt");
  };
  play.settled = () => {
    if (play.busy && play.last?.state === "more") {
      play.last = { ...play.last, state: "playing" };
      return play.trigger("play");
    } // the next turn, after whoever waits
    if (play.busy && play.last?.state === "playing")
      play.last = { ...play.last, state: "error", error: `${NO_ANSWER} Start it again.` };
    play.busy = false;
    play.draw();
  };
  widgets[name] = (host, { trigger }) => {
    play.trigger = trigger;
    const configure = draw(host, play);
    play.draw();
    return {
      update: value => {
        const s = JSON.parse(value);
        if (s.topics) {
          configure(s);
          return play.draw();
        }
        if (s.run !== play.run) return; // an older run's last words
        play.last = s;
        if (s.state !== "playing" && s.state !== "more") play.busy = false;
        play.draw();
      },
    };
  };
};
const FIRST = "code"; // what the drafter knows least of when it comes, of what it learns soon
const topics = (play, list) => {
  play.topic ||= list.includes(FIRST) ? FIRST : (list[0] ?? "");
  return select(
    "Topic",
    list.map(name => [name, topicTitle(name)]),
    play.topic,
    name => {
      play.topic = name;
    },
  );
};

make("teach", (host, play) => {
  const picker = el("span"),
    go = clickable("primary", `▶ Teach it for ${SECONDS} s`),
    line = el("p.small"),
    voice = el("p.omni-offscreen", { role: "status" });
  host.append(el("h3", "Teach it a topic"), el("div.row", field("Topic", picker), go), line, voice);
  let until = 0,
    begun = null; // begun: the play that the main pane was told of
  const left = () => Math.max(0, Math.ceil((until - Date.now()) / 1000));
  go.addEventListener("click", () => {
    if (play.busy) return play.stop();
    play.count = MOST;
    until = Date.now() + 1000 * SECONDS;
    play.start();
    const clock = setInterval(() => {
      if (!play.busy) return clearInterval(clock);
      if (!left()) play.stop();
      play.draw();
    }, TICK);
  });
  play.draw = () => {
    const s = play.last;
    go.textContent = play.busy ? "■ Stop" : `▶ Teach it for ${SECONDS} s`;
    go.classList.toggle("halt", play.busy);
    go.classList.toggle("primary", !play.busy);
    go.disabled = play.busy && play.stopping;
    const unlearned = learned.why,
      taught = s ? plural(s.done, "example") : "";
    line.textContent = !s
      ? `Answers examples of one topic, while you watch.${unlearned ? ` ${unlearned}` : " It learns from them."}`
      : s.state === "error"
        ? s.error
        : play.busy
          ? `${taught} of ${topicTitle(s.topic)} · ${play.stopping ? "stopping" : `${left()} s left`}`
          : `${unlearned ? "Answered" : "Taught"} ${taught} of ${topicTitle(s.topic)}. ${unlearned || "It learns from them in the background; then ask about it again."}`;
    line.classList.toggle("alert", s?.state === "error");
    const told = !s ? "" : play.busy ? `Teaching ${topicTitle(s.topic)}` : line.textContent; // the seconds that pass are not read out
    if (voice.textContent !== told) voice.textContent = told;
    if (s && s.state !== "error") lesson(s, line.textContent, play.busy && !s.done && s !== begun);
    begun = play.busy && !s?.done ? s : begun;
  };
  return config => picker.replaceChildren(topics(play, config.topics));
});

make("play", (host, play) => {
  const topic = el("span"),
    number = el("output", String(play.count)),
    count = el("input", {
      type: "range",
      min: 5,
      max: MOST,
      value: play.count,
      "aria-label": "Number of examples",
      oninput: () => {
        play.count = +count.value;
        number.textContent = count.value;
      },
    });
  const start = clickable("primary", "▶ Teach it", play.start),
    stop = clickable("halt", "■ Stop", play.stop, { hidden: true });
  const meter = makeMeter("Examples taught"),
    lead = el("p.small");
  const line = el("p.small", { role: "status" }),
    prompt = el("b"),
    text = el("span"),
    facts = el("p.small");
  const pair = el("div.exchange", { hidden: true }, el("p.one", prompt), el("p.one.soft", text), facts),
    error = el("p.alert", { role: "alert", hidden: true });
  host.append(
    heading("Adaptation"),
    el(
      "div.entry",
      el("div.grow", el("h3", "Teach it a topic"), lead),
      field("Topic", topic),
      field("Examples", el("span.ranged", count, number)),
      start,
      stop,
    ),
    meter.node,
    line,
    pair,
    error,
  );
  play.draw = () => {
    const s = play.last,
      busy = play.busy;
    lead.textContent = `Examples of one topic, answered one after another. ${learned.why || "The small model learns from them, and they stand below one by one."}`;
    start.hidden = busy;
    stop.hidden = !busy;
    stop.disabled = Boolean(play.stopping && busy);
    meter.node.hidden = line.hidden = !s;
    if (!s) return;
    meter.set(s.count ? s.done / s.count : 0);
    const doing = s.done || s.state === "more" ? "teaching" : "waiting for the first answer on";
    const states = { stopped: "stopped", done: "done", error: "ended" };
    line.textContent = `${s.done} of ${s.count} · ${states[s.state] ?? (play.stopping && s.state === "playing" ? "stopping" : `${doing} ${topicTitle(s.topic)}`)}`;
    say(error, s.error);
    pair.hidden = !s.prompt;
    if (!s.prompt) return;
    prompt.textContent = s.prompt;
    text.textContent = s.text || "(an empty answer)";
    const drafter = s.version ? `Version ${s.version} of the small model.` : "The fresh small model.";
    facts.textContent = joined([outcomeOf({ figures: s.figures, end: s })?.join(""), drafter], " ");
  };
  return config => topic.replaceChildren(topics(play, config.topics));
});
