"""The number draws of the maths tasks: a to d go into the prompt, r and s are results on the way, z is the answer."""

from __future__ import annotations

import random

from .maths_words import ANIMALS, BEASTS, BIRDS

Numbers = dict[str, object]


def add(rng: random.Random) -> Numbers:
    top = rng.choice((30, 100, 100, 100, 100))
    a, b = rng.randint(2, top), rng.randint(2, top)
    return {"a": a, "b": b, "z": a + b}


def sub(rng: random.Random) -> Numbers:
    a = rng.randint(4, rng.choice((20, 50, 100, 100, 100, 150)))
    b = rng.randint(2, a - 2)
    return {"a": a, "b": b, "z": a - b}


def mul(rng: random.Random) -> Numbers:
    a, b = rng.randint(2, 12), rng.randint(2, 12)
    if rng.random() < 0.06:
        a, b = rng.choice(((a + 8, 10), (10, a + 8)))
    return {"a": a, "b": b, "z": a * b}


def div(rng: random.Random) -> Numbers:
    b, z = rng.randint(2, 12), rng.randint(2, 12)
    return {"a": b * z, "b": b, "z": z}


def mul_add(rng: random.Random) -> Numbers:
    a, b = rng.randint(2, 12), rng.randint(2, 12)
    c = rng.randint(2, 50)
    return {"a": a, "b": b, "c": c, "r": a * b, "z": a * b + c}


def mul_sub(rng: random.Random) -> Numbers:
    a, b = rng.randint(2, 12), rng.randint(2, 12)
    c = rng.randint(2, a * b - 2)
    return {"a": a, "b": b, "c": c, "r": a * b, "z": a * b - c}


def sub_mul(rng: random.Random) -> Numbers:
    """c - a * b."""
    a, b = rng.randint(2, 10), rng.randint(2, 10)
    c = a * b + rng.randint(2, 50)
    return {"a": a, "b": b, "c": c, "r": a * b, "z": c - a * b}


def add_sub(rng: random.Random) -> Numbers:
    a, b = rng.randint(2, 100), rng.randint(2, 100)
    c = rng.randint(2, a + b - 2)
    return {"a": a, "b": b, "c": c, "r": a + b, "z": a + b - c}


def sub_add(rng: random.Random) -> Numbers:
    a = rng.randint(6, 100)
    b, c = rng.randint(2, a - 2), rng.randint(2, 60)
    return {"a": a, "b": b, "c": c, "r": a - b, "z": a - b + c}


def sub_sub(rng: random.Random) -> Numbers:
    a = rng.randint(12, 120)
    b = rng.randint(2, a - 6)
    c = rng.randint(2, a - b - 2)
    return {"a": a, "b": b, "c": c, "r": a - b, "z": a - b - c}


def add_add(rng: random.Random) -> Numbers:
    a, b = rng.randint(2, 75), rng.randint(2, 75)
    c = rng.randint(2, 50)
    return {"a": a, "b": b, "c": c, "r": a + b, "z": a + b + c}


def add_div(rng: random.Random) -> Numbers:
    c, z = rng.randint(2, 12), rng.randint(2, 12)
    if c * z < 6:
        z = 12
    a = rng.randint(2, c * z - 2)
    return {"a": a, "b": c * z - a, "c": c, "r": c * z, "z": z}


def sub_div(rng: random.Random) -> Numbers:
    c, z, b = rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 40)
    return {"a": c * z + b, "b": b, "c": c, "r": c * z, "z": z}


def div_mul(rng: random.Random) -> Numbers:
    b, r, c = rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 12)
    if c == b:
        c = b + 1 if b < 12 else 2
    return {"a": b * r, "b": b, "c": c, "r": r, "z": r * c}


def div_sub(rng: random.Random) -> Numbers:
    b, r = rng.randint(2, 12), rng.randint(5, 12)
    c = rng.randint(2, r - 2)
    return {"a": b * r, "b": b, "c": c, "r": r, "z": r - c}


def more_total(rng: random.Random) -> Numbers:
    a, b = rng.randint(2, 60), rng.randint(2, 40)
    return {"a": a, "b": b, "r": a + b, "z": a + a + b}


def fewer_total(rng: random.Random) -> Numbers:
    a = rng.randint(5, 90)
    b = rng.randint(2, a - 2)
    return {"a": a, "b": b, "r": a - b, "z": a + a - b}


def twice(rng: random.Random) -> Numbers:
    a = rng.randint(2, 100)
    return {"a": a, "z": a + a}


def twice_total(rng: random.Random) -> Numbers:
    a = rng.randint(2, 60)
    return {"a": a, "r": a + a, "z": a + a + a}


