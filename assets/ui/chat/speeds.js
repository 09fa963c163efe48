// How fast the newest answers were, which is measured later.
import { readLines } from "../answer/records.js";
import { chat } from "./chat.js";
import { widgets } from "../shared/widgets.js";

// The server says it of the newest answers, by their keys, as soon as it knows; or why it will not know; or null while it measures.
const ASKED = 3;
export const speeds = {
  asked: () =>
    chat.turns
      .filter(({ answer }) => answer.end?.key && answer.figures?.proposed && !answer.speed)
      .slice(-ASKED),
  wanted: turn => speeds.asked().includes(turn),
  keys: () =>
    speeds
      .asked()
      .map(turn => turn.answer.end.key)
      .join(" "),
};
export const setSpeed = (turn, speed, again = false) => {
  if (!speed || (turn.answer.speed?.speedup && !again)) return;
  readLines(turn.answer, JSON.stringify({ k: "speed", ...speed })); // it is kept with the answer's lines
  chat.tell(turn);
  chat.notify();
  chat.keep();
};
widgets.speeds = () => ({
  update: value => {
    const speeds = JSON.parse(value);
    for (const turn of chat.turns) {
      const found = speeds[turn.answer.end?.key];
      if (found !== null) setSpeed(turn, found);
      else if (!turn.answer.measuring) {
        turn.answer.measuring = true;
        chat.tell(turn);
        chat.notify();
      }
    }
  },
});
