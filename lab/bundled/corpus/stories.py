"""Short stories for small readers: one hero, one thing, one problem, one helper and an ending that closes it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from . import story_asks as asks
from .base import Example, Pattern
from .lexicon import BOYS, COLOURS, GIRLS, PLACES, TOWNS, a, plural
from .story_rule import choose, home, names, neighbours
from .story_tables import (
    BREAKABLE,
    BUILDS,
    CLOSINGS,
    CONTESTS,
    DAYS,
    FEARS,
    FEMALE_KINDS,
    GLAD,
    HELPER_TRAITS,
    HERO_TRAITS,
    JOB_TASKS,
    KINDS,
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

_PLOT_NAMES = tuple(PLOTS)
_BUILD_NAMES = tuple(build for build, _, _ in BUILDS)
_CONTEST_NAMES = tuple(contest for contest, _ in CONTESTS)
# What a prompt may fix; a slot that stands in the prompt is a fact of the story.
_FACT_SLOTS = (
    "n", "adj", "kind", "g", "gkind", "o", "p", "p2", "pc", "skill", "job", "town", "town2", "build", "plant", "moral", "contest", "reader",
)  # fmt: skip
# Slots that show another one inside themselves.
_SHOWN_BY = {
    "adj": ("adj", "a_hero"), "kind": ("kind", "a_kind", "a_hero", "kinds"), "gkind": ("gkind", "a_gkind"), "o": ("o", "a_o", "a_qo", "qo"),
    "colour": ("qo", "a_qo"), "job": ("job", "a_job"), "plant": ("plant", "a_plant"), "pc": ("pc", "a_pc"),
}  # fmt: skip
# The order in which asked words decide: what is first says who the hero is, what is last says how it looks and goes on.
_DECIDING = ("kind", "o", "adj", "p", "pc", "skill", "job", "build", "plant", "contest", "moral", "town2", "gkind")
# These plots can do without their own special slots being named in the prompt, and always use the object.
_PLOTS_WITH_OBJECT = ("lost", "friend", "storm", "share", "gift", "finds", "treasure", "three", "mystery", "wish")
_PLOTS_WITH_PLACE = ("lost", "storm", "finds", "three", "treasure", "mystery", "contest")
_OPEN_PLOTS = tuple(plot for plot in PLOTS if plot not in ("journey", "job", "sorry"))
# Things and colours that the teller picks; a prompt may name any other.
_NICE_THINGS = tuple(word for word in THINGS if word in frozenset((
    "ball", "balloon", "basket", "bell", "blanket", "book", "bottle", "bow", "box", "bracelet", "brush", "bucket", "button", "camera",
    "candle", "cap", "coin", "compass", "crown", "cup", "doll", "drum", "feather", "fiddle", "flag", "flute", "guitar", "hat", "helmet",
    "horn", "jar", "kettle", "key", "kite", "lamp", "lantern", "map", "marble", "medal", "mirror", "mitten", "mug", "necklace", "notebook",
    "paintbrush", "pencil", "pillow", "puzzle", "ring", "robe", "rocket", "rope", "scarf", "seashell", "shoe", "slipper", "spoon", "stamp",
    "teapot", "telescope", "torch", "toy car", "toy train", "trumpet", "umbrella", "vase", "whistle", "yo-yo",
)))  # fmt: skip
_NICE_PLACES = (
    "bakery", "beach", "bridge", "castle", "circus", "farm", "fountain", "harbour", "lake", "library", "lighthouse", "market", "mill",
    "museum", "park", "playground", "pond", "river", "school", "seaside", "theatre", "waterfall", "windmill", "zoo",
)  # fmt: skip
_NICE_COLOURS = ("red", "blue", "green", "yellow", "orange", "purple", "pink", "brown", "white", "black", "golden", "silver")
_NICE_FOODS = ("apple", "berry", "biscuit", "cherry", "cookie", "cupcake", "muffin", "nut", "pancake", "pear", "plum", "raisin", "waffle")


@dataclass(frozen=True, slots=True)
class Story:
    """A told story and all that was decided for it."""

    plot: str
    slots: dict[str, str]
    text: str


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _title(text: str) -> str:
    return " ".join(map(_up, text.split()))


def _names(prompt: str, key: str) -> bool:
    """Does the prompt show this slot, by itself or inside a longer one?"""
    return any(f"{{{slot}}}" in prompt for slot in _SHOWN_BY.get(key, (key,)))


def _asked(rng: random.Random, prompt: str, plot: str, child: bool) -> dict[str, str]:
    """What the prompt names, drawn at random; everything else follows from it."""
    given: dict[str, str] = {}

    def draw(key: str, words: Sequence[str]) -> None:
        if _names(prompt, key):
            given[key] = rng.choice([word for word in words if word not in given.values()])

    if child:
        given["kind"] = "girl" if rng.random() < 0.5 else "boy"
    else:
        draw("kind", KINDS)
    draw("gkind", KINDS)
    for key, kind in (("n", given.get("kind", "")), ("g", given.get("gkind", ""))):
        if _names(prompt, key):
            girl = kind in FEMALE_KINDS or kind == "girl" or (kind not in MALE_KINDS and kind != "boy" and rng.random() < 0.5)
            draw(key, GIRLS if girl else BOYS)
    if _names(prompt, "reader"):
        given["reader"] = rng.choice(GIRLS if "daughter" in prompt or "son" not in prompt else BOYS)
    draw("adj", HERO_TRAITS)
    draw("o", BREAKABLE if plot == "sorry" else THINGS)
    draw("colour", COLOURS)
    for key in ("p", "pc", "p2"):
        draw(key, PLACES)
    draw("town", TOWNS)
    draw("town2", TOWNS)
    draw("skill", SKILLS)
    draw("job", tuple(JOB_TASKS))
    draw("build", _BUILD_NAMES)
    draw("plant", PLANTS)
    draw("contest", _CONTEST_NAMES)
    return given


def _decide(given: dict[str, str], plot: str, wording: str) -> dict[str, str]:
    """All slots of a story. `wording` decides where nothing at all was asked for, so that two open wishes get two stories."""
    # There are only two kinds of children, so a child's name decides for it.
    child = given.get("kind") in ("girl", "boy")
    words = [given[key][0] for key in ("n",) if child and key in given]
    words += [given[key] for key in _DECIDING if key in given and not (key == "kind" and words)]
    words = words or [given[key][0] for key in ("reader", "n") if key in given] or [wording]
    first, last = words[0], words[-1]
    kind = given.get("kind") or choose(first, "kind", KINDS)
    hero = first if child else kind
    gkind = given.get("gkind") or choose(last, "helper", neighbours(kind))
    if "n" in given:
        name, girl = given["n"], given["n"] in _GIRLS and kind not in MALE_KINDS
    else:
        name, girl = choose(last, "name", [one for one in names(kind) if one[0] != given.get("g")])
    helper = given.get("g") or choose(last, "name", [one for one, _ in names(gkind) if one != name])
    thing = given.get("o") or choose(first, "thing", BREAKABLE if plot == "sorry" else _NICE_THINGS)
    colour = given.get("colour") or choose(last, "colour", _NICE_COLOURS)
    place = given.get("p") or given.get("pc") or choose(last, "place", _NICE_PLACES)
    place2 = given.get("p2") or choose(first, "place2", [one for one in _NICE_PLACES if one != place])
    adj, gadj = given.get("adj") or choose(hero, "trait", HERO_TRAITS), choose(gkind, "trait", HELPER_TRAITS)
    town = given.get("town") or choose(first, "town", TOWNS)
    town2 = given.get("town2") or choose(last, "town2", [one for one in TOWNS if one != town])
    fear, cause = choose(hero, "fear", FEARS)
    build, part1, part2 = next((row for row in BUILDS if row[0] == given.get("build")), choose(first, "build", BUILDS))
    contest, did = next((row for row in CONTESTS if row[0] == given.get("contest")), choose(first, "contest", CONTESTS))
    job = given.get("job") or choose(first, "job", tuple(JOB_TASKS))
    plant = given.get("plant") or choose(first, "plant", PLANTS)
    day, number, ribbon = choose(hero, "day", DAYS), choose(last, "number", NUMBERS), choose(last, "ribbon", _NICE_COLOURS)
    spot = f"{choose(thing, 'link', SPOT_LINKS)} {choose(thing, 'spot', SPOTS)}"
    spot2 = f"{choose(hero, 'link2', SPOT_LINKS)} {choose(hero, 'spot2', [one for one in SPOTS if one not in spot])}"
    he, his = ("she", "her") if girl else ("he", "his")
    return {
        "n": name, "he": he, "He": _up(he), "his": his, "His": _up(his), "kind": kind, "kinds": plural(kind), "adj": adj, "child": kind,
        "a_kind": a(kind), "a_hero": a(f"{adj} {kind}"), "g": helper, "gkind": gkind, "a_gkind": a(gkind),
        "a_ghero": a(f"{gadj} {gkind}"), "A_ghero": _up(a(f"{gadj} {gkind}")), "o": thing, "a_o": a(thing), "O": _title(thing),
        "qo": f"{colour} {thing}", "a_qo": a(f"{colour} {thing}"), "colour": ribbon, "a_colour": a(ribbon),
        "p": place, "p2": place2, "pc": place, "a_pc": a(place), "shop": choose(thing, "shop", SHOPS), "town": town,
        "town2": town2, "day": _up(day), "day_l": day, "night": choose(hero, "night", ("dark", "quiet", "windy", "cold")),
        "num": number, "num_c": _up(number), "foods": plural(choose(hero, "food", _NICE_FOODS)), "fear": fear, "cause": cause,
        "build": build, "Build": _title(build), "part1": part1, "part2": part2, "job": job, "a_job": a(job), "Job": _title(job),
        "task": JOB_TASKS[job], "plant": plant, "a_plant": a(plant), "skill": given.get("skill") or choose(first, "skill", SKILLS),
        "contest": contest, "did": did, "home": home(kind, last), "spot": spot, "Spot": _up(spot), "spot2": spot2,
        "glad": choose(gkind, "glad", GLAD), "sad": choose(hero, "sad", SAD), "reader": given.get("reader", ""),
        "first": first, "last": last,
    }  # fmt: skip


_GIRLS = frozenset(GIRLS)


def _held(beat: str, key: str) -> bool:
    shown = (*_SHOWN_BY.get(key, (key,)), *(("a_ghero", "A_ghero") if key == "gkind" else ()))
    return any(f"{{{slot}}}" in beat for slot in shown)


def _tell(plot: str, slots: dict[str, str], needed: Sequence[str]) -> str:
    """The walk through the beats of a plot that the asked words stand for; "\\n" at the head of a beat starts the second paragraph.

    Where a `needed` slot is not in every way through, the first beat that can tell of it does.
    """
    beats = [OPENINGS, *PLOTS[plot][1]]
    for key in needed:
        if any(all(_held(way, key) for way in beat) for beat in beats):
            continue
        for i, beat in enumerate(beats):
            if ways := tuple(way for way in beat if _held(way, key)):
                beats[i] = ways
                break
    deciding = (slots["last"], slots["first"])
    parts = [choose(deciding[i % 2], f"{plot}{i}", beat) for i, beat in enumerate(beats)]
    if slots["moral"]:
        parts.append("That was a story about {moral}.")
    elif plot != "night" and choose(slots["gkind"], plot, (True, False)):
        parts.append(choose(slots["last"], "closing", CLOSINGS))
    text = ""
    for part in parts:
        head = "\n" if part[0] == "\n" else " "
        text += head + _up(part.lstrip("\n").format_map(slots))
    text = text[1:]
    return f"Here is a story for {slots['reader']}.\n{text}" if slots["reader"] else text


def _told(given: dict[str, str], plot: str, wording: str = "", moral: str = "") -> Story:
    slots = _decide({**given, "moral": moral} if moral else given, plot, wording)
    slots["moral"] = moral
    return Story(plot, slots, _tell(plot, slots, [key for key in _FACT_SLOTS if key in given]))


def _plot_of(given: dict[str, str], wording: str, plots: Sequence[str]) -> str:
    """The plot of an open wish is that of its thing, its trait, its animal or its words."""
    word = next((given[key] for key in ("o", "adj", "kind", "p", "reader", "n") if key in given), wording)
    return choose(word, "plot", plots)


def _casual(rng: random.Random, prompt: str) -> str:
    """Now and then a prompt as people type it."""
    roll = rng.random()
    if roll >= 0.2:
        return prompt
    low = prompt[0].lower() + prompt[1:]
    bare = low.rstrip(".?!")
    if roll < 0.04:
        return low
    if roll < 0.08 or not prompt.endswith(".") or "please" in low:
        return bare
    if roll < 0.11:
        return f"{prompt[:-1]}, please."
    if roll < 0.14 and "." not in bare and ":" not in bare and prompt.startswith(_VERBS):
        return f"Can you {bare}?"
    if roll < 0.17:
        return f"Please {low}" if prompt.startswith(_VERBS) else low
    return f"please {bare}" if prompt.startswith(_VERBS) else bare


_VERBS = ("Tell ", "Write ", "Make ", "Give ", "Let ", "Use ", "Go ", "Continue ", "Read ", "Think ")


def _plots_for(prompt: str, plots: Sequence[str]) -> Sequence[str]:
    if len(plots) == 1:
        return plots
    if _names(prompt, "o"):
        return [plot for plot in plots if plot in _PLOTS_WITH_OBJECT]
    if _names(prompt, "p"):
        return [plot for plot in plots if plot in _PLOTS_WITH_PLACE]
    return plots


def _begin(rng: random.Random, prompt: str, plots: Sequence[str], child: bool | None = False) -> tuple[str, Story, dict[str, str]]:
    """A prompt with its story, and what the prompt named."""
    moral = rng.choice(tuple(MORALS)) if "{moral}" in prompt else ""
    boy_or_girl = child or (child is None and _names(prompt, "kind") and _names(prompt, "n") and rng.random() < 0.1)
    plots = (MORALS[moral],) if moral else _plots_for(prompt, plots)
    given = _asked(rng, prompt, plots[0] if len(plots) == 1 else "", boy_or_girl)
    plot = _plot_of(given, prompt, plots)
    story = _told(given, plot, prompt, moral)
    return _casual(rng, _up(prompt.format_map(story.slots)) if prompt[-1] in ".?!" else prompt.format_map(story.slots)), story, given


def _story(rng: random.Random, *, pattern: str, prompt: str, plots: tuple[str, ...], child: bool | None) -> Example:
    asked, story, _ = _begin(rng, prompt, plots, child)
    low = asked.lower()
    facts = (story.slots[key] for key in _FACT_SLOTS if _names(prompt, key))
    return Example(
        "stories", pattern, ((asked, story.text),), facts=tuple(fact for fact in facts if fact in story.text and fact.lower() in low)
    )


_FIRST_WISHES = tuple(
    prompt
    for task in ("ask_animal", "ask_hero", "ask_thing", "ask_two", "ask_place", "ask_once", "ask_name", "ask_open", "ask_rhyme")
    for prompt in asks.ASKS[task]
)


def _other_kind(rng: random.Random, story: Story) -> str:
    return rng.choice([kind for kind in KINDS if kind not in (story.slots["kind"], story.slots["gkind"])])


def _again(given: dict[str, str], before: Story) -> Story:
    """Another story with what is given, and of another plot."""
    plots = [plot for plot in _OPEN_PLOTS if plot != before.plot]
    return _told(given, _plot_of({"kind": given["kind"]}, "", plots))


def _follow(rng: random.Random, *, pattern: str, kind: str, prompt: str) -> Example:
    asked, story, given = _begin(rng, rng.choice(_FIRST_WISHES), _OPEN_PLOTS)
    slots = dict(story.slots)
    short, title, why, because = asks.AFTER[story.plot]
    helper = slots["job"] if story.plot == "job" else slots["gkind"]
    facts: tuple[str, ...] = (slots["n"],)
    if kind in ("another_kind", "instead"):
        slots["new"] = _other_kind(rng, story)
        slots["a_new"] = a(slots["new"])
    if kind == "shorter":
        answer, facts = short.format_map(slots), (slots["n"], slots["g"])
    elif kind == "another":
        # The helper of the story becomes the hero of the next one.
        answer, facts = _again({"kind": slots["gkind"], "n": slots["g"]}, story).text, (slots["gkind"], slots["g"])
    elif kind == "another_kind":
        answer, facts = _again({"kind": slots["new"]}, story).text, (slots["new"],)
    elif kind == "instead":
        name, girl = choose(slots["last"], "name", [one for one in names(slots["new"]) if one[0] != slots["g"]])
        he, his = ("she", "her") if girl else ("he", "his")
        changed = {"kind": slots["new"], "n": name, "he": he, "He": _up(he), "his": his, "His": _up(his)}
        changed["a_hero"], changed["a_kind"] = a(f"{slots['adj']} {slots['new']}"), slots["a_new"]
        changed["home"] = home(slots["new"], slots["last"])
        answer = _tell(story.plot, {**slots, **changed}, [key for key in _FACT_SLOTS if key in given])
        facts = (slots["new"], name)
    elif kind == "name":
        answer, facts = f"The {slots['kind']} was named {slots['n']}.", (slots["kind"], slots["n"])
    elif kind == "helper":
        answer = f"{_up(slots['g'])} is {a(helper)} in the story of {slots['n']}."
        facts = (slots["g"], helper)
    elif kind == "home":
        answer, facts = f"{slots['n']} lived {slots['home']}.", (slots["n"], slots["home"])
    elif kind == "why":
        answer = because.format_map(slots)
        facts = tuple(word for word in (slots["n"], slots["g"]) if word in answer)[:1]
    elif kind == "title":
        answer = f"A good title is: {title.format_map(slots)}"
        facts = tuple(word for word in (slots["n"], slots["g"], slots["town2"]) if word in answer)[:1]
    else:
        table = asks.NEXT if kind == "next" else asks.HAPPY
        answer, facts = choose(slots["kind"], kind, table).format_map(slots), (slots["n"], slots["g"])
    said = prompt.replace("{why}", why).format_map(slots)
    if rng.random() < 0.15:
        said = said.rstrip(".?!").lower() if slots["n"] not in said and slots["g"] not in said else said.rstrip(".?!")
    return Example("stories", pattern, ((asked, story.text), (said, answer)), facts=facts)


def _follow_twice(rng: random.Random, *, pattern: str, kind: str, prompt: str) -> Example:
    """A story, another one, and a question that is about the second."""
    asked, story, _ = _begin(rng, rng.choice(_FIRST_WISHES), _OPEN_PLOTS)
    slots = dict(story.slots)
    slots["new"] = _other_kind(rng, story)
    slots["a_new"] = a(slots["new"])
    second = _again({"kind": slots["new"]}, story)
    again = rng.choice(asks.FOLLOWS["another_kind"]).format_map(slots)
    now = second.slots
    if kind == "shorter":
        answer, facts = asks.AFTER[second.plot][0].format_map(now), (now["n"], now["g"])
    elif kind == "name":
        answer, facts = f"The {now['kind']} was named {now['n']}.", (now["kind"], now["n"])
    elif kind == "home":
        answer, facts = f"{now['n']} lived {now['home']}.", (now["n"], now["home"])
    else:
        answer, facts = choose(now["kind"], "next", asks.NEXT).format_map(now), (now["n"], now["g"])
    turns = ((asked, story.text), (again, second.text), (prompt.format_map(now), answer))
    return Example("stories", pattern, turns, facts=facts)


def _patterns() -> dict[str, Pattern]:
    table: dict[str, Pattern] = {}

    def add(task: str, prompts: tuple[str, ...], plots: tuple[str, ...], child: bool | None) -> None:
        for i, prompt in enumerate(prompts):
            name = f"stories/{task}/{i}"
            table[name] = partial(_story, pattern=name, prompt=prompt, plots=plots, child=child)

    for task, (prompts, _) in PLOTS.items():
        # "three" and "race" name the kind of the hero as an animal; a child would read oddly there.
        new = asks.PLOT_ASKS.get(task, ())
        add(task, prompts + new, (task,), None if task not in ("three", "race") else False)
    for task, prompts in OPEN_PROMPTS.items():
        for_child = task == "child"
        add(task, prompts, _PLOTS_WITH_OBJECT if task == "child" else _OPEN_PLOTS, for_child)
    for task, prompts in asks.ASKS.items():
        add(task, prompts, ("finds", "three", "lost", "mystery", "wish") if task == "ask_two" else _OPEN_PLOTS, False)
    for kind, prompts in asks.FOLLOWS.items():
        for i, prompt in enumerate(prompts):
            name = f"stories/follow_{kind}/{i}"
            table[name] = partial(_follow, pattern=name, kind=kind, prompt=prompt)
    for kind in ("shorter", "name", "home", "next"):
        for i, prompt in enumerate(asks.FOLLOWS[kind]):
            name = f"stories/follow_twice_{kind}/{i}"
            table[name] = partial(_follow_twice, pattern=name, kind=kind, prompt=prompt)
    return table


PATTERNS: dict[str, Pattern] = _patterns()
