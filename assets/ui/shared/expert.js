import { load, save } from "./storage.js";

// The Expert switch: a mark on the page that the styles read, remembered by the browser.
const heard = [];
export const expert = () => document.documentElement.dataset.expert === "on";
export const setExpert = on => {
  document.documentElement.dataset.expert = on ? "on" : "off";
  save("expert", on);
  heard.forEach(listen => listen(on));
};
export const onExpert = listen => {
  heard.push(listen);
  listen(expert());
};
document.documentElement.dataset.expert = load("expert", false) === true ? "on" : "off";
