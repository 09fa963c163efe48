// The small widgets around the chat: loading line, this answer's figures, method help, notice, prompts.
(() => {
  const { el, labels } = omni;

  omni.widgets.prompts = () => ({ update: value => omni.chat.setPrompts(JSON.parse(value)) });
  // What becomes of a chat, with the two switches below that change it.
  omni.widgets.notice = host => {
    const page = document.documentElement;
    const change = () => {
      const open = page.dataset.privacy !== "on";
      page.dataset.privacy = open ? "on" : "off";
      button.setAttribute("aria-expanded", String(open));
      if (open) document.querySelector("#omni-privacy input")?.focus();
    };
    const text = el("span"),
      button = el(
        "button",
        {
          type: "button",
          class: "link",
          "aria-expanded": "false",
          "aria-controls": "omni-privacy",
          onclick: change,
        },
        "Change",
      );
    host.append(text, button);
    return {
      update: value => {
        text.textContent = JSON.parse(value);
      },
    };
  };

  // ── the loading line, its details, and the Expert switch ────────────────────────────────────────────────────
  let facts = null;
  omni.widgets.facts = host => {
    facts = host;
  };
  const million = n => `${(n / 1e6).toFixed(1)}\u00a0M`;
  const size = n => (n >= 1e9 ? `${(n / 1e9).toFixed(1)}\u00a0B` : million(n));
  const sentence = ({ target_parameters: big, drafter_parameters: small, target_title: name }) =>
    big && small
      ? `Ready. Small model: ${size(small)} parameters. Big model: ${name ? `${name}, ` : ""}${size(big)}`
      : "Ready";
  const forms = { packed: "packed as in their file", bfloat16: "in bfloat16", float32: "in float32" };
  const BITS = { int8: "eight", int16: "sixteen" }; // of an activation
  const form = (info, role) =>
    `${forms[info[`${role}_form`]]} (${omni.format(Math.max(1, Math.round(info[`${role}_form_bytes`] / 1e6)), "count")} MB)`;
  const details = info =>
    [
      info.target_title && info.target_author
        ? `${info.target_title} is by ${info.target_author}${info.target_licence ? `, licence ${info.target_licence}` : ""}.`
        : null,
      info.target_parameters && info.drafter_parameters
        ? `Target ${omni.format(info.target_parameters, "count")} parameters, drafter ${omni.format(info.drafter_parameters, "count")}.`
        : null,
      info.mapped && info.target_tokens
        ? `${omni.format(info.mapped, "count")} of the target's ${omni.format(info.target_tokens, "count")} tokens are the drafter's too${info.ngram_share != null ? `; ${omni.format(info.ngram_share, "percent")} can be reached through n-grams` : ""}.`
        : null,
      info.context ? `Window ${omni.format(info.context, "count")} tokens.` : null,
      info.device
        ? `Runs on ${info.device}${info.dtype ? ` in ${info.target_arithmetic ?? info.dtype}` : ""}.`
        : null,
      info.target_form
        ? `A pass of the target reads its weights ${form(info, "target")}${info.drafter_form ? `, one of the drafter ${form(info, "drafter")}` : ""}.`
        : null,
      BITS[info.target_arithmetic]
        ? `Whole numbers of ${BITS[info.target_arithmetic]} bits (${info.target_arithmetic}) multiply the target's weights. With guessing the text is the same, bit for bit.`
        : null,
    ]
      .filter(Boolean)
      .join(" ");

  // Looks again and again whether there is news of what the page shows, and whether the server is there, which nothing else says.
  const PULSE = 2000;
  const watchServer = (gone, news) => {
    let missed = 0,
      known;
    const look = async () => {
      if (!document.hidden) {
        try {
          const now = await omni.news.look();
          missed = 0;
          if (now !== known) news();
          known = now;
        } catch {
          missed += 1;
        }
        gone(missed > 1);
      }
      setTimeout(look, PULSE);
    };
    setTimeout(look, PULSE);
  };

  omni.widgets.pair = (host, { trigger }) => {
    const dot = el("i", { class: "dot", "aria-hidden": "true" }),
      line = el("span", { class: "words", role: "status" }),
      share = el("span", { class: "small", "aria-hidden": "true" });
    const meter = omni.meter("Loading", "span");
    const retry = el(
      "button",
      { type: "button", class: "link", onclick: () => trigger("retry") },
      "Try again",
    );
    const stop = el(
      "button",
      {
        type: "button",
        class: "link",
        hidden: true,
        title: "What has come stays, and a later download goes on from there",
        onclick: () => {
          stop.disabled = true;
          stop.textContent = "Stopping…";
          trigger("stop");
        },
      },
      "Stop",
    );
    const more = el(
      "button",
      {
        type: "button",
        class: "toggle details",
        "aria-expanded": "false",
        "aria-controls": "omni-details",
        onclick: () => {
          offered = false;
          open(document.documentElement.dataset.details !== "on");
        },
      },
      "Details",
    );
    let offered = false; // by the page itself, where another pair may be needed: then it goes again by itself
    const open = on => {
      document.documentElement.dataset.details = on ? "on" : "off";
      more.setAttribute("aria-expanded", String(on));
    };
    const knob = el(
      "button",
      {
        type: "button",
        role: "switch",
        class: "expert",
        title: "Methods, settings, and every figure and chart",
        onclick: () => omni.setExpert(!omni.expert()),
      },
      "Expert",
      el("i", { "aria-hidden": "true" }),
    );
    omni.onExpert(on => knob.setAttribute("aria-checked", String(on)));
    host.append(el("span", { class: "state" }, dot, line, share, meter.node, retry, stop), more, knob);
    line.textContent = "Connecting…";
    let shown = null,
      gone = false;
    const draw = () => {
      const state = shown,
        stage = gone ? "gone" : state?.stage;
      const ready = stage === "ready",
        lost = ["failed", "absent", "gone"].includes(stage);
      host.dataset.state = ready ? "ready" : lost ? "failed" : "loading";
      retry.hidden = !lost || gone;
      stop.hidden = gone || !state?.stoppable;
      if (stop.hidden) {
        stop.disabled = false;
        stop.textContent = "Stop";
      }
      if (!state && !gone) return;
      retry.textContent = stage === "absent" ? "Load" : "Try again";
      const percent = Math.round(100 * (state?.fraction || 0)),
        title = state?.title ?? "";
      line.textContent = gone
        ? "The server does not answer. It may have been stopped; the page goes on when it is back."
        : ready
          ? sentence(state.info)
          : stage === "failed"
            ? state.error
            : stage === "absent"
              ? state.detail || `${state.target} is not loaded.`
              : `${title[0].toUpperCase()}${title.slice(1)}…`;
      share.textContent = stage === "downloading" ? `${percent} %` : ""; // beside the line, which is read out when it changes
      line.title = ready || lost ? "" : state.detail;
      meter.node.hidden = ready || lost;
      meter.set(percent / 100);
      if (facts) facts.textContent = ready ? details(state.info) : (state?.detail ?? "");
      omni.chat.setPair(gone ? { ...state, stage: "gone" } : state);
    };
    watchServer(
      now => {
        if (now === gone) return;
        gone = now;
        draw();
        if (!gone) trigger("retry"); // another server may have to load the pair first
      },
      () => trigger("news"),
    );
    return {
      update: value => {
        shown = JSON.parse(value);
        const wanting = ["failed", "absent"].includes(shown.stage);
        if (wanting && document.documentElement.dataset.details !== "on") {
          offered = true;
          open(true);
        } // where another pair is chosen
        if (offered && shown.stage === "ready") {
          offered = false;
          open(false);
        }
        draw();
        for (const [id, help] of Object.entries(labels.help))
          document.getElementById(id)?.setAttribute("title", help);
      },
    };
  };

  omni.showMethod = () => {};
  omni.widgets.method = host => {
    omni.showMethod = name => {
      const method = labels.methods[name];
      if (!method) return;
      host.replaceChildren(
        el(
          "span",
          { class: `badge ${method.lossless ? "good" : "warn"}` },
          method.lossless ? labels.lossless : labels.approximate,
        ),
        el("p", {}, method.help),
      );
    };
    omni.showMethod(labels.method);
  };

  omni.widgets.answer = host => {
    const title = el("h3", {}, "This answer"),
      main = el("dl", { class: "three" }),
      grid = el("dl", { class: "figures omni-expert" }),
      split = el("div", { class: "split omni-expert" }),
      foot = el("p", { class: "small omni-expert" });
    const empty = el(
      "p",
      { class: "small" },
      "Figures appear here while an answer is written: how many tokens one step of the big model brings, how many guesses were right, and how much was copied.",
    );
    host.append(title, empty, main, grid, split, foot);
    const cells = labels.figures.map((item, place) => {
      const value = el("dd", {}, "–"),
        name = el("dt", {}, item.title);
      const node = el("div", { title: item.help, class: item.key }, value, name);
      (place < labels.main_figures ? main : grid).append(node);
      return { ...item, value, node };
    });
    const pace = el("dd"),
      words = el("dt"),
      speed = el(
        "div",
        {
          hidden: true,
          title:
            "While no request is running, the app writes the answer again with and without guessing, in turns",
        },
        pace,
        words,
      );
    main.firstChild.after(speed);
    const bar = el("div", { class: "split-bar", role: "img" }),
      key = el("div", { class: "split-key" });
    split.append(bar, key);
    const segments = Object.entries(labels.split).map(([name, label]) => {
      const piece = el("i", { class: name }),
        text = el("span", { class: name }, el("i", { class: "swatch", "aria-hidden": "true" }), "");
      bar.append(piece);
      key.append(text);
      return { name, label, piece, text };
    });
    const draw = (turn, index, count, live) => {
      const figures = turn?.answer.figures;
      host.classList.toggle("idle", !figures);
      title.textContent = live
        ? "This answer · live"
        : count > 1 && index
          ? `Answer ${index} of ${count}`
          : "This answer";
      if (!figures) return;
      for (const cell of cells) {
        cell.value.textContent = omni.format(figures[cell.key], cell.as);
        cell.node.hidden =
          (main.contains(cell.node) &&
            !figures[cell.key] &&
            (figures[cell.key] == null || cell.key === "copied_share")) ||
          (cell.key === "total_variation" && figures[cell.key] == null); // nothing to tell
      }
      const fast = omni.pace(turn.answer.speed);
      speed.hidden = !fast;
      if (fast) {
        pace.textContent = fast.value;
        words.textContent = fast.words;
      }
      const seconds = {
        draft_seconds: figures.draft_seconds || 0,
        verify_seconds: figures.verify_seconds || 0,
        rest_seconds: (figures.settle_seconds || 0) + (figures.other_seconds || 0),
      };
      const total = seconds.draft_seconds + seconds.verify_seconds + seconds.rest_seconds;
      split.hidden = !total;
      for (const { name, label, piece, text } of segments) {
        const share = total ? seconds[name] / total : 0;
        piece.style.width = `${100 * share}%`;
        text.lastChild.textContent = `${label} ${omni.format(share, "percent")}`;
      }
      bar.setAttribute("aria-label", `Time: ${segments.map(({ text }) => text.textContent).join(", ")}`);
      const { method, version } = turn.answer.meta;
      foot.textContent = [
        omni.methodTitle(method),
        version === undefined ? null : version ? `adapter v${version}` : "base drafter",
        turn.answer.meta.line && turn.answer.meta.line !== "default"
          ? `topic memory ${turn.answer.meta.line}`
          : null,
        figures.context_mismatch
          ? "the drafter cannot spell all of this text, so it guesses worse; the answer is right"
          : null,
      ]
        .filter(Boolean)
        .join(" · ");
    };
    omni.chat.listeners.push(draw);
    draw(omni.chat.selected, omni.chat.turns.length, omni.chat.turns.length, false);
  };
})();
