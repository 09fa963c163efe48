// What guessing costs here, to try by hand: how many guesses are right and how many are made, → times plain decoding by the measured cost table.
import { el, drawing, fill } from "../shared/dom.js";
import { format } from "../shared/format.js";

const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [300, 150, 34, 12, 22];
// Tokens a step where each of `length` guesses is right with the chance `right`, if the one before it was.
export const tokensOf = (right, length) =>
  Array.from({ length: length + 1 }, (_, n) => right ** n).reduce((sum, one) => sum + one);
// Times plain decoding by the length of the draft. `costs[n]`: of a step that checks n guesses, in plain steps.
export const timesOf = (right, costs) => costs.map((cost, length) => tokensOf(right, length) / cost);

const slider = (label, max, value, draw) => {
  const shown = el("b"),
    input = el("input", {
      type: "range",
      min: 0,
      max,
      value: String(value),
      "aria-label": label,
      oninput: () => draw(),
    });
  return { node: el("label.small", shown, " ", label, input), shown, value: () => +input.value };
};
let costs = [],
  answers = [];
const right = slider("of the guesses are right", 95, 60, () => draw()),
  length = slider("guesses at once", 12, 4, () => draw()),
  plot = el("div"),
  said = el("p.small", { role: "status" });
const panel = el(
  "section.prices",
  { hidden: true },
  el("h3", "What guessing brings here"),
  right.node,
  length.node,
  said,
  plot,
);
const draw = () => {
  panel.hidden = costs.length < 2;
  if (panel.hidden) return;
  const chance = right.value() / 100,
    many = Math.min(length.value(), costs.length - 1),
    times = timesOf(chance, costs),
    best = times.indexOf(Math.max(...times)),
    points = answers.filter(one => one.speed && one.length != null && one.length < costs.length),
    most = 1.1 * Math.max(1.5, ...times, ...points.map(one => one.speed)),
    x = n => LEFT + ((WIDTH - LEFT - 8) * n) / (costs.length - 1),
    y = value => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / most;
  right.shown.textContent = format(chance, "percent");
  length.shown.textContent = String(many);
  fill(
    said,
    `${format(tokensOf(chance, many), "number")} tokens a step, and a step costs ${format(costs[many], "number")} plain ones: `,
    el("b", format(times[many], "times")),
    ` plain decoding. ${best ? `Best here: ${best} at once, ${format(times[best], "times")}.` : "No guess pays here."}`,
  );
  const made = drawing(
    WIDTH,
    HEIGHT,
    "price-curve",
    `Times plain decoding by the number of guesses: ${times.map(one => one.toFixed(2)).join(", ")}`,
  );
  made.line(LEFT, y(1), WIDTH - 8, y(1), "plain");
  made.write("1 ×", LEFT - 6, y(1) + 4, "tick", "end");
  made.path(
    times.map((one, n) => [x(n), y(one)]),
    "steps",
  );
  for (const one of points)
    made.point(
      x(one.length),
      y(one.speed),
      3,
      "measured",
      `Answer ${one.number}: ${format(one.speed, "times")} measured, ${format(one.length, "number")} guesses a step`,
    );
  made.point(x(many), y(times[many]), 5, "chosen", `${format(times[many], "times")}`);
  for (const n of [0, 4, 8, 12])
    if (n < costs.length) made.write(String(n), x(n), HEIGHT - 6, "tick", "middle");
  fill(
    plot,
    made.node,
    el(
      "p.small",
      `Line: by this machine’s cost table, without copied tokens. ${points.length ? "Dots: measured answers." : "Answers stand here as dots once their speed is measured."}`,
    ),
  );
};
export const prices = {
  node: panel,
  costs: list => {
    costs = list ?? [];
    draw();
  },
  answers: list => {
    answers = list;
    draw();
  },
};
