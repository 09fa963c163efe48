// Text files of a message: chosen, dropped, or pasted, also a pasted text that is too long to read in the box. They stand as chips above it,
// and their text is sent with the message, each in a block with its name. So what limits a typed message limits them, too.
import { chat } from "./chat.js";
import { clickable, el, fill, icon } from "../shared/dom.js";
import { joined, plural } from "../shared/format.js";

const MOST = 500_000; // bytes of all files of a message: more than the longest windows read
const LONG = 4000; // characters of a paste above which it becomes a file
const KINDS =
  ".txt,.md,.rst,.tex,.log,.csv,.tsv,.json,.jsonl,.yaml,.yml,.toml,.ini,.xml,.html,.css,.js,.ts,.py,.ipynb,.sql,.sh,.c,.h,.cpp,.java,.go,.rs,.rb,.php,.r,.diff,.patch";
const LANGUAGES = {
  py: "python",
  js: "javascript",
  ts: "typescript",
  md: "markdown",
  sh: "bash",
  rs: "rust",
  rb: "ruby",
  h: "c",
  yml: "yaml",
  txt: "",
};
let files = [],
  box = null; // {name, text, bytes}

const size = bytes =>
  bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1000))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
const called = name =>
  name
    .replace(/[\s`]+/g, " ")
    .trim()
    .slice(0, 100) || "file";
const decoded = bytes => {
  const wide = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.slice(0, 2).join()];
  try {
    const text = new TextDecoder(wide ?? "utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text.replace(/\r\n?/g, "\n");
  } catch {
    return null;
  } // other bytes than of text
};
const add = (name, text, bytes) => {
  const all = files.reduce((sum, one) => sum + one.bytes, bytes);
  if (all > MOST)
    return `“${name}” has ${size(bytes)}, and the files of a message may have ${size(MOST)} together; send a part of it.`;
  if (!text.trim()) return `“${name}” is empty.`;
  files.push({ name, text, bytes });
  return "";
};
const chip = one => {
  const remove = () => {
    files = files.filter(other => other !== one);
    draw();
    chat.parts.box.focus();
  };
  const about = { "aria-label": `Take ${one.name} away`, title: "Take it away" };
  const name = el("b", { dir: "auto" }, one.name);
  return el("span.file", name, el("small", size(one.bytes)), clickable("icon", "×", remove, about));
};
const draw = () => {
  box.hidden = !files.length;
  fill(box, files.map(chip));
};
chat.addFiles = async list => {
  const said = [];
  for (const file of list) {
    const name = called(file.name),
      text = file.size > MOST ? "" : decoded(new Uint8Array(await file.arrayBuffer())); // too long: not even read
    said.push(
      text === null ? `“${name}” is not a text file; only texts can be sent.` : add(name, text, file.size),
    );
  }
  draw();
  const wrong = joined(said, " ");
  if (wrong) chat.say(wrong);
  else chat.announce(`${plural(list.length, "file")} added to the message.`);
  chat.parts.box.focus();
};
const block = ({ name, text }) => {
  const mark = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1))),
    kind = /\.([a-z0-9]{1,8})$/i.exec(name)?.[1].toLowerCase() ?? "";
  return `${name}\n${mark}${LANGUAGES[kind] ?? kind}\n${text.replace(/\n+$/, "")}\n${mark}`;
};
// What is sent: what was typed, and behind it the files.
chat.withFiles = typed => joined([typed.trim() || !files.length ? typed : "", ...files.map(block)], "\n\n");
chat.dropFiles = () => {
  files = [];
  if (box) draw();
};

const pasted = event => {
  const { files: given, items } = event.clipboardData ?? {},
    text = event.clipboardData?.getData("text/plain") ?? "";
  if (given?.length && !text) {
    event.preventDefault();
    return chat.addFiles([...given]);
  }
  if (text.length <= LONG || !items) return;
  event.preventDefault();
  const bytes = new TextEncoder().encode(text).length,
    number = files.filter(one => one.name.startsWith("pasted")).length;
  chat.say(
    add(number ? `pasted-${number + 1}.txt` : "pasted.txt", text.replace(/\r\n?/g, "\n"), bytes) ||
      "What was pasted is long, so it goes along as a file.",
  );
  draw();
};
// The row of chips, and the button that opens the system's own dialog.
chat.fileRow = () => {
  const { root, box: message } = chat.parts;
  box = el("div.files", { role: "group", "aria-label": "Files of the message", hidden: true });
  const chosen = el("input", {
    type: "file",
    multiple: true,
    accept: `text/*,${KINDS}`,
    hidden: true,
    "aria-label": "Text files",
    onchange: () => {
      const list = [...chosen.files];
      chosen.value = "";
      chat.addFiles(list);
    },
  });
  const button = icon(
    "attach",
    "Add a text file",
    "M13.2 7.4l-5.4 5.4a3.3 3.3 0 0 1-4.7-4.7l5.7-5.7a2.2 2.2 0 0 1 3.1 3.1l-5.6 5.6a1.1 1.1 0 0 1-1.6-1.6l5-5",
    () => chosen.click(),
    `Add a text file, up to ${size(MOST)}: its text goes with the message`,
  );
  message.addEventListener("paste", pasted);
  const carries = event => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = on => event => {
    if (!carries(event)) return;
    event.preventDefault();
    root.classList.toggle("dropping", on);
  };
  root.addEventListener("dragover", over(true));
  root.addEventListener("dragleave", event => {
    if (!root.contains(event.relatedTarget)) over(false)(event);
  });
  root.addEventListener("drop", event => {
    over(false)(event);
    if (carries(event)) chat.addFiles([...event.dataTransfer.files]);
  });
  return { box, button, chosen };
};
