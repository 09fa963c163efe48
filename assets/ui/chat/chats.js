// Chats with names, kept in this browser alone. Each has keys of its own, so that two tabs never write over each other's: facts and turns
// under one, what colours its tokens under another, which goes first where there is no more room.

const CHAT = "omnidemo.chat.",
  TOKENS = "omnidemo.tokens.",
  ROOM = 3_600_000; // characters; browsers keep five million of a site
export const chats = { room: ROOM };
const names = prefix => {
  try {
    return Object.keys(localStorage).filter(name => name.startsWith(prefix));
  } catch {
    return [];
  }
};
const get = name => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};
const parsed = (text, fallback) => {
  try {
    return JSON.parse(text) ?? fallback;
  } catch {
    return fallback;
  }
};
const remove = name => {
  try {
    localStorage.removeItem(name);
  } catch {
    /* nothing is kept */
  }
};

// Name, system prompt, when it was last written (`at`, milliseconds), number of answers; null for none.
chats.facts = id => {
  const text = get(CHAT + id),
    facts = text === null ? null : parsed(text.slice(0, text.indexOf("\n")), null);
  return facts && typeof facts === "object"
    ? { name: "", system: "", at: 0, answers: 0, ...facts, id }
    : null;
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
  const old = chats
      .list()
      .reverse()
      .filter(one => one.id !== id),
    coloured = old.find(one => get(TOKENS + one.id) !== null);
  if (coloured) {
    remove(TOKENS + coloured.id);
    return "";
  }
  if (!text || !old.length) return null;
  remove(CHAT + old[0].id);
  return old[0].name;
};
const put = (name, value, id, dropped) => {
  for (;;) {
    let fits = chats.size() - (get(name) ?? "").length + value.length <= ROOM;
    if (fits)
      try {
        localStorage.setItem(name, value);
        return true;
      } catch {
        fits = false;
      }
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
  const kept = put(
    CHAT + id,
    `${JSON.stringify({ ...facts, at, answers: turns.length })}\n${JSON.stringify(short)}`,
    id,
    dropped,
  );
  if (kept) put(TOKENS + id, JSON.stringify(lines), id, dropped);
  return { at, dropped, kept };
};
chats.rename = (id, name) => {
  const text = get(CHAT + id),
    facts = chats.facts(id);
  if (facts) {
    delete facts.id;
    put(
      CHAT + id,
      `${JSON.stringify({ ...facts, name, named: true })}${text.slice(text.indexOf("\n"))}`,
      id,
      [],
    );
  }
};
// Deletes chats; what is returned brings them back.
chats.remove = (...ids) => {
  const texts = ids.flatMap(id => [CHAT + id, TOKENS + id]).map(name => [name, get(name)]);
  texts.forEach(([name]) => remove(name));
  return () =>
    texts.forEach(([name, text]) => {
      if (text !== null)
        try {
          localStorage.setItem(name, text);
        } catch {
          /* no room any more */
        }
    });
};
chats.forget = () => {
  [...names(CHAT), ...names(TOKENS), "omnidemo.chat"].forEach(remove);
  try {
    sessionStorage.removeItem("omnidemo.chat");
    sessionStorage.removeItem("omnidemo.open");
  } catch {
    /* nothing is kept */
  }
};
// The chat that this tab has open, also after a reload.
chats.opened = id => {
  try {
    if (id) sessionStorage.setItem("omnidemo.open", id);
    return sessionStorage.getItem("omnidemo.open");
  } catch {
    return null;
  }
};
// Turns that versions before several chats kept: of this tab, and of all.
chats.old = () => {
  let own = null;
  try {
    own = sessionStorage.getItem("omnidemo.chat");
    sessionStorage.removeItem("omnidemo.chat");
  } catch {
    /* nothing is kept */
  }
  const found = [...new Set([own, get("omnidemo.chat")])]
    .map(text => parsed(text, []))
    .filter(turns => Array.isArray(turns) && turns.length);
  remove("omnidemo.chat");
  return found;
};
// Tells what another tab did to a chat: listen(id, whether it is still there).
chats.listen = listen =>
  window.addEventListener("storage", ({ key, newValue }) => {
    if (key?.startsWith(CHAT)) listen(key.slice(CHAT.length), newValue !== null);
  });
