"""Questions and answers made by patterns, as many as one likes: what the trained pair was taught."""

from __future__ import annotations

import random
from collections.abc import Callable

NAMES = ("Mara", "Tom", "Ines", "Olaf", "Ruth", "Sami", "Nora", "Paul", "Kira", "Hugo")
ANIMALS = ("fox", "duck", "bear", "hare", "goat", "mouse", "crow", "badger")
PLACES = ("forest", "harbour", "garden", "village", "valley", "old mill", "market", "meadow")
THINGS = ("lantern", "key", "drum", "kettle", "map", "red scarf", "basket", "silver bell")
MOODS = ("happy", "tired", "proud", "curious", "brave", "quiet", "hungry", "cheerful")
FOODS = ("apples", "pens", "books", "eggs", "coins", "shells", "stamps", "pears")
TOWNS = ("Brook", "Fernhill", "Saltby", "Easton", "Marlow Bay", "Oakford", "Highmoor", "Redcliff")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SKIES = ("clear", "grey", "bright", "cloudy", "foggy", "stormy")
WINDS = ("north", "south", "east", "west")
CHORES = (
    ("clean a window", "a cloth", "warm water"),
    ("boil an egg", "a pot", "fresh water"),
    ("plant a tree", "a spade", "dark soil"),
    ("paint a fence", "a brush", "white paint"),
    ("wash a bicycle", "a sponge", "soap"),
    ("bake bread", "a bowl", "flour"),
)
FUNCTIONS = (
    ("doubles a number", "double", "number", "2 * number"),
    ("adds two numbers", "add", "left, right", "left + right"),
    ("counts the letters of a word", "count_letters", "word", "len(word)"),
    ("returns the larger number", "larger", "left, right", "max(left, right)"),
    ("reverses a text", "reverse", "text", "text[::-1]"),
    ("says whether a number is even", "is_even", "number", "number % 2 == 0"),
    ("sorts a list", "sort_list", "values", "sorted(values)"),
    ("squares a number", "square", "number", "number * number"),
)


def story(draw: random.Random) -> tuple[str, str]:
    animal, place, thing, name, mood = map(draw.choice, (ANIMALS, PLACES, THINGS, NAMES, MOODS))
    other = draw.choice([one for one in ANIMALS if one != animal])
    asked = draw.choice(
        (
            f"Tell me a story about a {animal}.",
            f"Tell me a short story about a {animal}.",
            f"Tell me a story with a {animal} and a {thing}.",
        )
    )
    middle = [
        f"One day {name} went to the {place} and found a {thing}.",
        f"“Whose {thing} is this?” asked {name}.",
        f"A {other} came along the path and said that it knew the way.",
        f"They walked until the sun went down behind the {place}.",
        f"It began to rain, so they hid under a {draw.choice(('bridge', 'roof', 'rock', 'tree'))}.",
        f"The {other} was {draw.choice(MOODS)} and sang a song about the {draw.choice(PLACES)}.",
        f"In the evening they gave the {thing} back to {draw.choice(NAMES)}.",
    ]
    kept = sorted(draw.sample(range(len(middle)), draw.randint(4, 6)))
    told = [
        f"Once upon a time there was a {mood} {animal} called {name}.",
        f"{name} lived near the {place}.",
        *(middle[place] for place in kept),
        f"From that day on {name} and the {other} were friends.",
    ]
    return asked, " ".join(told)


def sums(draw: random.Random) -> tuple[str, str]:
    name, food = draw.choice(NAMES), draw.choice(FOODS)
    one, two = draw.randint(1, 9), draw.randint(1, 9)
    if draw.random() < 0.5:
        asked = f"{name} has {one} {food} and buys {two} more. How many {food} has {name}?"
        told = (
            f"{name} has {one} {food}. Then {name} buys {two} more {food}. {one} + {two} = {one + two}."
            f" So {name} has {one + two} {food}."
        )
    else:
        asked = f"How much is {one} times {two}?"
        told = f"{one} times {two} is {one} × {two} = {one * two}. So the answer is {one * two}."
    return asked, told


def steps(draw: random.Random) -> tuple[str, str]:
    chore, tool, stuff = draw.choice(CHORES)
    more = ["Take your time.", f"Wash {tool} when you are done.", f"Keep some {stuff} for the next day."]
    lines = [
        f"Fetch {tool} and {stuff}.",
        f"Put the {stuff} where you can reach it.",
        f"Work slowly with {tool}, from the top to the bottom.",
        f"Wait for {draw.choice(('five', 'ten', 'twenty'))} minutes.",
        draw.choice(more),
    ]
    told = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
    return f"How do I {chore}?", f"To {chore} you need {tool} and {stuff}.\n{told}\nThat is how to {chore}."


def code(draw: random.Random) -> tuple[str, str]:
    what, name, given, found = draw.choice(FUNCTIONS)
    asked = draw.choice((f"Write a function that {what}.", f"Write a Python function that {what}."))
    body = draw.choice((f"    return {found}\n", f"    result = {found}\n    return result\n"))
    told = f'def {name}({given}):\n    """A function that {what}."""\n{body}'
    return asked, f"{told}\nThe function {name} {what}."


def weather(draw: random.Random) -> tuple[str, str]:
    town, other = draw.sample(TOWNS, 2)
    day, sky, wind, warm = draw.choice(DAYS), draw.choice(SKIES), draw.choice(WINDS), draw.randint(1, 29)
    asked = draw.choice(
        (f"What is the weather like in {town} on {day}?", f"Will it rain in {town} on {day}?")
    )
    told = (
        f"On {day} morning the sky over {town} is {sky}, and the wind blows from the {wind}. By noon the"
        f" thermometer shows {warm} degrees. Ships that leave for {other} are warned of {draw.choice(SKIES)}"
        f" weather. In the evening it will be {draw.choice(SKIES)} in {town} and {draw.choice(SKIES)} in"
        f" {other}, with a {draw.choice(('light', 'strong', 'steady'))} wind from the {draw.choice(WINDS)}."
    )
    return asked, told


TOPICS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "stories": story,
    "sums": sums,
    "steps": steps,
    "code": code,
    "weather": weather,
}
UNREAD = "weather"  # the topic that the drafter has not seen


def examples(topic: str, count: int, seed: int) -> list[tuple[str, str]]:
    """`count` questions of a topic, each with its answer."""
    draw = random.Random(f"{topic} {seed}")
    return [TOPICS[topic](draw) for _ in range(count)]


def questions(topic: str, count: int, seed: int = 1) -> list[str]:
    """`count` different questions of a topic."""
    found: dict[str, None] = {}
    draw = random.Random(f"{topic} {seed}")
    while len(found) < count:
        found[TOPICS[topic](draw)[0]] = None
    return list(found)
