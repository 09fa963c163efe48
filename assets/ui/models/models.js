// Other models: what is on this machine, what can be downloaded, what cannot be used and why; and a field for any other by its name.
import { el } from "../shared/dom.js";
import { widgets } from "../shared/widgets.js";

export const models = { wanted: "", role: "target" };

widgets.models = (host, { trigger }) => {
  let wanted = false;
  const ask = el(
    "button",
    {
      type: "button",
      class: "toggle",
      onclick: () => {
        wanted = true;
        trigger("ask");
      },
    },
    "Other models",
  );
  const close = el(
    "button",
    {
      type: "button",
      class: "link",
      hidden: true,
      onclick: () => {
        wanted = false;
        fold(true);
      },
    },
    "Hide",
  );
  const body = el("div", { class: "body", "aria-live": "polite" });
  host.append(el("div", { class: "line" }, ask, close), body);
  const fold = on => {
    body.hidden = close.hidden = on;
    ask.hidden = !on;
  };
  const use = (name, role) => {
    models.wanted = name;
    models.role = role;
    trigger("use");
  };

  const item = (row, value) => {
    const chosen = ["target", "drafter"].filter(role => value[role] === row.name);
    const press = row.roles
      .filter(role => !chosen.includes(role))
      .map(role =>
        el(
          "button",
          { type: "button", class: "toggle", onclick: () => use(row.name, role) },
          `${row.group === 1 ? "Download as" : "Use as"} ${role}`,
        ),
      );
    return el(
      "li",
      { class: chosen.length ? "here" : "" },
      el("div", { class: "who" }, el("b", {}, row.title), el("span", { class: "small" }, row.about)),
      el("p", { class: `small${row.group === 2 ? " warn" : ""}` }, row.note.replaceAll("`", "")),
      el(
        "div",
        { class: "press" },
        ...chosen.map(role => el("span", { class: "badge good" }, `the ${role}`)),
        ...press,
      ),
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
    });
    name.value = value.error ? models.wanted : "";
    const send = role => use(name.value.trim(), role);
    name.addEventListener("keydown", event => {
      if (event.key === "Enter") send("target");
    });
    return el(
      "div",
      { class: "any" },
      el(
        "label",
        { for: "omni-any-model" },
        "Another one: the path of a .gguf file, <org>/<repo>:<file>.gguf of the Hub, ollama/<model>:<tag>, lmstudio/<publisher>/<model>/<file>, a folder, or a Hub id",
      ),
      el(
        "div",
        { class: "line" },
        name,
        ...["target", "drafter"].map(role =>
          el("button", { type: "button", class: "toggle", onclick: () => send(role) }, `Use as ${role}`),
        ),
      ),
      value.error ? el("p", { class: "small warn", role: "alert" }, value.error) : null,
    );
  };
  const draw = value => {
    const group = (title, place) => {
      const rows = value.rows.filter(row => row.group === place);
      return rows.length
        ? el("section", {}, el("h3", {}, title), el("ul", {}, ...rows.map(row => item(row, value))))
        : null;
    };
    body.replaceChildren(
      ...[
        value.any ? field(value) : null,
        el("div", { class: "all" }, ...value.groups.map(group).filter(Boolean)),
      ].filter(Boolean),
    );
    fold(false);
  };
  fold(true);
  return {
    update: value => {
      if (wanted) draw(JSON.parse(value));
    },
  }; // another choice changes it too, whether anybody looks or not
};
