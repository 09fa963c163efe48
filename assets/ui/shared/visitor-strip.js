// What is kept, above the tabs of a public app, and the operator's key.
import { chat } from "../chat/chat.js";
import { clickable, el, say } from "./dom.js";
import { post, sayKey, visitor } from "./visitor.js";
import { widgets } from "./widgets.js";

widgets.visitor = (host, { trigger }) => {
  const notice = el("span.kept"),
    said = el("p.said", { role: "status", hidden: true });
  const really = el("span.really", { hidden: true });
  const remove = clickable("link", "Delete everything that is kept about me", () => {
    really.hidden = false;
    remove.hidden = true;
    no.focus();
  });
  const settle = () => {
    really.hidden = true;
    remove.hidden = false;
    remove.focus();
  };
  really.addEventListener("keydown", event => {
    if (event.key === "Escape") {
      event.preventDefault();
      settle();
    }
  });
  const yes = clickable("link danger", "Delete", async () => {
    settle();
    say(said, "Deleting…");
    try {
      const { done, said: told, detail } = await post("visitor/forget");
      if (done) chat.forget();
      say(said, told ?? detail);
    } catch {
      say(said, "The server did not answer; press again in a moment.");
    }
  });
  const no = clickable("link", "Keep", settle);
  really.append("Really? ", yes, " ", no);
  const field = el("input", {
    type: "password",
    autocomplete: "off",
    "aria-label": "Operator's key",
    placeholder: "Operator's key",
  });
  const enter = el(
    "form.operator",
    {
      hidden: true,
      onsubmit: async event => {
        event.preventDefault();
        const given = field.value;
        field.value = "";
        try {
          const { operator, said: told } = await sayKey(given);
          say(said, operator ? "You are the operator until this page is loaded again." : told);
          enter.hidden = operator;
          if (operator) trigger("unlock");
        } catch {
          say(said, "The server did not answer; try again in a moment.");
        }
      },
    },
    field,
    el("button.toggle", { type: "submit" }, "Unlock"),
  );
  const open = clickable("link", "Operator", () => {
    enter.hidden = !enter.hidden;
    if (!enter.hidden) field.focus();
  });
  const dot = el("span", " · ");
  host.append(el("p.small", notice, " ", remove, really, dot, open), enter, said);
  const draw = () => {
    notice.textContent = visitor.notice;
    host.hidden = !visitor.public;
    open.hidden = dot.hidden = visitor.operator;
  };
  visitor.watch(draw);
  return {};
};
