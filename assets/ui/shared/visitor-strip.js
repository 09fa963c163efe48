// What is kept, above the tabs of a public app, and the operator's key.
import { chat } from "../chat/chat.js";
import { clickable, el, say } from "./dom.js";
import { makeQuestion } from "./fields.js";
import { post, sayKey, visitor } from "./visitor.js";
import { widgets } from "./widgets.js";

widgets.visitor = (host, { trigger }) => {
  const notice = el("span.kept"),
    said = el("p.said", { role: "status", hidden: true });
  const really = makeQuestion("Delete?", "Delete", "Keep"),
    sentence = "Delete everything that is kept about you, here and on the server? This can't be undone.";
  const forget = async () => {
    say(said, "Deleting…");
    try {
      const { done, said: told, detail } = await post("visitor/forget");
      if (done) chat.forget();
      say(said, told ?? detail);
    } catch {
      say(said, "The server did not answer; press again in a moment.");
    }
  };
  const ask = () => really.ask(sentence, forget),
    remove = clickable("link", "Delete everything that is kept about me", ask);
  const title = "Operator's key",
    field = el("input", { type: "password", autocomplete: "off", "aria-label": title, placeholder: title });
  const onsubmit = async event => {
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
  };
  const unlock = el("button.toggle", { type: "submit" }, "Unlock"),
    enter = el("form.operator", { hidden: true, onsubmit }, field, unlock);
  const open = clickable("link", "Operator", () => {
    enter.hidden = !enter.hidden;
    if (!enter.hidden) field.focus();
  });
  host.append(el("p.small", notice, " ", remove, " ", open), really.box, enter, said);
  visitor.watch(() => {
    notice.textContent = visitor.notice;
    host.hidden = !visitor.public;
    open.hidden = visitor.operator;
  });
};
