// The page's script: it brings all views, and exports what Gradio calls, and nothing else. Python says it as `(await omni).NAME`
// (ui/shell.py: `widget`, `script`), for `omni` is the promise of this module that the page's head makes (ui/app.py).
import "./adaptation/adaptation.js";
import "./adaptation/answers.js";
import "./adaptation/learning.js";
import "./answer/tokens.js";
import "./chat/chat.js";
import "./chat/drawer.js";
import "./chat/files.js";
import "./chat/kept.js";
import "./chat/turns.js";
import "./chat/views.js";
import "./history/history.js";
import "./models/better.js";
import "./models/pair.js";
import "./replay/race.js";
import "./replay/replay.js";
import "./replay/slow.js";
import "./shared/gradio.js";
import "./shared/visitor-strip.js";

export { showMethod } from "./chat/panels.js";
export { speeds } from "./chat/speeds.js";
export { compare } from "./compare/compare.js";
export { pressDownload } from "./shared/fields.js";
export { settled } from "./shared/job.js";
export { news } from "./shared/server.js";
export { send, session } from "./shared/visitor.js";
export { mount } from "./shared/widgets.js";
export { task } from "./task/task.js";
