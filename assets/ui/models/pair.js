// The loading line, its details, and the Expert switch.
import { chat } from "../chat/chat.js";
import { clickable, el, makeMeter } from "../shared/dom.js";
import { expert, onExpert, setExpert } from "../shared/expert.js";
import { capital, format, joined } from "../shared/format.js";
import { labels } from "../shared/labels.js";
import { news } from "../shared/server.js";
import { widgets } from "../shared/widgets.js";

let facts = null;
widgets.facts = host => {
  facts = host;
};
const million = n => `${(n / 1e6).toFixed(1)}\u00a0M`;
const size = n => (n >= 1e9 ? `${(n / 1e9).toFixed(1)}\u00a0B` : million(n));
const sentence = ({ target_parameters: big, drafter_parameters: small, target_title: name }) =>
  big && small
    ? `Ready. Small model: ${size(small)} parameters. Big model: ${/\d[BM]\b/.test(name) ? name : joined([name, size(big)], ", ")}`
    : "Ready";
const forms = { packed: "packed as in their file", bfloat16: "in bfloat16", float32: "in float32" };
const form = (info, role) =>
  `${forms[info[`${role}_form`]]} (${format(Math.max(1, Math.round(info[`${role}_form_bytes`] / 1e6)), "count")} MB)`;
const details = info =>
  joined(
    [
      info.target_title &&
        info.target_author &&
        `${info.target_title} is by ${info.target_author}${info.target_licence ? `, licence ${info.target_licence}` : ""}.`,
      info.target_parameters &&
        info.drafter_parameters &&
        `Target ${format(info.target_parameters, "count")} parameters, drafter ${format(info.drafter_parameters, "count")}.`,
      info.mapped &&
        info.target_tokens &&
        `${format(info.mapped, "count")} of the target's ${format(info.target_tokens, "count")} tokens are the drafter's too${info.ngram_share != null ? `; ${format(info.ngram_share, "percent")} can be reached through n-grams` : ""}.`,
      info.context && `Window ${format(info.context, "count")} tokens.`,
      info.device &&
        `Runs on ${info.device}${info.dtype ? ` in ${info.target_arithmetic ?? info.dtype}` : ""}.`,
      info.target_form &&
        `A pass of the target reads its weights ${form(info, "target")}${info.drafter_form ? `, one of the drafter ${form(info, "drafter")}` : ""}.`,
      info.target_arithmetic === "int8" &&
        "Runs in 8-bit integers (int8). With guessing the text is the same, bit for bit.",
    ],
    " ",
  );

// Looks again and again whether there is news of what the page shows, and whether the server is there, which nothing else says.
const PULSE = 2000;
const watchServer = (server, gone, hear) => {
  let missed = 0;
  const look = async () => {
    if (!document.hidden) {
      try {
        const changed = await news.look(server);
        missed = 0;
        if (changed.length) hear(changed);
      } catch {
        missed += 1;
      }
      gone(missed > 1);
    }
    setTimeout(look, PULSE);
  };
  setTimeout(look, PULSE);
};

widgets.pair = (host, { trigger, server }) => {
  const dot = el("i.dot", { "aria-hidden": "true" }),
    line = el("span.words", { role: "status" }),
    share = el("span.small", { "aria-hidden": "true" });
  const meter = makeMeter("Loading", "span");
  const retry = clickable("link", "Try again", () => trigger("retry"));
  const stop = clickable(
    "link",
    "Stop",
    () => {
      stop.disabled = true;
      stop.textContent = "Stopping…";
      trigger("stop");
    },
    { hidden: true, title: "What has come stays, and a later download goes on from there" },
  );
  let offered = false; // by the page itself, where another pair may be needed: then it goes again by itself
  const page = document.documentElement.dataset;
  const open = (on, byItself = false) => {
    page.details = on ? "on" : "off";
    offered = byItself && on;
    more.setAttribute("aria-expanded", String(on));
  };
  const about = { "aria-expanded": "false", "aria-controls": "omni-details" },
    more = clickable("toggle details", "Details", () => open(page.details !== "on"), about);
  const face = ["Expert", el("i", { "aria-hidden": "true" })],
    help = { role: "switch", title: "Methods, settings, and every figure and chart" },
    knob = clickable("expert", face, () => setExpert(!expert()), help);
  onExpert(on => knob.setAttribute("aria-checked", String(on)));
  host.append(el("span.state", dot, line, share, meter.node, retry, stop), more, knob);
  line.textContent = "Connecting…";
  let shown = null,
    gone = false;
  const draw = () => {
    const state = shown,
      stage = gone ? "gone" : state?.stage;
    const ready = stage === "ready",
      lost = ["failed", "absent", "gone"].includes(stage);
    host.dataset.state = ready ? "ready" : lost ? "failed" : "loading";
    retry.hidden = !lost || gone;
    stop.hidden = gone || !state?.stoppable;
    if (stop.hidden) {
      stop.disabled = false;
      stop.textContent = "Stop";
    }
    if (!state && !gone) return;
    retry.textContent = stage === "absent" ? "Load" : "Try again";
    const percent = Math.round(100 * (state?.fraction || 0)),
      title = state?.title ?? "";
    const says = {
      gone: () => "The server does not answer. It may have been stopped; the page goes on when it is back.",
      ready: () => sentence(state.info),
      failed: () => state.error,
      absent: () => state.detail || `${state.target} is not loaded.`,
    };
    line.textContent = says[stage]?.() ?? `${capital(title)}…`;
    share.textContent = stage === "downloading" ? `${percent} %` : ""; // beside the line, which is read out when it changes
    line.title = ready || lost ? "" : state.detail;
    meter.node.hidden = ready || lost;
    meter.set(percent / 100);
    if (facts) facts.textContent = ready ? details(state.info) : (state?.detail ?? "");
    chat.setPair(gone ? { ...state, stage: "gone" } : state);
  };
  watchServer(
    server,
    now => {
      if (now === gone) return;
      gone = now;
      draw();
      if (!gone) trigger("retry"); // another server may have to load the pair first
    },
    changed => trigger("news", { changed }),
  );
  return {
    update: value => {
      shown = JSON.parse(value);
      const wanting = ["failed", "absent"].includes(shown.stage);
      if (wanting && page.details !== "on") open(true, true); // where another pair is chosen
      if (offered && shown.stage === "ready") open(false);
      draw();
      for (const [id, help] of Object.entries(labels.help))
        document.getElementById(id)?.setAttribute("title", help);
    },
  };
};
