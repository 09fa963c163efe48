// A button that copies a text.
import { clickable, el } from "./dom.js";

export const copy = async text => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    /* no clipboard outside https and localhost */
  }
  const area = el("textarea.omni-offscreen");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
};

export const copyButton = (text, label = "Copy", name = null) => {
  const button = clickable(
    "link copy",
    label,
    async event => {
      event.stopPropagation();
      button.textContent = (await copy(text())) ? "Copied" : "Copying failed";
      setTimeout(() => {
        button.textContent = label;
      }, 1500);
    },
    { "aria-label": name },
  );
  return button;
};
