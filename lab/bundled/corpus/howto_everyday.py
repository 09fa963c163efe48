"""Everyday things that visitors ask for first, each with its steps, what it needs and why, and the follow-ups on them."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from .base import Example, Pattern

# group -> rows of (what to do, what is needed, steps, "why" question, its answer); every step begins with a verb.
Row = tuple[str, str, tuple[str, ...], str, str]
EVERYDAY: dict[str, tuple[Row, ...]] = {
    "kitchen": (
        (
            "make tea",
            "water, a tea bag, a cup and a kettle",
            ("Boil fresh water", "Put a tea bag into a cup", "Pour the hot water over it", "Wait for four minutes", "Take the tea bag out"),
            "Why wait four minutes?",
            "Tea needs about four minutes to give its taste to the water.",
        ),
        (
            "make coffee",
            "ground coffee, a filter, hot water and a cup",
            (
                "Boil the water",
                "Put two spoons of ground coffee into the filter",
                "Pour the water over it slowly",
                "Let the coffee run into the cup",
            ),
            "Why pour slowly?",
            "Slow water takes more taste out of the coffee.",
        ),
        (
            "boil an egg",
            "an egg, a pot, water and a spoon",
            (
                "Boil water in a small pot",
                "Put the egg in with a spoon",
                "Wait for seven minutes",
                "Cool the egg in cold water",
                "Peel the egg",
            ),
            "Why cold water?",
            "Cold water stops the egg from cooking on and makes it easy to peel.",
        ),
        (
            "fry an egg",
            "an egg, a pan, a little butter and salt",
            ("Melt a little butter in a pan", "Break the egg into the pan", "Fry it for three minutes", "Add a little salt"),
            "Why butter?",
            "The butter keeps the egg from sticking to the pan.",
        ),
        (
            "make a salad",
            "lettuce, tomatoes, a cucumber, oil and lemon juice",
            (
                "Wash the lettuce and the tomatoes",
                "Cut everything into small pieces",
                "Mix oil, lemon juice and salt",
                "Pour it over the salad and stir",
            ),
            "Why wash it?",
            "Washing takes earth and small insects off the leaves.",
        ),
        (
            "make a sandwich",
            "two slices of bread, butter, cheese and a tomato",
            ("Take two slices of bread", "Spread butter on them", "Put cheese and a tomato slice between them", "Cut the sandwich in half"),
            "Why butter?",
            "The butter keeps the bread from getting wet.",
        ),
        (
            "cook pasta",
            "pasta, a big pot, water and salt",
            ("Boil a lot of water with salt", "Put the pasta into the water", "Stir it now and then for ten minutes", "Pour the water off"),
            "Why stir it?",
            "Stirring keeps the pasta from sticking together.",
        ),
        (
            "cook rice",
            "a cup of rice, two cups of water, a pot and salt",
            (
                "Wash the rice",
                "Put one cup of rice and two cups of water into a pot",
                "Cook it gently for fifteen minutes",
                "Leave the lid on for five minutes more",
            ),
            "Why leave the lid on?",
            "The steam under the lid makes the rice soft.",
        ),
        (
            "make pancakes",
            "flour, milk, two eggs, salt and a pan",
            (
                "Mix flour, milk, two eggs and a little salt",
                "Heat some butter in a pan",
                "Pour in a thin layer",
                "Turn the pancake when it is brown below",
            ),
            "Why a thin layer?",
            "A thin pancake gets done inside before it is too dark outside.",
        ),
        (
            "make soup",
            "vegetables, water, salt and a big pot",
            (
                "Cut the vegetables into small pieces",
                "Fry them in the pot for a moment",
                "Add water and salt",
                "Cook the soup for twenty minutes",
            ),
            "Why small pieces?",
            "Small pieces get soft sooner.",
        ),
        (
            "bake bread",
            "flour, yeast, water, salt and an oven",
            ("Mix flour, yeast, water and salt", "Knead the dough for ten minutes", "Let it rise for an hour", "Bake it for forty minutes"),
            "Why let it rise?",
            "The yeast needs time to fill the dough with small bubbles.",
        ),
        (
            "bake a cake",
            "flour, sugar, butter, three eggs and a cake tin",
            (
                "Stir butter and sugar",
                "Add three eggs and the flour",
                "Put the dough into a greased tin",
                "Bake it for forty minutes",
                "Let the cake cool",
            ),
            "Why grease the tin?",
            "The cake comes out of a greased tin in one piece.",
        ),
        (
            "make lemonade",
            "two lemons, sugar, cold water and a jug",
            ("Press two lemons", "Stir the juice with two spoons of sugar", "Add a litre of cold water", "Put some ice into the glasses"),
            "Why stir the sugar first?",
            "Sugar melts better in a little juice than in a lot of cold water.",
        ),
        (
            "cut an onion",
            "an onion, a sharp knife and a board",
            ("Cut the onion in half", "Peel both halves", "Cut thin lines from the top to the root", "Cut across the lines"),
            "Why a sharp knife?",
            "A sharp knife slips less and brings fewer tears.",
        ),
    ),
    "home": (
        (
            "clean windows",
            "a bucket of warm water, soap, a sponge and a dry cloth",
            (
                "Wipe the dust off the frame",
                "Wash the glass with warm water and soap",
                "Pull the water off from top to bottom",
                "Dry the edges with a cloth",
            ),
            "Why from top to bottom?",
            "The water runs down, so you do not make clean glass wet again.",
        ),
        (
            "wash the dishes",
            "hot water, washing-up liquid, a sponge and a towel",
            (
                "Scrape off the food",
                "Fill the sink with hot water and a little soap",
                "Wash the glasses first and the pans last",
                "Rinse everything",
                "Dry it with a towel",
            ),
            "Why the glasses first?",
            "The water is still clean for the glasses, and pans are the dirtiest.",
        ),
        (
            "make a bed",
            "a sheet, a blanket and a pillow",
            ("Pull the sheet smooth", "Shake the pillow", "Lay the blanket over the bed", "Fold back the top"),
            "Why shake the pillow?",
            "Shaking brings air into the pillow and makes it soft.",
        ),
        (
            "tidy a room",
            "a box, a bag for rubbish and a little time",
            (
                "Throw the rubbish into a bag",
                "Put the clothes away",
                "Put every other thing in its place",
                "Wipe the table",
                "Sweep the floor",
            ),
            "Why sweep last?",
            "Dust falls down while you tidy, so the floor comes last.",
        ),
        (
            "iron a shirt",
            "an iron, an ironing board and a little water",
            ("Heat the iron", "Iron the collar first", "Iron the sleeves", "Iron the back and the front", "Hang the shirt up at once"),
            "Why hang it up?",
            "A warm shirt gets new creases when it lies in a pile.",
        ),
        (
            "change a light bulb",
            "a new bulb and a steady ladder",
            (
                "Switch the light off",
                "Let the old bulb cool down",
                "Turn it to the left and take it out",
                "Turn the new bulb in to the right",
            ),
            "Why let it cool down?",
            "A bulb that was on can burn your fingers.",
        ),
        (
            "hang a picture",
            "a picture, a nail, a hammer and a pencil",
            ("Mark the place with a pencil", "Knock the nail in at a slant", "Hang the picture on the nail", "Look if it is straight"),
            "Why at a slant?",
            "A nail that points up holds the picture better.",
        ),
        (
            "sew on a button",
            "a needle, thread, scissors and the button",
            (
                "Put the thread through the needle and tie a knot",
                "Hold the button in its place",
                "Sew through the holes six times",
                "Wind the thread around below the button",
                "Tie a knot and cut the thread",
            ),
            "Why a knot?",
            "Without a knot the thread slips out of the cloth.",
        ),
        (
            "water plants",
            "a can of water and a dry saucer",
            ("Feel the soil with a finger", "Pour water on the soil if it is dry", "Stop when water comes out below", "Empty the saucer"),
            "Why feel the soil?",
            "Most plants die of too much water, not of too little.",
        ),
        (
            "plant a seed",
            "a pot, soil, a seed and water",
            (
                "Fill a pot with soil",
                "Make a small hole with your finger",
                "Put the seed in and cover it",
                "Give it a little water",
                "Put the pot in a light place",
            ),
            "Why a light place?",
            "The young plant needs light as soon as it comes out.",
        ),
        (
            "mow the lawn",
            "a mower and dry grass",
            ("Wait until the grass is dry", "Pick up stones and toys", "Mow in straight lines", "Rake the cut grass together"),
            "Why dry grass?",
            "Wet grass sticks to the mower and is cut badly.",
        ),
        (
            "wash a car",
            "two buckets of water, soap, a sponge and a soft cloth",
            (
                "Rinse the dust off",
                "Wash the roof first with soap",
                "Wash the sides and the wheels",
                "Rinse it again",
                "Dry it with a soft cloth",
            ),
            "Why the roof first?",
            "Dirty water runs down, so you wash from top to bottom.",
        ),
    ),
    "myself": (
        (
            "brush my teeth",
            "a toothbrush, toothpaste and water",
            (
                "Put a little toothpaste on the brush",
                "Brush the outsides in small circles",
                "Brush the insides and the tops",
                "Spit out and rinse the brush",
            ),
            "Why small circles?",
            "Small circles clean well and do not hurt the gums.",
        ),
        (
            "tie my shoelaces",
            "two laces and a little practice",
            (
                "Cross the laces and pull one under the other",
                "Make a loop with one lace",
                "Wind the other lace around it",
                "Pull it through as a second loop",
                "Pull both loops tight",
            ),
            "Why two loops?",
            "Two loops hold well and open again with one pull.",
        ),
        (
            "fall asleep",
            "a dark, quiet room and a comfortable bed",
            (
                "Put your phone away an hour before",
                "Open the window for a moment",
                "Make the room dark",
                "Lie down and breathe slowly",
                "Think of something calm",
            ),
            "Why put the phone away?",
            "Its bright light keeps you awake.",
        ),
        (
            "wake up early",
            "an alarm clock and an early night",
            ("Go to bed earlier", "Set an alarm", "Put it far from the bed", "Open the curtains at once"),
            "Why far from the bed?",
            "You have to get up to switch it off.",
        ),
        (
            "wash my hands",
            "water, soap and a towel",
            ("Make your hands wet", "Rub them with soap for twenty seconds", "Rinse off the soap", "Dry them well"),
            "Why twenty seconds?",
            "The soap needs that long to take off the dirt.",
        ),
        (
            "learn new words",
            "cards, a pen and ten minutes a day",
            (
                "Write each word on a card",
                "Write what it means on the back",
                "Go through the cards every day",
                "Put away the words that you know",
            ),
            "Why every day?",
            "A little every day stays in the head better than a lot at once.",
        ),
        (
            "start running",
            "good shoes and half an hour",
            (
                "Put on good shoes",
                "Walk fast for five minutes",
                "Run slowly for one minute and walk for two",
                "Do this six times",
                "Rest for a day",
            ),
            "Why walk in between?",
            "Your legs and your heart need time to get used to it.",
        ),
        (
            "calm down",
            "a quiet place and five minutes",
            ("Sit down in a quiet place", "Breathe in while you count to four", "Breathe out while you count to six", "Do this ten times"),
            "Why breathe out longer?",
            "A long breath out tells the body that all is well.",
        ),
    ),
    "out": (
        (
            "pack a bag",
            "a bag, a list and your things",
            ("Write a list", "Put heavy things at the bottom", "Roll up the clothes", "Put what you need first on top"),
            "Why roll them up?",
            "Rolled clothes need less room and get fewer creases.",
        ),
        (
            "wrap a present",
            "paper, tape, scissors and a ribbon",
            (
                "Lay the present on the paper",
                "Cut the paper to size",
                "Fold it over and tape it",
                "Fold in the ends",
                "Tie a ribbon around it",
            ),
            "Why cut it first?",
            "Paper of the right size can be folded without lumps.",
        ),
        (
            "write a letter",
            "paper, a pen, an envelope and a stamp",
            (
                "Write the date at the top",
                "Begin with a greeting",
                "Say what you want to say",
                "Close with your name",
                "Put it into an envelope with a stamp",
            ),
            "Why a stamp?",
            "The stamp pays for the way of the letter.",
        ),
        (
            "ride a bicycle",
            "a bicycle, a helmet and a quiet road",
            (
                "Put on a helmet",
                "Sit down with one foot on the ground",
                "Push off and look ahead",
                "Pedal without stopping",
                "Brake gently",
            ),
            "Why look ahead?",
            "You go where you look, and looking ahead keeps you steady.",
        ),
        (
            "change a bicycle tyre",
            "two tyre levers, a new tube and a pump",
            ("Take the wheel out", "Lift the tyre off with the levers", "Put in the new tube", "Press the tyre back on", "Pump it up"),
            "Why levers?",
            "The tyre sits too tight for bare fingers.",
        ),
        (
            "put up a tent",
            "a tent, pegs and a flat place",
            ("Look for a flat, dry place", "Spread the tent out", "Push the poles through", "Raise the tent", "Fix it with pegs"),
            "Why a flat place?",
            "On a slope you slide all night, and water runs in.",
        ),
        (
            "make a paper plane",
            "one sheet of paper",
            (
                "Fold the paper along the middle",
                "Fold both top corners to the middle",
                "Fold the edges to the middle again",
                "Fold it together",
                "Bend down the wings",
            ),
            "Why fold the corners?",
            "The plane needs a sharp and heavy nose.",
        ),
        (
            "build a snowman",
            "fresh snow, a carrot, stones and a hat",
            (
                "Roll three balls of snow",
                "Put the biggest below",
                "Put the others on top",
                "Give him a carrot for a nose",
                "Add stones and a hat",
            ),
            "Why the biggest below?",
            "The biggest ball has to carry the others.",
        ),
        (
            "plan a birthday party",
            "a list of guests, a cake and some games",
            ("Choose a day", "Invite your friends", "Bake or buy a cake", "Think of three games", "Put up some balloons"),
            "Why three games?",
            "With three games nobody gets bored while they wait for the cake.",
        ),
        (
            "find the way in a new town",
            "a map and a little courage",
            ("Look for your place on a map", "Choose a big building as a mark", "Walk towards it", "Ask somebody if you are not sure"),
            "Why a big building?",
            "You can see a big building from far away.",
        ),
    ),
}

ASKS = (
    "How do I {do}?",
    "how to {do}",
    "What is the best way to {do}?",
    "Can you tell me how to {do}?",
    "Teach me to {do}.",
    "Show me how to {do}, step by step.",
    "I have never tried to {do}. How does it work?",
    "I would like to {do}. How do I begin?",
    "What are the steps to {do}?",
    "Help me to {do}.",
    "Give me a plan to {do}.",
    "My friend wants to {do}. What should I say?",
    "{do}, but how?",
    "Is it hard to {do}?",
    "Explain to a child how to {do}.",
    "Quick help, please: how do you {do}?",
)
NEEDS = (
    "What do I need to {do}?",
    "Which things do I need to {do}?",
    "what do you need if you want to {do}",
    "Make a list of what I need to {do}.",
)
SHORTS = (
    "In one sentence: how do I {do}?",
    "Tell me very briefly how to {do}.",
    "{do}, the short version",
    "How do I {do}? One sentence only.",
)
_STEP_NAMES = ("first", "second", "third", "fourth", "fifth")

FOLLOWS: dict[str, tuple[str, ...]] = {
    "short": ("shorter", "Shorter, please.", "In one sentence, please.", "in one sentence", "All in one sentence?", "Too long."),
    "needs": ("What do I need?", "what do I need for that", "Which things do I need?", "And what must I buy?", "What should I have ready?"),
    "after": ("What comes after step {k}?", "and after step {k}?", "I have done step {k}. What now?", "What is next after step {k}?"),
    "step": ("What was step {k}?", "Repeat step {k}.", "step {k}?", "Say the {nth} step again.", "Can you repeat step {k}?"),
    "first": ("How do I begin?", "What is the first step?", "What comes first?", "where do I start"),
    "last": ("What is the last step?", "How does it end?", "what do I do at the end", "And the last thing?"),
    "why": ("{why}", "{why}", "{why} I do not understand that."),
    "count": ("How many steps are there?", "Is it a lot of work?", "how many steps?"),
    "again": ("Say it again.", "Repeat that, please.", "again please", "Can you write that again?"),
}  # fmt: skip
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def _yours(do: str) -> str:
    return do.replace(" my ", " your ")


def _low(step: str) -> str:
    return step[0].lower() + step[1:]


def _steps(row: Row) -> str:
    lines = [f"To {_yours(row[0])}, you need {row[1]}.", *(f"{i}. {step}." for i, step in enumerate(row[2], 1))]
    return "\n".join(lines)


def _short(row: Row) -> str:
    """All steps but the small ones in one sentence."""
    steps = [_low(step) for step in row[2]]
    return f"To {_yours(row[0])}, {', '.join(steps[:-1])} and then {steps[-1]}."


def _facts(row: Row) -> tuple[str, ...]:
    return (_yours(row[0]),)


def _ask(rng: random.Random, template: str, row: Row) -> str:
    prompt = template.format(do=row[0])
    if template.startswith("My friend"):
        prompt = prompt.replace(" my ", " his ")
    if template.startswith("{do}"):
        prompt = prompt[0].upper() + prompt[1:]
    roll = rng.random()
    if roll < 0.08:
        return prompt[0].lower() + prompt[1:] if not prompt.startswith("I ") else prompt
    if roll < 0.16:
        return prompt.rstrip(".?")
    return f"Please help. {prompt}" if roll < 0.2 and prompt[0].isupper() else prompt


def _one(rng: random.Random, *, pattern: str, template: str, rows: tuple[Row, ...], answer: Callable[[Row], str]) -> Example:
    row = rng.choice(rows)
    said = answer(row)
    return Example("howto", pattern, ((_ask(rng, template, row), said),), tuple(fact for fact in _facts(row) if fact in said))


def _need(row: Row) -> str:
    return f"To {_yours(row[0])}, you need {row[1]}."


_ROWS = tuple(row for rows in EVERYDAY.values() for row in rows)


def _follow(rng: random.Random, *, pattern: str, kind: str, template: str) -> Example:
    row = rng.choice(_ROWS)
    steps = row[2]
    place = rng.randrange(len(steps) - (kind == "after"))
    first = (_ask(rng, rng.choice(ASKS), row), _steps(row))
    facts: tuple[str, ...]
    if kind == "short":
        answer, facts = _short(row), (_yours(row[0]), _low(steps[-1]))
    elif kind == "needs":
        answer, facts = f"You need {row[1]}.", (row[1],)
    elif kind in ("after", "step", "first", "last"):
        chosen = {"after": place + 1, "step": place, "first": 0, "last": len(steps) - 1}[kind]
        answer, facts = f"Step {chosen + 1}: {steps[chosen]}.", (f"{chosen + 1}", steps[chosen])
    elif kind == "why":
        answer, facts = row[4], (row[4],)
    elif kind == "count":
        answer = f"There are {_NUMBERS[len(steps)]} steps. You begin with this: {steps[0]}."
        facts = (_NUMBERS[len(steps)], steps[0])
    else:
        answer, facts = first[1], steps
    asked = template.format(k=place + 1, nth=_STEP_NAMES[place], why=row[3])
    return Example("howto", pattern, (first, (asked, answer)), facts)


def _patterns() -> dict[str, Pattern]:
    table: dict[str, Pattern] = {}

    def add(task: str, templates: tuple[str, ...], make: Callable[..., Example], **fixed: object) -> None:
        for i, template in enumerate(templates):
            name = f"howto/{task}/{i}"
            table[name] = partial(make, pattern=name, template=template, **fixed)

    for group, rows in EVERYDAY.items():
        # Two tasks, for there are many rows in each group.
        for part in range(2):
            add(f"everyday_{group}_{part}", ASKS, _one, rows=rows[part::2], answer=_steps)
    add("everyday_needs", NEEDS, _one, rows=_ROWS, answer=_need)
    add("everyday_short", SHORTS, _one, rows=_ROWS, answer=_short)
    for kind, templates in FOLLOWS.items():
        add(f"follow_{kind}", templates, _follow, kind=kind)
    return table


PATTERNS: dict[str, Pattern] = _patterns()
