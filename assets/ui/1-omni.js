// The page's own little library: widgets, elements, storage, numbers. Text always goes through textContent.
(() => {
  const omni = (window.omni = { widgets: {}, labels: window.OMNI_LABELS });

  // Called by every gr.HTML of the page (see ui/shell.py: widget). A widget is (host, context) => {update(value)}.
  omni.mount = (name, context) => {
    const host = context.element.querySelector(".omni-widget");
    if (!host || host.dataset.mounted) return;
    host.dataset.mounted = "1";
    const made = omni.widgets[name]?.(host, context) || {};
    const update = () => {
      if (made.update && context.props.value) made.update(context.props.value);
    };
    context.watch("value", update);
    update();
  };

  omni.el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "class") node.className = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children) if (child !== null && child !== undefined) node.append(child);
    return node;
  };

  omni.svg = (tag, attributes = {}, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  // An empty drawing for eye and screen reader, and what writes into it.
  omni.drawing = (width, height, cls, label) => {
    const node = omni.svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      class: cls,
      role: "img",
      "aria-label": label,
    });
    const write = (text, x, y, kind, anchor = "start") => {
      const words = omni.svg("text", { x, y, class: kind, "text-anchor": anchor });
      words.textContent = text;
      node.append(words);
    };
    return { node, write };
  };

  // A bar that fills: its node, and what sets the share of it, 0 to 1.
  omni.meter = (label, tag = "div") => {
    const fill = omni.el("i"),
      node = omni.el(
        tag,
        {
          class: "meter",
          role: "progressbar",
          "aria-label": label,
          "aria-valuemin": 0,
          "aria-valuemax": 100,
        },
        fill,
      );
    return {
      node,
      set: share => {
        fill.style.width = `${100 * share}%`;
        node.setAttribute("aria-valuenow", Math.round(100 * share));
      },
    };
  };

  // Storage may be full or forbidden: the page then simply forgets.
  omni.load = (key, fallback) => {
    try {
      return JSON.parse(localStorage.getItem(`omnidemo.${key}`)) ?? fallback;
    } catch {
      return fallback;
    }
  };
  omni.save = (key, value) => {
    try {
      localStorage.setItem(`omnidemo.${key}`, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  };

  const patience = () => (AbortSignal.timeout ? AbortSignal.timeout(8000) : undefined);

  // What the page shows is asked for in one event of Gradio's, which costs it far more than to look whether there is news. `asked` notes the
  // values of its inputs and how what is sent is made of them, and makes it; `look` says what the server says of it: a text that changes.
  let ask = null;
  omni.news = {
    asked: (values, make) => {
      ask = () => make([...values]);
      return ask().flat();
    },
    look: async () =>
      ask ? (await omni.visitor.post("visitor/news", { asked: ask() }, patience())).news : undefined,
  };

  // Whether the server answers; a proxy that answers for it does not count.
  omni.alive = async () => {
    try {
      return (
        (await fetch(location.href, { method: "HEAD", cache: "no-store", signal: patience() })).status < 500
      );
    } catch {
      return false;
    }
  };

  // The Expert switch: a mark on the page that the styles read, remembered by the browser.
  const heard = [];
  omni.expert = () => document.documentElement.dataset.expert === "on";
  omni.setExpert = on => {
    document.documentElement.dataset.expert = on ? "on" : "off";
    omni.save("expert", on);
    heard.forEach(listen => listen(on));
    setTimeout(() => omni.plotAgain?.(), 0); // charts that were hidden are put up
  };
  omni.onExpert = listen => {
    heard.push(listen);
    listen(omni.expert());
  };
  document.documentElement.dataset.expert = omni.load("expert", false) === true ? "on" : "off";

  omni.random = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join(
      "",
    );

  // Half a character, as some programs paste it, becomes what is shown for it; the server takes whole ones alone.
  omni.whole = value => (typeof value === "string" && value.toWellFormed ? value.toWellFormed() : value);
  omni.copy = async text => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      /* no clipboard outside https and localhost */
    }
    const area = omni.el("textarea", { class: "omni-offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };

  const formats = {
    number: x => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2)),
    percent: x => `${(100 * x).toFixed(0)} %`,
    share: x => `${(100 * x).toFixed(1)} %`,
    seconds: x => (x < 1 ? `${Math.round(1000 * x)} ms` : `${x.toFixed(1)} s`),
    milliseconds: x => `${formats.number(1000 * x)} ms`,
    count: x => Math.round(x).toLocaleString("en"),
    times: x => `${x.toFixed(2)} ×`,
  };
  omni.format = (value, form) =>
    value === null || value === undefined || Number.isNaN(value) ? "–" : formats[form](value);
  omni.plural = (n, word) => `${omni.format(n, "count")} ${word}${Math.round(n) === 1 ? "" : "s"}`;
})();
