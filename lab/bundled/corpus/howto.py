"""Everyday how-to answers in numbered steps, and everyday questions: what is said follows from a property of the thing asked about."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from . import howto_words as w
from .base import Example, Pattern
from .lexicon import TOWNS, a, person, plural

PATTERNS: dict[str, Pattern] = {}


class Draft(NamedTuple):
    """What a task made up: the slots of the prompt, the answer, and the strings that the answer takes from the prompt."""

    slots: dict[str, object]
    answer: str
    facts: tuple[str, ...]


Task = Callable[[random.Random], Draft]

# An asker may be put only before a plain question.
_QUESTION_STARTS = ("Where ", "What ", "Which ", "Who ", "Can ", "Is ", "Are ", "Does ", "Do ", "How ", "Should ", "Will ")
_PROPER = (*w.DAYS, *w.MONTHS)


def _lower(text: str) -> str:
    return text if text.startswith((*_PROPER, "I ")) else text[0].lower() + text[1:]


def _careless(rng: random.Random, prompt: str) -> str:
    """About one prompt in six is typed the way people type."""
    roll = rng.random()
    if roll < 0.05:
        return _lower(prompt)
    if roll < 0.08:
        return _lower(prompt).rstrip("?.")
    if roll < 0.11:
        return prompt.rstrip("?.")
    if roll < 0.14:
        return f"{prompt[:-1]}, please{prompt[-1]}"
    if roll < 0.17:
        return "Quick question: " + _lower(prompt) if prompt.endswith("?") else "Please help. " + prompt
    return prompt


def _relative(rng: random.Random) -> tuple[str, str]:
    who = person(rng)
    return who.name, rng.choice(w.RELATIONS_HE if who.he == "he" else w.RELATIONS_SHE)


def _with_asker(rng: random.Random, prompt: str, draft: Draft) -> tuple[str, str, tuple[str, ...]]:
    if not prompt.startswith(_QUESTION_STARTS) or not prompt.endswith("?") or " my " in prompt or " I " in prompt or rng.random() < 0.5:
        return prompt, draft.answer, draft.facts
    name, relation = _relative(rng)
    asked = f"My {relation} {name} asks: {_lower(prompt)}"
    return asked, f"You can tell {name} that {_lower(draft.answer)}", (*draft.facts, name)


def _pattern(name: str, task: Task, phrasing: str, asker: bool) -> Pattern:
    def make(rng: random.Random) -> Example:
        draft = task(rng)
        prompt = phrasing.format(**draft.slots)
        prompt = prompt[0].upper() + prompt[1:]
        prompt, answer, facts = _with_asker(rng, prompt, draft) if asker else (prompt, draft.answer, draft.facts)
        kept = tuple(fact for fact in facts if fact in prompt and fact in answer)
        return Example("howto", name, ((_careless(rng, prompt), answer),), kept)

    return make


def _task(*phrasings: str, asker: bool = False) -> Callable[[Task], Task]:
    def register(task: Task) -> Task:
        for i, phrasing in enumerate(phrasings):
            name = f"howto/{task.__name__}/{i}"
            PATTERNS[name] = _pattern(name, task, phrasing, asker)
        return task

    return register


def _steps(opening: str, *steps: str, tip: str = "") -> str:
    lines = [opening, *(f"{i}. {step}" for i, step in enumerate(steps, 1))]
    return "\n".join([*lines, tip] if tip else lines)


def _how(thing: str) -> tuple[str, ...]:
    """Five ways to ask for the same doing."""
    return (
        f"How do I {thing}?",
        f"What is a good way to {thing}?",
        f"How can I {thing}?",
        f"Please explain how to {thing}.",
        f"I want to {thing}. What should I do?",
    )


def _keyed(rng: random.Random, table: dict[str, tuple[Any, ...]]) -> tuple[Any, ...]:
    """A row of a table of kinds, with one thing of its last column in place of the column."""
    row = rng.choice(list(table.values()))
    return (*row[:-1], rng.choice(row[-1]))


def _is_many(thing: str) -> bool:
    return thing.endswith("s") and thing not in ("couscous", "hummus", "cress", "watercress")


def _it(thing: str) -> tuple[str, str, str]:
    """Pronoun as object, "is" or "are", and the ending of a verb."""
    return ("them", "are", "") if _is_many(thing) else ("it", "is", "s")


def _two(rng: random.Random, words: Iterable[str]) -> tuple[str, str]:
    first, second = rng.sample(list(words), 2)
    return first, second


def _cap(text: str) -> str:
    return text[0].upper() + text[1:]


# ---- how-to ----


@_task(*_how("wash {g}"))
def wash_cloth(rng: random.Random) -> Draft:
    material, (water, wash, dry, iron) = rng.choice(list(w.MATERIALS.items()))
    thing = f"{rng.choice(w.CLOTH_COLOURS)} {material} {rng.choice(w.GARMENTS)}"
    tip = f"If you iron {material}, use {iron} iron."
    return Draft(
        {"g": a(thing)},
        _steps(
            f"To wash {a(thing)}, use {water} water, because it is made of {material}.",
            f"Turn the {thing} inside out.",
            f"Wash it in {water} water {wash}.",
            "Rinse it well and press out the water.",
            f"Dry it {dry}.",
            tip=tip,
        ),
        (thing,),
    )


@_task(*_how("clean {g}"))
def clean_surface(rng: random.Random) -> Draft:
    material = rng.choice(list(w.SURFACES))
    cloth, cleaner, after, things = w.SURFACES[material]
    thing = f"{rng.choice(('old', 'large', 'small', 'dirty', 'dusty', 'sticky', 'greasy', 'new'))} {material} {rng.choice(things)}"
    return Draft(
        {"g": a(thing)},
        _steps(
            f"To clean {a(thing)}, use {a(cloth)} with {cleaner}.",
            f"Wipe the dust off the {thing}.",
            f"Put {cleaner} on the {'sponge' if 'sponge' in cloth else 'cloth'} and rub gently.",
            "Wipe it again with clean water.",
            f"{after}.",
            tip=f"Do this once a month to keep the {thing} clean.",
        ),
        (thing,),
    )


@_task(*_how("store {g}"))
def store_food(rng: random.Random) -> Draft:
    place, box, time, first, bad, food = _keyed(rng, w.FOODS)
    it, _, s = _it(food)
    amounts = (
        ("a lot of", "a few", "some", "a bag of", "a kilo of", "a basket of")
        if _is_many(food)
        else ("a lot of", "a little", "some", "plenty of", "half a kilo of")
    )
    thing = f"{rng.choice(amounts)} {food}"
    return Draft(
        {"g": thing},
        _steps(
            f"To store {thing}, use {place}.",
            f"{first}.",
            f"Put the {food} in {box}.",
            f"Keep {it} in {place}.",
            f"Look at the {food} now and then.",
            tip=f"Stored like this, {food} keep{s} for about {time}. Throw away anything that is {bad}.",
        ),
        (food,),
    )


@_task(*_how("grow {g}"))
def grow_plant(rng: random.Random) -> Draft:
    light, spot, water, soil, time, plant = _keyed(rng, w.PLANTS)
    it, _, s = _it(plant)
    place = rng.choice(w.GROW_PLACES)
    return Draft(
        {"g": f"{plant} {place}"},
        _steps(
            f"To grow {plant} {place}, choose {spot}, because {plant} need{s} {light}.",
            f"Prepare {soil}.",
            f"Plant the {plant} and press the soil down gently.",
            f"Water {it} {water}.",
            "Pull out weeds when you see them.",
            tip=f"With {light} and water {water}, you can enjoy the {plant} after about {time}.",
        ),
        (plant, place),
    )


@_task(*_how("pack {b} for {n} trip to {d}"), "What should I put into {b} for {n} trip to {d}?")
def pack_trip(rng: random.Random) -> Draft:
    clothes, one, two, goal = _keyed(rng, w.TRIPS)
    bag, n = rng.choice(w.BAGS), rng.randint(2, 14)
    trip = f"an {n}-day" if n in (8, 11) else f"a {n}-day"
    return Draft(
        {"b": a(bag), "n": trip, "d": goal},
        _steps(
            f"To pack {a(bag)} for {trip} trip to {goal}, start with a list.",
            f"Lay out {clothes} for {n} days.",
            f"Put {one} at the bottom of the {bag}.",
            f"Roll up the {clothes} and lay them on top.",
            f"Keep {two} where you can reach it quickly.",
            tip=f"Close the {bag} and check that you can carry it.",
        ),
        (bag, f"{n}-day", goal),
    )


@_task(*_how("wrap {g} for {p}"))
def wrap_gift(rng: random.Random) -> Draft:
    first, wrap, finish, gift = _keyed(rng, w.GIFTS)
    who, colour = person(rng).name, rng.choice(w.CLOTH_COLOURS)
    return Draft(
        {"g": a(gift), "p": who},
        _steps(
            f"To wrap {a(gift)} for {who}, you need paper, tape and {a(colour)} ribbon.",
            f"{first.format(g=gift)}.",
            f"{wrap}.",
            f"{finish}.",
            f"Tie {a(colour)} ribbon around the parcel.",
            tip=f"Add a small card with the name {who} on it.",
        ),
        (gift, who),
    )


@_task(*_how("remember a list with {a}, {b} and {c}"))
def remember_list(rng: random.Random) -> Draft:
    one, two, three = rng.sample(sorted({g for row in w.FOODS.values() for g in row[-1]}), 3)
    place = rng.choice(("door", "bed", "window", "sofa", "kitchen table", "stairs", "garden gate", "mirror"))
    other = rng.choice(("bookshelf", "clock", "stove", "lamp", "carpet", "cupboard", "bath"))
    return Draft(
        {"a": one, "b": two, "c": three},
        _steps(
            f"To remember {one}, {two} and {three}, put each thing on a place in your home.",
            f"Picture {one} at the {place}.",
            f"Picture {two} on the {other}.",
            f"Picture {three} on your own chair.",
            "Walk through your home in your mind three times.",
            tip=f"In the shop, walk the same way again: {one}, {two}, {three}.",
        ),
        (one, two, three),
    )


@_task(*_how("fold {g}"))
def fold_cloth(rng: random.Random) -> Draft:
    one, two, three, garment = _keyed(rng, w.FOLDS)
    adjective = rng.choice((*w.CLOTH_COLOURS, "thick", "thin", "large", "long", "woollen", "old", "new"))
    thing = f"pair of {adjective} {garment[8:]}" if garment.startswith("pair of ") else f"{adjective} {garment}"
    return Draft(
        {"g": a(thing)},
        _steps(
            f"To fold {a(thing)}, use a flat surface and take your time.",
            f"{one.format(g=thing)}.",
            f"Smooth the {thing} with your hands.",
            f"{two}.",
            f"{three}.",
            tip=f"Now the {thing} fits into a drawer or onto a shelf.",
        ),
        (thing,),
    )


@_task(*_how("sharpen {g}"))
def sharpen_blade(rng: random.Random) -> Draft:
    tool, stroke, test, blade = _keyed(rng, w.BLADES)
    adjective = rng.choice(("old", "blunt", "small", "large", "new", "rusty", "good", "favourite", "short", "long"))
    thing = f"{adjective} {blade}"
    return Draft(
        {"g": a(thing)},
        _steps(
            f"To sharpen {a(thing)}, use {tool}.",
            f"Clean the {thing} with a dry cloth.",
            f"{stroke}.",
            f"Wipe the {thing} clean again.",
            f"Test it: it is sharp when it can {test}.",
            tip=f"Work slowly and keep your fingers away from the edge of the {blade}.",
        ),
        (thing,),
    )


@_task(*_how("paint {g} {c}"))
def paint_thing(rng: random.Random) -> Draft:
    material = rng.choice(list(w.PAINTS))
    first, paint, time, things = w.PAINTS[material]
    thing, colour = f"{material} {rng.choice(things)}", rng.choice(w.CLOTH_COLOURS[:13])
    return Draft(
        {"g": a(thing), "c": colour},
        _steps(
            f"To paint {a(thing)} {colour}, you need {colour} {paint} and a brush.",
            f"{first}.",
            f"Brush a thin coat of {colour} paint onto the {thing}.",
            f"Let it dry for {time}.",
            "Brush on a second thin coat.",
            tip=f"After another {time.replace('one ', '')}, the {colour} paint is dry."
            if time.startswith("one ")
            else f"After {time} more, the {colour} paint is dry.",
        ),
        (thing, colour),
    )


@_task(*_how("plan {k} for {n} guests"), "I have {n} guests for {k}. How do I plan it?")
def plan_party(rng: random.Random) -> Draft:
    kind, (food, game) = rng.choice(list(w.PARTIES.items()))
    n, day = rng.randint(4, 40), rng.choice(w.DAYS)
    return Draft(
        {"k": a(kind), "n": n},
        _steps(
            f"To plan {a(kind)} for {n} guests, begin one week before.",
            f"Choose a day, for example {day}, and invite the {n} guests.",
            f"Set out {n} plates and {n} cups.",
            f"Prepare {food} and plenty of drinks.",
            f"Start {game} when all {n} guests are there.",
            tip=f"Ask a friend to help you on the day of the {kind}.",
        ),
        (kind, str(n)),
    )


@_task(*_how("train my {g} to {t}"))
def train_pet(rng: random.Random) -> Draft:
    pet, treat = rng.choice(list(w.PETS.items()))
    trick = rng.choice(w.TRICKS)
    own = trick.replace(" my ", " your ")
    return Draft(
        {"g": pet, "t": trick},
        _steps(
            f"To train your {pet} to {own}, use {treat} as a reward.",
            f"Show the {treat[2:] if treat.startswith('a ') else treat[3:]} to your {pet} in a quiet room.",
            f"Guide your {pet} until it starts to {own}.",
            f"Give {treat} at once and praise your {pet}.",
            "Repeat this for five minutes every day.",
            tip=f"Be patient, and stop when your {pet} is tired.",
        ),
        (pet, own),
    )


@_task(*_how("organise {g}"))
def organise_place(rng: random.Random) -> Draft:
    place, divider = rng.choice(list(w.STORES.items()))
    adjective = rng.choice(("full", "messy", "small", "large", "deep", "narrow", "shared", "old", "dusty", "crowded", "wide", "tall"))
    thing, goal = (
        f"{adjective} {place}",
        rng.choice(("find things quickly", "save time every day", "keep it tidy for long", "see everything at once")),
    )
    return Draft(
        {"g": a(thing)},
        _steps(
            f"To organise {a(thing)}, use {divider}.",
            f"Take everything out of the {place} and wipe it clean.",
            "Make three groups: keep, give away and throw away.",
            f"Put the things that you keep into order with {divider}.",
            "Put the things that you use most at the front.",
            tip=f"With {divider}, you can {goal}.",
        ),
        (thing,),
    )


@_task(*_how("save {p} pounds for {g} in {n} months"))
def save_money(rng: random.Random) -> Draft:
    n, part, goal = rng.randint(2, 12), rng.choice((5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100)), rng.choice(w.SAVE_FOR)
    total, less = (
        n * part,
        rng.choice(("snacks", "magazines", "taxi rides", "coffee in cafes", "sweets", "new clothes", "games", "restaurant meals")),
    )
    return Draft(
        {"p": total, "g": a(goal), "n": n},
        _steps(
            f"To save {total} pounds for {a(goal)} in {n} months, put {part} pounds aside every month.",
            f'Write "{goal}: {total} pounds" on a jar.',
            f"Put {part} pounds into the jar on the first day of each month.",
            f"Spend less on {less}.",
            f"Count the money after {n} months: {n} times {part} is {total}.",
            tip=f"Do not open the jar for anything but the {goal}.",
        ),
        (str(total), goal, str(n)),
    )


@_task(
    "How do I write a note of thanks to my {j} {p} {r}?",
    "What is a good way to thank my {j} {p} {r}?",
    "Please help me to thank my {j} {p} in writing {r}.",
    "I want to write a short note of thanks to my {j} {p} {r}.",
    "What can I write to my {j} {p} to say thank you {r}?",
)
def thank_you(rng: random.Random) -> Draft:
    job, who, reason = rng.choice(w.NOTE_JOBS), person(rng).name, rng.choice(w.REASONS)
    own, end = (
        reason.replace(" my ", " your "),
        rng.choice(("It made my week.", "It was a great help.", "I was very glad.", "I will not forget it.")),
    )
    return Draft(
        {"j": job, "p": who, "r": reason},
        _steps(
            f"To thank your {job} {who} {own}, write a short note by hand.",
            f'Begin with "Dear {who}".',
            f'Write: "Thank you {reason}."',
            f'Add one sentence about how you felt: "{end}"',
            "Sign the note with your name.",
            tip=f"Give the note to {who} within a few days.",
        ),
        (job, who, own),
    )


@_task(*_how("learn {s} on the {i}"))
def learn_song(rng: random.Random) -> Draft:
    first, practise, _, instrument = _keyed(rng, w.INSTRUMENTS)
    song, n = (
        f"{rng.choice(('short', 'slow', 'fast', 'long', 'cheerful', 'sad', 'quiet', 'simple', 'new'))} {rng.choice(w.SONGS)}",
        rng.randint(2, 6) * 5,
    )
    return Draft(
        {"s": a(song), "i": instrument},
        _steps(
            f"To learn {a(song)} on the {instrument}, practise for {n} minutes every day.",
            f"Listen to the {song} three times.",
            f"Learn {first} line by line.",
            f"{practise}.",
            f"Play the whole {song} slowly, then a little faster.",
            tip=f"After one week, play the {song} on the {instrument} for a friend.",
        ),
        (song, instrument),
    )


@_task(*_how("prepare for a visit to {g} in {t} {d}"))
def prepare_visit(rng: random.Random) -> Draft:
    place, (take, see, rule) = rng.choice(list(w.VISITS.items()))
    town, day = rng.choice(TOWNS), rng.choice(w.TOWN_TIMES)
    return Draft(
        {"g": a(place), "t": town, "d": day},
        _steps(
            f"To prepare for a visit to {a(place)} in {town} {day}, plan ahead.",
            f"Look up when the {place} in {town} opens.",
            f"Pack {take}.",
            f"Plan time for {see}.",
            f"Remember the rule: {rule}.",
            tip=f"Arrive at the {place} early, when it is still quiet.",
        ),
        (place, town, day),
    )


@_task(*_how("move {g} from the {r} to the {q}"))
def move_heavy(rng: random.Random) -> Draft:
    thing, aid = rng.choice(list(w.HEAVY.items()))
    one, two = _two(rng, w.ROOMS)
    thing = f"{rng.choice(('heavy', 'large', 'old', 'big', 'huge'))} {thing}"
    return Draft(
        {"g": a(thing), "r": one, "q": two},
        _steps(
            f"To move {a(thing)} from the {one} to the {two}, use {aid} and ask a friend to help.",
            f"Empty the {thing} and clear the way to the {two}.",
            f"Put {aid} under the {thing}.".replace("straps and a trolley under", "straps around it and a trolley under"),
            f"Push slowly from the {one} to the {two}.",
            "Bend your knees when you lift, and keep your back straight.",
            tip="Stop and rest when your arms get tired.",
        ),
        (thing, one, two),
    )


@_task(*_how("light {g} safely {p}"))
def light_safely(rng: random.Random) -> Draft:
    setup, light, out, thing = _keyed(rng, w.LIGHTS)
    place = rng.choice(w.FIRE_PLACES if thing in w.LIGHTS["fire"][-1] else w.LIGHT_PLACES)
    adjective = rng.choice(("small", "large", "new", "little", "simple", "bright"))
    thing = f"{adjective} {thing}"
    return Draft(
        {"g": a(thing), "p": place},
        _steps(
            f"To light {a(thing)} safely {place}, keep water or sand close by.",
            f"{setup.format(g=thing)}.",
            "Move paper, cloth and dry leaves away.",
            f"{light}.",
            f"Stay with the {thing} as long as it burns.",
            tip=f"When you leave, put it out: {_lower(out)}.",
        ),
        (thing, place),
    )


@_task(*_how("wake up at {t} {d}"))
def wake_early(rng: random.Random) -> Draft:
    hour, minute, why = (
        rng.randint(4, 7),
        rng.choice(("00", "10", "15", "20", "30", "40", "45", "50")),
        rng.choice(
            (
                "to catch a train",
                "to go fishing",
                "to bake bread",
                "for a run",
                "to feed the hens",
                "for an exam",
                "to see the sunrise",
                "for early work",
                "to do my homework",
                "for swimming",
                "to walk the dog",
                "to catch a plane",
                "to water the garden",
                "to practise the piano",
                "for a long drive",
            )
        ),
    )
    time, bed, own = f"{hour}:{minute}", f"{hour + 4}:{minute}", why.replace(" my ", " your ")
    return Draft(
        {"t": time, "d": why},
        _steps(
            f"To wake up at {time} {own}, go to bed at {bed} in the evening, because you need about eight hours of sleep.",
            f"Lay out everything that you need {own}.",
            f"Set the alarm to {time} and put the clock far from the bed.",
            f"Switch off all screens before {bed}.",
            f"Get up as soon as you hear the alarm at {time}.",
            tip="Open the curtains at once, because light makes you awake.",
        ),
        (time, own),
    )


@_task(*_how("make {g} with {e} for {n}"))
def make_tea(rng: random.Random) -> Draft:
    leaf, minutes = rng.choice(list(w.TEA_LEAVES.items()))
    extra, n = rng.choice(w.TEA_EXTRAS), rng.randint(2, 8)
    tea = leaf if leaf.endswith("tea") else f"{leaf} tea"
    return Draft(
        {"g": tea, "e": extra, "n": f"{n} people"},
        _steps(
            f"To make {tea} with {extra} for {n} people, you need {n} cups of hot water.",
            f"Boil {n} cups of water.",
            f"Put {n} spoons of {leaf} into a pot and pour the water over it.",
            f"Let the {tea} stand for {minutes} minutes.",
            f"Strain it and add some {extra}.",
            tip=f"Pour the {tea} into {n} warm cups and serve it at once.",
        ),
        (tea, extra, str(n)),
    )


@_task(*_how("make juice from {x} and {y}"))
def make_juice(rng: random.Random) -> Draft:
    one, two = _two(rng, w.JUICE)
    return Draft(
        {"x": one, "y": two},
        _steps(
            f"To make juice from {one} and {two}, you need a blender and a sieve.",
            f"{w.JUICE[one]} the {one}.",
            f"{w.JUICE[two]} the {two}.",
            f"Blend the {one} and the {two} with a glass of water.",
            "Pour the juice through the sieve into a jug.",
            tip=f"Drink the juice of {one} and {two} on the same day.",
        ),
        (one, two),
    )


@_task(*_how("cook a simple soup from {x} and {y}"))
def cook_soup(rng: random.Random) -> Draft:
    one, two = _two(rng, w.VEG)
    spice, time = rng.choice(w.SPICES), max(w.VEG[one], w.VEG[two])
    return Draft(
        {"x": one, "y": two},
        _steps(
            f"To cook a simple soup from {one} and {two}, you need about {time} minutes of cooking time.",
            f"Wash the {one} and the {two} and cut up anything large.",
            "Heat a spoon of oil in a pot and stir them in.",
            f"Add a litre of water and simmer for {time} minutes.",
            f"Season the soup with salt and {spice}.",
            tip=f"Serve the soup of {one} and {two} hot, with bread.",
        ),
        (one, two),
    )


@_task(*_how("make a sandwich with {x} and {y} on {b}"))
def make_sandwich(rng: random.Random) -> Draft:
    one, two = _two(rng, w.FILLINGS)
    bread, spread = rng.choice(w.BREADS), rng.choice(w.SPREADS)
    return Draft(
        {"x": one, "y": two, "b": bread},
        _steps(
            f"To make a sandwich with {one} and {two} on {bread}, you also need some {spread}.",
            f"Prepare {w.FILLINGS[one]} of {one} and {w.FILLINGS[two]} of {two}.",
            f"Cut {bread} open and spread it with {spread}." if bread.startswith("a ") else f"Spread two slices of {bread} with {spread}.",
            f"Lay the {one} on one half and the {two} on top.",
            "Close the sandwich and press it down gently.",
            tip=f"Eat the {one} and {two} sandwich while it is fresh.",
        ),
        (one, two, bread),
    )


@_task(*_how("make a salad with {x}, {y} and {z}"))
def make_salad(rng: random.Random) -> Draft:
    one, two, three = rng.sample(w.SALADS, 3)
    dressing, taste = rng.choice(list(w.DRESSINGS.items()))
    return Draft(
        {"x": one, "y": two, "z": three},
        _steps(
            f"To make a salad with {one}, {two} and {three}, use a large bowl.",
            f"Prepare the {one} and cut up large pieces.",
            f"Add the {two} and the {three}.",
            f"Mix {dressing} for the dressing.",
            f"Pour the {taste} dressing over the salad and stir.",
            tip=f"The salad with {one}, {two} and {three} tastes best fresh.",
        ),
        (one, two, three),
    )


@_task(*_how("remove {s} from {g}"), "There is {s} on my {h}. How do I get rid of it?")
def remove_stain(rng: random.Random) -> Draft:
    first, remedy, stain = _keyed(rng, w.STAINS)
    thing = f"{rng.choice(w.CLOTH_COLOURS)} {rng.choice(w.GARMENTS)}"
    return Draft(
        {"s": a(f"{stain} stain"), "g": a(thing), "h": thing},
        _steps(
            f"To remove {a(stain + ' stain')} from {a(thing)}, use {remedy}.",
            f"{first}.",
            f"Put {remedy} on the {stain} stain.",
            "Wait for ten minutes and rub gently from the outside to the middle.",
            f"Rinse the {thing} and wash it as usual.",
            tip=f"Do not dry the {thing} in the sun before the {stain} stain has gone.",
        ),
        (stain, thing),
    )


@_task(*_how("repair {g}"))
def repair_thing(rng: random.Random) -> Draft:
    damage = rng.choice(list(w.REPAIRS))
    tools, one, two, test, things = w.REPAIRS[damage]
    thing = f"{damage} {rng.choice(('old', 'green', 'small', 'blue', 'red', 'large', 'white', 'brown', 'grey'))} {rng.choice(things)}"
    name = thing.split(" ", 1)[1]
    return Draft(
        {"g": a(thing)},
        _steps(
            f"To repair {a(thing)}, you need {tools}.",
            f"Lay {tools} ready.",
            f"{one}.",
            f"{two}.",
            f"{test}.",
            tip=f"Use the {name} with care on the first day.",
        ),
        (thing,),
    )


@_task(*_how("dress for {x} in {y} weather"), "What should I wear for {x} in {y} weather?")
def dress_for(rng: random.Random) -> Draft:
    weather, (top, head, feet, care) = rng.choice(list(w.WEATHER.items()))
    event, who = (
        rng.choice(w.ACTIVITIES),
        rng.choice(("", " with my family", " with friends", " with my dog", " with my class", " with my parents", " with my club")),
    )
    own = who.replace(" my ", " your ")
    return Draft(
        {"x": event + who, "y": weather},
        _steps(
            f"To dress for {event}{own} in {weather} weather, choose {top}.",
            "Start with comfortable trousers and fresh socks.",
            f"Put on {top}.",
            f"Add {head}.",
            f"Choose {feet} for your feet.",
            tip=f"In {weather} weather, {care}.",
        ),
        (event, weather),
    )


@_task(*_how("pack {n} {g} for a move to {t}"))
def pack_fragile(rng: random.Random) -> Draft:
    things, wrap = rng.choice(list(w.FRAGILE.items()))
    n, town = rng.randint(3, 30), rng.choice(TOWNS)
    return Draft(
        {"n": n, "g": things, "t": town},
        _steps(
            f"To pack {n} {things} for a move to {town}, you need a strong box and some {wrap}.",
            f"Cover the bottom of the box with {wrap}.",
            f"Wrap each of the {n} {things} on its own.",
            "Put the heaviest ones at the bottom.",
            f"Fill every gap with {wrap} and close the box.",
            tip=f'Write "{n} {things}, fragile, {town}" on the box.',
        ),
        (str(n), things, town),
    )


@_task(*_how("cook {n} {c} of {g}"))
def cook_grain(rng: random.Random) -> Draft:
    grain, (ratio, minutes) = rng.choice(list(w.GRAINS.items()))
    n, extra = rng.randint(1, 9), rng.choice(w.SPICES)
    cups = "cup" if n == 1 else "cups"
    return Draft(
        {"n": n, "c": cups, "g": grain},
        _steps(
            f"To cook {n} {cups} of {grain}, use {n * ratio} cups of water.",
            f"Rinse {n} {cups} of {grain} in a sieve.",
            f"Boil {n * ratio} cups of water with a little salt.",
            f"Stir in the {grain} and turn the heat down.",
            f"Cover the pot and simmer for {minutes} minutes.",
            tip=f"Before you serve the {grain}, stir in a little {extra}.",
        ),
        (str(n), grain),
    )


@_task(*_how("hang {g} in the {r}"))
def hang_on_wall(rng: random.Random) -> Draft:
    thing, (fixing, tool) = rng.choice(list(w.WALLS.items()))
    room, which = rng.choice(w.ROOMS[:-3]), rng.choice(("small", "large", "old", "new", "round", "colourful", "heavy", "light"))
    thing = f"{which} {thing}"
    return Draft(
        {"g": a(thing), "r": room},
        _steps(
            f"To hang {a(thing)} in the {room}, you need {fixing} and {tool}.",
            f"Hold the {thing} against the wall of the {room}.",
            "Mark the right height with a pencil.",
            f"Put {fixing} into the wall with {tool}." if tool != "a pencil" else f"Put {fixing} on the corners.",
            f"Hang up the {thing} and check that it is straight.",
            tip=f"Step back and look at the {thing} from the door.",
        ),
        (thing, room),
    )


@_task(*_how("study for {s} in {n} days"), "I have {a} test in {n} days. How do I study for it?")
def study_test(rng: random.Random) -> Draft:
    subject, aid = rng.choice(list(w.SUBJECTS.items()))
    n, minutes = rng.randint(3, 21), rng.choice((20, 25, 30, 40, 45, 50, 60))
    friend = person(rng).name
    return Draft(
        {"s": subject, "a": a(subject), "n": n},
        _steps(
            f"To study for {subject} in {n} days, work for {minutes} minutes every day.",
            f"Divide the {subject} book into {n - 1} parts, one for each day.",
            f"Make {aid} for each part.",
            "Cover the page and say aloud what you remember.",
            f"Keep day {n} free and go through everything once more.",
            tip=f"Ask a friend, for example {friend}, to test you in {subject}.",
        ),
        (subject, str(n)),
    )


@_task(*_how("clean {g}"))
def clean_shoes(rng: random.Random) -> Draft:
    shoes, (tool, product) = rng.choice(list(w.SHOES.items()))
    thing = f"{rng.choice(w.SHOE_STATES)} {rng.choice(w.CLOTH_COLOURS[:13])} {shoes}"
    return Draft(
        {"g": thing},
        _steps(
            f"To clean {thing}, use {tool} and {product}.",
            f"Knock the dirt off the {shoes} outside.",
            f"Clean the {shoes} with {tool}.",
            f"Treat them with {product}.",
            "Fill them with paper and let them dry.",
            tip=f"Keep the {shoes} away from the heater, because heat makes them hard.",
        ),
        (thing,),
    )


@_task(*_how("look after {o}'s {p} for {n} days"))
def mind_pet(rng: random.Random) -> Draft:
    pet, (food, care) = rng.choice(list(w.PET_CARE.items()))
    owner, n = person(rng).name, rng.randint(2, 14)
    return Draft(
        {"o": owner, "p": pet, "n": n},
        _steps(
            f"To look after {owner}'s {pet} for {n} days, you need enough food for {n} days.",
            f"Ask {owner} for {n} days of food.",
            f"Feed the {pet} every morning: {food}.",
            "Give it fresh water every day." if pet != "goldfish" else "Feed it only once a day.",
            f"Then do one more thing: {care}.",
            tip=f"Call {owner} if the {pet} does not eat.",
        ),
        (owner, pet, str(n)),
    )


@_task(*_how("find my lost {g}"), "I have lost my {g}. Where should I look?")
def find_lost(rng: random.Random) -> Draft:
    thing, (one, two) = rng.choice(list(w.LOST.items()))
    adjective = rng.choice((*w.CLOTH_COLOURS[:13], "favourite", "new", "old"))
    thing = f"pair of {adjective} glasses" if thing == "pair of glasses" else f"{adjective} {thing}"
    return Draft(
        {"g": thing},
        _steps(
            f"To find your lost {thing}, stay calm and search one place after the other.",
            f"Think about when you last used the {thing}.",
            f"Look near {one}, on the floor too.",
            f"Then check {two}.",
            f"Ask the people around you about {a(thing)}.",
            tip=f"When you have found the {thing}, choose a fixed place for it.",
        ),
        (thing,),
    )


@_task(*_how("sew a {b} button on {g}"))
def sew_button(rng: random.Random) -> Draft:
    button, colour = rng.choice(w.BUTTONS), rng.choice(w.CLOTH_COLOURS[:13])
    thing = (
        f"{colour} "
        f"{rng.choice(('shirt', 'coat', 'jacket', 'cardigan', 'blouse', 'waistcoat', 'dress', 'cushion cover', 'pillowcase', 'skirt', 'cape', 'bag'))}"  # noqa: E501
    )
    return Draft(
        {"b": button, "g": a(thing)},
        _steps(
            f"To sew a {button} button on {a(thing)}, you need a needle and {colour} thread.",
            f"Thread the needle with {colour} thread and tie a knot.",
            f"Hold the {button} button in its place on the {thing}.",
            "Sew through each hole six times.",
            "Wind the thread around under the button and tie a knot.",
            tip=f"Pull gently at the {button} button to test it.",
        ),
        (button, thing),
    )


@_task(*_how("travel from {x} to {y} by {t}"))
def travel_by(rng: random.Random) -> Draft:
    way, (one, two) = rng.choice(list(w.TRANSPORT.items()))
    start, goal = _two(rng, TOWNS)
    return Draft(
        {"x": start, "y": goal, "t": way},
        _steps(
            f"To travel from {start} to {goal} by {way}, plan the journey one day before.",
            f"Look up how far it is from {start} to {goal}.",
            f"{one}.",
            f"{two} in {start}.",
            f"Take some water and a snack for the way to {goal}.",
            tip=f"Tell a friend when your {way} should reach {goal}.",
        ),
        (start, goal, way),
    )


@_task(*_how("welcome my new neighbour {p} from {t}"))
def welcome_neighbour(rng: random.Random) -> Draft:
    who, town, gift = person(rng), rng.choice(TOWNS), rng.choice(w.HELLO_GIFTS)
    return Draft(
        {"p": who.name, "t": town},
        _steps(
            f"To welcome your new neighbour {who.name} from {town}, take a small gift, for example {gift}.",
            f"Ring at the door of {who.name} in the afternoon.",
            "Say your name and where you live.",
            f"Hand over {gift} and ask about {town}.",
            f"Offer {who.name} your help in the first weeks.",
            tip=f"Keep the visit short, because {who.name} may be busy.",
        ),
        (who.name, town),
    )


# ---- everyday questions ----


@_task(
    "Where should I keep {g}?",
    "What is the best place for {g}?",
    "Where do {g} keep longest?",
    "How long can I keep {g}?",
    "I bought {g} for {p}. Where do I put the {g}?",
)
def keep_food(rng: random.Random) -> Draft:
    rows = {kind: (*row[:-1], many) for kind, row in w.FOODS.items() if (many := tuple(filter(_is_many, row[-1])))}
    place, box, time, _, bad, food = _keyed(rng, rows)
    return Draft(
        {"g": food, "p": person(rng).name},
        f"Keep {food} in {place}, best in {box}. There {food} keep for about {time}. Do not use anything that is {bad}.",
        (food,),
    )


@_task(
    "Can I wash {g} in hot water?",
    "Is hot water good for {g}?",
    "Does {g} stand hot water?",
    "Will hot water hurt {g}?",
    "Which water is right for {g}?",
    asker=True,
)
def hot_wash(rng: random.Random) -> Draft:
    material, (water, wash, dry, _) = rng.choice(list(w.MATERIALS.items()))
    thing = f"{rng.choice(w.CLOTH_COLOURS)} {material} {rng.choice(w.GARMENTS)}"
    verdict = "Hot water is fine" if water == "hot" else "Hot water is wrong"
    return Draft(
        {"g": a(thing)},
        f"{verdict} for {a(thing)}, because {material} needs {water} water. Wash the {thing} in {water} water {wash}, and dry it {dry}.",
        (thing,),
    )


@_task(
    "Can I iron {g}?",
    "How hot may the iron be for {g}?",
    "Which iron do I use for {g}?",
    "What heat does {g} need when I iron it?",
    asker=True,
)
def iron_cloth(rng: random.Random) -> Draft:
    material, (_, _, _, iron) = rng.choice(list(w.MATERIALS.items()))
    thing = f"{rng.choice(w.CLOTH_COLOURS)} {material} {rng.choice(w.GARMENTS)}"
    return Draft(
        {"g": a(thing)},
        f"Use {iron} iron for {a(thing)}, because {material} needs {iron} iron. Lay the {thing} flat and iron it on the wrong side.",
        (thing,),
    )


@_task(
    "Which tool do I need to {u}?",
    "What do I use to {u}?",
    "What do people use to {u}?",
    "Which tool helps me to {u}?",
    "Which tool is made to {u}?",
    asker=True,
)
def which_tool(rng: random.Random) -> Draft:
    (one, use), (two, other) = rng.sample(list(w.TOOL_USES.items()), 2)
    return Draft(
        {"u": f"{use} and to {other}"},
        f"The right tool to {use} is {one}. The right tool to {other} is {two}. So get {one} and {two}.",
        (use, other),
    )


@_task(
    "What do you use {t} for?",
    "What is {t} for?",
    "What can I do with {t}?",
    "What do people do with {t}?",
    "Please tell me what {t} is for.",
    asker=True,
)
def tool_use(rng: random.Random) -> Draft:
    tool, use = rng.choice(list(w.TOOL_USES.items()))
    adjective = rng.choice(("", "good", "small", "large", "new", "simple", "old", "cheap", "strong", "light"))
    named = a(f"{adjective} {tool.split(' ', 1)[1]}") if adjective else tool
    return Draft(
        {"t": named},
        f"{_cap(named)} is used to {use}. When you want to {use}, take {named} and work slowly and safely.",
        (named.split(" ", 1)[1],),
    )


@_task(
    "What does {j} do?",
    "What is the work of {j}?",
    "What does {j} do all day?",
    "Please explain what {j} does.",
    "What is the job of {j}?",
    asker=True,
)
def job_duty(rng: random.Random) -> Draft:
    (one, does), (two, other) = rng.sample(list(w.JOB_DUTIES.items()), 2)
    return Draft(
        {"j": f"{a(one)} or {a(two)}"},
        f"{_cap(a(one))} {does}. {_cap(a(two))} {other}. The work of {a(one)} and the work of {a(two)} are both useful.",
        (one, two),
    )


@_task(
    "Who can help me in {t} when {x}?",
    "Who do I call in {t} when {x}?",
    "Whom should I ask for help in {t} if {x}?",
    "I live in {t}, and {x}. Who can help?",
    "Which expert in {t} do I need when {x}?",
)
def who_helps(rng: random.Random) -> Draft:
    problem, job = rng.choice(list(w.PROBLEMS.items()))
    own = " ".join({"my": "your", "I": "you"}.get(word, word) for word in problem.split())
    town = rng.choice(TOWNS)
    return Draft(
        {"x": problem, "t": town},
        f'When {own}, {a(job)} in {town} can help you. {_cap(a(job))} {w.JOB_DUTIES[job]}. Call {a(job)} and say: "Please help, {problem}."',  # noqa: E501
        (problem, town),
    )


@_task(
    "What colour is {g}, and what colour is {h}?",
    "What are the colours of {g} and {h}?",
    "Which colour does {g} have, and which colour does {h} have?",
    "Is {g} the same colour as {h}?",
    "Please tell me the colours of {g} and {h}.",
    asker=True,
)
def colour_of(rng: random.Random) -> Draft:
    (one, c), (two, d) = rng.sample(list(w.FOOD_COLOURS.items()), 2)
    same = f"They have the same colour: {c}." if c == d else "They have different colours."
    return Draft({"g": one, "h": two}, f"The colour of {one} is {c}. The colour of {two} is {d}. {same}", (one, two))


@_task(
    "What is the opposite of {x}, and what is the opposite of {y}?",
    "What are the opposites of {x} and {y}?",
    "Which words mean the opposite of {x} and {y}?",
    "Please give me the opposites of {x} and {y}.",
    "What is the opposite of {x} and of {y}?",
    asker=True,
)
def opposite(rng: random.Random) -> Draft:
    table = {**w.OPPOSITES, **{v: k for k, v in w.OPPOSITES.items()}}
    one, two = _two(rng, table)
    return Draft(
        {"x": one, "y": two},
        f"The opposite of {one} is {table[one]}. The opposite of {two} is {table[two]}. So {one} and {table[one]} "
        f"are a pair, and {two} and {table[two]} are a pair.",
        (one, two),
    )


def _ranked(rng: random.Random, table: tuple[str, ...], gap: int) -> tuple[str, str, str, str]:
    """Two things as asked, in either order, then the greater and the lesser."""
    low = rng.randrange(len(table) - gap)
    less, more = table[low], table[rng.randrange(low + gap, len(table))]
    first, second = (less, more) if rng.random() < 0.5 else (more, less)
    return first, second, more, less


@_task(
    "Which is bigger, {x} or {y}?",
    "What is larger, {x} or {y}?",
    "Is {x} bigger than {y}?",
    "Which animal is bigger: {x} or {y}?",
    "Which is smaller, {x} or {y}?",
    asker=True,
)
def bigger(rng: random.Random) -> Draft:
    first, second, more, less = _ranked(rng, w.ANIMAL_SIZES, 3)
    return Draft(
        {"x": a(first), "y": a(second)},
        f"{_cap(a(more))} is bigger than {a(less)}. The bigger animal is the {more}, and the smaller animal is the {less}.",
        (first, second),
    )


@_task(
    "Which is heavier, {x} or {y}?",
    "What weighs more, {x} or {y}?",
    "Is {x} heavier than {y}?",
    "Which is lighter, {x} or {y}?",
    "Which of the two is heavier: {x} or {y}?",
    asker=True,
)
def heavier(rng: random.Random) -> Draft:
    first, second, more, less = _ranked(rng, w.WEIGHTS, 2)
    return Draft(
        {"x": a(first), "y": a(second)},
        f"{_cap(a(more))} is heavier than {a(less)}. The heavier thing is the {more}, and the lighter thing is the {less}.",
        (first, second),
    )


@_task(
    "Which is faster, {x} or {y}?",
    "Is {x} faster than {y}?",
    "Who wins a race, {x} or {y}?",
    "Which animal is slower, {x} or {y}?",
    "What moves faster: {x} or {y}?",
    asker=True,
)
def faster(rng: random.Random) -> Draft:
    first, second, more, less = _ranked(rng, w.SPEEDS, 2)
    return Draft(
        {"x": a(first), "y": a(second)},
        f"{_cap(a(more))} is faster than {a(less)}. In a race, the {more} comes first and the {less} comes second.",
        (first, second),
    )


@_task(
    "What sound does {x} make, and what sound does {y} make?",
    "Which sounds do {x} and {y} make?",
    "What do {x} and {y} sound like?",
    "Please tell me the sounds of {x} and {y}.",
    asker=True,
)
def animal_sound(rng: random.Random) -> Draft:
    one, two = _two(rng, w.SOUNDS)
    return Draft(
        {"x": a(one), "y": a(two)},
        f'{_cap(a(one))} makes the sound "{w.SOUNDS[one]}". {_cap(a(two))} makes the sound "{w.SOUNDS[two]}". The {one} and the {two} do not sound alike.',  # noqa: E501
        (one, two),
    )


@_task(
    "What do you call a young {x} and a young {y}?",
    "What is the name for a baby {x} and a baby {y}?",
    "What is a young {x} called, and what is a young {y} called?",
    "Please tell me the words for a young {x} and a young {y}.",
    asker=True,
)
def young_animal(rng: random.Random) -> Draft:
    one, two = _two(rng, w.YOUNG)
    return Draft({"x": one, "y": two}, f"A young {one} is called {a(w.YOUNG[one])}. A young {two} is called {a(w.YOUNG[two])}.", (one, two))


@_task(
    "Where does {x} live, and what does {y} eat?",
    "What is the home of {x}, and what is the food of {y}?",
    "Which home does {x} have, and which food does {y} like?",
    "Please tell me where {x} lives and what {y} eats.",
    asker=True,
)
def home_and_food(rng: random.Random) -> Draft:
    one, two = rng.choice(list(w.HOMES)), rng.choice(list(w.EATS))
    return Draft({"x": a(one), "y": a(two)}, f"{_cap(a(one))} lives in {a(w.HOMES[one])}. {_cap(a(two))} eats {w.EATS[two]}.", (one, two))


@_task(
    "How many legs do {n} {x} have?",
    "How many legs are there on {n} {x}?",
    "What is the number of legs of {n} {x}?",
    "Please count the legs of {n} {x}.",
    asker=True,
)
def count_legs(rng: random.Random) -> Draft:
    animal, legs = rng.choice(list(w.LEGS.items()))
    n, many = rng.randint(2, 12), plural(animal)
    return Draft(
        {"n": n, "x": many},
        f"{_cap(a(animal))} has {legs} legs. So {n} {many} have {n} times {legs} legs, and that makes {n * legs} legs.",
        (str(n), many),
    )


@_task(
    "Which word does not belong: {l}?",
    "Which is the odd one out: {l}?",
    "Find the word that does not fit: {l}.",
    "What does not belong in this list: {l}?",
    "One word is wrong here: {l}. Which one?",
    asker=True,
)
def odd_one_out(rng: random.Random) -> Draft:
    kind, other = _two(rng, w.CATEGORY_WORDS)
    if {kind, other} in ({"bird", "animal"}, {"flower", "tree"}):
        other = "tool"
    three, odd = rng.sample(w.CATEGORY_WORDS[kind], 3), rng.choice(w.CATEGORY_WORDS[other])
    words = rng.sample([*three, odd], 4)
    return Draft(
        {"l": ", ".join(words)},
        f'The word "{odd}" does not belong in the list. {_cap(a(odd))} is {a(other)}, but {three[0]}, {three[1]} and {three[2]} each name {a(kind)}.',  # noqa: E501
        tuple(words),
    )


@_task(
    "Is {x} a {k} or a {o}?",
    "What kind of thing is {x}: {k} or {o}?",
    "Which is right for {x}: {k} or {o}?",
    "Does {x} count as a {k} or as a {o}?",
    asker=True,
)
def which_category(rng: random.Random) -> Draft:
    kinds = ("fruit", "vegetable", "bird", "tool", "piece of furniture", "musical instrument", "vehicle", "flower", "tree")
    kind, other = _two(rng, kinds)
    thing, friend = _two(rng, w.CATEGORY_WORDS[kind])
    one, two = (kind, other) if rng.random() < 0.5 else (other, kind)
    return Draft(
        {"x": a(thing), "k": one, "o": two},
        f"{_cap(a(thing))} is {a(kind)}, not {a(other)}. {_cap(a(friend))} is another {kind}.",
        (thing, kind, other),
    )


@_task(
    "Where can I buy {x} and {y}?",
    "Which shops sell {x} and {y}?",
    "I need {x} and {y}. Where do I go?",
    "In which shop do I get {x}, and in which shop do I get {y}?",
    "My list says {x} and {y}. Where do I buy them?",
)
def where_to_buy(rng: random.Random) -> Draft:
    one, two = _two(rng, w.SHOPS)
    p, q = (a(w.SHOPS[x]) for x in (one, two))
    own, two_own = one.replace("my", "your"), two.replace("my", "your")
    text = f"You can buy {own} at {p}. You can buy {two_own} at {q}."
    return Draft(
        {"x": one, "y": two},
        f"{text} One trip to {p} is enough for both." if p == q else f"{text} So go to {p} first and then to {q}.",
        (own, two_own),
    )


@_task(
    "What is {x} made of, and what is {y} made of?",
    "Which material makes {x}, and which makes {y}?",
    "What are {x} and {y} made of?",
    "Please tell me what {x} and {y} are made of.",
    asker=True,
)
def made_of(rng: random.Random) -> Draft:
    one, two = _two(rng, w.MADE_OF)
    return Draft(
        {"x": one, "y": two},
        f"{_cap(one)} is usually made of {w.MADE_OF[one]}. {_cap(two)} is usually made of {w.MADE_OF[two]}.",
        (one.split(" ", 1)[1], two.split(" ", 1)[1]),
    )


@_task(
    "In which room do I put {x} and {y}?",
    "Where in the house do {x} and {y} belong?",
    "Which rooms are right for {x} and {y}?",
    "Where do I look for {x} and {y} in a house?",
    asker=True,
)
def which_room(rng: random.Random) -> Draft:
    one, two = _two(rng, w.ROOM_THINGS)
    same = " Both belong in the same room." if w.ROOM_THINGS[one] == w.ROOM_THINGS[two] else " They belong in different rooms."
    return Draft(
        {"x": a(one), "y": a(two)},
        f"{_cap(a(one))} belongs in the {w.ROOM_THINGS[one]}. {_cap(a(two))} belongs in the {w.ROOM_THINGS[two]}.{same}",
        (one, two),
    )


@_task(
    "What do we use our {x} and our {y} for?",
    "What are our {x} and our {y} for?",
    "What do people do with the {x} and the {y}?",
    "Please tell me what our {x} and our {y} do.",
    asker=True,
)
def body_part(rng: random.Random) -> Draft:
    one, two = _two(rng, w.BODY)
    return Draft(
        {"x": one, "y": two},
        f"We use our {one} to {w.BODY[one]}. We use our {two} to {w.BODY[two]}. Our {one} and our {two} are both important.",
        (one, two),
    )


@_task(
    "How does {x} taste, and how does {y} taste?",
    "What do {x} and {y} taste like?",
    "Which taste does {x} have, and which does {y} have?",
    "Please describe the taste of {x} and of {y}.",
    asker=True,
)
def taste_of(rng: random.Random) -> Draft:
    one, two = _two(rng, w.TASTES)
    same = "The two taste alike." if w.TASTES[one] == w.TASTES[two] else "The two taste different."
    return Draft({"x": one, "y": two}, f"The taste of {one} is {w.TASTES[one]}. The taste of {two} is {w.TASTES[two]}. {same}", (one, two))


@_task(
    "Does {x} float or sink in water?",
    "What happens when I put {x} into water?",
    "Will {x} float or sink?",
    "What happens if I drop {x} into {p}?",
    "Please tell me if {x} floats on water.",
    asker=True,
)
def float_or_sink(rng: random.Random) -> Draft:
    thing, floats = rng.choice(list(w.FLOATS.items()))
    size = rng.choice(("small", "large", "new", "old", "thick", "clean", "dirty", "round", "shiny", "dry"))
    word, why = ("floats on", "is light for its size") if floats else ("sinks in", "is heavy for its size")
    return Draft(
        {"x": a(f"{size} {thing}"), "p": rng.choice(("a lake", "a bath", "a pond", "a bucket of water", "a river"))},
        f"{_cap(a(f'{size} {thing}'))} {word} water. The {thing} {why}, so it {'stays on top' if floats else 'goes down to the bottom'}.",
        (f"{size} {thing}",),
    )


@_task(
    "How many sides do {n} {x} have?",
    "How many sides are there on {n} {x}?",
    "I draw {n} {x}. How many sides do I draw?",
    "Please count the sides of {n} {x}.",
    asker=True,
)
def count_sides(rng: random.Random) -> Draft:
    shape, sides = rng.choice(list(w.SHAPES.items()))
    n = rng.randint(2, 12)
    thing = f"{rng.choice(w.CLOTH_COLOURS[:13])} {shape}"
    many = plural(thing)
    return Draft(
        {"n": n, "x": many},
        f"{_cap(a(shape))} has {sides} sides. So {n} {many} have {n} times {sides} sides, and that makes {n * sides} sides.",
        (str(n), many),
    )


@_task(
    "Today is {d}, and {p} comes tomorrow. What day comes next?",
    "If my {r} {p} comes on {d}, what day is one day later?",
    "My {r} {p} left on {d}. Which days come before and after {d}?",
    "My {r} {p} comes the day after {d}. Which day is that?",
    "What day comes after {d}, and what day comes before {d}? {p} needs to know.",
)
def day_after(rng: random.Random) -> Draft:
    i = rng.randrange(7)
    day, after, before = w.DAYS[i], w.DAYS[(i + 1) % 7], w.DAYS[i - 1]
    who, relation = _relative(rng)
    return Draft(
        {"d": day, "p": who, "r": relation},
        f"The day after {day} is {after}. The day before {day} is {before}. So the order is {before}, {day}, {after}.",
        (day,),
    )


@_task(
    "What month comes after {m}?",
    "Which season is {m} in?",
    "My {r} {p} was born in {m}. Which season is that?",
    "{p} starts work in {m}. Which month and season is that?",
    "Which month follows {m}, and which season is {m} in?",
    asker=True,
)
def month_season(rng: random.Random) -> Draft:
    i = rng.randrange(12)
    month = w.MONTHS[i]
    who, relation = _relative(rng)
    return Draft(
        {"m": month, "p": who, "r": relation},
        f"{month} is month number {i + 1} of the year, and {month} is in {w.SEASONS[i]} in the north. The month "
        f"after {month} is {w.MONTHS[(i + 1) % 12]}.",
        (month,),
    )


@_task(
    "How do you play the {x} and the {y}?",
    "How does one play the {x}, and how does one play the {y}?",
    "How do the {x} and the {y} make a sound?",
    "Please explain how to play the {x} and the {y}.",
    asker=True,
)
def play_instrument(rng: random.Random) -> Draft:
    table = {i: row[2] for row in w.INSTRUMENTS.values() for i in row[-1]}
    one, two = _two(rng, table)
    same = (
        f"You play the {one} and the {two} in a similar way."
        if table[one] == table[two]
        else f"The {one} and the {two} are played in different ways."
    )
    return Draft({"x": one, "y": two}, f"You play the {one} by {table[one]}. You play the {two} by {table[two]}. {same}", (one, two))


@_task(
    "Do {x} need sun or shade?",
    "How much light do {x} need {p}?",
    "Where should I plant {x} {p}?",
    "How often do I water {x} {p}?",
    "Do {x} like sun, and how much water do {x} need?",
    asker=True,
)
def plant_needs(rng: random.Random) -> Draft:
    rows = {kind: (*row[:-1], many) for kind, row in w.PLANTS.items() if (many := tuple(filter(_is_many, row[-1])))}
    light, spot, water, soil, _, plant = _keyed(rng, rows)
    return Draft(
        {"x": plant, "p": rng.choice(w.GROW_PLACES)},
        f"{_cap(plant)} need {light}, so {spot} is right for {plant}. Plant {plant} in {soil} and water them {water}.",
        (plant,),
    )
