"""Code tasks about single numbers and texts: arithmetic, predicates, labels, conversions, strings."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import code_tasks_words as words

Slots = dict[str, Any]
Draw = Callable[[random.Random, Slots], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Task:
    """One function to ask for. The text fields are format strings over the slots that `spec` and `options` draw."""

    name: str
    spec: str  # "x k:2:9": which nouns and constants to draw
    inputs: str
    say: str  # starts with the verb, in its base form
    doc: str  # what follows "Return"
    function: str
    params: str
    body: str
    arguments: Draw  # the arguments of one test
    reference: Callable[..., Any]  # (slots, *arguments) -> the right result
    options: tuple[Slots, ...] = ()
    hint: str = ""


def integer(rng: random.Random, c: Slots) -> tuple[int]:
    return (rng.randint(0, 90),)


def signed(rng: random.Random, c: Slots) -> tuple[int]:
    return (rng.randint(-60, 60),)


def two(rng: random.Random, c: Slots) -> tuple[int, int]:
    return (rng.randint(0, 90), rng.randint(1, 30))


def near(rng: random.Random, c: Slots) -> tuple[int]:
    return (c["k"] + rng.choice((-9, -1, 0, 1, 12)),)


def around(rng: random.Random, c: Slots) -> tuple[int]:
    return (rng.choice((c["k"], c["j"])) + rng.choice((-5, -1, 0, 1, 5)),)


def multiple(rng: random.Random, c: Slots) -> tuple[int]:
    return (c["k"] * rng.randint(1, 9) * rng.choice((1, c.get("j", 1))) + rng.choice((0, 0, 1)),)


def word(rng: random.Random) -> str:
    return rng.choice(words.LITERALS)


def text(rng: random.Random, c: Slots) -> tuple[str]:
    return (word(rng),)


def phrase(rng: random.Random, c: Slots) -> tuple[str]:
    return (" ".join(word(rng) for _ in range(rng.randint(1, 4))),)


def starting(rng: random.Random, c: Slots) -> tuple[str]:
    return (rng.choice(("", c["c"])) + word(rng),)


def ending(rng: random.Random, c: Slots) -> tuple[str]:
    return (word(rng) + rng.choice(("", c["c"])),)


def containing(rng: random.Random, c: Slots) -> tuple[str]:
    return (rng.choice((word(rng), f"{word(rng)} {c['s']}", f"{c['s']} {word(rng)}")),)


def prime(rng: random.Random, c: Slots) -> tuple[int]:
    return (rng.choice((1, 2, 4, 7, 9, 13, 15, 21, 23, 25, 29, 31, 35, 49, 53)),)


def mirrored(rng: random.Random, c: Slots) -> tuple[str]:
    one = word(rng)
    return (rng.choice((one, one + one[::-1])),)


def leap(rng: random.Random, c: Slots) -> tuple[int]:
    return (rng.choice((1900, 2000, 2100, rng.randint(1950, 2050), 4 * rng.randint(480, 510))),)


X = "{a_x}"
XY = "{a_x} and {a_y}"
W = "{a_w}"


def _number(name: str, spec: str, say: str, doc: str, function: str, body: str, reference: Callable[..., Any], draw: Draw = integer,
            options: tuple[Slots, ...] = ()) -> Task:  # fmt: skip
    return Task(name, spec, X, say, doc, function, "{x}", body, draw, reference, options)


def _two(name: str, say: str, doc: str, function: str, body: str, reference: Callable[..., Any]) -> Task:
    return Task(name, "x y", XY, say, doc, function, "{x}, {y}", body, two, reference)


def _text(name: str, spec: str, say: str, doc: str, function: str, body: str, reference: Callable[..., Any], draw: Draw = text,
          options: tuple[Slots, ...] = ()) -> Task:  # fmt: skip
    return Task(name, spec, W, say, doc, function, "{w}", body, draw, reference, options)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _three(c: Slots, number: int) -> str:
    return c["yes"] if number >= c["j"] else c["no"] if number < c["k"] else "middle"


def _fizz(c: Slots, number: int) -> str:
    return (c["s"] if number % c["k"] == 0 else "") or str(number)


def _fizz_two(c: Slots, number: int) -> str:
    return (c["s"] if number % c["k"] == 0 else c["t"] if number % c["j"] == 0 else "") or str(number)


def _prime(c: Slots, number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, math.isqrt(number) + 1))


_MULTIPLES = ({"verb": "double", "k": 2}, {"verb": "triple", "k": 3}, {"verb": "quadruple", "k": 4})
_POWERS = ({"verb": "square", "k": 2}, {"verb": "cube", "k": 3})
_LABELS = tuple({"yes": yes, "no": no} for yes, no in words.LABELS)
_UNITS = tuple({"big": big, "small": small, "k": k} for big, small, k in words.UNITS)
_RATES = tuple(
    {"x": noun, "a_x": "a " + noun}
    for noun in ("price", "cost", "weight", "fee", "value", "length", "width", "height", "volume", "tax", "refund")
)
_PEOPLE = tuple(
    {"w": noun, "ws": noun + "s"}
    for noun in (
        "friend",
        "guest",
        "pupil",
        "player",
        "student",
        "teacher",
        "sister",
        "brother",
        "visitor",
        "worker",
        "member",
        "cousin",
        "driver",
    )
)

ARITHMETIC = (
    _number("add", "x k:2:99", "add {k} to {a_x}", "the {x} plus {k}", "add_{k}_to_{x}", "return {x} + {k}", lambda c, a: a + c["k"]),
    _number("subtract", "x k:2:99", "subtract {k} from {a_x}", "the {x} minus {k}", "subtract_{k}_from_{x}", "return {x} - {k}",
            lambda c, a: a - c["k"]),
    _number("multiply", "x k:2:99", "multiply {a_x} by {k}", "the {x} times {k}", "multiply_{x}_by_{k}", "return {x} * {k}",
            lambda c, a: a * c["k"]),
    _number("divide", "x k:2:99", "divide {a_x} by {k}", "the {x} divided by {k}", "divide_{x}_by_{k}", "return {x} / {k}",
            lambda c, a: a / c["k"]),
    _number("fits", "x k:2:30", "count how many times {k} fits into {a_x}", "how many times {k} fits into the {x}", "count_{k}_in_{x}",
            "return {x} // {k}", lambda c, a: (a - a % c["k"]) // c["k"]),
    _number("remainder", "x k:2:30", "find the remainder of {a_x} divided by {k}", "the remainder of the {x} divided by {k}",
            "remainder_of_{x}_by_{k}",
            "return {x} % {k}", lambda c, a: divmod(a, c["k"])[1]),
    _number("times", "x", "{verb} {a_x}", "the {x} times {k}", "{verb}_{x}", "return {x} * {k}", lambda c, a: a * c["k"],
            options=_MULTIPLES),
    _number("halve", "x", "halve {a_x}", "half of the {x}", "halve_{x}", "return {x} / 2", lambda c, a: a / 2),
    _number("square", "x", "{verb} {a_x}", "the {x} to the power of {k}", "{verb}_{x}", "return {x} ** {k}", lambda c, a: pow(a, c["k"]),
            options=_POWERS),
    _number("power", "x k:2:9", "raise {a_x} to the power of {k}", "the {x} to the power of {k}", "{x}_to_the_power_of_{k}",
            "return {x} ** {k}",
            lambda c, a: pow(a, c["k"]), lambda rng, c: (rng.randint(0, 9),)),
    _number("linear", "x k:2:30 j:2:50", "compute {k} times {a_x} plus {j}", "{k} times the {x} plus {j}", "{x}_times_{k}_plus_{j}",
            "return {k} * {x} + {j}", lambda c, a: c["j"] + a * c["k"]),
    _number("percent", "x k:2:95", "find {k} percent of {a_x}", "{k} percent of the {x}", "percent_{k}_of_{x}", "return {x} * {k} / 100",
            lambda c, a: a * c["k"] / 100),
    _number("raise_percent", "x k:2:95", "increase {a_x} by {k} percent", "the {x} increased by {k} percent", "increase_{x}_by_{k}_percent",
            "return {x} + {x} * {k} / 100", lambda c, a: a + a * c["k"] / 100),
    _number("lower_percent", "x k:2:95", "reduce {a_x} by {k} percent", "the {x} reduced by {k} percent", "reduce_{x}_by_{k}_percent",
            "return {x} - {x} * {k} / 100", lambda c, a: a - a * c["k"] / 100),
    _number("absolute", "x", "find the absolute value of {a_x}", "the absolute value of the {x}", "absolute_{x}", "return abs({x})",
            lambda c, a: max(a, -a), signed),
    _number("negate", "x", "negate {a_x}", "the {x} with the opposite sign", "negate_{x}", "return -{x}", lambda c, a: 0 - a, signed),
    _number("round", "x k:1:5", "round {a_x} to {k} decimal places", "the {x} rounded to {k} decimal places", "round_{x}_to_{k}_places",
            "return round({x}, {k})",
            lambda c, a: round(a, c["k"]), lambda rng, c: (rng.randint(100000, 9999999) / 1000000,)),
    _number("clamp", "x k:1:20 j:25:99", "limit {a_x} to the range from {k} to {j}", "the {x} limited to the range from {k} to {j}",
            "limit_{x}",
            "return max({k}, min({x}, {j}))", lambda c, a: sorted((c["k"], a, c["j"]))[1], around),
    _number("at_most", "x k:5:99", "cap {a_x} at {k}", "the {x} or {k}, whichever is smaller", "cap_{x}_at_{k}", "return min({x}, {k})",
            lambda c, a: a if a < c["k"] else c["k"], near),
    _number("last_digit", "x", "find the last digit of {a_x}", "the last digit of the {x}", "last_digit_of_{x}", "return {x} % 10",
            lambda c, a: int(str(a)[-1])),
    _number("digit_sum", "x", "add up the digits of {a_x}", "the sum of the digits of the {x}", "digit_sum_of_{x}",
            "return sum(int(digit) for digit in str({x}))",
            lambda c, a: sum(map(int, str(a))), lambda rng, c: (rng.randint(0, 99999),)),
    _number("digits", "x", "count the digits of {a_x}", "the number of digits of the {x}", "count_digits_of_{x}", "return len(str({x}))",
            lambda c, a: len(str(a)), lambda rng, c: (rng.randint(0, 10 ** rng.randint(1, 6)),)),
    _number("sign", "x", "find the sign of {a_x} as 1, 0 or -1", "the sign of the {x} as 1, 0 or -1", "sign_of_{x}",
            "if {x} > 0:\n    return 1\nif {x} < 0:\n    return -1\nreturn 0", lambda c, a: _sign(a),
            lambda rng, c: (rng.choice((-7, -1, 0, 1, rng.randint(2, 90))),)),
    _two("add_two", "add {a_x} and {a_y}", "the sum of the {x} and the {y}", "add_{x}_and_{y}", "return {x} + {y}", lambda c, a, b: b + a),
    _two("subtract_two", "subtract {a_y} from {a_x}", "the {x} minus the {y}", "subtract_{y}_from_{x}", "return {x} - {y}",
         lambda c, a, b: a - b),
    _two("multiply_two", "multiply {a_x} by {a_y}", "the {x} times the {y}", "multiply_{x}_by_{y}", "return {x} * {y}",
         lambda c, a, b: b * a),
    _two("divide_two", "divide {a_x} by {a_y}", "the {x} divided by the {y}", "divide_{x}_by_{y}", "return {x} / {y}",
         lambda c, a, b: a / b),
    _two("larger", "find the larger of {a_x} and {a_y}", "the larger of the {x} and the {y}", "larger_of_{x}_and_{y}",
         "return max({x}, {y})", lambda c, a, b: a if a > b else b),
    _two("smaller", "find the smaller of {a_x} and {a_y}", "the smaller of the {x} and the {y}", "smaller_of_{x}_and_{y}",
         "return min({x}, {y})", lambda c, a, b: a if a < b else b),
    _two("difference", "find the absolute difference between {a_x} and {a_y}", "the absolute difference between the {x} and the {y}",
         "difference_of_{x}_and_{y}",
         "return abs({x} - {y})", lambda c, a, b: max(a, b) - min(a, b)),
    _two("average_two", "find the average of {a_x} and {a_y}", "the average of the {x} and the {y}", "average_of_{x}_and_{y}",
         "return ({x} + {y}) / 2", lambda c, a, b: (b + a) / 2),
    _two("greater_two", "check whether {a_x} is greater than {a_y}", "whether the {x} is greater than the {y}", "is_{x}_greater_than_{y}",
         "return {x} > {y}", lambda c, a, b: b < a),
)  # fmt: skip

PREDICATES = (
    _number("even", "x", "check whether {a_x} is even", "whether the {x} is even", "is_even_{x}", "return {x} % 2 == 0",
            lambda c, a: not a & 1),
    _number("odd", "x", "check whether {a_x} is odd", "whether the {x} is odd", "is_odd_{x}", "return {x} % 2 == 1",
            lambda c, a: bool(a & 1)),
    _number("divisible", "x k:3:60", "check whether {a_x} is divisible by {k}", "whether the {x} is divisible by {k}",
            "is_{x}_divisible_by_{k}",
            "return {x} % {k} == 0", lambda c, a: a // c["k"] * c["k"] == a, multiple),
    _number("divisible_both", "x k:2:12 j:13:30", "check whether {a_x} is divisible by both {k} and {j}",
            "whether the {x} is divisible by both {k} and {j}",
            "is_{x}_divisible_by_{k}_and_{j}", "return {x} % {k} == 0 and {x} % {j} == 0", lambda c, a: not a % c["k"] and not a % c["j"],
            multiple),
    _number("greater", "x k:2:99", "check whether {a_x} is greater than {k}", "whether the {x} is greater than {k}",
            "is_{x}_greater_than_{k}",
            "return {x} > {k}", lambda c, a: c["k"] < a, near),
    _number("less", "x k:2:99", "check whether {a_x} is less than {k}", "whether the {x} is less than {k}", "is_{x}_less_than_{k}",
            "return {x} < {k}", lambda c, a: c["k"] > a, near),
    _number("at_least", "x k:2:99", "check whether {a_x} is at least {k}", "whether the {x} is at least {k}", "is_{x}_at_least_{k}",
            "return {x} >= {k}", lambda c, a: not a < c["k"], near),
    _number("equal", "x k:2:99", "check whether {a_x} is equal to {k}", "whether the {x} is equal to {k}", "is_{x}_equal_to_{k}",
            "return {x} == {k}", lambda c, a: not a - c["k"], near),
    _number("between", "x k:1:30 j:40:99", "check whether {a_x} is between {k} and {j}", "whether the {x} is between {k} and {j}",
            "is_{x}_between_{k}_and_{j}",
            "return {k} <= {x} <= {j}", lambda c, a: a in range(c["k"], c["j"] + 1), around),
    _number("positive", "x", "check whether {a_x} is positive", "whether the {x} is positive", "is_positive_{x}", "return {x} > 0",
            lambda c, a: _sign(a) == 1, signed),
    _number("negative", "x", "check whether {a_x} is negative", "whether the {x} is negative", "is_negative_{x}", "return {x} < 0",
            lambda c, a: _sign(a) == -1, signed),
    _number("prime", "x", "check whether {a_x} is prime", "whether the {x} is prime", "is_prime_{x}",
            "if {x} < 2:\n    return False\nfor divisor in range(2, {x}):\n    if {x} % divisor == 0:\n        return False\nreturn True",
            _prime, prime),
    Task("leap", "", "a year", "check whether a year is a leap year", "whether the year is a leap year", "is_leap_year", "year",
         "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)", leap, lambda c, a: a % 400 == 0 if a % 100 == 0 else a % 4 == 0),
    _number("label", "x k:5:99", "return '{yes}' if {a_x} is at least {k} and '{no}' otherwise",
            "'{yes}' if the {x} is at least {k} and '{no}' otherwise", "label_{x}",
            'if {x} >= {k}:\n    return "{yes}"\nreturn "{no}"', lambda c, a: c["no"] if a < c["k"] else c["yes"], near, _LABELS),
    _number("grade", "x k:5:40 j:45:99", "return '{yes}' if {a_x} is at least {j}, '{no}' if it is less than {k} and 'middle' otherwise",
            "'{yes}' if the {x} is at least {j}, '{no}' if it is less than {k} and 'middle' otherwise", "grade_{x}",
            'if {x} >= {j}:\n    return "{yes}"\nif {x} < {k}:\n    return "{no}"\nreturn "middle"', _three, around, _LABELS),
    _number("parity", "x", "return 'even' or 'odd' for {a_x}", "'even' or 'odd' for the {x}", "even_or_odd_{x}",
            'if {x} % 2 == 0:\n    return "even"\nreturn "odd"', lambda c, a: "odd" if a & 1 else "even"),
    _number("fizz", "x k:3:20 s", "return '{s}' if {a_x} is divisible by {k} and the {x} as a string otherwise",
            "'{s}' if the {x} is divisible by {k} and the {x} as a string otherwise",
            "{s}_or_{x}", 'if {x} % {k} == 0:\n    return "{s}"\nreturn str({x})', _fizz, multiple),
    _number("fizz_two", "x k:3:9 j:10:20 s t", "return '{s}' if {a_x} is divisible by {k}, "
            "'{t}' if it is divisible by {j} and the {x} as a string otherwise",
            "'{s}' if the {x} is divisible by {k}, '{t}' if it is divisible by {j} and the {x} as a string otherwise", "{s}_or_{t}",
            'if {x} % {k} == 0:\n    return "{s}"\nif {x} % {j} == 0:\n    return "{t}"\nreturn str({x})', _fizz_two, multiple),
)  # fmt: skip

CONVERSIONS = (
    Task("to_small", "", "{big}", "convert {big} to {small}", "the {big} in {small}", "{big}_to_{small}", "{big}", "return {big} * {k}",
         integer, lambda c, a: a * c["k"], _UNITS),
    Task("to_big", "", "{small}", "convert {small} to {big}", "the {small} in {big}", "{small}_to_{big}", "{small}",
         "return {small} / {k}", integer, lambda c, a: a / c["k"], _UNITS),
    Task("fahrenheit", "", "a temperature in {u}", "convert a temperature from {u} to {v}", "the temperature in {v}", "{u}_to_{v}", "{u}",
         "return {formula}",
         signed, lambda c, a: a * 9 / 5 + 32 if c["u"] == "celsius" else (a - 32) * 5 / 9,
         ({"u": "celsius", "v": "fahrenheit", "formula": "celsius * 9 / 5 + 32"},
         {"u": "fahrenheit", "v": "celsius", "formula": "(fahrenheit - 32) * 5 / 9"})),
    Task("split_units", "", "a number of {small}", "split a number of {small} into {big} and {small}", "the {small} as {big} and {small}",
         "split_{small}_into_{big}", "{small}",
         "return {small} // {k}, {small} % {k}", integer, lambda c, a: divmod(a, c["k"]), _UNITS),
    Task("area", "", "a width and a height", "compute the {what} of a rectangle with a width and a height", "the {what} of the rectangle",
         "rectangle_{what}",
         "width, height", "return {formula}", two, lambda c, a, b: a * b if c["what"] == "area" else a + a + b + b,
         ({"what": "area", "formula": "width * height"}, {"what": "perimeter", "formula": "2 * (width + height)"})),
    Task("total_price", "i", "{a_x} and a number of {is}", "compute the total {x} of a number of {is}",
         "the {x} times the number of {is}", "total_{x}_of_{is}",
         "{x}, {is}", "return {x} * {is}", two, lambda c, a, b: a * b, _RATES),
    Task("share", "i", "a number of {is} and a number of {ws}", "share a number of {is} equally among a number of {ws}",
         "how many {is} each {w} gets", "share_{is}",
         "{is}, {ws}", "return {is} // {ws}", two, lambda c, a, b: (a - a % b) // b, _PEOPLE),
)  # fmt: skip

STRINGS = (
    _text("upper", "w", "turn {a_w} into upper case", "the {w} in upper case", "upper_{w}", "return {w}.upper()", lambda c, a: a.upper(),
          phrase),
    _text("lower", "w", "turn {a_w} into lower case", "the {w} in lower case", "lower_{w}", "return {w}.lower()", lambda c, a: a.lower(),
          lambda rng, c: (word(rng).upper(),)),
    _text("capital", "w", "capitalize {a_w}", "the {w} with a capital first letter", "capitalize_{w}", "return {w}.capitalize()",
          lambda c, a: a[0].upper() + a[1:]),
    _text("title", "w", "capitalize every word of {a_w}", "the {w} with every word capitalized", "title_{w}", "return {w}.title()",
          lambda c, a: " ".join(p[0].upper() + p[1:] for p in a.split()), phrase),
    _text("reverse", "w", "reverse {a_w}", "the {w} reversed", "reverse_{w}", "return {w}[::-1]", lambda c, a: "".join(reversed(a))),
    _text("length", "w", "find the length of {a_w}", "the length of the {w}", "length_of_{w}", "return len({w})", lambda c, a: len(a),
          phrase),
    _text("first_letter", "w", "find the first letter of {a_w}", "the first letter of the {w}", "first_letter_of_{w}", "return {w}[0]",
          lambda c, a: a[:1]),
    _text("last_letter", "w", "find the last letter of {a_w}", "the last letter of the {w}", "last_letter_of_{w}", "return {w}[-1]",
          lambda c, a: a[-1:]),
    _text("first_letters", "w k:2:12", "take the first {k} letters of {a_w}", "the first {k} letters of the {w}",
          "first_{k}_letters_of_{w}", "return {w}[:{k}]", lambda c, a: a[0 : c["k"]]),
    _text("last_letters", "w k:2:12", "take the last {k} letters of {a_w}", "the last {k} letters of the {w}", "last_{k}_letters_of_{w}",
          "return {w}[-{k}:]",
          lambda c, a: a[max(0, len(a) - c["k"]) :]),
    _text("repeat", "w k:2:12", "repeat {a_w} {k} times", "the {w} repeated {k} times", "repeat_{w}_{k}_times", "return {w} * {k}",
          lambda c, a: "".join([a] * c["k"])),
    _text("prefix", "w s", "put '{s}' before {a_w}", "'{s}' followed by the {w}", "put_{s}_before_{w}", 'return "{s}" + {w}',
          lambda c, a: "".join((c["s"], a))),
    _text("suffix", "w s", "put '{s}' after {a_w}", "the {w} followed by '{s}'", "put_{s}_after_{w}", 'return {w} + "{s}"',
          lambda c, a: "".join((a, c["s"]))),
    _text("starts", "w c", "check whether {a_w} starts with '{c}'", "whether the {w} starts with '{c}'", "{w}_starts_with_{c}",
          'return {w}.startswith("{c}")', lambda c, a: a[0] == c["c"], starting),
    _text("ends", "w c", "check whether {a_w} ends with '{c}'", "whether the {w} ends with '{c}'", "{w}_ends_with_{c}",
          'return {w}.endswith("{c}")', lambda c, a: a[-1] == c["c"], ending),
    _text("contains", "w s", "check whether {a_w} contains '{s}'", "whether the {w} contains '{s}'", "{w}_contains_{s}",
          'return "{s}" in {w}', lambda c, a: a.find(c["s"]) >= 0, containing),
    _text("equals", "w s", "check whether {a_w} is equal to '{s}'", "whether the {w} is equal to '{s}'", "is_{w}_{s}",
          'return {w} == "{s}"', lambda c, a: a == c["s"],
          lambda rng, c: (rng.choice((c["s"], word(rng))),)),
    _text("count_letter", "w c", "count how often '{c}' appears in {a_w}", "how often '{c}' appears in the {w}", "count_{c}_in_{w}",
          'return {w}.count("{c}")',
          lambda c, a: sum(1 for x in a if x == c["c"]), starting),
    _text("vowels", "w", "count the vowels in {a_w}", "the number of vowels in the {w}", "count_vowels_in_{w}",
          'count = 0\nfor letter in {w}.lower():\n    if letter in "aeiou":\n        count += 1\nreturn count',
          lambda c, a: sum(a.count(v) for v in "aeiou"), phrase),
    _text("palindrome", "w", "check whether {a_w} is a palindrome", "whether the {w} is a palindrome", "is_palindrome_{w}",
          "return {w} == {w}[::-1]",
          lambda c, a: all(a[i] == a[-1 - i] for i in range(len(a))), mirrored),
    _text("replace", "w c d", "replace every '{c}' in {a_w} with '{d}'", "the {w} with every '{c}' replaced with '{d}'",
          "replace_{c}_in_{w}", 'return {w}.replace("{c}", "{d}")',
          lambda c, a: c["d"].join(a.split(c["c"])), starting),
    _text("remove_letter", "w c", "remove every '{c}' from {a_w}", "the {w} without any '{c}'", "remove_{c}_from_{w}",
          'return {w}.replace("{c}", "")', lambda c, a: "".join(x for x in a if x != c["c"]), starting),
    _text("spaces", "w", "remove the spaces from {a_w}", "the {w} without spaces", "remove_spaces_from_{w}",
          'return {w}.replace(" ", "")', lambda c, a: "".join(a.split()), phrase),
    _text("strip", "w", "remove the spaces around {a_w}", "the {w} without spaces around it", "strip_{w}", "return {w}.strip()",
          lambda c, a: a.strip(" "), lambda rng, c: ("  " + word(rng) + " ",)),
    _text("split", "w", "split {a_w} into words", "the words of the {w} as a list", "split_{w}", "return {w}.split()",
          lambda c, a: a.split(" "), phrase),
    _text("count_words", "w", "count the words in {a_w}", "the number of words in the {w}", "count_words_in_{w}",
          "return len({w}.split())", lambda c, a: a.count(" ") + 1, phrase),
    _text("first_word", "w", "find the first word of {a_w}", "the first word of the {w}", "first_word_of_{w}", "return {w}.split()[0]",
          lambda c, a: a.partition(" ")[0], phrase),
    _text("last_word", "w", "find the last word of {a_w}", "the last word of the {w}", "last_word_of_{w}", "return {w}.split()[-1]",
          lambda c, a: a.rpartition(" ")[2], phrase),
    _text("initials", "w", "find the initials of {a_w}", "the initials of the {w} in upper case", "initials_of_{w}",
          'return "".join(part[0].upper() for part in {w}.split())',
          lambda c, a: "".join(p[:1] for p in a.upper().split()), phrase),
    _text("longer", "w k:2:30", "check whether {a_w} is longer than {k} letters", "whether the {w} is longer than {k} letters",
          "is_{w}_longer_than_{k}", "return len({w}) > {k}",
          lambda c, a: c["k"] < len(a), phrase),
    _text("greet", "w", "return '{hello}' followed by a comma, {a_w} and an exclamation mark",
          "'{hello}' followed by a comma, the {w} and an exclamation mark", "greet_{w}",
          'return f"{hello}, {{{w}}}!"', lambda c, a: c["hello"] + ", " + a + "!", lambda rng, c: (word(rng).title(),),
          tuple({"hello": g} for g in words.GREETINGS)),
    Task("full_name", "", "a first name and a last name", "join a first name and a last name with {sep}",
         "the first name and the last name joined with {sep}", "full_name", "first, last",
         'return f"{{first}}{join}{{last}}"', lambda rng, c: (word(rng).title(), word(rng).title()), lambda c, a, b: c["join"].join((a, b)),
         ({"sep": "a space", "join": " "}, {"sep": "a comma", "join": ","}, {"sep": "a dash", "join": "-"},
         {"sep": "an underscore", "join": "_"})),
    Task("join_two", "w v s", "{a_w} and {a_v}", "join {a_w} and {a_v} with '{s}' between them",
         "the {w} and the {v} with '{s}' between them", "join_{w}_and_{v}", "{w}, {v}",
         'return {w} + "{s}" + {v}', lambda rng, c: (word(rng), word(rng)), lambda c, a, b: c["s"].join((a, b))),
    Task("same_text", "w v", "{a_w} and {a_v}", "check whether {a_w} and {a_v} have the same length",
         "whether the {w} and the {v} have the same length", "same_length_{w}_and_{v}", "{w}, {v}",
         "return len({w}) == len({v})", lambda rng, c: (word(rng), word(rng)), lambda c, a, b: len(a) - len(b) == 0),
)  # fmt: skip
