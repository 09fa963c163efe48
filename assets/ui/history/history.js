// The History tab: filters, the table of past requests, deletion with a second look.
import { formed, howFast, range } from "../answer/outcome.js";
import { replay } from "../replay/replay.js";
import { copyButton } from "../shared/copy.js";
import { clickable, el, fill, heading, say } from "../shared/dom.js";
import {
  field,
  makeQuestion,
  methodTitle,
  select,
  table,
  td,
  th,
  tick,
  topicTitle,
  when,
  whileVisible,
} from "../shared/fields.js";
import { capital, format, joined, plural } from "../shared/format.js";
import { linkTo } from "../shared/places.js";
import { visitor } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

const page = {
  filters: { pair: "", method: "", session: "", answer: null },
  chosen: new Set(),
  key: "",
  last: null,
};
export { page as historyTab };
page.asked = more => ({ asked: { ...page.filters, key: page.key, ...more } });

// One answer that a link names.
page.alone = answer => {
  Object.assign(page.filters, { pair: "", method: "", session: "", answer });
  page.key = "";
  page.chosen.clear();
  page.poll?.();
};

const title = method => methodTitle(method).replace(/^Recommended: /, "");
const KINDS = { chat: "chat", traffic: "taught", api: "program" };
const ENDINGS = {
  end: "ended by itself",
  stop: "ended at a stop string",
  length: "ended at the longest answer allowed",
  cancelled: "stopped",
  context: "ended with the model's window full",
};
// A row's figures: name, what it means, what is shown, a class, and what is said of the one shown.
const FIGURES = [
  [
    "tokens",
    "Tokens that the big model's answer has; those that the form of the answer left no choice about are forced",
    row => joined([format(row.tokens, "count"), row.forced > 0 && `${format(row.forced, "count")} forced`]),
    "",
    row => formed(row) || null,
  ],
  [
    "per step",
    "Tokens for one step of the big model (block efficiency, τ)",
    row => format(row.block_efficiency, "number"),
  ],
  [
    "guesses right",
    "Guesses that the big model accepted, over the whole answer (acceptance rate)",
    row => format(row.guesses_right, "percent"),
  ],
  [
    "speed",
    "Times the speed without guessing, measured while nobody waited",
    // as beside the answer: nothing where the passes tell nothing
    row =>
      howFast({ speedup: row.speedup, low: row.speedup_low, high: row.speedup_high }, row.block_efficiency)
        ?.value ?? "–",
    "",
    row =>
      row.speedup == null
        ? "Only the newest answers are measured, while no request is running"
        : `${range(row.speedup_low, row.speedup_high)} in several passes`,
  ],
  ["tok/s", "Target tokens per second", row => format(row.tokens_per_second, "number"), "omni-expert"],
  [
    "agreement",
    "How far small and big model agree on this answer, whatever the draft policy and temperature: mean of Σ min(p, q); comes a little later",
    row => format(row.agreement, "percent"),
    "omni-expert",
    row =>
      row.same_first == null
        ? "Measured later, while no request is running; not for answers that were not learned from"
        : `same first choice ${format(row.same_first, "percent")}`,
  ],
  [
    "adapter",
    "Adapter version that drafted, and its topic line",
    row =>
      joined([
        row.adapter_version ? `v${row.adapter_version}` : "base",
        row.domain !== "default" && row.domain,
      ]),
    "omni-expert",
  ],
];
// A task asks the same again and again: its rows differ by their inputs.
const gist = ({ kind, prompt }) => (kind === "traffic" ? prompt.split("\n\n").at(-1) : prompt);
const short = session => session.replace("~visitor-", "").slice(0, 6); // a visitor's of a public app
widgets.history = (host, { trigger }) => {
  const poll = () => trigger("poll", page.asked());
  const files = el(
    "div.omni-files",
    ["requests", "rounds"].map(csv =>
      clickable(csv === "rounds" ? "toggle omni-expert" : "toggle", `↓ ${capital(csv)} as CSV`, () =>
        trigger("export", page.asked({ csv })),
      ),
    ),
  );
  const notice = el("p.small"),
    warning = el("p.alert", { role: "alert", hidden: true }),
    said = el("p.small", { role: "status" });
  const filters = el("div.entry"),
    really = makeQuestion("Delete?", "Delete", "Keep");
  const acts = el("div.acts"),
    box = el("div.rolls.tall");
  const empty = el("div.nothing", { hidden: true }, el("h3", "No answer is stored"), el("p"));
  host.append(heading("History"), warning, filters, notice, acts, really.box, said, box, empty, files);

  const ask = (sentence, what) =>
    really.ask(sentence, () => {
      trigger("remove", page.asked({ remove: what }));
      page.chosen.clear();
    });
  const drawActs = () => {
    const n = page.chosen.size,
      s = page.last,
      picked = page.filters.session;
    const remove = (title, sentence, what, enabled = true) =>
      clickable("toggle", title, () => ask(sentence, what), { disabled: !enabled });
    fill(
      acts,
      remove(
        n ? `Delete ${plural(n, "selected request")}` : "Delete selected",
        `Delete ${plural(n, "request")} with ${n === 1 ? "its" : "their"} rounds? This can't be undone.`,
        { ids: [...page.chosen] },
        n > 0,
      ),
      s.everyone &&
        picked &&
        !["mine", s.mine].includes(picked) &&
        remove(
          `Delete session ${short(picked)}…`,
          `Delete all requests of session ${short(picked)}…? This can't be undone.`,
          { session: picked },
        ),
      remove(
        "Delete all of my session",
        "Delete everything this browser's session has stored? This can't be undone. Your chats stay in this browser until you delete them there.",
        { mine: true },
      ),
    );
  };
  const drawFilters = s => {
    const { pair, method, answer } = page.filters;
    const change = (name, value) => {
      page.filters[name] = value;
      page.key = "";
      page.chosen.clear();
      poll();
    };
    const picker = (title, name, options) =>
      field(
        title,
        select(title, options, page.filters[name], value => change(name, value)),
      );
    const others = s.everyone ? s.sessions.filter(one => one.id !== s.mine) : [];
    const sessions = [
      ...(s.everyone ? [["", "all sessions"]] : []),
      ["mine", "my session"],
      ...others.map(one => [one.id, `${short(one.id)}… · ${one.requests} · ${when(one.at)}`]),
    ];
    const pairs = [...new Set(pair ? [...s.pairs, pair] : s.pairs)];
    const methods = picker("Method", "method", [
      ["", "all methods"],
      ...s.methods.map(name => [name, title(name)]),
    ]);
    methods.classList.toggle("omni-expert", !method);
    fill(
      filters,
      picker("Pair", "pair", [["", "all pairs"], ...pairs.map(name => [name, name])]),
      methods,
      picker("Session", "session", sessions),
      clickable("toggle refresh", "↻ Refresh", () => {
        page.key = "";
        poll();
      }),
      answer &&
        clickable("toggle refresh", `Answer ${answer} alone ×`, () => {
          history.replaceState(null, "", "#history");
          change("answer", null);
        }),
    );
  };

  const details = row => {
    const line = (name, text) => [el("p.small", name), el("p.say", text ?? "not stored")];
    const trouble = el("span.small", { role: "status" });
    const play = clickable("toggle replay", "▶ Slow motion", async () => {
      play.disabled = true;
      trouble.textContent = "";
      await replay.recall(row.id).catch(error => (trouble.textContent = error.message));
      play.disabled = false;
    });
    const facts = [
      `request ${row.id}`,
      formed(row),
      row.target,
      row.drafter,
      `session ${short(row.session)}…`,
      ENDINGS[row.finish_reason] ?? row.finish_reason,
      format(row.seconds, "seconds"),
      row.created_at,
    ];
    const copy = copyButton(() => linkTo(`answer-${row.id}`), "Copy link", "Copy a link to this answer");
    return el(
      "tr.more",
      el(
        "td",
        { colspan: 13 },
        ...line("prompt", row.prompt),
        ...line("answer", row.answer),
        el("p.small", joined(facts)),
        el("p", row.replay && [play, " ", trouble], copy),
      ),
    );
  };
  const line = row => {
    const check = tick(`Select request ${row.id}`, page.chosen.has(row.id), on => {
      on ? page.chosen.add(row.id) : page.chosen.delete(row.id);
      drawActs();
    });
    const open = clickable(
      "open",
      row.prompt === null ? "(text not stored)" : gist(row).slice(0, 200) || "(empty)",
      () => {
        const next = tr.nextElementSibling,
          shown = next?.classList.contains("more");
        if (shown) next.remove();
        else tr.after(details(row));
        open.setAttribute("aria-expanded", String(!shown));
      },
      {
        "aria-expanded": "false",
        title: "Show prompt and answer; of very long ones the beginning, the CSV has all",
      },
    );
    const kind = KINDS[row.kind] + (row.finish_reason === "cancelled" ? ", stopped" : "");
    const cut = (text, cls, hint = text) => td(text, false, { title: hint, class: `gist ${cls}` });
    const tr = el(
      "tr",
      { "data-id": row.id },
      td(check),
      td(when(row.created_at), false, { title: row.created_at, class: "nowrap" }),
      td(open, false, { class: "prompt" }),
      td(joined([kind, topicTitle(row.topic)]), false, { class: "nowrap" }),
      ...FIGURES.map(([name, , shown, cls, hint]) =>
        td(shown(row), true, { "data-label": name, class: cls, title: hint?.(row) }),
      ),
      cut(title(row.method), "omni-expert"),
      cut(row.target_title, "", `${row.target}, with ${row.drafter}`),
    );
    return tr;
  };
  const drawTable = s => {
    const every = s.rows.length > 0 && s.rows.every(row => page.chosen.has(row.id));
    const all = tick("Select all shown", every, on => {
      s.rows.forEach(row => (on ? page.chosen.add(row.id) : page.chosen.delete(row.id)));
      drawTable(s);
      drawActs();
    });
    const heads = [
      th(all),
      th("time"),
      th("prompt"),
      th("kind", "Where it came from, and its topic"),
      ...FIGURES.map(([name, help, , cls]) => th(name, help, true, cls)),
      th("method", null, false, "omni-expert"),
      th("target"),
    ];
    fill(box, table(heads, s.rows.map(line)));
  };

  const update = value => {
    const s = (page.last = JSON.parse(value));
    page.key = s.key ?? "";
    const known = new Set(s.rows.map(row => row.id));
    for (const id of page.chosen) if (!known.has(id)) page.chosen.delete(id);
    say(warning, s.store.ok ? "" : s.store.message);
    notice.textContent = s.everyone
      ? visitor.operator
        ? "You are the operator, so every session is shown."
        : "This app is not public, so every session is shown."
      : "You see and delete only what your own browser's session stored.";
    notice.textContent += s.keep_text
      ? ` The newest ${s.newest}; the CSV has all.`
      : " Texts are not stored here, only figures.";
    say(said, s.said);
    drawFilters(s);
    drawActs();
    drawTable(s);
    const filtered = Object.values(page.filters).some(name => name && name !== "mine"),
      alone = page.filters.answer;
    if (alone && s.rows.length) box.querySelector(".open").click();
    box.hidden = !s.rows.length;
    empty.hidden = s.rows.length > 0;
    empty.lastChild.textContent = alone
      ? `Answer ${alone} is not kept here any more, or is not yours to see.`
      : filtered
        ? "No request matches these filters. Choose “all” in one of them."
        : "Write something in the Chat tab, or run a task in Same task; each answer gets a line here.";
  };
  page.poll = poll;
  whileVisible(host, 0, poll);
  return { update };
};