def half(rng: random.Random) -> Numbers:
    z = rng.randint(2, 30)
    return {"a": 2 * z, "z": z}


def half_add(rng: random.Random) -> Numbers:
    r, b = rng.randint(2, 30), rng.randint(2, 50)
    return {"a": 2 * r, "b": b, "r": r, "z": r + b}


def ages(rng: random.Random) -> Numbers:
    b = rng.randint(5, 60)
    z = rng.randint(2, 35)
    return {"a": b + z, "b": b, "z": z}


def age_later(rng: random.Random) -> Numbers:
    a, b = rng.randint(5, 80), rng.randint(2, 20)
    return {"a": a, "b": b, "z": a + b}


def minutes(rng: random.Random) -> Numbers:
    a = rng.randint(2, 50)
    b = rng.randint(a + 3, 59)
    return {"a": a, "b": b, "c": rng.randint(1, 12), "z": b - a}


def perimeter(rng: random.Random) -> Numbers:
    a = rng.randint(3, 55)
    b = rng.randint(2, min(a - 1, 45))
    return {"a": a, "b": b, "r": a + b, "z": 2 * (a + b)}


def rise(rng: random.Random) -> Numbers:
    a, b = rng.randint(2, 25), rng.randint(2, 15)
    return {"a": a, "b": b, "z": a + b}


def fall(rng: random.Random) -> Numbers:
    a = rng.randint(5, 38)
    b = rng.randint(2, a - 2)
    return {"a": a, "b": b, "z": a - b}


def rise_fall(rng: random.Random) -> Numbers:
    a, b = rng.randint(2, 22), rng.randint(3, 15)
    c = rng.randint(2, a + b - 2)
    return {"a": a, "b": b, "c": c, "r": a + b, "z": a + b - c}


def legs(rng: random.Random) -> Numbers:
    one, many, b = rng.choice(ANIMALS)
    a = rng.randint(2, 12)
    return {"t": one, "ts": many, "a": a, "b": b, "z": a * b}


def legs_two(rng: random.Random) -> Numbers:
    beast, bird = rng.choice(BEASTS), rng.choice(BIRDS)
    a, b = rng.randint(2, 12), rng.randint(2, 12)
    return {"t": beast[0], "ts": beast[1], "u": bird[0], "us": bird[1], "a": a, "b": b, "r": a * 4, "s": b * 2, "z": a * 4 + b * 2}


def week(rng: random.Random) -> Numbers:
    a = rng.randint(2, 12)
    return {"a": a, "z": a * 7}


def two_groups(rng: random.Random) -> Numbers:
    a, b, c, d = (rng.randint(2, 12) for _ in range(4))
    while a * b + c * d > 200:
        a, c = rng.randint(2, 9), rng.randint(2, 9)
    if b == d:
        d = b - 1 if b > 2 else 3
    return {"a": a, "b": b, "c": c, "d": d, "r": a * b, "s": c * d, "z": a * b + c * d}


def groups_change(rng: random.Random) -> Numbers:
    a, b, c = rng.randint(2, 10), rng.randint(2, 10), rng.randint(2, 20)
    d = a * b + c + rng.randint(2, 40)
    return {"a": a, "b": b, "c": c, "d": d, "r": a * b, "s": a * b + c, "z": d - a * b - c}


def groups_share(rng: random.Random) -> Numbers:
    """(a * b - c) / d."""
    while True:
        a, b, d, z = (rng.randint(2, 12) for _ in range(4))
        if a * b - d * z >= 2:
            return {"a": a, "b": b, "c": a * b - d * z, "d": d, "r": a * b, "s": d * z, "z": z}


def groups_both(rng: random.Random) -> Numbers:
    a, b, c = rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 40)
    d = rng.randint(2, a * b + c - 2)
    return {"a": a, "b": b, "c": c, "d": d, "r": a * b, "s": a * b + c, "z": a * b + c - d}


def bare_add(rng: random.Random) -> Numbers:
    a, b = rng.randint(0, 100), rng.randint(0, 100)
    return {"a": a, "b": b, "z": a + b}


def bare_sub(rng: random.Random) -> Numbers:
    a = rng.randint(1, rng.choice((20, 100, 100, 100, 200)))
    b = rng.randint(0, a)
    return {"a": a, "b": b, "z": a - b}


def bare_mul(rng: random.Random) -> Numbers:
    a, b = rng.randint(1, 12), rng.randint(1, 12)
    if rng.random() < 0.1:
        a, b = rng.choice(((a + 8, 10), (10, a + 8)))
    return {"a": a, "b": b, "z": a * b}


def bare_div(rng: random.Random) -> Numbers:
    b, z = rng.randint(1, 12), rng.randint(1, 12)
    return {"a": b * z, "b": b, "z": z}
