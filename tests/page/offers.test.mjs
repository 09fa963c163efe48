// What a round chose from, in words; a line is [source, tokens, expected, price, chance, taken].
import assert from "node:assert/strict";
import test from "node:test";
import { whyChosen } from "../../assets/ui/answer/offers.js";

test("the offer that was taken is named with its price, beside the best other one", () => {
  const said = whyChosen(
    [
      ["plain", 0, 1, 1, 1, false],
      ["drafter", 3, 2.4, 1.5, 0.4, false],
      ["copy", 8, 6, 2, 0.6, true],
    ],
    8,
  );
  assert.equal(
    said,
    "The step took 8 tokens from memory, with 6.00 tokens expected for the price of 2.00 steps, so 3.00 per price." +
      " The best other offer was 3 tokens of the small model, with 1.60 per price.",
  );
});

test("without a guess the best offer is said, and that it had to bring more", () => {
  const cheap = whyChosen([["drafter", 2, 1.8, 2, 0.4, false]], 0);
  assert.match(
    cheap,
    /^The big model wrote alone\. The best offer was 2 tokens of the small model.*Without a guess it is 1\.$/,
  );
  assert.match(whyChosen([["drafter", 2, 2.1, 2, 0.4, false]], 0), /a guess has to bring more by a margin/);
  assert.match(whyChosen([["plain", 0, 1, 1, 1, true]], 0), /no source offered a guess/);
});

test("nothing is said of a round whose offers are not known", () => {
  assert.match(whyChosen(null, 3), /nothing is known/);
  assert.match(whyChosen([["drafter", 2, 3, 2, 0.4, true]], 0), /Nothing was proposed in the end\.$/);
});
