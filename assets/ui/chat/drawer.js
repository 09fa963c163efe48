// The list of chats: open, name, delete with a way back, export.
import { chat } from "./chat.js";
import { chats } from "./chats.js";
import { clickable, closesBeside, composing, el, fill, icon, say } from "../shared/dom.js";
import { when } from "../shared/fields.js";
import { plural } from "../shared/format.js";
import { saveFile } from "../shared/save.js";

const UNDO = 10_000;
let box = null,
  list = null,
  told = null,
  room = null,
  late = 0,
  renaming = null;

const button = (title, label, act, look = "link") =>
  clickable(look, title, act, { "aria-label": label, title: label === title ? null : label });
const pictures = {
  close: "M4 4l8 8M12 4l-8 8",
  rename: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3zM9.3 4.4l2.3 2.3",
  remove: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5M6.8 7v3.6M9.2 7v3.6",
};
// A sentence in the list and, as it may be closed, read out.
chat.say = (text, undo = null) => {
  clearTimeout(late);
  const bring = () => {
    undo();
    chat.say("It is back.");
    chat.drawList();
  };
  fill(told, text, undo && [" ", button("Undo", "Undo", bring)]);
  say(chat.parts.note, undo ? "" : text);
  chat.announce(text);
  late = setTimeout(() => {
    told.replaceChildren();
    chat.parts.note.hidden = true;
  }, UNDO);
};

const remove = (ids, said) => {
  const here = chat.now,
    turns = [...chat.turns],
    open = ids.includes(here.id),
    undo = chats.remove(...ids);
  if (open) chat.fresh();
  chat.say(said, () => {
    undo();
    if (open && !chat.busy() && !chat.turns.length)
      chats.facts(here.id) ? chat.switchTo(here.id) : chat.show(turns);
  });
  chat.drawList();
  (list.querySelector(".open") ?? box.querySelector(".primary")).focus();
};
const rename = (one, name) => {
  renaming = null;
  const text = name.trim().slice(0, 80);
  if (text && text !== one.name) {
    chats.rename(one.id, text);
    if (one.id === chat.now.id) {
      Object.assign(chat.now, { name: text, named: true });
      chat.drawFacts();
    }
  }
  chat.drawList();
  list.querySelector(`[data-id="${one.id}"] .open`)?.focus();
};
const row = one => {
  const name = one.name || "New chat",
    current = one.id === chat.now.id;
  const answers = plural(one.answers, "answer");
  if (renaming === one.id) {
    const onkeydown = event => {
      if ((event.key !== "Enter" && event.key !== "Escape") || composing(event)) return;
      event.preventDefault(); // Esc closes the field, not the list
      rename(one, event.key === "Enter" ? field.value : "");
    };
    const about = { type: "text", maxlength: 80, "aria-label": "Name of the chat" },
      field = el("input", { ...about, value: name, onkeydown }),
      save = button("Save", "Save the name", () => rename(one, field.value), "toggle");
    return el("li", { "data-id": one.id }, field, save);
  }
  return el(
    "li",
    { "data-id": one.id, class: current ? "current" : null },
    clickable(
      "open",
      [el("b", { dir: "auto" }, name), el("small", `${answers} · ${when(one.at)}`)],
      () => {
        box.close();
        if (!current) chat.switchTo(one.id);
      },
      { "aria-current": current ? "true" : null },
    ),
    icon("", `Rename “${name}”`, pictures.rename, () => {
      renaming = one.id;
      chat.drawList();
      list.querySelector("input").select();
    }),
    icon("", `Delete “${name}”`, pictures.remove, () => remove([one.id], `“${name}” is deleted.`)),
  );
};
chat.drawList = () => {
  if (!box?.open) return;
  const all = chats.list();
  list.replaceChildren(...all.map(row));
  const size = chats.size();
  room.textContent = all.length
    ? `Kept in this browser alone: ${(size / 1e6).toFixed(1)} of ${(chats.room / 1e6).toFixed(1)} million characters. When full, the oldest chats are removed.`
    : "No chat is kept. The first answer makes one; it stays in this browser.";
  box.querySelectorAll(".export").forEach(node => {
    node.disabled = !chat.turns.length;
  });
  box.querySelector(".all").hidden = all.length < 2;
};
chat.openDrawer = () => {
  if (chat.busy()) return;
  renaming = null;
  box.showModal();
  chat.drawList();
  (list.querySelector("[aria-current]") ?? box.querySelector(".primary")).focus();
};

// ── export ──────────────────────────────────────────────────────────────────────────────────────────────────
const save = (text, type, ending) => {
  const name = (chat.now.name || "chat")
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
  saveFile(text, type, `${name || "chat"}.${ending}`);
};
chat.asMarkdown = () => {
  const { now, turns } = chat,
    part = (title, text) => `## ${title}\n\n${text.trim()}\n`;
  return [
    `# ${now.name || "Chat"}\n`,
    ...(now.system.trim() ? [part("System", now.system)] : []),
    ...turns.flatMap(({ user, answer }) => [
      part("You", user),
      part("Model", answer.text || answer.error || "(no answer)"),
    ]),
  ].join("\n");
};
chat.asJSON = () => {
  const { now, turns } = chat;
  const answers = turns.map(({ user, system, answer }) => ({
    question: user,
    answer: answer.text,
    system: system || undefined,
    error: answer.error ?? undefined,
    finish: answer.end?.finish ?? answer.finish,
    target: answer.meta.target,
    drafter: answer.meta.drafter,
    method: answer.meta.method,
    adapter_version: answer.meta.version,
    context: answer.context ?? undefined,
    figures: answer.figures ?? undefined,
  }));
  const messages = [
    ...(now.system.trim() ? [{ role: "system", content: now.system.trim() }] : []),
    ...chat.before(null),
  ];
  return `${JSON.stringify({ name: now.name, exported_at: new Date().toISOString(), messages, answers }, null, 1)}\n`;
};

const saving = (form, act) => button(form, `Save this chat as ${form}`, act, "toggle export");
const removeAll = () => {
  const ids = chats.list().map(one => one.id);
  remove(ids, `${plural(ids.length, "chat")} deleted.`);
};
chat.drawer = () => {
  list = el("ul.chats-list");
  told = el("p.told", { role: "status" });
  room = el("p.small");
  box = el(
    "dialog.chats-drawer",
    { "aria-labelledby": "omni-chats-title" },
    el(
      "header",
      el("h2", { id: "omni-chats-title" }, "Chats"),
      icon("", "Close the list", pictures.close, () => box.close()),
    ),
    clickable("primary", "+ New chat", () => {
      box.close();
      chat.fresh();
      chat.parts.box.focus();
    }),
    told,
    list,
    el(
      "div.acts",
      el("span.small", "Export as"),
      saving("Markdown", () => save(chat.asMarkdown(), "text/markdown", "md")),
      saving("JSON", () => save(chat.asJSON(), "application/json", "json")),
      button("Delete all", "Delete all chats of this browser", removeAll, "toggle all"),
    ),
    room,
  );
  closesBeside(box);
  box.addEventListener("keydown", event => event.stopPropagation()); // Esc closes it, and stops no answer
  return box;
};
