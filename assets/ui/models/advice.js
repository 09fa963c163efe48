// Which drafter? Candidates for the chosen target with modelled speedups, what speaks against each, and a measured try of the loaded pair.
import { clickable, el } from "../shared/dom.js";
import { askedPanel } from "../shared/fields.js";
import { capital, format, joined } from "../shared/format.js";
import { widgets } from "../shared/widgets.js";

export const advice = { wanted: "" };

widgets.advice = (host, { trigger }) => {
  let act = null;
  const figure = (value, name, title = null) => {
    const look = value === null ? "" : value < 1 ? "bad" : "good";
    return el("div", { title }, el("dd", { class: look }, format(value, "times")), el("dt", name));
  };
  const MODELLED = "Modelled, not measured: the formula stands below.";
  const modelled = (row, acceptances) => {
    const at = place => `if ${format(acceptances[place], "percent")} right`;
    return el(
      "dl",
      row.modelled.map((value, place) => figure(value, at(place), MODELLED)),
    );
  };
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
      el("p.small", `${capital(t.source)}.`),
    );
  const tried = t => (t?.result ? result(t.result) : t?.error && el("p.small.warn", t.error));

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
      const pays =
        row.pays_from === null
          ? "Modelled never to pay."
          : `Modelled to pay from ${format(row.pays_from, "percent")} right on.`;
      return el(
        "li",
        { class: here ? "here" : "" },
        el("div.who", el("b", `${place + 1}. ${row.title}`), el("span.small", row.size)),
        modelled(row, value.acceptances),
        press,
        el(
          "div.notes",
          here && tried(value.tried),
          el("p.small", joined([pays, row.fits && `Tokens that fit: ${row.fits}.`], " ")),
          row.reported.map(known => el("p.small", `Reported: ${known}.`)),
          row.warnings.map(warning => el("p.small.warn", `${capital(warning)}.`.replaceAll("`", ""))),
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
      value.rows.length > 0 && el("ol", value.rows.map(item)),
      value.assumptions &&
        el(
          "details",
          el("summary.small", "What these figures assume"),
          value.assumptions.map(line => el("p.small", line)),
        ),
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
