# ruff: noqa: E501
"""Small sums as visitors type them, with short answers whose last number is the result."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from . import maths_speech as speech
from .base import Example, Pattern

Sum = tuple[str, str, int]  # what is asked, the answer, the result
_SIGNS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
_GREETINGS = (
    "hi, ", "Hi! ", "hello, ", "hey, ", "ok, ", "and ", "And ", "now ", "please, ", "so ", "quick question: ", "Hello! ", "Good morning! ",
    "well, ", "tell me: ", "next: ",
)  # fmt: skip


def _number(rng: random.Random, words: float, value: int) -> str:
    return speech.spelt(value) if value <= 100 and rng.random() < words else str(value)


def result_of(sign: str, a: int, b: int) -> int:
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // b if b else 0}[sign]


def numbers(rng: random.Random, sign: str) -> tuple[int, int]:
    """Two numbers whose sum, difference, product or quotient a small model can learn."""
    if sign in "+-":
        top = rng.choice((10, 20, 50, 100, 100, 200))
        a, b = rng.randint(0 if rng.random() < 0.1 else 1, top), rng.randint(1, top)
        return (a, b) if sign == "+" else (max(a, b), min(a, b))
    a, b = rng.randint(1, 12), rng.randint(1, 12)
    if rng.random() < 0.15:
        a, b = rng.randint(11, 99), rng.randint(2, 9)
    return (a, b) if sign == "*" else (a * b, b)


def _long(a: int, sign: str, b: int) -> str:
    """The result with the steps on the way of a product that is in no table."""
    result = result_of(sign, a, b)
    if sign == "*" and a > 12 and a % 10:
        tens, ones = a - a % 10, a % 10
        return f"{a} * {b}: {tens} * {b} = {tens * b} and {ones} * {b} = {ones * b}, so {a} * {b} = {result}."
    return f"{a} {sign} {b} = {result}."


def answer(a: int, sign: str, b: int, text: str = "") -> str:
    """How a sum is answered: with signs, or in words when it is asked in words."""
    if f" {_SIGNS[sign]} " in text and text and not any(letter.isdigit() for letter in text):
        return f"{speech.upper(speech.spelt(a))} {_SIGNS[sign]} {speech.spelt(b)} is {result_of(sign, a, b)}."
    return _long(a, sign, b)


# {a} and {b} are the numbers, {s} the sign with or without spaces, {w} its word.
_ASKED = {
    "+": (
        "{a}{s}{b}", "{a}{s}{b} =", "{a}{s}{b}=", "{a}{s}{b}?", "what is {a}{s}{b}?", "what's {a}{s}{b}?", "whats {a}{s}{b}",
        "What's {a} plus {b}?", "what is {a} plus {b}", "how much is {a}{s}{b}?", "how much is {a} and {b}?", "{a} plus {b}",
        "{a} plus {b}?", "What does {a} plus {b} make?", "add {a} and {b}", "Add {b} to {a}.", "what do you get if you add {a} and {b}?",
        "the sum of {a} and {b}", "Find the sum of {a} and {b}.", "can you add {a} and {b}?", "{a} and {b} together?",
        "tell me what {a}{s}{b} is", "what is the result of {a}{s}{b}?", "solve {a}{s}{b}", "{b} more than {a} is what?",
        "Do you know what {a}{s}{b} is?", "can you tell me {a} plus {b}?", "I need {a} plus {b}.", "{a}{s}{b} makes?",
        "What number is {b} more than {a}?", "sum: {a}, {b}", "{a} added to {b}?",
    ),
    "-": (
        "{a}{s}{b}", "what is {a}{s}{b}?", "what's {a}{s}{b}?", "whats {a} minus {b}", "What's {a} minus {b}?",
        "how much is {a} minus {b}?", "how much is {a}{s}{b}?", "{a} minus {b}", "{a} minus {b}?", "What does {a} minus {b} make?",
        "take {b} away from {a}", "subtract {b} from {a}", "{a} take away {b}", "{a} less {b} is what?",
        "what do you get if you take {b} from {a}?", "the difference between {a} and {b}", "can you subtract {b} from {a}?",
        "What is left if I take {b} from {a}?", "tell me what {a}{s}{b} is", "Do you know what {a} minus {b} is?",
        "Find the difference of {a} and {b}.", "What number is {b} less than {a}?", "I need {a} minus {b}.", "from {a} take {b}",
        "what is the result of {a}{s}{b}?", "how far is it from {b} to {a}?",
    ),
    "*": (
        "{a}{s}{b}", "{a}x{b}", "{a} x {b}", "{a}{s}{b} =", "{a}x{b}=", "{a} x {b}?", "what is {a}{s}{b}?", "what's {a} times {b}?",
        "{a} times {b}", "{a} times {b}?", "whats {a} x {b}", "how much is {a} times {b}?", "multiply {a} by {b}", "multiply {a} and {b}",
        "what do you get if you multiply {a} by {b}?", "can you multiply {a} by {b}?",
        "{a} multiplied by {b}", "tell me what {a} times {b} is", "what is {a}x{b}", "how much is {a}{s}{b}?", "What does {a} times {b} make?",
        "Do you know {a} times {b}?", "I need {a} times {b}.", "solve {a} x {b}", "what is the result of {a} x {b}?",
    ),
    "/": (
        "{a}{s}{b} =", "what is {a}{s}{b}?", "what's {a} divided by {b}?", "{a} divided by {b}", "{a} divided by {b}?",
        "how much is {a} divided by {b}?", "how much is {a}{s}{b}?", "divide {a} by {b}", "can you divide {a} by {b}?",
        "what do you get if you divide {a} by {b}?", "tell me what {a}{s}{b} is", "share {a} by {b}", "how often does {b} fit into {a}?",
        "split {a} into {b} equal parts. how big is one part?", "whats {a} over {b}", "What does {a} divided by {b} make?",
        "Do you know {a} divided by {b}?", "I need {a} divided by {b}.", "what is the result of {a}{s}{b}?",
    ),
}  # fmt: skip


def _basic(rng: random.Random, form: str, sign: str, words: bool) -> Sum:
    a, b = numbers(rng, sign)
    if words:
        while max(a, b) > 100:
            a, b = numbers(rng, sign)
    share = rng.choice((1.0, 1.0, 0.5)) if words else 0.0
    space = rng.random() < 0.5
    spoken = f" {_SIGNS[sign]} " if words else f" {sign} " if space else sign
    text = form.format(a=_number(rng, share, a), b=_number(rng, share, b), s=spoken)
    return text, answer(a, sign, b, text), result_of(sign, a, b)


def _three(rng: random.Random, form: str) -> Sum:
    if rng.random() < 0.6:
        a, b, c = (rng.randint(1, rng.choice((9, 20, 40))) for _ in range(3))
        shown, first, result = (a, "+", b, "+", c), a + b, a + b + c
    else:
        a, b = rng.randint(2, 60), rng.randint(1, 40)
        c = rng.randint(1, a + b)
        shown, first, result = (a, "+", b, "-", c), a + b, a + b - c
    space = "" if rng.random() < 0.5 else " "
    text = form.format(space.join(map(str, shown)))
    return text, f"{a} + {b} = {first} and {first} {shown[3]} {c} = {result}.", result


def _mixed(rng: random.Random, form: str) -> Sum:
    a, b, c = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 9)
    kind = rng.randrange(4)
    space = "" if rng.random() < 0.3 else " "

    def joined(*parts: object) -> str:
        return space.join(map(str, parts))

    if kind == 0:
        r, z, shown = a + b, (a + b) * c, joined(f"({joined(a, '+', b)})", "*", c)
        steps = f"First the brackets: {a} + {b} = {r}. Then {r} * {c} = {z}."
    elif kind == 1:
        r, z, shown = b * c, a + b * c, joined(a, "+", b, "*", c)
        steps = f"Times comes before plus: {b} * {c} = {r}. Then {a} + {r} = {z}."
    elif kind == 2:
        a += b
        r, z, shown = a - b, (a - b) * c, joined(f"({joined(a, '-', b)})", "*", c)
        steps = f"First the brackets: {a} - {b} = {r}. Then {r} * {c} = {z}."
    else:
        r, z, shown = a * b, a * b + c, joined(a, "*", b, "+", c)
        steps = f"First {a} * {b} = {r}. Then {r} + {c} = {z}."
    return form.format(shown), steps, z


def _part(rng: random.Random, form: str) -> Sum:
    """Halves, doubles, thirds, quarters: `form` names the kind before a colon."""
    kind, _, text = form.partition(":")
    z = rng.randint(1, 50 if kind in ("half", "double") else 12)
    word = 0.3
    if kind == "double":
        return text.format(_number(rng, word, z)), f"Double {z} is {z} + {z} = {2 * z}.", 2 * z
    if kind == "triple":
        return text.format(_number(rng, word, z)), f"Three times {z} is 3 * {z} = {3 * z}.", 3 * z
    by = {"half": 2, "third": 3, "quarter": 4}[kind]
    head = {"half": "Half of", "third": "A third of", "quarter": "A quarter of"}[kind]
    return text.format(_number(rng, word, z * by)), f"{head} {z * by} is {z * by} / {by} = {z}.", z


def _percent(rng: random.Random, form: str) -> Sum:
    share, by = rng.choice(((10, 10), (50, 2), (25, 4), (20, 5), (100, 1)))
    z = rng.randint(1, 20)
    whole = z * by
    if by == 1:
        return form.format(p=100, a=whole), f"100 percent of {whole} is all of it, so it is {whole}.", whole
    return form.format(p=share, a=whole), f"{share} percent of {whole} is {whole} / {by} = {z}.", z


def _check(rng: random.Random, form: str) -> Sum:
    sign = rng.choice("++--**")
    a, b = numbers(rng, sign)
    result = result_of(sign, a, b)
    said = result if rng.random() < 0.5 else max(0, result + rng.choice((-10, -2, -1, 1, 2, 10)))
    sides = f"{a} {sign} {b}" if rng.random() < 0.5 else f"{a} {_SIGNS[sign]} {b}"
    yes = said == result
    return form.format(sum=sides, z=said), f"{'Yes' if yes else 'No'}, {a} {sign} {b} = {result}.", result


def _compare(rng: random.Random, form: str) -> Sum:
    kind, _, text = form.partition(":")
    a, b = rng.sample(range(1, 200 if rng.random() < 0.3 else 100), 2)
    if rng.random() < 0.2:
        b = int(str(a)[::-1])
        if b == a:
            b = a + 9
    high, low = max(a, b), min(a, b)
    big = kind == "big"
    word = "smaller" if big else "bigger"
    winner, other = (high, low) if big else (low, high)
    return text.format(a=a, b=b), f"{other} is {word} than {winner}, so the answer is {winner}.", winner


def _next(rng: random.Random, form: str) -> Sum:
    kind, _, text = form.partition(":")
    a = rng.randint(1, rng.choice((20, 100, 110)))
    if kind == "next":
        return text.format(_number(rng, 0.2, a)), f"After {a} comes {a + 1}.", a + 1
    return text.format(_number(rng, 0.2, a)), f"Before {a} comes {a - 1}.", a - 1


def _count(rng: random.Random, form: str) -> Sum:
    kind, _, text = form.partition(":")
    step = 1
    if kind == "step":
        step = rng.choice((2, 3, 5, 10))
    low = rng.randint(1, 30) if step == 1 else step * rng.randint(1, 4)
    high = low + step * rng.randint(2, 10)
    row = list(range(low, high + 1, step))
    if kind == "down":
        row.reverse()
    return text.format(a=row[0], b=row[-1], step=step), ", ".join(map(str, row)) + ".", row[-1]


def _round(rng: random.Random, form: str) -> Sum:
    a = rng.randint(11, 199)
    if a % 10 == 0:
        a += rng.randint(1, 9)
    low = a - a % 10
    z = low + 10 if a % 10 >= 5 else low
    if a % 10 == 5:
        return form.format(a), f"{a} is in the middle of {low} and {low + 10}, and we round up, so it is {z}.", z
    return form.format(a), f"{a} is between {low} and {low + 10} and closer to {z}.", z


def _square(rng: random.Random, form: str) -> Sum:
    a = rng.randint(1, 12)
    return form.format(a=_number(rng, 0.2, a)), f"{a} * {a} = {a * a}.", a * a


def _spell(rng: random.Random, form: str) -> Sum:
    a = rng.randint(0, 100)
    return form.format(speech.spelt(a)), f"{speech.upper(speech.spelt(a))} is {a}.", a


def _missing(rng: random.Random, form: str) -> Sum:
    b, z = rng.randint(1, 50), rng.randint(1, 50)
    return form.format(a=b + z, b=b), f"{b + z} - {b} = {z}, so the missing number is {z}.", z


def _remainder(rng: random.Random, form: str) -> Sum:
    b, q = rng.randint(2, 10), rng.randint(1, 10)
    z = rng.randint(1, b - 1)
    a = b * q + z
    return form.format(a=a, b=b), f"{b} * {q} = {b * q}, and {a} - {b * q} = {z}, so the rest is {z}.", z


_FORMS: dict[str, tuple[Callable[[random.Random, str], Sum], tuple[str, ...]]] = {
    **{f"sum_{name}": (partial(_basic, sign=sign, words=False), _ASKED[sign])
       for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"))},
    **{f"sum_words_{name}": (partial(_basic, sign=sign, words=True), tuple(form for form in _ASKED[sign] if "x" not in form.replace("next", "")))
       for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"))},
    "sum_three": (_three, (
        "{}", "{} =", "{}=", "{}?", "what is {}?", "what's {}", "how much is {}?", "whats {}?", "solve {}", "tell me {}",
        "what do you get for {}?", "can you do {}?", "{} makes?", "I need the result of {}.",
    )),
    "sum_mixed": (_mixed, (
        "{}", "{} =", "{}=", "{}?", "what is {}?", "what's {}", "how much is {}?", "solve {}", "tell me {}", "what do you get for {}?",
        "can you do {}?", "I need the result of {}.",
    )),
    "sum_part": (_part, (
        "half:half of {}", "half:what is half of {}?", "half:what's half of {}", "half:how much is half of {}?", "double:double {}",
        "double:what is double {}?", "double:two times {}?", "double:what's twice {}", "double:the double of {}",
        "triple:triple {}", "triple:what is three times {}?", "third:a third of {}", "third:what is a third of {}?",
        "quarter:a quarter of {}", "quarter:what is a quarter of {}?", "half:{} divided in two halves, how big is one?",
    )),
    "sum_percent": (_percent, (
        "what is {p}% of {a}", "what is {p}% of {a}?", "{p}% of {a}", "{p} percent of {a}", "how much is {p} percent of {a}?",
        "what's {p}% of {a}?", "find {p}% of {a}", "{p} percent of {a} is what?", "Can you tell me {p}% of {a}?",
        "If I take {p} percent of {a}, what do I get?", "calculate {p}% of {a}", "{p} % of {a} = ?",
    )),
    "sum_check": (_check, (
        "is {sum} equal to {z}?", "is {sum} {z}?", "{sum} is {z}, right?", "is it true that {sum} is {z}?", "does {sum} make {z}?",
        "is {z} the result of {sum}?", "I think {sum} is {z}. Is that right?", "Check this: {sum} = {z}", "{sum} = {z}, correct?",
        "My answer for {sum} is {z}. Is it right?", "true or false: {sum} is {z}", "somebody says {sum} is {z}. is that so?",
    )),
    "sum_compare": (_compare, (
        "big:which is bigger, {a} or {b}?", "big:what is more, {a} or {b}?", "big:which number is larger, {a} or {b}?",
        "big:is {a} or {b} bigger?", "small:which is smaller, {a} or {b}?", "small:what is less, {a} or {b}?",
        "small:is {a} or {b} smaller?", "small:which of {a} and {b} is the smaller number?", "big:{a} or {b}, which is greater?",
        "big:the larger of {a} and {b}?", "big:what is the maximum of {a} and {b}?", "small:what is the minimum of {a} and {b}?",
    )),
    "sum_next": (_next, (
        "next:what comes after {}", "next:what comes after {}?", "next:which number follows {}?", "next:what is the next number after {}?",
        "next:I count to {}. What comes next?", "before:what comes before {}?", "before:which number is right before {}?",
        "before:what number comes just before {}", "next:one more than {}", "before:one less than {}?", "next:the number after {}?",
    )),
    "sum_count": (_count, (
        "up:count from {a} to {b}", "up:count up from {a} to {b}", "up:Please count from {a} to {b}.", "up:can you count from {a} to {b}?",
        "down:count down from {a} to {b}", "down:count backwards from {a} to {b}", "down:Can you count down from {a} to {b}?",
        "step:count from {a} to {b} in steps of {step}", "step:count by {step} from {a} to {b}", "up:the numbers from {a} to {b}",
        "up:list all the numbers from {a} to {b}", "step:go from {a} to {b} in steps of {step}",
    )),
    "sum_round": (_round, (
        "round {} to the nearest ten", "Round {} to tens.", "what is {} rounded to the nearest ten?", "can you round {} to the nearest ten?",
        "which ten is nearest to {}?", "to the nearest ten, what is {}?", "{} rounded to ten", "please round {} to the nearest 10",
        "I want to round {} to the nearest ten. What is it?", "Is {} closer to the ten below or the ten above? Which ten is it?",
    )),
    "sum_square": (_square, (
        "{a} squared", "what is {a} squared?", "{a}^2", "the square of {a}", "what is the square of {a}?", "{a} times itself",
        "multiply {a} by itself", "what's {a}^2?", "how much is {a} squared?", "square {a}", "what is {a} times {a}?",
    )),
    "sum_spelt": (_spell, (
        "{} in digits", "write {} as a number", "what number is {}?", "how do you write {} in digits?", "the number {} in figures",
        "Write the number {} with digits.", "which number is {}?", "please write {} as a number", "put {} in digits", "{} as a number?",
    )),
    "sum_missing": (_missing, (
        "{b} + what = {a}?", "{b} plus what is {a}?", "how much must I add to {b} to have {a}?", "what is missing from {b} to {a}?",
        "{b} and how many more make {a}?", "? + {b} = {a}", "x + {b} = {a}, what is x?", "if x + {b} = {a}, find x",
        "I think of a number and add {b}. Now it is {a}. What was my number?", "{a} is {b} plus what?", "find the missing number: {b} + _ = {a}",
    )),
    "sum_rest": (_remainder, (
        "what is the remainder of {a} divided by {b}?", "what is left over when you divide {a} by {b}?", "the rest of {a} divided by {b}",
        "{a} divided by {b}, what is the rest?", "{a} mod {b}", "I share {a} by {b}. What is the remainder?",
        "divide {a} by {b} and tell me the rest", "remainder of {a} / {b}?", "how much is left if {a} is split into groups of {b}?",
    )),
}  # fmt: skip


def ask(rng: random.Random, task: str, form: str) -> Sum:
    """One sum as a visitor types it: with a capital or without, now and then with a greeting in front."""
    text, said, result = _FORMS[task][0](rng, form)
    if rng.random() < 0.12:
        text = rng.choice(_GREETINGS) + text
        text = text if text[-1] in "?.=" or rng.random() < 0.5 else f"{text}?"
    elif rng.random() < 0.3:
        text = speech.upper(text)
    elif rng.random() < 0.15 and not form.startswith("{a}{s}{b}"):  # "12 / 3" alone is held out of training
        text = text.rstrip("?.").rstrip().lower() if rng.random() < 0.7 else f"{text.rstrip('?.').rstrip()} please"
    return text, said, result


def _pattern(task: str, form: str, name: str) -> Pattern:
    def pattern(rng: random.Random) -> Example:
        text, said, result = ask(rng, task, form)
        return Example("maths", name, ((text, said),), number=str(result))

    return pattern


PATTERNS: dict[str, Pattern] = {
    f"maths/{task}/{i}": _pattern(task, form, f"maths/{task}/{i}") for task, (_, forms) in _FORMS.items() for i, form in enumerate(forms)
}
