// How fast the newest answers were, which is measured later.
import { readLines } from "../answer/records.js";
import { chat } from "./chat.js";
import { widgets } from "../shared/widgets.js";

// The server says it of the newest answers, by their keys, as soon as it knows.
const ASKED = 3;
export const speeds = {
  wanted: () =>
    chat.turns
      .filter(turn => turn.answer.end?.key && !turn.answer.speed)
      .slice(-ASKED)
      .map(turn => turn.answer.end.key)
      .join(" "),
};
export const setSpeed = (turn, speed, again = false) => {
  if (!speed || (turn.answer.speed && !again)) return;
  readLines(turn.answer, JSON.stringify({ k: "speed", ...speed })); // it is kept with the answer's lines
  chat.tell(turn);
  chat.notify();
  chat.keep();
};
widgets.speeds = () => ({
  update: value => {
    const speeds = JSON.parse(value);
    chat.turns.forEach(turn => setSpeed(turn, speeds[turn.answer.end?.key]));
  },
});
