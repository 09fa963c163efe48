// An answer as records: the server's lines, one JSON object each, and what they say together.

// A turn's answer. `tokens` holds the parsed lines; spans refer to them by index. Blocks are its Markdown, of the first `read` characters;
// `context`: what of the model's window it took; `reading`: how far its prompt was read, where that took long; `ahead`: the guesses under check,
// {r: their round, t: texts}.
export const newAnswer = () => ({
  lines: "",
  tokens: [],
  rounds: [],
  text: "",
  blocks: [],
  open: [],
  read: 0,
  reading: null,
  ahead: null,
  figures: null,
  counts: null,
  speed: null,
  context: null,
  meta: {},
  end: null,
  error: null,
});

// Whether a line is a proposed token: a guess of the small model, a copy, or what the answer's form forces.
export const guessed = line => line.k === "x" || ["direct", "ngram", "copied", "forced"].includes(line.s);

// Appends the complete lines of `chunk` to the answer; returns the new token lines.
export const readLines = (answer, chunk) => {
  const fresh = [];
  answer.ahead = null;
  for (const raw of chunk.split("\n")) {
    if (!raw) continue;
    let line;
    try {
      line = JSON.parse(raw);
    } catch {
      continue;
    }
    if (line.k === "t" || line.k === "x") {
      fresh.push(line);
      answer.tokens.push(line);
      if (line.k === "t") answer.text += line.t;
    } else if (line.k === "r") {
      answer.rounds.push(line);
    } else if (line.k === "m") {
      answer.blocks.push(...line.b);
      answer.open = line.o;
      answer.read = answer.text.length;
    } else if (line.k === "p") answer.reading = line;
    else if (line.k === "g") answer.ahead = line;
    else if (line.k === "f") {
      answer.figures = line.f;
      answer.counts = line.c;
    } else if (line.k === "run") answer.meta = { ...answer.meta, ...line };
    else if (line.k === "end") {
      answer.end = line;
      answer.figures = { ...answer.figures, ...line.f };
      answer.counts = line.c;
      if (line.context_limit > 0)
        answer.context = {
          tokens: line.context_tokens ?? 0,
          limit: line.context_limit,
          dropped: line.dropped_messages ?? 0,
        };
      answer.meta = {
        ...answer.meta,
        method: line.method,
        version: line.version,
        line: line.line,
        topic: line.topic,
        why: line.why,
      };
    } else if (line.k === "speed") answer.speed = line;
    else if (line.k === "error") answer.error = line.text;
    if (!["p", "f", "g", "m"].includes(line.k)) answer.lines += raw + "\n"; // live figures need not be kept, and blocks are by themselves
  }
  return fresh;
};

export const readAnswer = (lines = "") => {
  const answer = newAnswer();
  readLines(answer, lines);
  return answer;
};
