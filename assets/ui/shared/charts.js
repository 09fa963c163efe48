// Plotly, loaded once: figures that are redrawn in place.
import { el } from "./dom.js";
import { onExpert } from "./expert.js";
import { labels } from "./labels.js";

let library = null;
const load = () => {
  library ||= new Promise((done, failed) => {
    if (window.Plotly) return done(window.Plotly);
    const base = (window.gradio_config?.root || "").replace(/\/$/, "");
    const script = el("script", {
      src: `${base}/${labels.plotly}`,
      onload: () => done(window.Plotly),
      onerror: () => {
        library = null;
        failed(new Error("The charts could not be loaded. Reload the page."));
      },
    });
    document.head.append(script);
  });
  return library;
};

const drawn = new Map(); // host → figure
const touch = matchMedia("(pointer: coarse)").matches;
const put = async host => {
  const figure = drawn.get(host);
  let Plotly;
  try {
    Plotly = await load();
  } catch (error) {
    host.textContent = error.message;
    return;
  }
  if (!host.isConnected || host.offsetParent === null || drawn.get(host) !== figure) return; // hidden, or newer data came meanwhile
  const style = getComputedStyle(host),
    [ink, card, text] = ["soft", "card", "ink"].map(name => style.getPropertyValue(`--o-${name}`).trim());
  const given = structuredClone(figure.layout); // plotly writes the ranges it shows into what it is given
  const layout = {
    ...given,
    autosize: true,
    font: { ...given.font, color: ink, family: style.fontFamily, ...(innerWidth <= 800 && { size: 14 }) },
    hoverlabel: { align: "left", bgcolor: card, bordercolor: ink, font: { color: text, size: 12 } },
  };
  if (touch) layout.dragmode = false; // a finger scrolls the page
  await Plotly.react(host, figure.data, layout, { displayModeBar: false, doubleClick: "reset" });
};
const sizer = new ResizeObserver(entries => {
  for (const { target, contentRect } of entries) {
    if (!target.isConnected) {
      sizer.unobserve(target);
      drawn.delete(target);
      continue;
    }
    if (contentRect.width && target.data) window.Plotly.Plots.resize(target);
  }
});
export const drawChart = (host, figure) => {
  if (!drawn.has(host)) sizer.observe(host);
  drawn.set(host, figure);
  put(host);
};
export const plotAgain = () => {
  for (const host of [...drawn.keys()]) host.isConnected ? put(host) : drawn.delete(host);
};
let dark = null;
new MutationObserver(() => {
  const now = document.body.classList.contains("dark");
  if (dark !== null && now !== dark) plotAgain();
  dark = now;
}).observe(document.documentElement, { attributes: true, attributeFilter: ["class"], subtree: true });

onExpert(() => setTimeout(plotAgain, 0)); // charts that were hidden are put up
