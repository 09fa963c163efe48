// What the page mends of Gradio's own parts.

// Gradio's status lines count seconds with every frame, the one of a page that is loaded even when it is gone. Nobody sees these seconds, so
// as soon as such a line reads the clock, the frame that it asks for next is called off: its number is the last one's plus one.
const now = performance.now.bind(performance);
performance.now = () => {
  const caller = new Error().stack.trimEnd().split("\n").at(-1); // in a frame's own call nothing stands below the line's script
  if (caller.includes("/statustracker-")) {
    const number = requestAnimationFrame(() => {});
    cancelAnimationFrame(number);
    queueMicrotask(() => cancelAnimationFrame(number + 1));
  }
  return now();
};

// Arrow keys, Home and End move between tabs; Tab stops at the chosen one alone.
document.addEventListener("keydown", event => {
  if (event.key === "Tab")
    for (const one of document.querySelectorAll("[role=tab]"))
      one.tabIndex = one.getAttribute("aria-selected") === "true" ? 0 : -1;
  const tab = event.target.closest?.("[role=tab]");
  if (!tab || event.ctrlKey || event.metaKey || event.altKey) return;
  const tabs = [...tab.closest("[role=tablist]").querySelectorAll("[role=tab]:enabled")],
    at = tabs.indexOf(tab),
    to = { ArrowLeft: at - 1, ArrowRight: (at + 1) % tabs.length, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  const next = tabs.at(to);
  event.preventDefault();
  next.focus();
  next.click();
});
