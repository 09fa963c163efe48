// Which drafter? Candidates for the chosen target with modelled speedups, what speaks against each, and a measured try of the loaded pair.
import { clickable, el } from "../shared/dom.js";
import { askedPanel } from "../shared/fields.js";
import { format } from "../shared/format.js";
import { widgets } from "../shared/widgets.js";

export const advice = { wanted: "" };

widgets.advice = (host, { trigger }) => {
  let act = null;
  const figure = (value, name, hint) =>
    el(
      "div",
      { title: hint },
      el("dd", { class: value === null ? "" : value < 1 ? "bad" : "good" }, format(value, "times")),
      el("dt", name),
    );
  const modelled = (row, acceptances) =>
    el(
      "dl",
      ...row.modelled.map((value, place) =>
        figure(
          value,
          `if ${format(acceptances[place], "percent")} right`,
          "Modelled, not measured: the formula stands below.",
        ),
      ),
    );
  const result = t =>
    el(
      "div.tried",
      el(
        "dl",
        figure(t.speedup, "measured"),
        ...[
          [format(t.acceptance, "percent"), "of judged guesses right"],
          [format(t.per_round, "number"), "tokens per step"],
          [`${format(t.plain, "count")} → ${format(t.speculative, "count")}`, "tokens/s, plain → with it"],
          [format(t.modelled, "times"), "modelled at that share"],
        ].map(([value, name]) => el("div", el("dd", value), el("dt", name))),
      ),
      el("p.small", `${t.source[0].toUpperCase()}${t.source.slice(1)}.`),
    );
  const tried = t => (t?.result ? result(t.result) : t?.error ? el("p.small.warn", t.error) : null);

  const draw = value => {
    const item = (row, place) => {
      const here = row.name === value.drafter,
        busy = here && value.tried?.busy;
      const press = clickable(
        "toggle",
        busy ? `Measuring, ${busy}…` : here ? "Try it" : "Choose",
        () => {
          if (here) {
            press.disabled = true;
            press.textContent = "Measuring…";
            trigger("measure");
          } else {
            advice.wanted = row.name;
            trigger("choose");
          }
        },
        {
          disabled: Boolean(busy),
          title: here
            ? "Measure the loaded pair on sample prompts, with and without guessing"
            : "Load this drafter; its weights are fetched if they are not here",
        },
      );
      if (here) act = press;
      return el(
        "li",
        { class: here ? "here" : "" },
        el("div.who", el("b", `${place + 1}. ${row.title}`), el("span.small", row.size)),
        modelled(row, value.acceptances),
        press,
        el(
          "div.notes",
          here ? tried(value.tried) : null,
          el(
            "p.small",
            [
              row.pays_from === null
                ? "Modelled never to pay."
                : `Modelled to pay from ${format(row.pays_from, "percent")} right on.`,
              row.fits ? `Tokens that fit: ${row.fits}.` : null,
            ]
              .filter(Boolean)
              .join(" "),
          ),
          ...row.reported.map(known => el("p.small", `Reported: ${known}.`)),
          ...row.warnings.map(warning =>
            el("p.small.warn", `${warning[0].toUpperCase()}${warning.slice(1)}.`.replaceAll("`", "")),
          ),
        ),
      );
    };
    return [
      value.error
        ? el("p.small.warn", { role: "alert" }, value.error)
        : el(
            "h3",
            `Drafters for ${value.title} `,
            el("span.small", "by modelled speedup; nothing was run for it"),
          ),
      ...(value.warnings ?? []).map(warning => el("p.small.warn", `The target: ${warning}.`)),
      value.rows.length ? el("ol", ...value.rows.map(item)) : null,
      value.assumptions
        ? el(
            "details",
            el("summary.small", "What these figures assume"),
            ...value.assumptions.map(line => el("p.small", line)),
          )
        : null,
    ];
  };
  advice.refused = () => {
    if (act) {
      act.disabled = false;
      act.textContent = "Try it";
    }
  };
  return askedPanel(host, "Which drafter suits this target?", () => trigger("ask"), draw);
};
