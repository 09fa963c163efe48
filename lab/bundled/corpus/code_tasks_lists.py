"""Code tasks about lists, dictionaries and loops."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from .code_tasks_numbers import Draw, Slots, Task, word


def numbers(rng: random.Random, c: Slots) -> tuple[list[int]]:
    return ([rng.randint(0, 40) for _ in range(rng.randint(3, 5))],)


def signed(rng: random.Random, c: Slots) -> tuple[list[int]]:
    return ([rng.randint(-20, 20) for _ in range(rng.randint(2, 4))],)


def near(rng: random.Random, c: Slots) -> tuple[list[int]]:
    return ([c["k"] + rng.choice((-7, -1, 0, 1, 2, 9)) for _ in range(rng.randint(2, 4))],)


def multiples(rng: random.Random, c: Slots) -> tuple[list[int]]:
    return ([c["k"] * rng.randint(1, 6) + rng.choice((0, 1)) for _ in range(rng.randint(2, 4))],)


def things(rng: random.Random, c: Slots) -> tuple[list[str]]:
    return ([word(rng) for _ in range(rng.randint(2, 5))],)


def repeated(rng: random.Random, c: Slots) -> tuple[list[str]]:
    pool = (word(rng), word(rng), c.get("s") or word(rng))
    return ([rng.choice(pool) for _ in range(rng.randint(3, 5))],)


def starting(rng: random.Random, c: Slots) -> tuple[list[str]]:
    return ([rng.choice(("", c["c"])) + word(rng) for _ in range(rng.randint(2, 4))],)


def sizes(rng: random.Random, c: Slots) -> tuple[list[str]]:
    return (["abcdefghijklmnop"[: c["k"] + rng.choice((-1, 0, 1, 2))] for _ in range(rng.randint(2, 4))],)


def two_lists(rng: random.Random, c: Slots) -> tuple[list[str], list[int]]:
    size = rng.randint(2, 3)
    return ([word(rng) for _ in range(size)], [rng.randint(1, 50) for _ in range(size)])


def table(rng: random.Random, c: Slots) -> tuple[dict[str, int]]:
    return ({word(rng): c.get("k", 0) + value for value in rng.sample((-5, -1, 1, 4, 8, 12), rng.randint(2, 3))},)


def small(rng: random.Random, c: Slots) -> tuple[int]:
    return (rng.randint(1, 8),)


NUMS = "{list_x}"
ITEMS = "{list_i}"
WORDS = "{list_w}"
TABLE = "a dictionary of {xs}"


def _nums(
    name: str, spec: str, say: str, doc: str, function: str, body: str, reference: Callable[..., Any], draw: Draw = numbers, hint: str = ""
) -> Task:
    return Task(name, spec, NUMS, say, doc, function, "{xs}", body, draw, reference, hint=hint)


def _items(name: str, spec: str, say: str, doc: str, function: str, body: str, reference: Callable[..., Any], draw: Draw = things) -> Task:
    return Task(name, spec, ITEMS, say, doc, function, "{is}", body, draw, reference)


def _words(
    name: str, spec: str, say: str, doc: str, function: str, body: str, reference: Callable[..., Any], draw: Draw = things, hint: str = ""
) -> Task:
    return Task(name, spec, WORDS, say, doc, function, "{ws}", body, draw, reference, hint=hint)


def _counting(
    name: str,
    spec: str,
    inputs: str,
    say: str,
    doc: str,
    function: str,
    params: str,
    body: str,
    reference: Callable[..., Any],
    draw: Draw = small,
) -> Task:
    return Task(name, spec, inputs, say, doc, function, params, body, draw, reference)


def _fibonacci(c: Slots, n: int) -> list[int]:
    values = [0, 1]
    while len(values) < n:
        values.append(values[-1] + values[-2])
    return values[:n]


NUMBER_LISTS = (
    _nums("sum", "x", "add up {list_x}", "the sum of the {xs}", "sum_of_{xs}", "return sum({xs})", lambda c, a: sum(a)),
    _nums("sum_loop", "x", "add up {list_x}", "the sum of the {xs}", "sum_of_{xs}",
          "total = 0\nfor {x} in {xs}:\n    total += {x}\nreturn total", lambda c, a: sum(a), hint="Use a loop."),
    _nums("max", "x", "find the largest {x} in a list", "the largest {x}", "largest_{x}", "return max({xs})", lambda c, a: sorted(a)[-1]),
    _nums("max_loop", "x", "find the largest {x} in a list", "the largest {x}", "largest_{x}",
          "largest = {xs}[0]\nfor {x} in {xs}:\n    if {x} > largest:\n        largest = {x}\nreturn largest", lambda c, a: sorted(a)[-1],
          hint="Use a loop."),
    _nums("min", "x", "find the smallest {x} in a list", "the smallest {x}", "smallest_{x}", "return min({xs})", lambda c, a: sorted(a)[0]),
    _nums("mean", "x", "find the average of {list_x}", "the average of the {xs}", "average_of_{xs}", "return sum({xs}) / len({xs})",
          lambda c, a: sum(a) / len(a)),
    _nums("product", "x", "multiply all {xs} in a list together", "the product of the {xs}", "product_of_{xs}",
          "product = 1\nfor {x} in {xs}:\n    product *= {x}\nreturn product", lambda c, a: math.prod(a)),
    _nums("spread", "x", "find the difference between the largest and the smallest {x} in a list",
          "the largest {x} minus the smallest {x}", "spread_of_{xs}",
          "return max({xs}) - min({xs})", lambda c, a: sorted(a)[-1] - sorted(a)[0]),
    _nums("count_greater", "x k:2:99", "count the {xs} in a list that are greater than {k}", "the number of {xs} greater than {k}",
          "count_{xs}_greater_than_{k}",
          "count = 0\nfor {x} in {xs}:\n    if {x} > {k}:\n        count += 1\nreturn count",
          lambda c, a: len([v for v in a if v > c["k"]]), near),
    _nums("count_less", "x k:2:99", "count the {xs} in a list that are less than {k}", "the number of {xs} less than {k}",
          "count_{xs}_less_than_{k}",
          "count = 0\nfor {x} in {xs}:\n    if {x} < {k}:\n        count += 1\nreturn count",
          lambda c, a: len([v for v in a if v < c["k"]]), near),
    _nums("count_even", "x", "count the even {xs} in a list", "the number of even {xs}", "count_even_{xs}",
          "count = 0\nfor {x} in {xs}:\n    if {x} % 2 == 0:\n        count += 1\nreturn count",
          lambda c, a: len([v for v in a if not v & 1])),
    _nums("count_divisible", "x k:3:60", "count the {xs} in a list that are divisible by {k}", "the number of {xs} divisible by {k}",
          "count_{xs}_divisible_by_{k}",
          "count = 0\nfor {x} in {xs}:\n    if {x} % {k} == 0:\n        count += 1\nreturn count",
          lambda c, a: len([v for v in a if not v % c["k"]]), multiples),
    _nums("keep_greater", "x k:2:99", "keep the {xs} in a list that are greater than {k}", "the {xs} greater than {k}",
          "{xs}_greater_than_{k}",
          "return [{x} for {x} in {xs} if {x} > {k}]", lambda c, a: list(filter(lambda v: v > c["k"], a)), near),
    _nums("keep_less", "x k:2:99", "keep the {xs} in a list that are less than {k}", "the {xs} less than {k}", "{xs}_less_than_{k}",
          "return [{x} for {x} in {xs} if {x} < {k}]", lambda c, a: list(filter(lambda v: v < c["k"], a)), near),
    _nums("keep_greater_loop", "x k:2:99", "keep the {xs} in a list that are greater than {k}", "the {xs} greater than {k}",
          "{xs}_greater_than_{k}",
          "result = []\nfor {x} in {xs}:\n    if {x} > {k}:\n        result.append({x})\nreturn result",
          lambda c, a: list(filter(lambda v: v > c["k"], a)), near, "Use a loop."),
    _nums("keep_even", "x", "keep the even {xs} in a list", "the even {xs}", "even_{xs}", "return [{x} for {x} in {xs} if {x} % 2 == 0]",
          lambda c, a: [v for v in a if not v & 1]),
    _nums("keep_odd", "x", "keep the odd {xs} in a list", "the odd {xs}", "odd_{xs}", "return [{x} for {x} in {xs} if {x} % 2 == 1]",
          lambda c, a: [v for v in a if v & 1]),
    _nums("keep_divisible", "x k:3:60", "keep the {xs} in a list that are divisible by {k}", "the {xs} divisible by {k}",
          "{xs}_divisible_by_{k}",
          "return [{x} for {x} in {xs} if {x} % {k} == 0]", lambda c, a: list(filter(lambda v: not v % c["k"], a)), multiples),
    _nums("keep_positive", "x", "keep the positive {xs} in a list", "the positive {xs}", "positive_{xs}",
          "return [{x} for {x} in {xs} if {x} > 0]", lambda c, a: list(filter(lambda v: v >= 1, a)), signed),
    _nums("add_each", "x k:2:99", "add {k} to every {x} in a list", "every {x} plus {k}", "add_{k}_to_{xs}",
          "return [{x} + {k} for {x} in {xs}]", lambda c, a: [v + c["k"] for v in a]),
    _nums("subtract_each", "x k:2:99", "subtract {k} from every {x} in a list", "every {x} minus {k}", "subtract_{k}_from_{xs}",
          "return [{x} - {k} for {x} in {xs}]",
          lambda c, a: [v - c["k"] for v in a]),
    _nums("multiply_each", "x k:2:99", "multiply every {x} in a list by {k}", "every {x} times {k}", "multiply_{xs}_by_{k}",
          "return [{x} * {k} for {x} in {xs}]", lambda c, a: [v * c["k"] for v in a]),
    _nums("multiply_loop", "x k:2:99", "multiply every {x} in a list by {k}", "every {x} times {k}", "multiply_{xs}_by_{k}",
          "result = []\nfor {x} in {xs}:\n    result.append({x} * {k})\nreturn result", lambda c, a: [v * c["k"] for v in a],
          hint="Use a loop."),
    _nums("double_each", "x", "double every {x} in a list", "every {x} times 2", "double_{xs}", "return [{x} * 2 for {x} in {xs}]",
          lambda c, a: [v + v for v in a]),
    _nums("square_each", "x", "square every {x} in a list", "every {x} squared", "square_{xs}", "return [{x} ** 2 for {x} in {xs}]",
          lambda c, a: [v * v for v in a]),
    _nums("sum_squares", "x", "add up the squares of {list_x}", "the sum of the squares of the {xs}", "sum_of_squared_{xs}",
          "return sum({x} ** 2 for {x} in {xs})", lambda c, a: sum(v * v for v in a)),
    _nums("sum_even", "x", "add up the even {xs} in a list", "the sum of the even {xs}", "sum_of_even_{xs}",
          "return sum({x} for {x} in {xs} if {x} % 2 == 0)", lambda c, a: sum(v for v in a if not v & 1)),
    _nums("sum_greater", "x k:2:99", "add up the {xs} in a list that are greater than {k}", "the sum of the {xs} greater than {k}",
          "sum_of_{xs}_greater_than_{k}",
          "return sum({x} for {x} in {xs} if {x} > {k})", lambda c, a: sum(filter(lambda v: v > c["k"], a)), near),
    _nums("all_greater", "x k:2:99", "check whether all {xs} in a list are greater than {k}", "whether all {xs} are greater than {k}",
          "all_{xs}_greater_than_{k}",
          "return all({x} > {k} for {x} in {xs})", lambda c, a: min(a) > c["k"], near),
    _nums("any_greater", "x k:2:99", "check whether any {x} in a list is greater than {k}", "whether any {x} is greater than {k}",
          "any_{x}_greater_than_{k}",
          "return any({x} > {k} for {x} in {xs})", lambda c, a: max(a) > c["k"], near),
    _nums("sort", "x", "sort {list_x} from smallest to largest", "the {xs} from smallest to largest", "sort_{xs}", "return sorted({xs})",
          lambda c, a: sorted(a)),
    _nums("sort_down", "x", "sort {list_x} from largest to smallest", "the {xs} from largest to smallest", "sort_{xs}_down",
          "return sorted({xs}, reverse=True)", lambda c, a: sorted(a)[::-1]),
    _nums("running", "x", "find the running totals of {list_x}", "the running totals of the {xs}", "running_totals_of_{xs}",
          "total = 0\nresult = []\nfor {x} in {xs}:\n    total += {x}\n    result.append(total)\nreturn result",
          lambda c, a: [sum(a[: i + 1]) for i in range(len(a))]),
    _nums("second", "x", "find the second largest {x} in a list", "the second largest {x}", "second_largest_{x}",
          "return sorted({xs})[-2]", lambda c, a: sorted(a, reverse=True)[1]),
    _nums("largest_k", "x k:2:9", "find the {k} largest {xs} in a list", "the {k} largest {xs}", "largest_{k}_{xs}",
          "return sorted({xs}, reverse=True)[:{k}]", lambda c, a: sorted(a)[::-1][: c["k"]]),
    _nums("where_max", "x", "find the index of the largest {x} in a list", "the index of the largest {x}", "index_of_largest_{x}",
          "return {xs}.index(max({xs}))", lambda c, a: a.index(sorted(a)[-1])),
    _nums("cap_each", "x k:2:99", "cap every {x} in a list at {k}", "every {x} or {k}, whichever is smaller", "cap_{xs}_at_{k}",
          "return [min({x}, {k}) for {x} in {xs}]",
          lambda c, a: [v if v < c["k"] else c["k"] for v in a], near),
)  # fmt: skip

ITEM_LISTS = (
    _items("length", "i", "count the {is} in a list", "the number of {is}", "count_{is}", "return len({is})", lambda c, a: len(a)),
    _items("first", "i", "find the first {i} in a list", "the first {i}", "first_{i}", "return {is}[0]", lambda c, a: next(iter(a))),
    _items("last", "i", "find the last {i} in a list", "the last {i}", "last_{i}", "return {is}[-1]", lambda c, a: a[len(a) - 1]),
    _items("first_k", "i k:2:20", "take the first {k} {is} of a list", "the first {k} {is}", "first_{k}_{is}", "return {is}[:{k}]",
           lambda c, a: a[0 : c["k"]]),
    _items("last_k", "i k:2:20", "take the last {k} {is} of a list", "the last {k} {is}", "last_{k}_{is}", "return {is}[-{k}:]",
           lambda c, a: a[max(0, len(a) - c["k"]) :]),
    _items("drop_k", "i k:1:20", "drop the first {k} {is} of a list", "the {is} without the first {k}", "drop_first_{k}_{is}",
           "return {is}[{k}:]", lambda c, a: [v for n, v in enumerate(a) if n >= c["k"]]),
    _items("every", "i", "take every {nth} {i} of a list", "every {nth} {i}", "every_{nth}_{i}", "return {is}[::{k}]",
           lambda c, a: [v for n, v in enumerate(a) if n % c["k"] == 0]),
    _items("reverse", "i", "reverse {list_i}", "the {is} in reverse order", "reverse_{is}", "return {is}[::-1]",
           lambda c, a: list(reversed(a))),
    _items("unique", "i", "remove the duplicates from {list_i}", "the {is} without duplicates", "unique_{is}",
           "result = []\nfor {i} in {is}:\n    if {i} not in result:\n        result.append({i})\nreturn result",
           lambda c, a: list(dict.fromkeys(a)), repeated),
    _items("contains", "i s", "check whether {list_i} contains '{s}'", "whether the {is} contain '{s}'", "{is}_contain_{s}",
           'return "{s}" in {is}', lambda c, a: a.count(c["s"]) > 0, repeated),
    _items("count", "i s", "count how many {is} in a list equal '{s}'", "how many {is} equal '{s}'", "count_{s}_in_{is}",
           'return {is}.count("{s}")', lambda c, a: sum(v == c["s"] for v in a), repeated),
    _items("remove", "i s", "remove every '{s}' from {list_i}", "the {is} without any '{s}'", "remove_{s}_from_{is}",
           'return [{i} for {i} in {is} if {i} != "{s}"]',
           lambda c, a: [v for v in a if v != c["s"]], repeated),
    _items("append", "i s", "add '{s}' to the end of {list_i}", "the {is} with '{s}' at the end", "add_{s}_to_{is}",
           'return {is} + ["{s}"]', lambda c, a: [*a, c["s"]]),
    _items("empty", "i", "check whether {list_i} is empty", "whether there are no {is}", "no_{is}", "return len({is}) == 0",
           lambda c, a: not a, lambda rng, c: rng.choice((([],), things(rng, c)))),
    _items("more_than", "i k:2:20", "check whether {list_i} has more than {k} items", "whether there are more than {k} {is}",
           "more_than_{k}_{is}", "return len({is}) > {k}", lambda c, a: c["k"] < len(a)),
    _items("join", "i", "join {list_i} with {sep}", "the {is} joined with {sep}", "join_{is}", 'return "{join}".join({is})',
           lambda c, a: c["join"].join(a)),
    _items("chunk", "i k:2:20", "split {list_i} into chunks of {k}", "the {is} in chunks of {k}", "chunk_{is}_by_{k}",
           "result = []\nfor index in range(0, len({is}), {k}):\n    result.append({is}[index:index + {k}])\nreturn result",
           lambda c, a: [a[n : n + c["k"]] for n in range(0, len(a), c["k"])]),
    _items("middle", "i", "find the middle {i} of a list", "the middle {i}", "middle_{i}", "return {is}[len({is}) // 2]",
           lambda c, a: a[len(a) // 2]),
    _items("numbered", "i k:1:20", "number the {is} in a list starting at {k}", "the {is} as pairs of a number starting at {k} and {a_i}",
           "number_{is}_from_{k}", "return list(enumerate({is}, {k}))",
           lambda c, a: [(n + c["k"], v) for n, v in enumerate(a)]),
    _items("positions", "i s", "find the positions of '{s}' in {list_i}", "the positions of '{s}' in the {is}", "positions_of_{s}_in_{is}",
           'result = []\nfor index in range(len({is})):\n    if {is}[index] == "{s}":\n        result.append(index)\nreturn result',
           lambda c, a: [n for n, v in enumerate(a) if v == c["s"]], repeated),
    Task("together", "i w", "a list of {is} and a list of {ws}", "join a list of {is} and a list of {ws} into one list",
         "the {is} followed by the {ws}", "join_{is}_and_{ws}", "{is}, {ws}",
         "return {is} + {ws}", two_lists, lambda c, a, b: [*a, *b]),
    Task("zip", "i x", "a list of {is} and a list of {xs}", "pair a list of {is} with a list of {xs}", "pairs of {a_i} and {a_x}",
         "pair_{is}_with_{xs}", "{is}, {xs}",
         "return list(zip({is}, {xs}))", two_lists, lambda c, a, b: [(a[n], b[n]) for n in range(len(a))]),
    Task("flatten", "i", "a list of lists of {is}", "flatten a list of lists of {is}", "one list of all {is}", "flatten_{is}", "rows",
         "result = []\nfor row in rows:\n    for {i} in row:\n        result.append({i})\nreturn result",
         lambda rng, c: ([things(rng, c)[0], things(rng, c)[0]],), lambda c, a: [v for row in a for v in row]),
    Task("at_index", "i", "a list of {is} and an index", "find {the_i} at a given index of a list of {is}", "{the_i} at the index",
         "{i}_at_index", "{is}, index", "return {is}[index]",
         lambda rng, c: (things(rng, c)[0], rng.randint(0, 1)), lambda c, a, n: list(a)[n]),
    Task("common", "i w", "a list of {is} and a list of {ws}", "find the {is} in a list that are also in a list of {ws}",
         "the {is} that are also in the {ws}", "common_{is}_and_{ws}", "{is}, {ws}",
         "return [{i} for {i} in {is} if {i} in {ws}]", lambda rng, c: (lambda a: (a, [*rng.sample(a, 2), word(rng)]))(things(rng, c)[0]),
         lambda c, a, b: list(filter(b.__contains__, a))),
)  # fmt: skip

WORD_LISTS = (
    _words("keep_longer", "w k:2:12", "keep the {ws} in a list that are longer than {k} letters", "the {ws} longer than {k} letters",
           "{ws}_longer_than_{k}",
           "return [{w} for {w} in {ws} if len({w}) > {k}]", lambda c, a: list(filter(lambda v: len(v) > c["k"], a)), sizes),
    _words("keep_shorter", "w k:2:12", "keep the {ws} in a list that are shorter than {k} letters", "the {ws} shorter than {k} letters",
           "{ws}_shorter_than_{k}",
           "return [{w} for {w} in {ws} if len({w}) < {k}]", lambda c, a: list(filter(lambda v: len(v) < c["k"], a)), sizes),
    _words("count_longer", "w k:2:12", "count the {ws} in a list that are longer than {k} letters",
           "the number of {ws} longer than {k} letters", "count_{ws}_longer_than_{k}",
           "count = 0\nfor {w} in {ws}:\n    if len({w}) > {k}:\n        count += 1\nreturn count",
           lambda c, a: len([v for v in a if len(v) > c["k"]]), sizes),
    _words("keep_starting", "w c", "keep the {ws} in a list that start with '{c}'", "the {ws} that start with '{c}'", "{ws}_with_{c}",
           'return [{w} for {w} in {ws} if {w}.startswith("{c}")]',
           lambda c, a: [v for v in a if v[0] == c["c"]], starting),
    _words("starting_loop", "w c", "keep the {ws} in a list that start with '{c}'", "the {ws} that start with '{c}'", "{ws}_with_{c}",
           'result = []\nfor {w} in {ws}:\n    if {w}.startswith("{c}"):\n        result.append({w})\nreturn result',
           lambda c, a: [v for v in a if v[0] == c["c"]], starting, "Use a loop."),
    _words("count_starting", "w c", "count the {ws} in a list that start with '{c}'", "the number of {ws} that start with '{c}'",
           "count_{ws}_with_{c}",
           'count = 0\nfor {w} in {ws}:\n    if {w}.startswith("{c}"):\n        count += 1\nreturn count',
           lambda c, a: sum(v[0] == c["c"] for v in a), starting),
    _words("keep_containing", "w c", "keep the {ws} in a list that contain '{c}'", "the {ws} that contain '{c}'", "{ws}_containing_{c}",
           'return [{w} for {w} in {ws} if "{c}" in {w}]',
           lambda c, a: [v for v in a if v.count(c["c"])], starting),
    _words("upper_each", "w", "turn every {w} in a list into upper case", "every {w} in upper case", "upper_{ws}",
           "return [{w}.upper() for {w} in {ws}]", lambda c, a: list(map(str.upper, a))),
    _words("reverse_each", "w", "reverse every {w} in a list", "every {w} reversed", "reverse_each_{w}",
           "return [{w}[::-1] for {w} in {ws}]", lambda c, a: ["".join(reversed(v)) for v in a]),
    _words("lengths", "w", "find the length of every {w} in a list", "the length of every {w}", "lengths_of_{ws}",
           "return [len({w}) for {w} in {ws}]", lambda c, a: list(map(len, a))),
    _words("prefix_each", "w s", "put '{s}' before every {w} in a list", "every {w} with '{s}' before it", "put_{s}_before_{ws}",
           'return ["{s}" + {w} for {w} in {ws}]', lambda c, a: [c["s"] + v for v in a]),
    _words("suffix_each", "w s", "put '{s}' after every {w} in a list", "every {w} with '{s}' after it", "put_{s}_after_{ws}",
           'return [{w} + "{s}" for {w} in {ws}]', lambda c, a: [v + c["s"] for v in a]),
    _words("longest", "w", "find the longest {w} in a list", "the longest {w}", "longest_{w}", "return max({ws}, key=len)",
           lambda c, a: sorted(a, key=lambda v: -len(v))[0]),
    _words("shortest", "w", "find the shortest {w} in a list", "the shortest {w}", "shortest_{w}", "return min({ws}, key=len)",
           lambda c, a: sorted(a, key=len)[0]),
    _words("sort_length", "w", "sort {list_w} by length", "the {ws} sorted by length", "sort_{ws}_by_length",
           "return sorted({ws}, key=len)", lambda c, a: sorted(a, key=lambda v: len(v))),
    _words("alphabet", "w", "sort {list_w} in alphabetical order", "the {ws} in alphabetical order", "sort_{ws}", "return sorted({ws})",
           lambda c, a: sorted(a, reverse=True)[::-1]),
    _words("letters", "w", "count all letters of {list_w}", "the number of letters of all {ws}", "count_letters_of_{ws}",
           "return sum(len({w}) for {w} in {ws})", lambda c, a: len("".join(a))),
    _words("first_each", "w", "find the first letter of every {w} in a list", "the first letter of every {w}", "first_letters_of_{ws}",
           "return [{w}[0] for {w} in {ws}]", lambda c, a: [v[:1] for v in a]),
    _words("greet_each", "w s", "put '{s}' and a colon before every {w} in a list", "every {w} with '{s}' and a colon before it",
           "label_{ws}_{s}", 'return [f"{s}: {{{w}}}" for {w} in {ws}]',
           lambda c, a: [c["s"] + ": " + v for v in a]),
)  # fmt: skip

DICTIONARIES = (
    _words("tally", "w", "count how often every {w} appears in a list", "a dictionary of how often every {w} appears", "count_{ws}",
           "counts = {{}}\nfor {w} in {ws}:\n    counts[{w}] = counts.get({w}, 0) + 1\nreturn counts", lambda c, a: dict(Counter(a)),
           repeated),
    _words("length_table", "w", "map every {w} in a list to its length", "a dictionary of every {w} and its length", "{w}_lengths",
           "return {{{w}: len({w}) for {w} in {ws}}}",
           lambda c, a: dict(zip(a, map(len, a), strict=True))),
    Task("invert", "x", TABLE, "swap the keys and values of a dictionary of {xs}", "the {xs} with keys and values swapped", "invert_{xs}",
         "{xs}",
         "return {{value: key for key, value in {xs}.items()}}", table, lambda c, a: dict(zip(a.values(), a.keys(), strict=True))),
    Task("get_default", "x k:0:99", TABLE + " and a key", "look up a key in a dictionary of {xs} with {k} as the default",
         "the value of the key in the {xs} or {k}", "get_from_{xs}", "{xs}, key",
         "return {xs}.get(key, {k})", lambda rng, c: (lambda t: (t, rng.choice((next(iter(t)), "missing"))))(table(rng, c)[0]),
         lambda c, a, key: a[key] if key in a else c["k"]),
    Task("get_word", "i s", "a dictionary of {is} and a key", "look up a key in a dictionary of {is} with '{s}' as the default",
         "the value of the key in the {is} or '{s}'", "get_from_{is}", "{is}, key",
         'return {is}.get(key, "{s}")', lambda rng, c: ({"a": word(rng), "b": word(rng)}, rng.choice("abz")),
         lambda c, a, key: a[key] if key in a else c["s"]),
    Task("merge", "x y", "a dictionary of {xs} and a dictionary of {ys}", "merge a dictionary of {xs} with a dictionary of {ys}",
         "the {xs} merged with the {ys}", "merge_{xs}_and_{ys}", "{xs}, {ys}",
         "return {{**{xs}, **{ys}}}", lambda rng, c: (table(rng, c)[0], table(rng, c)[0]), lambda c, a, b: a | b),
    Task("keys", "x", TABLE, "list the keys of a dictionary of {xs} in sorted order", "the sorted keys of the {xs}", "keys_of_{xs}",
         "{xs}", "return sorted({xs})", table, lambda c, a: sorted(a.keys())),
    Task("total", "x", TABLE, "add up the values of a dictionary of {xs}", "the sum of the values of the {xs}", "total_of_{xs}", "{xs}",
         "return sum({xs}.values())", table, lambda c, a: sum(a[k] for k in a)),
    Task("best_key", "x", TABLE, "find the key with the largest value in a dictionary of {xs}",
         "the key with the largest value in the {xs}", "best_key_of_{xs}", "{xs}", "return max({xs}, key={xs}.get)", table,
         lambda c, a: sorted(a, key=lambda k: -a[k])[0]),
    Task("keep_values", "x k:2:99", TABLE, "keep the values greater than {k} in a dictionary of {xs}",
         "the {xs} with a value greater than {k}", "{xs}_greater_than_{k}", "{xs}",
         "return {{key: value for key, value in {xs}.items() if value > {k}}}", table,
         lambda c, a: dict(filter(lambda p: p[1] > c["k"], a.items()))),
    Task("has_key", "x s", TABLE, "check whether a dictionary of {xs} has the key '{s}'", "whether the {xs} have the key '{s}'",
         "{xs}_have_{s}", "{xs}", 'return "{s}" in {xs}',
         lambda rng, c: ({word(rng): 1, rng.choice((word(rng), c["s"])): 2},), lambda c, a: c["s"] in list(a)),
    Task("from_lists", "i x", "a list of {is} and a list of {xs}", "make a dictionary from a list of {is} and a list of {xs}",
         "a dictionary of {is} and {xs}", "{is}_to_{xs}", "{is}, {xs}",
         "return dict(zip({is}, {xs}))", two_lists, lambda c, a, b: {a[n]: b[n] for n in range(len(a))}),
    Task("group", "w", WORDS, "group {list_w} by first letter", "a dictionary of the {ws} grouped by first letter", "group_{ws}", "{ws}",
         "result = {{}}\nfor {w} in {ws}:\n    result.setdefault({w}[0], []).append({w})\nreturn result", things,
         lambda c, a: {v[0]: [w for w in a if w[0] == v[0]] for v in a}),
)  # fmt: skip

LOOPS = (
    _counting("factorial", "x", "{a_x}", "compute the factorial of {a_x}", "the factorial of the {x}", "factorial_of_{x}", "{x}",
              "result = 1\nfor step in range(2, {x} + 1):\n    result *= step\nreturn result", lambda c, n: math.factorial(n)),
    _counting("sum_to", "x", "{a_x}", "add up the whole numbers from 1 to {a_x}", "the sum of the whole numbers from 1 to the {x}",
              "sum_to_{x}", "{x}",
              "total = 0\nfor step in range(1, {x} + 1):\n    total += step\nreturn total", lambda c, n: n * (n + 1) // 2),
    _counting("squares_to", "x", "{a_x}", "add up the squares from 1 to {a_x}", "the sum of the squares from 1 to the {x}",
              "sum_of_squares_to_{x}", "{x}",
              "total = 0\nfor step in range(1, {x} + 1):\n    total += step ** 2\nreturn total",
              lambda c, n: n * (n + 1) * (2 * n + 1) // 6),
    _counting("powers", "k:2:99", "an exponent", "list the powers of {k} up to an exponent", "the powers of {k} up to the exponent",
              "powers_of_{k}", "exponent",
              "return [{k} ** step for step in range(exponent + 1)]", lambda c, n: [pow(c["k"], s) for s in range(n + 1)],
              lambda rng, c: (rng.randint(0, 4),)),
    _counting("multiples", "k:2:99", "a number n", "list the first n multiples of {k}", "the first n multiples of {k}",
              "multiples_of_{k}", "n",
              "return [{k} * step for step in range(1, n + 1)]", lambda c, n: list(range(c["k"], c["k"] * n + 1, c["k"]))),
    _counting("countdown", "x", "{a_x}", "count down from {a_x} to 1 in a list", "a list that counts down from the {x} to 1",
              "count_down_from_{x}", "{x}",
              "return list(range({x}, 0, -1))", lambda c, n: list(reversed(range(1, n + 1)))),
    _counting("evens", "x", "{a_x}", "list the even numbers from 2 up to {a_x}", "the even numbers from 2 up to the {x}",
              "even_numbers_up_to_{x}", "{x}",
              "return list(range(2, {x} + 1, 2))", lambda c, n: [v for v in range(1, n + 1) if not v & 1]),
    _counting("divisors", "x", "{a_x}", "list the divisors of {a_x}", "the divisors of the {x}", "divisors_of_{x}", "{x}",
              "return [step for step in range(1, {x} + 1) if {x} % step == 0]",
              lambda c, n: [v for v in range(1, n + 1) if v * (n // v) == n], lambda rng, c: (rng.randint(1, 24),)),
    _counting("fibonacci", "", "a number n", "list the first n Fibonacci numbers", "the first n Fibonacci numbers", "fibonacci", "n",
              "result = []\nleft, right = 0, 1\nfor step in range(n):\n    result.append(left)\n"
              "    left, right = right, left + right\nreturn result", _fibonacci),
    _counting("gcd", "x y", "{a_x} and {a_y}", "find the greatest common divisor of {a_x} and {a_y}",
              "the greatest common divisor of the {x} and the {y}", "gcd_of_{x}_and_{y}", "{x}, {y}",
              "while {y}:\n    {x}, {y} = {y}, {x} % {y}\nreturn {x}", lambda c, a, b: math.gcd(a, b),
              lambda rng, c: (6 * rng.randint(1, 9), 4 * rng.randint(1, 9))),
    _counting("halvings", "x k:1:20", "{a_x}", "count how often {a_x} can be halved before it is at most {k}",
              "how often the {x} can be halved before it is at most {k}", "count_halvings_of_{x}", "{x}",
              "count = 0\nwhile {x} > {k}:\n    {x} = {x} / 2\n    count += 1\nreturn count",
              lambda c, n: next(s for s in range(60) if n / 2**s <= c["k"]), lambda rng, c: (rng.randint(1, 200),)),
    _counting("grow", "x k:2:30 j:2:9", "{a_x}", "add {k} to {a_x} {j} times", "the {x} after adding {k} to it {j} times", "grow_{x}",
              "{x}",
              "for step in range({j}):\n    {x} += {k}\nreturn {x}", lambda c, n: n + c["k"] * c["j"]),
)  # fmt: skip
