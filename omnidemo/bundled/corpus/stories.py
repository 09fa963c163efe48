"""Short stories for small readers: one hero, one thing, one problem, one helper and an ending that closes it."""

from __future__ import annotations

import random
from functools import cache, partial

from .base import Example, Pattern
from .lexicon import BOYS, COLOURS, FOODS, GIRLS, PLACES, TOWNS, a, plural
from .story_tables import (
    BREAKABLE,
    BUILDS,
    CLOSINGS,
    DAYS,
    FEARS,
    FEMALE_KINDS,
    GLAD,
    HELPER_TRAITS,
    HERO_TRAITS,
    HOME_LINKS,
    JOB_TASKS,
    KINDS,
    LAND_LOOKS,
    LANDSCAPES,
    MALE_KINDS,
    MORALS,
    NUMBERS,
    OPEN_PROMPTS,
    OPENINGS,
    PLANTS,
    PLOTS,
    SAD,
    SHOPS,
    SKILLS,
    SPOT_LINKS,
    SPOTS,
    THINGS,
)

_JOBS = tuple(JOB_TASKS)
_PLOT_NAMES = tuple(PLOTS)
_MORAL_NAMES = tuple(MORALS)
# What a prompt may fix; a slot that stands in the prompt is a fact of the story.
_FACT_SLOTS = ("n", "adj", "kind", "g", "gkind", "o", "p", "p2", "pc", "skill", "job", "town", "town2", "build", "plant", "moral")
# These plots can do without their own special slots being named in the prompt, and always use the object.
_PLOTS_WITH_OBJECT = ("lost", "friend", "storm", "share", "gift", "finds", "treasure", "three")
_SHORTEST, _LONGEST = 60, 110


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _spot(rng: random.Random) -> str:
    return f"{rng.choice(SPOT_LINKS)} {rng.choice(SPOTS)}"


def _two(rng: random.Random, words: tuple[str, ...]) -> tuple[str, str]:
    first = rng.choice(words)
    second = rng.choice(words)
    while second == first:
        second = rng.choice(words)
    return first, second


def _free(rng: random.Random, words: tuple[str, ...], of: str = "") -> str:
    """A word that the prompt does not give: the first ones far more often than the last; which are first depends on whose it is.

    Where hundreds of names are equally likely, a greedy writer finds each of them less likely than going on without a name.
    """
    return _shuffled(words, of)[int(len(words) * rng.random() ** 4)]


@cache
def _shuffled(words: tuple[str, ...], of: str) -> tuple[str, ...]:
    """A fixed order that is not the alphabet's."""
    return tuple(random.Random(f"{of}{len(words)}").sample(words, len(words)))


def _slots(rng: random.Random, child: bool, things: tuple[str, ...], prompt: str) -> dict[str, str]:
    def pick(words: tuple[str, ...], *keys: str) -> str:
        return rng.choice(words) if any(_names(prompt, key) for key in keys) else _free(rng, words, keys[0])

    kind, gkind = pick(KINDS, "kind", "a_kind", "a_hero"), _free(rng, KINDS, "gkind")
    if any(_names(prompt, key) for key in ("gkind", "a_gkind", "a_ghero")):
        gkind = rng.choice(KINDS)
    while gkind == kind:
        gkind = rng.choice(KINDS)
    girl = rng.random() < 0.5
    if child:
        kind = "girl" if girl else "boy"
    elif kind in MALE_KINDS or kind in FEMALE_KINDS:
        girl = kind in FEMALE_KINDS
    ggirl = gkind in FEMALE_KINDS or (gkind not in MALE_KINDS and rng.random() < 0.5)
    name = pick(GIRLS if girl else BOYS, "n")
    helper = pick(GIRLS if ggirl else BOYS, "g")
    while helper == name:
        helper = rng.choice(GIRLS if ggirl else BOYS)
    adj, gadj = pick(HERO_TRAITS, "adj", "a_hero"), pick(HELPER_TRAITS, "a_ghero")
    thing, colour = pick(things, "o", "a_o", "qo", "a_qo"), pick(COLOURS, "qo", "a_qo")
    place, place2 = pick(PLACES, "p", "pc", "a_pc"), pick(PLACES, "p2")
    while place2 == place:
        place2 = rng.choice(PLACES)
    town, town2 = _two(rng, TOWNS)
    day, number = rng.choice(DAYS), rng.choice(NUMBERS)
    ribbon = rng.choice(COLOURS)
    fear, cause = rng.choice(FEARS)
    build, part1, part2 = rng.choice(BUILDS)
    job, plant = rng.choice(_JOBS), rng.choice(PLANTS)
    spot = _spot(rng)
    he, his = ("she", "her") if girl else ("he", "his")
    return {
        "n": name, "he": he, "He": _up(he), "his": his, "His": _up(his), "kind": kind, "adj": adj, "child": "girl" if girl else "boy",
        "a_kind": a(kind), "a_hero": a(f"{adj} {kind}"), "g": helper, "gkind": gkind, "a_gkind": a(gkind),
        "a_ghero": a(f"{gadj} {gkind}"), "A_ghero": _up(a(f"{gadj} {gkind}")), "o": thing, "a_o": a(thing), "qo": f"{colour} {thing}",
        "a_qo": a(f"{colour} {thing}"), "colour": ribbon, "a_colour": a(ribbon),
        "p": place, "p2": place2, "pc": place, "a_pc": a(place), "shop": rng.choice(SHOPS), "town": town,
        "town2": town2, "day": _up(day), "day_l": day, "night": rng.choice(("dark", "quiet", "windy", "cold")),
        "num": number, "num_c": _up(number),
        "foods": plural(rng.choice(FOODS)), "fear": fear, "cause": cause, "build": build, "part1": part1, "part2": part2,
        "job": job, "a_job": a(job), "task": JOB_TASKS[job], "plant": plant, "a_plant": a(plant), "skill": rng.choice(SKILLS),
        "home": f"{rng.choice(HOME_LINKS)} {a(rng.choice(LAND_LOOKS))} {rng.choice(LANDSCAPES)}",
        "spot": spot, "Spot": _up(spot), "spot2": _spot(rng), "glad": rng.choice(GLAD), "sad": rng.choice(SAD),
    }  # fmt: skip


