// What guessing brought an answer, in one sentence made of the answer's own figures, and how fast it was where that was measured.
(() => {
  const { format, plural } = omni;
  const RARE = 1.05; // tokens a step below which guessing has brought next to nothing
  // What became of the small model's own guesses.
  const judged = (right, made) => {
    if (made === 1) return `the small model’s one guess was ${right ? "right" : "wrong"}`;
    if (right === made) return `all ${format(made, "count")} guesses of the small model were right`;
    return right ? `${format(right, "count")} of the small model’s ${format(made, "count")} guesses ${right === 1 ? "was" : "were"} right` : `none of the small model’s ${format(made, "count")} guesses was right`;
  };

  // Why nothing was guessed; `guessing` is how the answer was set up (`Generation.guessing`).
  const none = (figures, guessing) => ({
    none: "Nothing was guessed: the method chosen never guesses.",
    off: "Nothing was guessed: guessing is switched off.",
    paused: "No guess: the small model’s had cost more time than they saved lately, so it rests and tries again soon.",
  })[guessing] ?? (figures.tokens > 1 ? "No guess this time: none promised to pay, or the big model’s own pace was being timed." : "");

  // The sentence on an answer; empty while there are no figures.
  omni.outcome = (answer) => {
    const f = answer.figures, guessing = answer.end?.guessing;
    if (!f || !f.tokens) return "";
    const copies = f.copies_proposed || 0, copied = f.copied || 0, made = (f.proposed || 0) - copies, right = (f.accepted || 0) - copied;
    if (!made && !copies) return none(f, guessing);
    const brought = `${format(f.block_efficiency, "number")} tokens for one step of the big model${f.block_efficiency < RARE ? ", hardly more than without guessing" : ""}`;
    const own = made ? judged(right, made) : guessing === "paused" ? "the small model rests, for its guesses had cost more than they saved" : "";
    const copy = copied ? `${format(copied, "count")} of ${plural(f.tokens, "token")} ${copied === 1 ? "was" : "were"} copied` : copies ? "nothing that was copied was right" : "";
    return `${brought}: ${[copy, own].filter(Boolean).join(", ")}.`;
  };
})();
