// Chats with names, kept in this browser alone. Each has keys of its own, so that two tabs never write over each other's: facts and turns
// under one, what colours its tokens under another, which goes first where there is no more room.
import { put, tried } from "../shared/storage.js";

const CHAT = "omnidemo.chat.",
  TOKENS = "omnidemo.tokens.",
  ROOM = 3_600_000; // characters; browsers keep five million of a site
export const chats = { room: ROOM };
const names = prefix => tried(() => Object.keys(localStorage).filter(name => name.startsWith(prefix)), []);
const get = name => tried(() => localStorage.getItem(name));
const parsed = (text, fallback) => tried(() => JSON.parse(text)) ?? fallback;
const remove = name => tried(() => localStorage.removeItem(name));

// Name, system prompt, when it was last written (`at`, milliseconds), number of answers; null for none.
chats.facts = id => {
  const text = get(CHAT + id),
    facts = text === null ? null : parsed(text.slice(0, text.indexOf("\n")), null);
  return facts && { name: "", system: "", at: 0, answers: 0, ...facts, id };
};
chats.list = () =>
  names(CHAT)
    .map(name => chats.facts(name.slice(CHAT.length)))
    .filter(Boolean)
    .sort((a, b) => b.at - a.at);
chats.turns = id => {
  const text = get(CHAT + id) ?? "",
    turns = parsed(text.slice(text.indexOf("\n") + 1), []),
    lines = parsed(get(TOKENS + id), {});
  const whole = turn => ({
    ...turn,
    lines: turn.lines ?? lines[turn.run] ?? "",
    versions: turn.versions?.map(whole),
  });
  return Array.isArray(turns) ? turns.map(whole) : [];
};
chats.size = () =>
  [...names(CHAT), ...names(TOKENS)].reduce((sum, name) => sum + name.length + (get(name) ?? "").length, 0);

// Makes room: the colours of the chat that was left alone for longest, then, for a `text`, that chat; its name, "" for colours, null where
// nothing but `id` is left to drop.
const drop = (id, text) => {
  const others = chats.list().filter(one => one.id !== id),
    coloured = others.findLast(one => get(TOKENS + one.id) !== null),
    oldest = others.at(-1);
  if (!coloured && !(text && oldest)) return null;
  remove(coloured ? TOKENS + coloured.id : CHAT + oldest.id);
  return coloured ? "" : oldest.name;
};
const fit = (name, value, id, dropped) => {
  for (;;) {
    const size = chats.size() - (get(name) ?? "").length + value.length;
    if (size <= ROOM && put(name, value)) return true;
    const gone = drop(id, name.startsWith(CHAT));
    if (gone === null) return false;
    if (gone) dropped.push(gone);
  }
};
// Writes a chat: {id, name, system, …}, turns with their `lines`, and `versions` of these. Returns {at, dropped: names of chats that went for it, kept: whether it is}.
chats.write = ({ id, ...facts }, turns) => {
  const dropped = [],
    at = Date.now(),
    bare = ({ lines, versions, ...turn }) => ({ ...turn, versions: versions?.map(bare) }),
    short = turns.map(bare),
    lines = Object.fromEntries(
      turns.flatMap(turn => [turn, ...(turn.versions ?? [])]).map(turn => [turn.run, turn.lines]),
    );
  for (const name of names(TOKENS)) if (get(CHAT + name.slice(TOKENS.length)) === null) remove(name);
  remove(TOKENS + id);
  const text = `${JSON.stringify({ ...facts, at, answers: turns.length })}\n${JSON.stringify(short)}`,
    kept = fit(CHAT + id, text, id, dropped);
  if (kept) fit(TOKENS + id, JSON.stringify(lines), id, dropped);
  return { at, dropped, kept };
};
chats.rename = (id, name) => {
  const text = get(CHAT + id),
    facts = JSON.stringify({ ...chats.facts(id), id: undefined, name, named: true });
  if (text !== null) fit(CHAT + id, facts + text.slice(text.indexOf("\n")), id, []);
};
// Deletes chats; what is returned brings them back.
chats.remove = (...ids) => {
  const texts = ids.flatMap(id => [CHAT + id, TOKENS + id]).map(name => [name, get(name)]);
  texts.forEach(([name]) => remove(name));
  return () => texts.forEach(([name, text]) => text !== null && put(name, text));
};
chats.forget = () => {
  [...names(CHAT), ...names(TOKENS)].forEach(remove);
  tried(() => sessionStorage.removeItem("omnidemo.open"));
};
// The chat that this tab has open, also after a reload.
chats.opened = id =>
  tried(() => {
    if (id) sessionStorage.setItem("omnidemo.open", id);
    return sessionStorage.getItem("omnidemo.open");
  });
// Tells what another tab did to a chat: listen(id, whether it is still there).
chats.listen = listen =>
  window.addEventListener("storage", ({ key, newValue }) => {
    if (key?.startsWith(CHAT)) listen(key.slice(CHAT.length), newValue !== null);
  });
