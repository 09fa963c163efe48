// The small widgets around the chat: brand, loading line, this answer's figures, trainer, method help, notice, prompts.
(() => {
  const { el, svg, labels } = omni;

  omni.widgets.brand = (host) => { host.append(el("h1", {}, labels.title), el("p", {}, labels.subtitle)); };
  omni.widgets.notice = (host) => ({ update: (value) => { host.textContent = JSON.parse(value); } });
  omni.widgets.prompts = () => ({ update: (value) => omni.chat.setPrompts(JSON.parse(value)) });

  omni.widgets.pair = (host, { trigger }) => {
    const dot = el("i", { class: "dot", "aria-hidden": "true" }), line = el("span", { role: "status" }), fill = el("i");
    const meter = el("span", { class: "meter", role: "progressbar", "aria-label": "Loading", "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
    const retry = el("button", { type: "button", class: "link", onclick: () => trigger("retry") }, "Try again");
    host.append(dot, line, meter, retry);
    line.textContent = "Connecting…";
    const facts = (info) => [
      info.target_parameters && info.drafter_parameters ? `${omni.short(info.drafter_parameters)} parameters guess for ${omni.short(info.target_parameters)}` : null,
      info.mapped && info.target_tokens ? `${omni.format(info.mapped, "count")} of ${omni.format(info.target_tokens, "count")} target tokens shared with the drafter` : null,
      info.ngram_share != null ? `${omni.format(info.ngram_share, "percent")} reachable through n-grams` : null,
      info.device ? `${info.device}${info.dtype ? ` ${info.dtype}` : ""}` : null,
    ].filter(Boolean);
    return {
      update: (value) => {
        const state = JSON.parse(value), ready = state.stage === "ready", failed = state.stage === "failed", absent = state.stage === "absent";
        host.dataset.state = ready ? "ready" : failed || absent ? "failed" : "loading";
        retry.textContent = absent ? "Load" : "Try again";
        const percent = Math.round(100 * (state.fraction || 0));
        if (ready) {
          const [first, ...more] = facts(state.info);
          line.replaceChildren(["Ready", first].filter(Boolean).join(" · "), el("span", { class: "more" }, more.map((fact) => ` · ${fact}`).join("")));
        } else line.textContent = failed ? state.error : absent ? `${state.target} is not loaded.` : `Loading ${state.target}: ${state.title}, ${percent} %${state.detail ? ` · ${state.detail}` : ""}`;
        meter.setAttribute("aria-valuenow", percent);
        fill.style.width = `${percent}%`;
        omni.chat.setPair(state);
        for (const [id, help] of Object.entries(labels.help)) document.getElementById(id)?.setAttribute("title", help);
      },
    };
  };

  omni.showMethod = () => {};
  omni.widgets.method = (host) => {
    omni.showMethod = (name) => {
      const method = labels.methods[name];
      if (!method) return;
      host.replaceChildren(el("span", { class: `badge ${method.lossless ? "good" : "warn"}` }, method.lossless ? labels.lossless : labels.approximate), el("p", {}, method.help));
    };
    omni.showMethod(labels.method);
  };

  omni.widgets.answer = (host) => {
    const title = el("h3", {}, "This answer"), grid = el("dl", { class: "figures" }), split = el("div", { class: "split" }), foot = el("p", { class: "small" });
    const empty = el("p", { class: "small" }, "Speed, accepted guesses and where the time went appear here while an answer is written.");
    host.append(title, empty, grid, split, foot);
    const cells = labels.figures.map((item) => {
      const value = el("dd", {}, "–");
      grid.append(el("div", { title: item.help, class: item.key }, value, el("dt", {}, item.title)));
      return { ...item, value };
    });
    const bar = el("div", { class: "split-bar", role: "img" }), key = el("div", { class: "split-key" });
    split.append(bar, key);
    const segments = Object.entries(labels.split).map(([name, label]) => {
      const piece = el("i", { class: name }), text = el("span", { class: name }, el("i", { class: "swatch", "aria-hidden": "true" }), "");
      bar.append(piece); key.append(text);
      return { name, label, piece, text };
    });
    const draw = (turn, index, count, live) => {
      const figures = turn?.answer.figures;
      host.classList.toggle("idle", !figures);
      title.textContent = live ? "This answer · live" : count > 1 && index ? `Answer ${index} of ${count}` : "This answer";
      if (!figures) return;
      for (const cell of cells) {
        cell.value.textContent = omni.format(figures[cell.key], cell.as);
        cell.value.parentElement.hidden = cell.key === "estimated_speedup" && (figures[cell.key] == null || figures.acceptance_rate == null); // nothing to compare: no plain round is known, or there were no others
      }
      const seconds = { draft_seconds: figures.draft_seconds || 0, verify_seconds: figures.verify_seconds || 0, rest_seconds: (figures.settle_seconds || 0) + (figures.other_seconds || 0) };
      const total = seconds.draft_seconds + seconds.verify_seconds + seconds.rest_seconds;
      split.hidden = !total;
      for (const { name, label, piece, text } of segments) {
        const share = total ? seconds[name] / total : 0;
        piece.style.width = `${100 * share}%`;
        text.lastChild.textContent = `${label} ${omni.format(share, "percent")}`;
      }
      bar.setAttribute("aria-label", `Time: ${segments.map(({ text }) => text.textContent).join(", ")}`);
      const { method, version } = turn.answer.meta;
      foot.textContent = [labels.methods[method]?.title ?? method, version === undefined ? null : version ? `adapter v${version}` : "base drafter", turn.answer.meta.line && turn.answer.meta.line !== "default" ? `line ${turn.answer.meta.line}` : null, figures.context_mismatch ? "the drafter cannot spell all of this text, so it guesses worse; the answer is right" : null].filter(Boolean).join(" · ");
    };
    omni.chat.listeners.push(draw);
    draw(omni.chat.selected, omni.chat.turns.length, omni.chat.turns.length, false);
  };

  // Acceptance over requests, with a mark where a new adapter came in. Points are [acceptance, version].
  const sparkline = (points) => {
    const width = 300, height = 64, low = 4, high = height - 6;
    const x = (i) => (points.length < 2 ? width / 2 : (i * (width - 8)) / (points.length - 1) + 4);
    const y = (a) => high - Math.max(0, Math.min(1, a)) * (high - low);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark", role: "img", "aria-label": `Acceptance over the last ${points.length} requests: from ${omni.format(points[0][0], "percent")} to ${omni.format(points.at(-1)[0], "percent")}` });
    for (const level of [0, 0.5, 1]) picture.append(svg("line", { x1: 0, x2: width, y1: y(level), y2: y(level), class: "grid" }));
    points.forEach(([, version], i) => {
      const before = points.slice(0, i).findLast(([, , line]) => line === points[i][2]); // every line counts its own versions
      if (!before || version === before[1]) return;
      const mark = svg("line", { x1: x(i) - (x(1) - x(0)) / 2, x2: x(i) - (x(1) - x(0)) / 2, y1: low, y2: high, class: "swap" });
      mark.append(svg("title", {}, `adapter v${version}`));
      picture.append(mark);
    });
    const smooth = points.map((_, i) => { const part = points.slice(Math.max(0, i - 4), i + 1); return part.reduce((sum, [a]) => sum + a, 0) / part.length; });
    points.forEach(([a], i) => picture.append(svg("circle", { cx: x(i), cy: y(a), r: 1.6 })));
    picture.append(svg("polyline", { points: smooth.map((a, i) => `${x(i)},${y(a)}`).join(" ") }));
    return picture;
  };

  omni.widgets.trainer = (host, { trigger }) => {
    const button = (title, name, style = "") => el("button", { type: "button", class: style, onclick: () => trigger(name) }, title);
    const warning = el("p", { class: "alert", role: "alert", hidden: true });
    const head = el("h3", {}, "Learning"), dot = el("i", { class: "dot", "aria-hidden": "true" }), state = el("b"), why = el("p", { class: "small" }), facts = el("p", { class: "small facts" });
    const plain = el("p", { class: "alert", role: "status", hidden: true }), ahead = el("p", { class: "small ahead" }), numbers = el("dl", { class: "numbers" });
    const chart = el("div", { class: "chart" }), acts = el("div", { class: "acts" });
    const really = el("div", { class: "really", role: "alertdialog", "aria-label": "Reset the drafter?", hidden: true });
    const pause = button("Pause", "pause"), resume = button("Resume", "resume");
    const closeReally = () => { really.hidden = true; reset.hidden = false; reset.focus(); };
    const reset = el("button", { type: "button", onclick: () => { really.hidden = false; reset.hidden = true; really.querySelector("button").focus(); } }, "Reset");
    really.append(el("p", { class: "small" }, "Back to the base drafter? The adapters of this line are forgotten, for everybody. Resetting the default line forgets the n-grams of the pair, too."),
      el("div", { class: "acts" }, el("button", { type: "button", class: "danger", onclick: () => { trigger("reset"); closeReally(); } }, "Yes, reset"), el("button", { type: "button", onclick: closeReally }, "Keep it")));
    acts.append(pause, resume, reset);
    acts.hidden = true;
    host.append(warning, el("div", { class: "line" }, head, el("span", { class: "state", role: "status" }, dot, state)), why, plain, ahead, chart, facts, numbers, acts, really);
    why.textContent = "Asking the trainer…";
    return {
      update: (value) => {
        const s = JSON.parse(value);
        host.dataset.state = s.state;
        acts.hidden = false;
        state.textContent = s.version ? `${s.title} · v${s.version}` : s.title;
        why.textContent = s.error || s.why;
        facts.textContent = [omni.plural(s.seen, "request") + " seen", s.step ? omni.plural(s.step, "step") : null, s.loss != null ? `loss ${s.loss.toFixed(2)}` : null].filter(Boolean).join(" · ");
        head.textContent = s.domain === "default" ? "Learning" : `Learning · ${s.domain}`;
        const d = s.curve.some(([, , line]) => line === s.domain) ? s.drafting : null; // before its first answer only the warm-up has drafted
        plain.hidden = !d || d.speculating; plain.textContent = plain.hidden ? "" : d.sentence;
        ahead.hidden = !d || !d.speculating;
        if (!ahead.hidden) { ahead.replaceChildren(el("b", {}, d.length ? `Guesses ${d.length.toFixed(1)} tokens ahead` : "Guesses ahead"), ` · ${d.title}${d.speedup == null ? "" : ` · ≈ ${omni.format(d.speedup, "times")} plain decoding`}`); ahead.title = d.sentence; }
        const signed = (share) => `${share > 0 ? "+" : ""}${(100 * share).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`;
        numbers.replaceChildren(...[
          ["learns", s.mode, "When training runs; see Settings below"],
          ["expected gain", s.gain == null ? "not known yet" : signed(s.gain), "By how much the next update is expected to change the tokens per second"],
          ["cost to a chat", s.cost == null ? "not measured yet" : signed(s.cost), s.cost == null ? "How much longer a round takes while a step runs; measured when both happen at once" : `How much longer a round took while a step ran, over ${omni.plural(s.rounds, "round")}`],
          ["rolled back", omni.plural(s.rolled, "time"), "Versions that guessed worse on new answers than the ones before, and were taken back"],
          ["topic shifts", String(s.shifts), "Drops of the acceptance that started the training again"],
          ["last update", s.swap ? `${omni.when(s.swap)}${s.seconds ? `, ${omni.format(s.seconds, "seconds")}` : ""}` : "none yet", "When new weights went live, and how long they had trained"],
        ].map(([name, value, help]) => el("div", { title: help }, el("dt", {}, name), el("dd", {}, value))));
        chart.replaceChildren(s.curve.length ? sparkline(s.curve) : el("p", { class: "small" }, "No answers yet: the acceptance curve starts with the first one."));
        if (s.curve.length) chart.append(el("p", { class: "small legendline" }, "accepted share per answer", el("span", {}, "┆ new adapter")));
        pause.hidden = s.state === "paused" || s.state === "off";
        resume.hidden = s.state !== "paused";
        warning.hidden = s.store.ok;
        warning.textContent = s.store.ok ? "" : `History is not being saved: ${s.store.message}${s.store.pending ? ` ${omni.plural(s.store.pending, "write")} waiting.` : ""} Chatting goes on.`;
      },
    };
  };
})();