def _tell(rng: random.Random, plot: str, slots: dict[str, str]) -> str:
    """One walk through the beats of a plot; "\\n" at the head of a beat starts the second paragraph."""
    parts = [rng.choice(OPENINGS), *(rng.choice(beat) for beat in PLOTS[plot][1])]
    if slots["moral"]:
        parts.append("That was a story about {moral}.")
    elif plot != "night" and rng.random() < 0.4:
        parts.append(rng.choice(CLOSINGS))
    text = ""
    for part in parts:
        head = "\n" if part[0] == "\n" else " "
        text += head + _up(part.lstrip("\n").format_map(slots))
    return text[1:]


def _casual(rng: random.Random, prompt: str) -> str:
    """Now and then a prompt as people type it."""
    roll = rng.random()
    if roll >= 0.2:
        return prompt
    low = prompt[0].lower() + prompt[1:]
    bare = low[:-1]
    if roll < 0.04:
        return low
    if roll < 0.08:
        return bare
    if roll < 0.11:
        return f"{prompt[:-1]}, please."
    if roll < 0.14 and "." not in bare and ":" not in bare:
        return f"Can you {bare}?"
    if roll < 0.17:
        return f"Please {low}"
    return f"please {bare}"


def _story(rng: random.Random, *, pattern: str, prompt: str, plots: tuple[str, ...], child: bool | None) -> Example:
    moral = rng.choice(_MORAL_NAMES) if "{moral}" in prompt else ""
    plot = MORALS[moral] if moral else rng.choice(plots)
    slots = _slots(rng, rng.random() < 0.1 if child is None else child, BREAKABLE if plot == "sorry" else THINGS, prompt)
    slots["moral"] = moral
    asked = _casual(rng, prompt.format_map(slots))
    facts = tuple(slots[key] for key in _FACT_SLOTS if _names(prompt, key))
    for _ in range(40):
        answer = _tell(rng, plot, slots)
        if _SHORTEST <= answer.count(" ") + 2 <= _LONGEST and all(fact in answer for fact in facts):
            break
    return Example("stories", pattern, ((asked, answer),), facts=tuple(fact for fact in facts if fact in answer))


def _names(prompt: str, key: str) -> bool:
    """Does the prompt show this slot, by itself or inside a longer one?"""
    shown = {"adj": ("adj", "a_hero"), "kind": ("kind", "a_kind", "a_hero"), "gkind": ("gkind", "a_gkind")}
    shown |= {"o": ("o", "a_o", "a_qo"), "job": ("job", "a_job"), "plant": ("plant", "a_plant")}
    return any(f"{{{slot}}}" in prompt for slot in shown.get(key, (key,)))


def _patterns() -> dict[str, Pattern]:
    table: dict[str, Pattern] = {}

    def add(task: str, prompts: tuple[str, ...], plots: tuple[str, ...], child: bool | None) -> None:
        for i, prompt in enumerate(prompts):
            name = f"stories/{task}/{i}"
            table[name] = partial(_story, pattern=name, prompt=prompt, plots=plots, child=child)

    for task, (prompts, _) in PLOTS.items():
        # "three" and "race" name the kind of the hero as an animal; a child would read oddly there.
        add(task, prompts, (task,), None if task not in ("three", "race") else False)
    for task, prompts in OPEN_PROMPTS.items():
        for_child = {"child": True, "any": None, "moral": None}.get(task, False)
        add(task, prompts, _PLOTS_WITH_OBJECT if task == "child" else _PLOT_NAMES, for_child)
    return table


PATTERNS: dict[str, Pattern] = _patterns()
