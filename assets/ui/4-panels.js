// The small widgets around the chat: brand, loading line, this answer's figures, method help, notice, prompts.
(() => {
  const { el, labels } = omni;

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
})();
