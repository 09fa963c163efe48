// The conversation lives here: turns, composer, legend, views. The server sees a request and streams lines back.
(() => {
  const { el, labels } = omni;
  const KEEP_TURNS = 20, KEEP_CHARACTERS = 1_200_000; // what a reload brings back
  const chat = (omni.chat = { turns: [], selected: null, listeners: [] });
  let parts = null, trigger = null, live = null, offset = 0, heard = 0, pair = { ready: false, why: "", reads: "" }, queued = false, editing = false, draft = ""; // queued: what the composer holds is sent as soon as the models are ready; draft: what it held before an edit

  const settings = omni.load("view", { view: "tokens", discarded: false, only: "" });
  const answerOf = (turn) => turn?.answer;
  const busy = () => live !== null;

  // ── requests ────────────────────────────────────────────────────────────────────────────────────────────────
  chat.ask = (text) => {
    if (!text.trim() || busy()) return false; // busy until the server's stream is closed: it takes one request per page
    if (!pair.ready || !trigger) return false;
    const turn = { run: omni.random(), user: text, answer: omni.newAnswer(), state: "waiting" };
    chat.turns.push(turn);
    live = turn; offset = 0; heard = Date.now();
    parts.log.querySelectorAll(".link.last").forEach((node) => node.remove()); // only the last answer can be written anew
    draw(turn);
    select(turn);
    toEnd();
    refresh();
    trigger("ask");
    return true;
  };
  // The messages before a turn; all of them for none of this chat.
  chat.before = (turn) => {
    const place = chat.turns.indexOf(turn), before = place < 0 ? chat.turns : chat.turns.slice(0, place);
    return before.filter((one) => one.answer.text).flatMap((one) => [{ role: "user", content: one.user }, { role: "assistant", content: one.answer.text }]);
  };
  // Fills the inputs of the server's `chat` with what only the browser knows.
  chat.request = (values) => {
    return [live?.user ?? "", chat.before(live), omni.session(), live?.run ?? "", ...values.slice(4)];
  };
  chat.current = () => [omni.session(), live?.run ?? ""];
  chat.stop = () => {
    if (!busy() || live.state === "stopping" || live.state === "done") return;
    live.state = "stopping";
    heard = Date.now();
    refresh();
    status(live);
    trigger("halt");
  };
  // The server's stream is over, well or not. `value` is what it said last: an older request's end is none of ours.
  chat.settled = (value) => {
    if (!live || (value !== undefined && !(value ?? "").split("\n", 1)[0].includes(live.run))) return;
    const turn = live;
    if (!turn.answer.end && !turn.answer.error) turn.answer.error = turn.state === "stopping" ? null : turn.answer.text ? "The connection broke before the answer was finished. Press Again." : "The server gave no answer: its queue may be full, or the connection was lost. Send the message again.";
    live = null;
    if (turn.state !== "done") finish(turn);
    status(turn); refresh(); notify();
  };
  const finish = (turn) => {
    turn.state = "done";
    redrawFoot(turn);
    status(turn);
    refresh();
    persist();
    announce(turn.answer.error ? turn.answer.error : `Answer finished, ${omni.plural(turn.answer.figures?.tokens ?? 0, "token")}.`);
  };
  chat.receive = (value) => {
    if (!live) return;
    const firstEnd = value.indexOf("\n");
    if (firstEnd < 0 || !value.slice(0, firstEnd).includes(live.run)) return; // an older run's last words
    const until = value.lastIndexOf("\n") + 1;
    if (until <= offset) return;
    const turn = live, stick = atEnd();
    heard = Date.now();
    const fresh = omni.readLines(turn.answer, value.slice(offset, until));
    offset = until;
    append(turn, fresh);
    if (turn.state === "waiting" && fresh.length) turn.state = "streaming";
    if (turn.answer.end || turn.answer.error) finish(turn); else status(turn);
    if (stick) toEnd();
    if (chat.selected === turn) notify();
  };
  // A server that died or forgot us says nothing: after some silence ask whether it is there, and never hang on a stop.
  const SILENCE = 5000, STOP_SILENCE = 3000;
  setInterval(async () => {
    const turn = live, silence = Date.now() - heard;
    if (!turn || turn.state === "done") return;
    if (turn.state === "stopping") { if (silence > STOP_SILENCE) { turn.answer.meta.stopped = true; chat.settled(); } return; }
    if (silence < SILENCE) return;
    heard = Date.now();
    if (!(await omni.alive()) && live === turn) chat.settled();
  }, 1000);
  chat.setPair = (state) => {
    const off = { failed: `Send is off: ${state.error}`, absent: `Send is off: ${state.target} is not loaded. Press “Load” above.`, gone: "Send is off: the server does not answer." };
    pair = { ready: state.stage === "ready", why: off[state.stage] ?? "", reads: state.reads ?? "" };
    if (!parts) return;
    refresh();
    if (pair.ready && queued) send();
  };
  chat.setPrompts = (list) => { omni.examples.set(list); };

  // ── the last turn again ─────────────────────────────────────────────────────────────────────────────────────
  const dropFrom = (turn) => {
    const index = chat.turns.indexOf(turn);
    for (const gone of chat.turns.splice(index)) gone.node?.remove();
    if (chat.turns.length) redrawFoot(chat.turns.at(-1));
  };
  const again = (turn) => { if (!busy() && pair.ready) { dropFrom(turn); chat.ask(turn.user); } };
  const edit = (turn) => {
    if (busy()) return;
    dropFrom(turn);
    select(chat.turns.at(-1) ?? null);
    if (!editing) draft = parts.box.value;
    editing = true;
    compose(turn.user);
    refresh(); persist();
  };
  const clear = () => {
    if (busy()) return;
    chat.turns.splice(0).forEach((turn) => turn.node?.remove());
    select(null); refresh(); persist();
    parts.box.focus();
  };

  chat.forget = () => { draft = ""; if (parts && !busy()) clear(); };

  // ── a reload keeps the chat ─────────────────────────────────────────────────────────────────────────────────
  const persist = () => {
    let room = KEEP_CHARACTERS;
    const kept = chat.turns.slice(-KEEP_TURNS).reverse().map((turn) => {
      const full = turn.answer.lines.length <= room;
      room -= full ? turn.answer.lines.length : 0;
      const { text, figures, counts, error, end } = turn.answer;
      return { run: turn.run, user: turn.user.slice(0, 20_000), lines: full ? turn.answer.lines : "", text: full ? "" : text.slice(0, 20_000), figures, counts, error, ended: Boolean(end), stopped: Boolean(turn.answer.meta.stopped) };
    });
    if (!omni.save("chat", kept.reverse())) omni.save("chat", kept.slice(-2));
    try { sessionStorage.setItem("omnidemo.chat", localStorage.getItem("omnidemo.chat")); } catch { /* the newest tab's chat comes back, then */ }
  };
  const restore = () => {
    let kept = omni.load("chat", []);
    try { kept = JSON.parse(sessionStorage.getItem("omnidemo.chat")) ?? kept; } catch { /* no storage of this tab's own: that of all tabs */ }
    for (const item of Array.isArray(kept) ? kept : []) {
      if (typeof item?.user !== "string") continue;
      const answer = omni.newAnswer();
      omni.readLines(answer, item.lines || "");
      if (!item.lines && item.text) omni.readLines(answer, JSON.stringify({ k: "t", i: 0, t: item.text, s: "plain", r: 0, n: 0, p: null }));
      Object.assign(answer, { figures: answer.figures ?? item.figures, counts: answer.counts ?? item.counts, error: answer.error ?? item.error });
      if (!item.ended && !answer.error) answer.meta[item.stopped ? "stopped" : "cut"] = true;
      chat.turns.push({ run: item.run, user: item.user, answer, state: "done" });
    }
    chat.turns.forEach((turn) => draw(turn));
    select(chat.turns.at(-1) ?? null);
    toEnd();
  };
  window.addEventListener("pagehide", () => { if (busy()) persist(); });

  // ── drawing ─────────────────────────────────────────────────────────────────────────────────────────────────
  const draw = (turn) => {
    const tokens = el("div", { class: "toks", tabindex: 0, role: "group", "aria-label": "Answer. The arrow keys step through its tokens." });
    const user = el("div", { class: "say" });
    user.textContent = turn.user;
    turn.parts = { tokens, status: el("div", { class: "status" }), foot: el("div", { class: "foot" }) };
    turn.node = el("article", { class: "turn", onclick: () => select(turn), onfocusin: () => { if (chat.selected !== turn) select(turn); } },
      el("div", { class: "user" }, el("span", { class: "who" }, "You"), user),
      el("div", { class: "answer" }, el("span", { class: "who" }, "Model"), tokens, turn.parts.status, turn.parts.foot));
    omni.watchTokens(tokens, turn.answer, announce);
    parts.log.append(turn.node);
    turn.drawn = 0;
    append(turn, turn.answer.tokens);
    status(turn);
    if (turn.state === "done") redrawFoot(turn);
  };
  const append = (turn, lines) => {
    const fragment = document.createDocumentFragment();
    for (const line of lines) fragment.append(omni.tokenSpan(line, turn.drawn++));
    turn.parts.tokens.append(fragment);
  };
  const endings = { length: "Ended at the longest answer allowed; raise it under Advanced (with Expert on).", cancelled: "Stopped by you.", context: "Ended because the model's context is full; ask for less at once, or clear the chat." };
  const status = (turn) => {
    const { status: box } = turn.parts, answer = turn.answer;
    turn.node.setAttribute("aria-busy", String(turn === live));
    turn.node.classList.toggle("live", turn === live && turn.state !== "done");
    box.className = "status";
    if (answer.error) { box.classList.add("error"); box.textContent = answer.error; return; }
    if (turn.state === "waiting") { box.replaceChildren(el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i")), turn.place || "Waiting for the first token"); return; }
    if (turn.state === "stopping") { box.textContent = "Stopping…"; return; }
    box.textContent = endings[answer.meta.stopped ? "cancelled" : answer.end?.finish] ?? (answer.meta.cut ? "Cut off by a reload." : answer.end && !answer.text ? "The model ended its answer at once." : "");
  };
  const redrawFoot = (turn) => {
    const { figures, meta, text } = turn.answer, foot = turn.parts.foot;
    const last = () => chat.turns.at(-1) === turn;
    const facts = el("span", { class: "facts" });
    if (figures) {
      const pace = omni.figure(figures, "estimated_speedup"), right = figures.guesses_right, step = figures.block_efficiency;
      const pieces = [omni.plural(figures.tokens ?? 0, "token"), omni.faster(pace), step == null ? null : `${omni.format(step, "number")} tokens a step`, right == null ? null : `${omni.format(right, "percent")} of the guesses right`];
      const technical = [figures.tokens_per_second == null ? null : `${omni.format(figures.tokens_per_second, "number")} tok/s`, meta.method ? omni.methodTitle(meta.method) : null, meta.version === undefined ? null : meta.version ? `adapter v${meta.version}` : "base drafter"];
      const joined = (list) => list.filter(Boolean).join(" · ");
      facts.append(joined(pieces), el("span", { class: "omni-expert" }, ` · ${joined(technical)}`));
    }
    const line = meta.topic || (meta.line && meta.line !== "default") ? el("p", { class: "said" }, meta.topic ? el("b", { title: meta.why || null }, `Topic: ${labels.topics[meta.topic] ?? meta.topic}`) : "", meta.why ? el("span", { class: "omni-expert" }, ` · ${meta.why}`) : "", meta.line && meta.line !== "default" ? `${meta.topic ? " · " : ""}Topic memory ${meta.line}` : "") : null;
    const note = meta.note ? el("p", { class: "said note" }, meta.note) : null;
    const copy = el("button", { type: "button", class: "link", onclick: async () => { copy.textContent = (await omni.copy(text)) ? "Copied" : "Copying failed"; setTimeout(() => { copy.textContent = "Copy"; }, 1500); } }, "Copy");
    foot.replaceChildren(...[line, note].filter(Boolean), facts, el("span", { class: "acts" }, ...[omni.replay?.buttons?.(turn) ?? []].flat(), text ? copy : null,
      last() ? el("button", { type: "button", class: "link last", onclick: () => again(turn) }, "Again") : null,
      last() ? el("button", { type: "button", class: "link last", onclick: () => edit(turn) }, "Edit") : null));
  };
  const select = (turn) => {
    chat.selected = turn;
    parts?.log.querySelectorAll(".turn.selected").forEach((node) => node.classList.remove("selected"));
    if (chat.turns.length > 1) turn?.node?.classList.add("selected");
    notify();
  };
  const notify = () => {
    const counts = chat.selected?.answer.counts;
    for (const item of parts?.legend ?? []) item.count.textContent = counts?.[item.key] ?? "0";
    chat.listeners.forEach((listen) => listen(chat.selected, chat.turns.indexOf(chat.selected) + 1, chat.turns.length, chat.selected === live && busy()));
  };

  // Gradio writes the place in the queue, and refusals, into its own (hidden) status line; nothing else tells.
  const watchQueue = (block) => {
    const tracker = block?.querySelector("[data-testid=status-tracker]");
    if (!tracker) return;
    new MutationObserver(() => {
      if (!live || live.state === "done") return;
      const place = /queue:\s*(\d+)\/(\d+)/.exec(tracker.textContent);
      const before = live.place;
      live.place = place ? `Waiting in the queue: place ${place[1]} of ${place[2]}` : "";
      if (live.place !== before) status(live);
      if (tracker.querySelector(".error")) chat.settled();
    }).observe(tracker, { childList: true, subtree: true, characterData: true });
  };

  const log = () => parts.scroll;
  const atEnd = () => log().scrollHeight - log().scrollTop - log().clientHeight < 80;
  const toEnd = () => { log().scrollTop = log().scrollHeight; };
  const announce = (text) => { parts.voice.textContent = text; };
  const compose = (text) => { parts.box.value = text; grow(); parts.box.focus(); };
  const grow = () => { parts.box.style.height = "auto"; parts.box.style.height = `${Math.min(parts.box.scrollHeight + 2, 180)}px`; };
  const refresh = () => {
    parts.root.classList.toggle("busy", busy());
    parts.root.classList.toggle("empty", !chat.turns.length);
    parts.send.disabled = busy() || !pair.ready;
    parts.send.title = pair.ready ? "" : pair.why || "The models are still being loaded; Enter sends as soon as they are ready";
    parts.stop.disabled = !busy() || live.state !== "waiting" && live.state !== "streaming";
    parts.clear.disabled = busy() || !chat.turns.length;
    if (queued && !parts.box.value.trim()) queued = false;
    const [text, warn] = pair.why ? [pair.why, true] : queued && !pair.ready ? ["This is sent as soon as the models are ready.", false] : [chat.turns.length ? pair.reads : "", false];
    parts.hint.textContent = text;
    parts.hint.classList.toggle("warn", warn);
  };
  const send = () => {
    const text = parts.box.value;
    if (!text.trim()) { parts.box.focus(); return; }
    if (chat.ask(text)) { parts.box.value = editing ? draft : ""; draft = ""; editing = queued = false; grow(); refresh(); } else if (!pair.ready) { queued = true; refresh(); }
  };
  const pick = (prompt) => { if (chat.ask(prompt) || (busy() && parts.box.value.trim())) return; compose(prompt); if (!busy()) send(); };

  // ── views and legend ────────────────────────────────────────────────────────────────────────────────────────
  const applyView = () => {
    Object.assign(parts.log.dataset, { view: settings.view, discarded: settings.discarded ? "on" : "off", only: settings.only });
    parts.views.forEach(([key, button]) => button.setAttribute("aria-pressed", String(key === settings.view)));
    parts.discard.setAttribute("aria-pressed", String(settings.discarded));
    parts.legend.forEach((item) => item.button.setAttribute("aria-pressed", String(item.key === settings.only)));
    omni.save("view", settings);
  };
  const toolbar = () => {
    parts.views = [["tokens", "Colours", "Every token coloured by where it came from"], ["text", "Text", "The answer without colours"], ["pieces", "Pieces", "The small model's pieces of merged tokens, as in There|fore → Therefore (the drafter's sub-tokens)"]].map(([key, title, help]) =>
      [key, el("button", { type: "button", class: key === "pieces" ? "omni-expert" : null, title: help, onclick: () => { settings.view = key; applyView(); } }, title)]);
    parts.discard = el("button", { type: "button", class: "toggle omni-expert", title: "Show guesses that were thrown away, struck through (discarded drafts)", onclick: () => { settings.discarded = !settings.discarded; applyView(); } }, "Thrown-away guesses");
    parts.clear = el("button", { type: "button", class: "toggle", title: "Empty this page; History keeps what was stored", onclick: clear }, "Clear chat");
    return el("div", { class: "bar" }, el("div", { class: "segments", role: "group", "aria-label": "View of the answer" }, ...parts.views.map(([, button]) => button)), parts.discard, el("span", { class: "grow" }), parts.clear);
  };
  const legend = () => {
    parts.legend = labels.legend.map(({ key, title, help }) => {
      const count = el("b", {}, "0");
      const act = () => {
        settings.only = settings.only === key ? "" : key;
        if (key === "discarded") settings.discarded = Boolean(settings.only);
        applyView();
      };
      const button = el("button", { type: "button", class: `s-${key}`, title: help, "aria-pressed": "false", onclick: act }, el("i", { class: "swatch", "aria-hidden": "true" }), title, count);
      return { key, count, button };
    });
    return el("div", { class: "legend", role: "group", "aria-label": "Where the tokens of this answer came from. Press one to isolate it." }, ...parts.legend.map((item) => item.button));
  };

  omni.widgets.chat = (host, context) => {
    trigger = context.trigger;
    parts = { root: host };
    const bar = toolbar(), classes = legend();
    parts.empty = el("section", { class: "empty-state" });
    parts.log = el("div", { class: "log", role: "log", "aria-label": "Conversation", "aria-live": "polite" });
    parts.scroll = el("div", { class: "scroll", tabindex: -1 }, parts.empty, parts.log);
    parts.chips = el("div", { class: "chips", role: "group", "aria-label": "Example prompts" });
    parts.voice = el("div", { class: "omni-offscreen", "aria-live": "polite" });
    parts.hint = el("p", { class: "hint", role: "status" });
    parts.box = el("textarea", { rows: 1, id: "omni-message", placeholder: matchMedia("(max-width: 800px)").matches ? "Ask something" : "Ask something. Enter sends, Shift+Enter breaks the line.", "aria-label": "Message", oninput: () => { grow(); if (queued) { queued = false; refresh(); } }, // what is being edited is not sent
      onkeydown: (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); } } });
    parts.send = el("button", { type: "button", class: "send", onclick: send }, "Send");
    parts.stop = el("button", { type: "button", class: "stop", onclick: chat.stop, "aria-label": "Stop the answer", title: "Esc" }, "Stop");
    host.append(bar, parts.scroll, classes, el("div", { class: "composer" }, parts.chips, el("div", { class: "entry" }, parts.box, parts.send, parts.stop), parts.hint), parts.voice);
    omni.onExpert((on) => { // what only experts can switch off again goes with the switch
      if (!on) Object.assign(settings, { view: settings.view === "pieces" ? "tokens" : settings.view, discarded: settings.only === "discarded" });
      applyView();
    });
    watchQueue(context.element.closest(".block"));
    omni.examples.place(parts.chips, parts.empty, pick);
    if (chat.turns.length) { live = null; chat.turns.forEach((turn) => draw(turn)); } else restore();
    refresh();
    return { update: chat.receive };
  };
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !event.defaultPrevented && busy()) chat.stop(); });
})();
