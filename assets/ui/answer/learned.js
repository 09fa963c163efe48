// Pieces of an answer that are guessed right by what was learned: chips, and a press on one shows where it stands.
import { visible } from "./tokens.js";
import { clickable, fill } from "../shared/dom.js";

const MOST = 40; // characters on a chip
// `pieces`: of the answer, each [its first token, how many]. `box`: gives the box with all tokens of the answer.
export const drawLearned = (node, said, pieces, answer, box) => {
  const written = answer.tokens.filter(line => line.k === "t"),
    parts = pieces.map(([first, count]) => [first, first + count]);
  const light = (event, part) => {
    event.stopPropagation();
    document.querySelectorAll(".tok.lit").forEach(span => span.classList.remove("lit"));
    const spans = [...box().querySelectorAll(".tok")].slice(...part);
    spans.forEach(span => span.classList.add("lit"));
    spans[0]?.scrollIntoView({ block: "nearest" });
  };
  const chip = part => {
    const text = written
      .slice(...part)
      .map(line => line.t)
      .join("")
      .trim();
    return (
      text &&
      clickable("piece", visible(text).replaceAll("␣", " ").slice(0, MOST), event => light(event, part))
    );
  };
  const chips = parts.map(chip).filter(Boolean);
  fill(node, chips.length > 0 && [said, ...chips]);
};
