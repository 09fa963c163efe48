// What was recorded of an answer, as rounds and as lanes on one clock.
import { guessed } from "../answer/records.js";

// Rounds of an answer's lines: {guesses: [{t, s, state: kept | wrong | unseen}], wrote, tokens, times: [draft, verify, rest] in µs, or null,
// offers: what each source offered, or null}.
export const roundsOf = answer => {
  const found = new Map();
  const of = index => {
    if (!found.has(index))
      found.set(index, { index, guesses: [], wrote: null, tokens: [], times: null, offers: null });
    return found.get(index);
  };
  for (const line of answer.tokens) {
    const round = of(line.r);
    if (line.k === "x") round.guesses.push({ ...line, state: line.j ? "wrong" : "unseen" });
    else {
      round.tokens.push(line);
      if (guessed(line)) round.guesses.splice(round.tokens.length - 1, 0, { ...line, state: "kept" });
      else round.wrote = line;
    }
  }
  for (const line of answer.rounds ?? [])
    if (found.has(line.r))
      Object.assign(of(line.r), {
        times: line.s ? [line.s[0], line.s[1], line.s[2] + line.s[3]] : null,
        offers: line.o ?? null,
      });
  return [...found.values()].sort((a, b) => a.index - b.index);
};

// A lane is rounds on one axis: microseconds where all were timed, else steps of the big model. `ends[k]`: when round k is over.
export const STEP = 1e6;
const SHARES = [0.25, 0.5, 0.25]; // what a round without times is shown as
export const laneOf = (title, rounds, more = {}) => {
  const timed = rounds.length > 0 && rounds.every(round => round.times);
  const parts = rounds.map(round => (timed ? round.times : SHARES.map(share => share * STEP)));
  let at = 0;
  const starts = [],
    ends = parts.map(times => {
      starts.push(at);
      at += times[0] + times[1] + times[2];
      return at;
    });
  let count = 0;
  const written = rounds.map(round => (count += round.tokens.length));
  return {
    title,
    rounds,
    timed,
    parts,
    starts,
    ends,
    written,
    total: at,
    count,
    tokens: rounds.flatMap(round => round.tokens),
    ...more,
  };
};
export const placeAt = (ends, t) => {
  let low = 0,
    high = ends.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (ends[mid] <= t) low = mid + 1;
    else high = mid;
  }
  return low;
};
export const ageOf = seconds => {
  const ago = Math.max(0, Date.now() / 1000 - seconds);
  return ago < 90
    ? `${Math.round(ago)} s ago`
    : ago < 5400
      ? `${Math.round(ago / 60)} min ago`
      : ago < 172800
        ? `${Math.round(ago / 3600)} h ago`
        : `${Math.round(ago / 86400)} days ago`;
};
export const clockOf = us => {
  const s = us / 1e6;
  return s >= 10
    ? `${s.toFixed(1)} s`
    : s >= 0.1
      ? `${s.toFixed(2)} s`
      : us >= 1000
        ? `${(us / 1000).toFixed(us >= 1e4 ? 0 : 1)} ms`
        : `${(us / 1000).toFixed(2)} ms`;
};
// What became of a guess: how its chip looks, and its mark.
export const MARKS = { kept: ["right", "✓"], wrong: ["wrong", "✗"], unseen: ["unseen", "–"] };
export const wordOf = text => text.replaceAll("\n", "⏎").replaceAll("\t", "⇥").trim() || (text ? "␣" : "▫");
