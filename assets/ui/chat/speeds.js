// How fast the newest answers were, and what they have taught, which is known later.
import { readLines } from "../answer/records.js";
import { chat } from "./chat.js";
import { widgets } from "../shared/widgets.js";

// The server says of the newest answers, by their keys, how fast they were as soon as it knows; or why it will not know; or null while it
// measures; and what it would now guess right.
const ASKED = 3;
export const speeds = {
  asked: () =>
    chat.turns
      .filter(({ here, answer }) => answer.end?.key && answer.figures?.proposed && (here || !answer.speed))
      .slice(-ASKED),
  wanted: turn => !turn.answer.speed && speeds.asked().includes(turn),
  keys: () =>
    speeds
      .asked()
      .map(turn => turn.answer.end.key)
      .join(" "),
};
export const setSpeed = (turn, speed, again = false) => {
  const old = turn.answer.speed;
  if (!speed || (!again && (old?.speedup || (old && speed.why)))) return;
  readLines(turn.answer, JSON.stringify({ k: "speed", ...speed })); // it is kept with the answer's lines
  chat.tell(turn);
  chat.notify();
  chat.keep();
};
widgets.speeds = () => ({
  update: value => {
    const speeds = JSON.parse(value);
    for (const turn of chat.turns) {
      const [found, learned] = speeds[turn.answer.end?.key] ?? [];
      if (learned && String(learned) !== String(turn.learned)) {
        turn.learned = learned;
        chat.drawLearned(turn);
      }
      if (found !== null) setSpeed(turn, found);
      else if (!turn.answer.measuring) {
        turn.answer.measuring = true;
        chat.tell(turn);
        chat.notify();
      }
    }
  },
});
