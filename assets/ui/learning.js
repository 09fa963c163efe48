// The learning panel: what the trainer does, and the curve of its line.
(() => {
  const { el, svg } = omni;

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
    const plain = el("p", { class: "alert", role: "status", hidden: true }), ahead = el("p", { class: "small ahead omni-expert" }), numbers = el("dl", { class: "numbers omni-expert" });
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
        acts.hidden = !s.loaded; // nothing can be paused or forgotten before there is a pair
        state.textContent = !s.loaded ? "" : s.version ? `${s.title} · v${s.version}` : s.title;
        why.textContent = !s.loaded ? "It starts when both models are loaded." : s.error || s.why;
        facts.textContent = [omni.plural(s.seen, "request") + " seen", s.step ? omni.plural(s.step, "step") : null, s.loss != null ? `loss ${s.loss.toFixed(2)}` : null].filter(Boolean).join(" · ");
        head.textContent = s.domain === "default" ? "Learning" : `Learning · ${s.domain}`;
        const d = s.curve.some(([, , line]) => line === s.domain) ? s.drafting : null; // before its first answer only the warm-up has drafted
        plain.hidden = !d || d.speculating; plain.textContent = plain.hidden ? "" : d.sentence;
        ahead.hidden = !d || !d.speculating;
        if (!ahead.hidden) { ahead.replaceChildren(el("b", {}, d.length ? `Guesses ${d.length.toFixed(1)} tokens ahead` : "Guesses ahead"), ` · ${d.title}`); ahead.title = d.sentence; }
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
        warning.textContent = s.store.ok ? "" : `${s.store.message}${s.store.pending ? ` ${omni.plural(s.store.pending, "write")} waiting.` : ""} Chatting goes on.`;
      },
    };
  };
})();
