# ruff: noqa: E501
"""Questions about the answer before: why, are you sure, and if there are more, another one, just the number."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from . import maths_speech as speech
from .base import Example, Pattern
from .maths_problems import MORE, TASKS, worded
from .maths_sums import answer, numbers, result_of

# Problems that end in the number of things that somebody has.
_HELD = (
    "add_find", "sub_give", "sub_lose", "boxes_give", "boxes_more", "find_give", "give_find", "give_two", "more_give", "mul_boxes",
)  # fmt: skip
_EASY = (*_HELD, "sub_compare", "div_share", "div_boxes", "double", "half", "mul_price", "add_two_people", "sub_eat", "add_cost")
_SUM = re.compile(r"\d+(?: [-+*/] \d+)+ = \d+")
_BASIC = {
    "+": ("what is {a}{s}{b}?", "{a}{s}{b}", "{a} plus {b}", "{a} plus {b}?"),
    "-": ("what is {a}{s}{b}?", "{a} minus {b}", "{a} minus {b}?"),
    "*": ("what is {a}{s}{b}?", "{a} times {b}", "{a} x {b}", "{a}x{b}"),
    "/": ("what is {a}{s}{b}?", "{a} divided by {b}", "{a} divided by {b}?"),
}  # fmt: skip


class Begun(NamedTuple):
    """A conversation up to its first answer: its turn, the steps once more, the result, what it counts and who has it."""

    turn: tuple[str, str]
    again: str
    sums: list[str]
    result: int
    things: str
    slots: dict[str, object]
    person: str


def _story(rng: random.Random, names: tuple[str, ...] = _HELD) -> Begun:
    task = TASKS[rng.choice(names)]
    prompts = [prompt for prompt in MORE[task.name] if not prompt.startswith(speech.APART)]
    while True:
        made = worded(rng, task, rng.choice(prompts), "")
        if speech.unit(task.closings) != "{ts}" or str(made.values["ts"]) in made.example.turns[0][1]:
            break
    things = speech.unit(task.closings).format_map(made.values)
    again = " ".join(made.sentences)
    return Begun(made.example.turns[0], again, _SUM.findall(again), int(str(made.values["z"])), things, made.values, made.person)


def _why(a: int, sign: str, b: int) -> str:
    """Why a sum has its result."""
    if sign == "+":
        if a > 10 and b > 10:
            tens, ones = a - a % 10 + b - b % 10, a % 10 + b % 10
            return f"Tens first: {a - a % 10} + {b - b % 10} = {tens}. Then {a % 10} + {b % 10} = {ones}, and {tens} + {ones} = {a + b}."
        if 0 < b <= 5:
            return f"Start at {a} and count up {b}: {', '.join(str(a + i + 1) for i in range(b))}."
        return f"Start at {a} and go {b} up, and you get to {a + b}."
    if sign == "-":
        return f"Because {a - b} + {b} = {a}. So {a} - {b} = {a - b}."
    if sign == "*":
        if 2 <= b <= 4:
            return f"It is {b} times {a}, and {' + '.join([str(a)] * b)} = {a * b}."
        if a > 10 and a % 10:
            return f"{a - a % 10} * {b} = {(a - a % 10) * b} and {a % 10} * {b} = {a % 10 * b}, so together it is {a * b}."
        return f"{a} groups of {b} make {a * b}."
    return f"Because {b} * {a // b} = {a}. So {a} / {b} = {a // b}."


def _bare(rng: random.Random) -> tuple[Begun, int, str, int]:
    sign = rng.choice("++--**/")
    a, b = numbers(rng, sign)
    space = rng.random() < 0.5
    text = rng.choice(_BASIC[sign]).format(a=a, b=b, s=f" {sign} " if space else sign)
    if rng.random() < 0.4:
        text = speech.upper(text)
    result = result_of(sign, a, b)
    return Begun((text, answer(a, sign, b)), _why(a, sign, b), [f"{a} {sign} {b} = {result}"], result, "", {}, ""), a, sign, b


Reply = tuple[str, int]  # the answer and its last number


def _begin(rng: random.Random) -> Begun:
    return _story(rng, _EASY) if rng.random() < 0.6 else _bare(rng)[0]


def _explain(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    begun = _begin(rng)
    return begun, form, (rng.choice(("", "", "Sure. ", "Like this: ")) + begun.again, begun.result)


def _sure(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    begun = _begin(rng)
    said = rng.choice(("Yes. ", "Yes. ", "Yes, I am sure. ", "Yes, it is right. "))
    return begun, form, (said + " and ".join(begun.sums) + ".", begun.result)


def _check(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    begun, a, sign, b = _bare(rng)
    z = begun.result
    back = {"+": f"{z} - {b} = {a}", "-": f"{z} + {b} = {a}", "*": f"{z} / {b} = {a}", "/": f"{z} * {b} = {a}"}[sign]
    return begun, form, (f"Back again: {back}. So it is right: {a} {sign} {b} = {z}.", z)


def _short(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    begun = _begin(rng)
    number = "number" in form or not begun.things
    return begun, form, (f"{begun.result}." if number else f"{begun.result} {begun.things}.", begun.result)


def _counted(begun: Begun, sum_: str, result: int) -> str:
    """The new sum and the sentence that says who has how many now."""
    if begun.person == "name":
        return f"{sum_} = {result}, so {begun.slots['n']} would have {result} {begun.things}."
    if begun.person:
        return f"{sum_} = {result}, so you would have {result} {begun.things}."
    return f"{sum_} = {result}, so there would be {result} {begun.things}."


def _and_if(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    """More or fewer of the things of a problem; the form says which before a colon."""
    kind, _, text = form.partition(":")
    begun = _story(rng)
    while begun.result < 3 or ("<" in text and not begun.person):
        begun = _story(rng)
    words = dict(begun.slots)
    if begun.person == "I":
        words.update(n="I", he="I", his="my", no="me")
    other = rng.randint(2, 30) if kind == "more" else rng.randint(2, begun.result - 1)
    if kind == "twice":
        total, shown = begun.result * 2, f"{begun.result} * 2"
    else:
        total = begun.result + other if kind == "more" else begun.result - other
        shown = f"{begun.result} {'+' if kind == 'more' else '-'} {other}"
    return begun, speech.verbs(text, begun.person or "name").format_map({**words, "x": other}), (_counted(begun, shown, total), total)


def _go_on(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    """One more operation on the result of a sum."""
    sign, _, text = form.partition(":")
    while True:
        begun, *_ = _bare(rng)
        z, x = begun.result, {"+": rng.randint(1, 30), "-": rng.randint(1, 30), "*": rng.randint(2, 9), "2": 2, "h": 2}[sign]
        if (sign in "+-" and z >= x) or (sign == "*" and z <= 20) or (sign == "2" and z <= 100) or (sign == "h" and z % 2 == 0 and z):
            break
    real = {"2": "*", "h": "/"}.get(sign, sign)
    result = result_of(real, z, x)
    return begun, text.format(x), (answer(z, real, x), result)


def _instead(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    """The same sum with another second number."""
    while True:
        begun, a, sign, b = _bare(rng)
        x = rng.randint(1, 40) if sign in "+-" else rng.randint(1, 12)
        if x != b and not (sign == "-" and x > a) and not (sign == "/" and a % x):
            break
    result = result_of(sign, a, x)
    return begun, form.format(x=x, b=b), (answer(a, sign, x), result)


def _next_sum(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    """A new sum of the same or another kind."""
    begun, _, sign, _ = _bare(rng)
    while True:
        sign = sign if rng.random() < 0.5 else rng.choice("+-*/")
        a, b = numbers(rng, sign)
        text = form.format(f"{a} {sign} {b}" if rng.random() < 0.5 else f"{a}{sign}{b}")
        return begun, text, (answer(a, sign, b), result_of(sign, a, b))


def _another(rng: random.Random, form: str) -> tuple[Begun, str, Reply]:
    """A problem of our own, with its solution."""
    kind, _, text = form.partition(":")
    begun = _begin(rng)
    if kind == "sum":
        _, a, sign, b = made_up = _bare(rng)
        return begun, text, (f"Here is one: What is {a} {sign} {b}? {made_up[0].turn[1]}", made_up[0].result)
    task = TASKS[rng.choice(_EASY)]
    prompts = [prompt for prompt in MORE[task.name] if prompt.startswith("{n} <") and prompt.endswith("?")]
    made = worded(rng, task, rng.choice(prompts or MORE[task.name]), "", tidy=True)
    lead = rng.choice(("Here is one: ", "Here is another one: ", "Try this: ", ""))
    return begun, text, (f"{lead}{made.example.turns[0][0]} {' '.join(made.sentences)}", int(str(made.values["z"])))


_FORMS: dict[str, tuple[Callable[[random.Random, str], tuple[Begun, str, Reply]], tuple[str, ...]]] = {
    "follow_why": (_explain, (
        "why?", "Why?", "why is that?", "Why is that so?", "how did you get that?", "How did you get that?", "explain", "Please explain.",
        "can you explain that?", "how do you know?", "I don't get it", "I do not understand. Why?", "how does that work?",
        "How did you work it out?", "explain it again please", "show me the steps", "Show me how you did it.", "what do you mean?",
    )),
    "follow_sure": (_sure, (
        "are you sure?", "Are you sure?", "really?", "is that right?", "Is that correct?", "is this really true?", "sure?", "Are you certain?",
        "hm, are you sure about that?", "I am not sure. Is it right?", "that is right?", "is the answer correct?",
    )),
    "follow_check": (_check, (
        "check it", "Check it, please.", "can you check that?", "Please check your answer.", "check the result", "how can I check that?",
        "test it", "Prove it.", "can you prove it?", "Is there a way to check it?",
    )),
    "follow_short": (_short, (
        "shorter", "Shorter, please.", "just the number", "only the number please", "just the answer", "Just the answer, please.",
        "can you say it shorter?", "make it shorter", "in short?", "the number?", "Only the result, please.", "short answer please",
    )),
    "follow_more": (_and_if, (
        "more:and if {he} <get> {x} more?", "more:And if {he} <get> {x} more?", "more:what if {he} <find> {x} more?",
        "more:then {he} <buy> {x} more. how many now?", "more:and with {x} more?", "more:what if there are {x} more?",
        "more:And if {x} more come?", "more:now add {x}", "more:and {x} more on top?", "more:Suppose {he} <get> another {x}. How many then?",
        "more:what if {m} brings {x} more?", "more:plus {x} more?", "more:And then {x} are added. How many are there?",
    )),
    "follow_less": (_and_if, (
        "less:and if {he} <lose> {x}?", "less:And if {he} <lose> {x} of them?", "less:and what if {x} of them get lost?",
        "less:what if {x} are gone?", "less:and if {x} of them break?", "less:then {he} <give> {x} away. how many now?",
        "less:now take {x} away", "less:And without {x} of them?", "less:what if {he} <give> {x} to {m}?", "less:minus {x}?",
        "less:Suppose {x} go missing. How many then?", "less:and after {x} are sold?", "less:what is left if {x} go?",
    )),
    "follow_twice": (_and_if, (
        "twice:and if {he} had twice as many?", "twice:what if it were double?", "twice:and double that?", "twice:And twice as many?",
        "twice:what is double that?", "twice:now double it", "twice:and two times that?",
    )),
    "follow_go_on": (_go_on, (
        "+:and plus {}?", "+:now plus {}", "+:plus {}?", "+:add {} to that", "+:Now add {}.", "-:now minus {}", "-:and minus {}?",
        "-:minus {}?", "-:take {} away from that", "-:Now subtract {}.", "*:and times {}?", "*:now times {}", "*:Multiply that by {}.",
        "2:and times two?", "2:double it", "2:now double that", "h:and half of that?", "h:halve it", "h:what is half of it?", "+:and {} more?",
    )),
    "follow_instead": (_instead, (
        "and with {x} instead of {b}?", "and with {x}?", "What if it is {x} instead of {b}?", "now with {x} instead of {b}",
        "and {x} instead?", "I meant {x}, not {b}", "Sorry, I meant {x} instead of {b}.", "change the {b} to {x}",
        "the same with {x}", "take {x} instead of {b}",
    )),
    "follow_next": (_next_sum, (
        "and {}?", "And {}?", "and what is {}?", "what about {}?", "now {} please", "And how much is {}?", "ok, and {}?",
        "thanks, and {}?", "good. what is {}?", "next: what is {}?", "one more: what is {}?", "now what is {}?",
    )),
    "follow_another": (_another, (
        "story:another one", "story:give me another problem", "story:Give me another one, please.", "story:one more problem please",
        "story:Can you make up a new problem?", "story:another problem?", "story:a new one", "story:tell me another one",
        "sum:give me another sum", "sum:now an easy sum", "sum:Make up a sum for me.", "sum:another sum please", "story:more of these",
        "story:I want one more", "story:something like that again", "story:do another one",
    )),
}  # fmt: skip


def _pattern(task: str, form: str, name: str) -> Pattern:
    def pattern(rng: random.Random) -> Example:
        begun, text, (said, result) = _FORMS[task][0](rng, form)
        turns = [begun.turn, (text, said)]
        if rng.random() < 0.15:
            more, *_ = _bare(rng)
            turns.insert(0, more.turn)
        return Example("maths", name, tuple(turns), number=str(result))

    return pattern


PATTERNS: dict[str, Pattern] = {
    f"maths/{task}/{i}": _pattern(task, form, f"maths/{task}/{i}") for task, (_, forms) in _FORMS.items() for i, form in enumerate(forms)
}
