// The History tab: filters, the table of past requests, deletion with a second look.
import { howFast, range } from "../answer/outcome.js";
import { replay } from "../replay/replay.js";
import { copyButton } from "../shared/copy.js";
import { clickable, el, heading } from "../shared/dom.js";
import { field, makeQuestion, methodTitle, select, td, th, when, whileVisible } from "../shared/fields.js";
import { format, plural } from "../shared/format.js";
import { labels } from "../shared/labels.js";
import { linkTo } from "../shared/places.js";
import { session, visitor } from "../shared/visitor.js";
import { widgets } from "../shared/widgets.js";

const page = {
  filters: { pair: "", method: "", session: "", answer: null },
  chosen: new Set(),
  remove: null,
  key: "",
  last: null,
};
export { page as historyTab };
page.request = values =>
  [session(), { ...page.filters, remove: page.remove }, page.key].slice(0, values.length);

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
  ["tokens", "Tokens that the big model's answer has", row => format(row.tokens, "count")],
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
    row => howFast({ speedup: row.speedup, low: row.speedup_low, high: row.speedup_high })?.value ?? "–",
    "",
    row =>
      row.speedup == null
        ? "Only the newest answer is measured, while no request is running"
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
      [
        row.adapter_version ? `v${row.adapter_version}` : "base",
        row.domain && row.domain !== "default" ? row.domain : null,
      ]
        .filter(Boolean)
        .join(" · "),
    "omni-expert",
  ],
];
const short = session => session.replace("~visitor-", "").slice(0, 6); // a visitor's of a public app
widgets.history = (host, { trigger }) => {
  const poll = () => {
    page.remove = null;
    trigger("poll");
  };
  const notice = el("p.small"),
    warning = el("p.alert", { role: "alert", hidden: true }),
    said = el("p.small", { role: "status" });
  const filters = el("div.entry"),
    really = makeQuestion("Delete?", "Delete", "Keep");
  const acts = el("div.acts"),
    box = el("div.rolls.tall");
  const empty = el("div.nothing", { hidden: true }, el("h3", "No answer is stored"), el("p"));
  host.append(heading("History"), warning, filters, notice, acts, really.box, said, box, empty);

  const ask = (sentence, what) =>
    really.ask(sentence, () => {
      page.remove = what;
      page.key = "";
      trigger("remove");
      page.chosen.clear();
    });
  const button = (title, act, enabled = true) => clickable("toggle", title, act, { disabled: !enabled });
  const drawActs = () => {
    const n = page.chosen.size,
      s = page.last,
      picked = page.filters.session;
    acts.replaceChildren(
      button(
        n ? `Delete ${plural(n, "selected request")}` : "Delete selected",
        () =>
          ask(
            `Delete ${plural(n, "request")} with ${n === 1 ? "its" : "their"} rounds? This can't be undone.`,
            { ids: [...page.chosen] },
          ),
        n > 0,
      ),
      ...(s.everyone && picked && picked !== "mine" && picked !== s.mine
        ? [
            button(`Delete session ${short(picked)}…`, () =>
              ask(`Delete all requests of session ${short(picked)}…? This can't be undone.`, {
                session: picked,
              }),
            ),
          ]
        : []),
      button("Delete all of my session", () =>
        ask(
          "Delete everything this browser's session has stored? This can't be undone. Your chats stay in this browser until you delete them there.",
          { mine: true },
        ),
      ),
    );
  };
  const drawFilters = s => {
    const change = name => value => {
      page.filters[name] = value;
      page.key = "";
      page.chosen.clear();
      poll();
    };
    const sessions = s.everyone
      ? [
          ["", "all sessions"],
          ["mine", "my session"],
          ...s.sessions
            .filter(one => one.id !== s.mine)
            .map(one => [one.id, `${short(one.id)}… · ${one.requests} · ${when(one.at)}`]),
        ]
      : [["mine", "my session"]];
    const pairs =
      page.filters.pair && !s.pairs.includes(page.filters.pair) ? [...s.pairs, page.filters.pair] : s.pairs;
    filters.replaceChildren(
      field(
        "Pair",
        select(
          "Pair",
          [["", "all pairs"], ...pairs.map(name => [name, name])],
          page.filters.pair,
          change("pair"),
        ),
      ),
      el(
        "label.field",
        { class: page.filters.method ? null : "omni-expert" },
        el("span", "Method"),
        select(
          "Method",
          [["", "all methods"], ...s.methods.map(name => [name, title(name)])],
          page.filters.method,
          change("method"),
        ),
      ),
      field("Session", select("Session", sessions, page.filters.session, change("session"))),
      clickable("toggle refresh", "↻ Refresh", () => {
        page.key = "";
        poll();
      }),
      page.filters.answer
        ? clickable("toggle refresh", `Answer ${page.filters.answer} alone ×`, () => {
            history.replaceState(null, "", "#history");
            change("answer")(null);
          })
        : "",
    );
  };

  const details = row => {
    const tr = el("tr.more"),
      td = el("td", { colspan: 13 });
    const line = (name, text) => [el("p.small", name), el("p.say", text ?? "not stored")];
    td.append(
      ...line("prompt", row.prompt),
      ...line("answer", row.answer),
      el(
        "p.small",
        [
          `request ${row.id}`,
          row.target,
          row.drafter,
          `session ${short(row.session)}…`,
          ENDINGS[row.finish_reason] ?? row.finish_reason,
          format(row.seconds, "seconds"),
          row.created_at,
        ].join(" · "),
      ),
      row.gone ? el("p.small", row.gone) : "",
    );
    const link = linkTo(`answer-${row.id}`),
      acts = el(
        "p",
        copyButton(() => link, "Copy link", "Copy a link to this answer"),
      );
    td.append(acts);
    if (row.replay) {
      const trouble = el("span.small", { role: "status" });
      const play = clickable("toggle replay", "▶ Slow motion", async () => {
        play.disabled = true;
        trouble.textContent = "";
        try {
          await replay.recall(row.id);
        } catch (error) {
          trouble.textContent = error.message;
        }
        play.disabled = false;
      });
      acts.prepend(play, " ", trouble);
    }
    tr.append(td);
    return tr;
  };
  const line = row => {
    const check = el("input", {
      type: "checkbox",
      "aria-label": `Select request ${row.id}`,
      onchange: () => {
        check.checked ? page.chosen.add(row.id) : page.chosen.delete(row.id);
        drawActs();
      },
    });
    check.checked = page.chosen.has(row.id);
    const open = clickable(
      "open",
      row.prompt === null ? "(text not stored)" : row.prompt.slice(0, 200) || "(empty)",
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
    const gist = (text, cls, hint = text) => td(text, false, { title: hint, class: `gist ${cls}` });
    const tr = el(
      "tr",
      { "data-id": row.id },
      td(check),
      td(when(row.created_at), false, { title: row.created_at, class: "nowrap" }),
      td(open, false, { class: "prompt" }),
      td(
        [
          `${KINDS[row.kind]}${row.finish_reason === "cancelled" ? ", stopped" : ""}`,
          labels.topics[row.topic] ?? row.topic,
        ]
          .filter(Boolean)
          .join(" · "),
        false,
        { class: "nowrap" },
      ),
      ...FIGURES.map(([name, , shown, cls, hint]) =>
        td(shown(row), true, { "data-label": name, class: cls, title: hint?.(row) }),
      ),
      gist(title(row.method), "omni-expert"),
      gist(row.target_title, "", row.gone || `${row.target}, with ${row.drafter}`),
    );
    return tr;
  };
  const drawTable = s => {
    const all = el("input", {
      type: "checkbox",
      "aria-label": "Select all shown",
      onchange: () => {
        s.rows.forEach(row => (all.checked ? page.chosen.add(row.id) : page.chosen.delete(row.id)));
        drawTable(s);
        drawActs();
      },
    });
    all.checked = s.rows.length > 0 && s.rows.every(row => page.chosen.has(row.id));
    box.replaceChildren(
      el(
        "table",
        el(
          "thead",
          el(
            "tr",
            el("th", { scope: "col" }, all),
            th("time"),
            th("prompt"),
            th("kind", "Where it came from, and its topic"),
            ...FIGURES.map(([name, help, , cls]) => th(name, help, true, cls)),
            th("method", null, false, "omni-expert"),
            th("target"),
          ),
        ),
        el("tbody", ...s.rows.map(line)),
      ),
    );
  };

  const update = value => {
    const s = (page.last = JSON.parse(value));
    page.key = s.key ?? "";
    page.remove = null;
    const known = new Set(s.rows.map(row => row.id));
    for (const id of page.chosen) if (!known.has(id)) page.chosen.delete(id);
    warning.hidden = s.store.ok;
    warning.textContent = s.store.ok ? "" : s.store.message;
    notice.textContent = s.everyone
      ? visitor.operator
        ? "You are the operator, so every session is shown."
        : "This app is not public, so every session is shown."
      : "You see and delete only what your own browser's session stored.";
    notice.textContent += s.keep_text
      ? ` The newest ${s.newest}; the CSV has all.`
      : " Texts are not stored here, only figures.";
    said.textContent = s.said ?? "";
    said.hidden = !s.said;
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
        : "Write something in the Chat tab, or teach it a topic; each answer gets a line here.";
  };
  page.poll = poll;
  whileVisible(host, 0, poll);
  return { update };
};
