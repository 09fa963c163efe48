// Other models: what is on this machine, what can be downloaded, what cannot be used and why; and a field for any other by its name.
import { clickable, composing, el } from "../shared/dom.js";
import { askedPanel } from "../shared/fields.js";
import { widgets } from "../shared/widgets.js";

widgets.models = (host, { trigger }) => {
  let wanted = "";
  const use = (name, role) => {
    wanted = name;
    trigger("use", { asked: { name, role } });
  };

  const item = (row, value) => {
    const chosen = ["target", "drafter"].filter(role => value[role] === row.name);
    const press = row.roles
      .filter(role => !chosen.includes(role))
      .map(role =>
        clickable("toggle", `${row.group === 1 ? "Download as" : "Use as"} ${role}`, () =>
          use(row.name, role),
        ),
      );
    return el(
      "li",
      { class: chosen.length ? "here" : "" },
      el("div.who", el("b", row.title), el("span.small", row.about)),
      el("p", { class: `small${row.group === 2 ? " warn" : ""}` }, row.note.replaceAll("`", "")),
      el("div.press", ...chosen.map(role => el("span.badge.good", `the ${role}`)), ...press),
    );
  };
  const field = value => {
    const name = el("input", {
      type: "text",
      id: "omni-any-model",
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      maxlength: 1000,
      placeholder: "~/models/name.gguf",
      value: value.error ? wanted : "",
      onkeydown: event => event.key === "Enter" && !composing(event) && send("target"),
    });
    const send = role => use(name.value.trim(), role);
    return el(
      "div.any",
      el(
        "label",
        { for: "omni-any-model" },
        "Another one: the path of a .gguf file, <org>/<repo>:<file>.gguf of the Hub, ollama/<model>:<tag>, lmstudio/<publisher>/<model>/<file>, a folder, or a Hub id",
      ),
      el(
        "div.line",
        name,
        ...["target", "drafter"].map(role => clickable("toggle", `Use as ${role}`, () => send(role))),
      ),
      value.error ? el("p.small.warn", { role: "alert" }, value.error) : null,
    );
  };
  const draw = value => {
    const group = (title, place) => {
      const rows = value.rows.filter(row => row.group === place);
      const list = el(
        "ul",
        rows.map(row => item(row, value)),
      );
      return rows.length > 0 && el("section", el("h3", title), list);
    };
    return [value.any && field(value), el("div.all", value.groups.map(group))];
  };
  return askedPanel(host, "Other models", () => trigger("ask"), draw);
};
