"""Everyday facts that a small model can know for sure: closed tables, with several wordings for each."""

from __future__ import annotations

import random

from . import chat_fact_tables as t
from .chat_style import Slots, Task, upper_first
from .lexicon import ANIMALS, OBJECTS, a, plural

_PLAIN_NOUNS = tuple(word for word in ANIMALS + OBJECTS if " " not in word)


def _article(noun: str) -> str:
    return noun if noun in t.MASS else a(noun)


def _day(rng: random.Random) -> Slots:
    i = rng.randrange(7)
    return {"x": t.DAYS[i], "next": t.DAYS[(i + 1) % 7], "last": t.DAYS[i - 1]}


def _month(rng: random.Random) -> Slots:
    i = rng.randrange(12)
    name = t.MONTHS[i]
    n = t.MONTH_LENGTHS[i]
    said = "28 days, and 29 in a leap year" if i == 1 else f"{n} days"
    return {"x": name, "next": t.MONTHS[(i + 1) % 12], "last": t.MONTHS[i - 1], "nth": t.ORDINALS[i], "n": str(n), "said": said}


def _colour(rng: random.Random) -> Slots:
    thing, colour = rng.choice(t.THING_COLOURS)
    return {"x": thing, "colour": colour}


def _opposite(rng: random.Random) -> Slots:
    x, y = rng.choice(t.OPPOSITES)
    return {"x": x, "y": y} if rng.random() < 0.5 else {"x": y, "y": x}


def _sound(rng: random.Random) -> Slots:
    animal, says, verb = rng.choice(t.SOUNDS)
    return {"x": animal, "a_x": a(animal), "says": says, "verb": verb}


def _plural(rng: random.Random) -> Slots:
    if rng.random() < 0.4:
        one, many = rng.choice(t.PLURALS)
    else:
        one = rng.choice(_PLAIN_NOUNS)
        many = plural(one)
    return {"x": one, "y": many, "a_x": a(one)}


def _rhyme(rng: random.Random) -> Slots:
    x, y = rng.sample(rng.choice(t.RHYMES), 2)
    return {"x": x, "y": y}


def _count(rng: random.Random) -> Slots:
    last = rng.choice((3, 5, 5, 10, 10, 10, 12, 15, 20, 20))
    said = rng.choice((str(last), t.NUMBER_WORDS[last])) if last <= 12 else str(last)
    return {"x": said, "n": str(last), "list": ", ".join(map(str, range(1, last + 1)))}


def _count_down(rng: random.Random) -> Slots:
    first = rng.choice((3, 5, 10, 10, 10, 12, 20))
    return {"x": str(first), "list": ", ".join(map(str, range(first, 0, -1)))}


def _spell(rng: random.Random) -> Slots:
    word = rng.choice(t.SPELLED)  # few enough that each is met often: which letters a token has is learned by heart
    return {"x": word, "letters": "-".join(word.upper()), "n": str(len(word)), "first": word[0].upper(), "last": word[-1].upper()}


def _parity(rng: random.Random) -> Slots:
    number = rng.choice((rng.randint(1, 20), rng.randint(1, 100), rng.randint(100, 999)))
    return {"x": str(number), "kind": "odd" if number % 2 else "even", "other": "even" if number % 2 else "odd"}


def _young(rng: random.Random) -> Slots:
    animal, young = rng.choice(t.YOUNG)
    return {"x": animal, "a_x": a(animal), "y": young, "a_y": a(young)}


def _young_only(rng: random.Random) -> Slots:
    """An animal whose young have a name of their own, so that the name says which animal it is."""
    while True:
        slots = _young(rng)
        if sum(young == slots["y"] for _, young in t.YOUNG) == 1 and slots["y"] not in ("kid", "pup", "chick"):
            return slots


def _sizes(rng: random.Random) -> Slots:
    low, high = sorted(rng.sample(range(len(t.BY_SIZE)), 2))
    big, small = rng.choice(t.BY_SIZE[high]), rng.choice(t.BY_SIZE[low])
    first, second = rng.sample((big, small), 2)
    return {"x": a(first), "y": a(second), "big": a(big), "small": a(small)}


def _numbers(rng: random.Random) -> Slots:
    x, y = rng.sample(range(1, rng.choice((21, 101, 1001))), 2)
    return {"x": str(x), "y": str(y), "big": str(max(x, y)), "small": str(min(x, y))}


def _next_number(rng: random.Random) -> Slots:
    number = rng.randint(2, rng.choice((20, 120)))
    return {"x": str(number), "next": str(number + 1), "last": str(number - 1)}


def _next_letter(rng: random.Random) -> Slots:
    i = rng.randint(1, 24)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return {"x": letters[i], "next": letters[i + 1], "last": letters[i - 1], "n": str(i + 1)}


def _how_many(rng: random.Random) -> Slots:
    what, whole, n, has = rng.choice(t.HOW_MANY)
    return {"what": what, "whole": whole, "n": n, "answer": upper_first(f"{whole} {has} {n} {what}")}


def _how_many_in(rng: random.Random) -> Slots:
    what, whole, n, answer = rng.choice(t.HOW_MANY_IN)
    return {"what": what, "whole": whole, "n": n, "answer": answer}


def _kind(rng: random.Random) -> Slots:
    kind = rng.choice(tuple(t.KINDS_OF))
    word = rng.choice(t.KINDS_OF[kind])
    return {"x": word, "a_x": _article(word), "kind": kind, "a_kind": a(kind)}


def _wrong_kind(rng: random.Random) -> Slots:
    kind, other = rng.sample(tuple(t.KINDS_OF), 2)
    if other == "animal" and kind in ("bird", "insect"):  # these are animals, too
        other = "tool"
    word = rng.choice(t.KINDS_OF[kind])
    asked = rng.choice((kind, other))
    said = "Yes" if asked == kind else "No"
    return {"x": word, "a_x": _article(word), "asked": a(asked), "said": f"{said}, {_article(word)} is {a(kind)}", "kind": kind}


def _members(rng: random.Random) -> Slots:
    kind = rng.choice(tuple(t.KINDS_OF))
    first, second, third = rng.sample(t.KINDS_OF[kind], 3)
    return {"kind": kind, "kinds": plural(kind), "a_kind": a(kind), "list": f"{first}, {second} and {third}"}


def _use(rng: random.Random) -> Slots:
    thing, use = rng.choice(t.USES)
    return {"x": thing, "a_x": a(thing), "use": use}


def _home(rng: random.Random) -> Slots:
    animal, home = rng.choice(t.HOMES)
    return {"x": animal, "a_x": a(animal), "xs": plural(animal), "home": home}


def _eats(rng: random.Random) -> Slots:
    animal, food = rng.choice(t.EATS)
    return {"x": animal, "a_x": a(animal), "xs": plural(animal), "food": food}


def _can_fly(rng: random.Random) -> Slots:
    animal, said = rng.choice(t.ABILITIES)
    verb, can = said.split()[1], said.split()[0] == "yes"
    answer = f"Yes, {a(animal)} can {verb}" if can else f"No, {a(animal)} cannot {verb}"
    return {"xs": plural(animal), "a_x": a(animal), "verb": verb, "answer": answer, "can": f"can {verb}" if can else f"cannot {verb}"}


def _season(rng: random.Random) -> Slots:
    season, other, what = rng.choice(t.SEASON_FACTS)
    return {"season": season, "other": other, "what": what}


def _general(rng: random.Random) -> Slots:
    return {"fact": rng.choice(t.FUN_FACTS)}


def _made_of(rng: random.Random) -> Slots:
    thing, stuff = rng.choice(t.MADE_OF)
    return {"x": thing, "a_x": _article(thing), "stuff": stuff}


def _feeling(rng: random.Random) -> Slots:
    thing, quality, other = rng.choice(t.QUALITIES)
    first, second = rng.sample((quality, other), 2)
    return {"x": thing, "y": first, "z": second, "quality": quality}


FACTS: dict[str, Task] = {
    "day_after": Task(
        ("What comes after {x}?", "Which day comes after {x}?", "What is the day after {x}?", "What day follows {x}?",
         "If today is {x}, what is tomorrow?", "Today is {x}. What day is tomorrow?", "Name the day after {x}.", "The day after {x}?",
         "Which day is after {x}?", "{x}, and then?", "What day is it the day after {x}?", "After {x} comes which day?",
         "Which day follows {x}?", "Tell me what day follows {x}."),
        ("{next} comes after {x}.", "The day after {x} is {next}."), ("{next}", "{x}"), _day, lead=True),
    "day_before": Task(
        ("What comes before {x}?", "Which day comes before {x}?", "What is the day before {x}?", "Which day is before {x}?",
         "If today is {x}, what was yesterday?", "Today is {x}. What day was yesterday?", "Name the day before {x}.", "The day before {x}?",
         "What day is it the day before {x}?"),
        ("{last} comes before {x}.", "The day before {x} is {last}."), ("{last}", "{x}"), _day, lead=True),
    "days": Task(
        ("Name the days of the week.", "What are the days of the week?", "List the days of the week.", "Tell me the days of the week.",
         "Days of the week", "Can you name the seven days?", "Which days does a week have?", "Say the days of the week.",
         "What are the seven days called?", "Do you know the days of the week?", "Write down the days of the week."),
        ("The days of the week are " + ", ".join(t.DAYS[:6]) + " and Sunday.",), t.DAYS, lead=True),
    "weekend": Task(
        ("Which days are the weekend?", "What is the weekend?", "Which days belong to the weekend?", "When is the weekend?",
         "Name the days of the weekend.", "Is Saturday part of the weekend?", "Is Sunday part of the weekend?"),
        ("The weekend is Saturday and Sunday.",), ("weekend", "Saturday and Sunday"), lead=True),
    "month_after": Task(
        ("Which month comes after {x}?", "What comes after {x}?", "What month follows {x}?", "What is the month after {x}?",
         "Name the month after {x}.", "The month after {x}?", "Which month is after {x}?", "If it is {x} now, what is next month?",
         "After {x} comes which month?"),
        ("{next} comes after {x}.", "The month after {x} is {next}."), ("{next}", "{x}"), _month, lead=True),
    "month_before": Task(
        ("Which month comes before {x}?", "What comes before {x}?", "What is the month before {x}?", "Name the month before {x}.",
         "The month before {x}?", "Which month is before {x}?", "If it is {x} now, what was last month?"),
        ("{last} comes before {x}.", "The month before {x} is {last}."), ("{last}", "{x}"), _month, lead=True),
    "month_days": Task(
        ("How many days does {x} have?", "How many days are in {x}?", "How many days has {x}?", "How long is {x}?", "Days in {x}?",
         "How many days are there in {x}?", "What is the number of days in {x}?", "Tell me how many days {x} has.",
         "How long does {x} last?", "How long is the month of {x}?", "{x} is how long?"),
        ("{x} has {said}.",), ("{x}", "{n}"), _month, lead=True),
    "month_nth": Task(
        ("Which month of the year is {x}?", "What number month is {x}?", "Is {x} early or late in the year?", "Where in the year is {x}?",
         "Which number does {x} have among the months?", "What month number is {x}?"),
        ("{x} is the {nth} month of the year.",), ("{x}", "{nth}"), _month, lead=True),
    "nth_month": Task(
        ("What is the {nth} month?", "Which is the {nth} month of the year?", "Name the {nth} month.",
         "What is the {nth} month of the year?",
         "Which month is the {nth}?", "The {nth} month of the year?"),
        ("The {nth} month of the year is {x}.",), ("{x}", "{nth}"), _month, lead=True),
    "months": Task(
        ("Name the months of the year.", "What are the months of the year?", "List the months.", "Tell me the twelve months.",
         "Months of the year", "Which months are there?", "Say the months of the year.", "Can you name all the months?",
         "Do you know the months?", "What are the twelve months called?", "Write down the months of the year."),
        ("The months are " + ", ".join(t.MONTHS[:11]) + " and December.",), t.MONTHS, lead=True),
    "seasons": Task(
        ("What are the four seasons?", "Name the seasons.", "Which seasons are there?", "List the seasons of the year.",
         "What are the seasons called?", "Tell me the seasons.", "Do you know the seasons?", "Seasons of the year"),
        ("The four seasons are spring, summer, autumn and winter.",), ("spring", "summer", "autumn", "winter"), lead=True),
    "season_next": Task(
        ("What comes after {x}, if you think of the seasons?", "Which season comes after {x}?", "What season follows {x}?",
         "Which season is after {x}?", "The season after {x}?", "What is the next season after {x}?"),
        ("{next} comes after {x}.",), ("{next} comes after {x}",),
        lambda rng: dict(zip(("x", "next"), rng.choice((("spring", "summer"), ("summer", "autumn"), ("autumn", "winter"),
                                                       ("winter", "spring"))), strict=True)), lead=True),
    "season_is": Task(
        ("Which season is {what}, {season} or {other}?", "When is it {what}, in {other} or in {season}?",
         "Is it {what} in {season} or in {other}?",
         "What is {what}, {other} or {season}?", "Which is {what}: {season} or {other}?"),
        ("{season} is {what} than {other}.",), ("{season} is {what} than {other}",), _season, lead=True),
    "how_many": Task(
        ("How many {what} does {whole} have?", "How many {what} has {whole}?", "How many {what} are on {whole}?",
         "Tell me how many {what} {whole} has.", "What is the number of {what} of {whole}?", "Do you know how many {what} {whole} has?",
         "Count the {what} of {whole}.", "{what} of {whole}, how many?", "how many {what} {whole} got", "Number of {what} of {whole}?"),
        ("{answer}.",), ("{n} {what}",), _how_many, lead=True),
    "how_many_in": Task(
        ("How many {what} are in {whole}?", "How many {what} does {whole} have?", "How many {what} are there in {whole}?",
         "How many {what} make {whole}?", "Tell me how many {what} are in {whole}.", "{what} in {whole}?", "how many {what} in {whole}",
         "What is the number of {what} in {whole}?", "{whole} is how many {what}?", "Do you know how many {what} are in {whole}?"),
        ("{answer}.",), ("{n} {what}",), _how_many_in, lead=True),
    "colour_of": Task(
        ("What colour is {x}?", "What color is {x}?", "Which colour does {x} have?", "What is the colour of {x}?",
         "Tell me the colour of {x}.",
         "Colour of {x}?", "Do you know the colour of {x}?", "Which colour is {x}?", "{x} has which colour?", "What is the color of {x}?",
         "In which colour would you paint {x}?", "How would you colour {x}?"),
        ("{x} is {colour}.", "The colour of {x} is {colour}."), ("{x}", "{colour}"), _colour, lead=True),
    "opposite": Task(
        ("What is the opposite of {x}?", "The opposite of {x}?", "Opposite of {x}", "Tell me the opposite of {x}.", "{x} and its opposite?",
         "What is the contrary of {x}?", "Which word is the opposite of {x}?", "Give me the opposite of {x}.", "Not {x}, but?",
         "Find the opposite of the word {x}.", "What is the reverse of {x}?", "Do you know the opposite of {x}?",
         "If it is not {x}, it is?", "Name the contrary of {x}.", "{x} is the contrary of what?", "I need the contrary of {x}."),
        ("The opposite of {x} is {y}.",), ("{x}", "{y}"), _opposite, lead=True, typos=False),
    "sound": Task(
        ("What does {a_x} say?", "What sound does {a_x} make?", "Which sound does {a_x} make?", "What noise does {a_x} make?",
         "How does {a_x} sound?", "What is the sound of {a_x}?", "Make the sound of {a_x}.", "How goes {a_x}?", "What does the {x} say?",
         "Tell me what {a_x} says.", "Talk like {a_x}.", "The sound of {a_x}?"),
        ("{a_x} says {says}.", "{says}! That is the sound of {a_x}."), ("{a_x}", "{says}"), _sound, lead=True),
    "plural": Task(
        ("What is the plural of {x}?", "Plural of {x}?", "The plural of {x}", "Tell me the plural of {x}.", "One {x}, two what?",
         "How do you say more than one {x}?", "What is the plural form of {x}?", "What do you call many of one {x}?", "One {x}, many?",
         "Give me the plural of {x}.", "Write {x} in the plural.", "How do you write two of the word {x}?"),
        ("The plural of {x} is {y}.", "One {x}, two {y}."), ("{x}", "{y}"), _plural, lead=True, typos=False),
    "rhyme": Task(
        ("What rhymes with {x}?", "Which word rhymes with {x}?", "Find a rhyme for {x}.", "Give me a word that rhymes with {x}.",
         "A rhyme for {x}, please.", "Rhyme with {x}", "Do you know a rhyme for {x}?", "Tell me a word that rhymes with {x}.",
         "I need a rhyme for {x}.", "Does anything rhyme with {x}?"),
        ("{y} rhymes with {x}.",), ("rhymes with {x}",), _rhyme, lead=True, typos=False),
    "count": Task(
        ("Count to {x}.", "Can you count to {x}?", "Count from 1 to {x}.", "Please count to {x}.", "Count up to {x}.",
         "Let us count to {x}.",
         "List the numbers from 1 to {x}.", "Write the numbers from one to {x}.", "Say the numbers up to {x}.",
         "Show me the numbers 1 to {x}.",
         "Could you count up to {x}?"),
        ("{list}",), ("{list}",), _count, lead=True, typos=False),
    "count_down": Task(
        ("Count down from {x}.", "Count backwards from {x}.", "Can you count down from {x}?", "Count from {x} to 1.",
         "Count down from {x} to 1.",
         "Do a countdown from {x}.", "Start a countdown at {x}.", "Please count back from {x}."),
        ("{list}",), ("{list}",), _count_down, lead=True, typos=False),
    "alphabet": Task(
        ("Say the alphabet.", "What is the alphabet?", "Write the alphabet.", "Do you know the alphabet?",
         "List the letters of the alphabet.",
         "The alphabet, please.", "Recite the alphabet.", "Tell me the ABC.", "What are the letters of the alphabet?", "alphabet",
         "Can you say the alphabet?", "Say your ABC.", "Name all letters."),
        ("A B C D E F G H I J K L M N O P Q R S T U V W X Y Z",), ("A B C D E F G H I J K L M N O P Q R S T U V W X Y Z",), lead=True),
    "vowels": Task(
        ("What are the vowels?", "Name the vowels.", "Which letters are vowels?", "List the vowels.", "Tell me the vowels.",
         "Do you know the vowels?", "Which vowels are there?"),
        ("The vowels are A, E, I, O and U.",), ("A, E, I, O and U",), lead=True),
    "spell": Task(
        ("Spell {x}.", "How do you spell {x}?", "Spell the word {x}.", "Can you spell {x}?", "Please spell {x}.", "How is {x} spelled?",
         "Spell {x} for me.", "What is the spelling of {x}?", "Which letters are in {x}?", "Write {x} letter by letter.",
         "Spell out {x} for me.", "For me, please spell {x}."),
        ("{letters}",), ("{letters}",), _spell, lead=True, typos=False),
    "first_letter": Task(
        ("What is the first letter of {x}?", "Which letter does {x} start with?", "With which letter does {x} begin?",
         "First letter of {x}?",
         "What does the word {x} start with?", "Tell me the first letter of {x}."),
        ("The word {x} starts with the letter {first}.",), ("{x}", "starts with the letter {first}"), _spell, lead=True, typos=False),
    "last_letter": Task(
        ("What is the last letter of {x}?", "Which letter does {x} end with?", "With which letter does {x} end?", "Last letter of {x}?",
         "What does the word {x} end with?"),
        ("The word {x} ends with the letter {last}.",), ("{x}", "ends with the letter {last}"), _spell, lead=True, typos=False),
    "letters": Task(
        ("How many letters does {x} have?", "How many letters are in {x}?", "How long is the word {x}?", "Count the letters of {x}.",
         "How many letters has the word {x}?", "Number of letters in {x}?"),
        ("{letters}: the word {x} has {n} letters.",), ("{x}", "{n} letters"), _spell, lead=True, typos=False),
    "parity": Task(
        ("Is {x} odd or even?", "Is {x} even or odd?", "Odd or even: {x}?", "Is the number {x} odd or even?", "{x} is odd or even?",
         "Is {x} an odd or an even number?", "Tell me whether {x} is odd or even.", "{x}, odd or even?"),
        ("{x} is {kind}.", "The number {x} is {kind}."), ("{x} is {kind}",), _parity, lead=True, typos=False),
    "is_even": Task(
        ("Is {x} an {kind} number?", "Is {x} {kind}?", "Is the number {x} {kind}?", "{x} is {kind}, right?",
         "Is it true that {x} is {kind}?"),
        ("Yes, {x} is {kind}.",), ("yes, {x} is {kind}",), _parity, lead=True, typos=False),
    "is_not_even": Task(
        ("Is {x} an {other} number?", "Is {x} {other}?", "Is the number {x} {other}?", "{x} is {other}, right?",
         "Is it true that {x} is {other}?"),
        ("No, {x} is {kind}.",), ("no, {x} is {kind}",), _parity, lead=True, typos=False),
    "young": Task(
        ("What is a young {x} called?", "What is a baby {x} called?", "What do you call a young {x}?", "What do you call a baby {x}?",
         "What is the young of {a_x} called?", "What is the name for a young {x}?", "Name the young of {a_x}.",
         "How do you call the baby of {a_x}?",
         "A young {x} is called what?", "Baby {x} is called?", "What is the child of {a_x} called?"),
        ("A young {x} is called {a_y}.",), ("{x} is called {a_y}",), _young, lead=True),
    "young_of": Task(
        ("What is {a_y}?", "What will {a_y} become?", "Which animal is {a_y}?", "Whose child is {a_y}?", "What does {a_y} grow into?"),
        ("{a_y} is a young {x}.",), ("{a_y} is a young {x}",), _young_only, lead=True),
    "bigger": Task(
        ("Which is bigger, {x} or {y}?", "What is bigger, {x} or {y}?", "Is {x} or {y} bigger?", "Who is bigger, {x} or {y}?",
         "Which one is bigger: {x} or {y}?", "Bigger: {x} or {y}?", "Which of the two is bigger, {x} or {y}?",
         "Which is larger, {x} or {y}?",
         "Tell me which is bigger, {x} or {y}."),
        ("{big} is bigger than {small}.",), ("{big} is bigger than {small}",), _sizes, lead=True),
    "smaller": Task(
        ("Which is smaller, {x} or {y}?", "What is smaller, {x} or {y}?", "Is {x} or {y} smaller?", "Who is smaller, {x} or {y}?",
         "Which one is smaller: {x} or {y}?", "Smaller: {x} or {y}?", "Tell me which is smaller, {x} or {y}."),
        ("{small} is smaller than {big}.",), ("{small} is smaller than {big}",), _sizes, lead=True),
    "greater": Task(
        ("Which number is bigger, {x} or {y}?", "What is more, {x} or {y}?", "Is {x} or {y} bigger?", "Which is greater, {x} or {y}?",
         "Which is the bigger number, {x} or {y}?", "Which is more: {x} or {y}?", "What is larger, {x} or {y}?"),
        ("{big} is bigger than {small}.",), ("{big} is bigger than {small}",), _numbers, lead=True, typos=False),
    "number_after": Task(
        ("What comes after {x}?", "Which number comes after {x}?", "What number is after {x}?", "What is the next number after {x}?",
         "Which number follows {x}?", "Count one up from {x}."),
        ("{next} comes after {x}.",), ("{next} comes after {x}",), _next_number, lead=True, typos=False),
    "number_before": Task(
        ("What comes before {x}?", "Which number comes before {x}?", "What number is before {x}?", "Count one down from {x}.",
         "Which number is right before {x}?"),
        ("{last} comes before {x}.",), ("{last} comes before {x}",), _next_number, lead=True, typos=False),
    "letter_after": Task(
        ("Which letter comes after {x}?", "What letter follows {x}?", "What is the letter after {x}?",
         "What comes after {x} in the alphabet?",
         "Which letter is after {x}?", "In the alphabet, what comes after {x}?"),
        ("The letter {next} comes after {x}.",), ("letter {next} comes after {x}",), _next_letter, lead=True, typos=False),
    "letter_before": Task(
        ("Which letter comes before {x}?", "What is the letter before {x}?", "What comes before {x} in the alphabet?",
         "Which letter is before {x}?", "In the alphabet, what comes before {x}?"),
        ("The letter {last} comes before {x}.",), ("letter {last} comes before {x}",), _next_letter, lead=True, typos=False),
    "kind_of": Task(
        ("What kind of thing is {a_x}?", "What is {a_x}?", "What sort of thing is {a_x}?", "{a_x} is what?",
         "Explain {a_x} in a few words.",
         "What is meant by {a_x}?", "Tell me what {a_x} is.", "Do you know what {a_x} is?", "Describe {a_x} in one sentence."),
        ("{a_x} is {a_kind}.",), ("{a_x} is {a_kind}",), _kind, lead=True),
    "is_kind": Task(
        ("Is {a_x} {asked}?", "Would you say that {a_x} is {asked}?", "Is it true that {a_x} is {asked}?", "{a_x} is {asked}, right?",
         "Tell me, is {a_x} {asked}?", "Do you think {a_x} is {asked}?"),
        ("{said}.",), ("{said}",), _wrong_kind, lead=True),
    "members": Task(
        ("Name three {kinds}.", "Give me three {kinds}.", "List three {kinds}.", "Tell me the names of three {kinds}.",
         "Do you know some {kinds}?",
         "Which {kinds} do you know?", "Name some {kinds}.", "Can you name a few {kinds}?", "Give me some examples of {kinds}.",
         "Write a list of {kinds}.", "Name {a_kind}.", "What are some {kinds}?"),
        ("Three {kinds} are {list}.",), ("three {kinds} are",), _members, lead=True),
    "use": Task(
        ("What is {a_x} for?", "What do you do with {a_x}?", "What is the use of {a_x}?", "What can I do with {a_x}?",
         "Why do people have {a_x}?",
         "What do you use {a_x} for?", "What does one need {a_x} for?", "What is the purpose of {a_x}?", "For what do I need {a_x}?"),
        ("You use {a_x} to {use}.", "With {a_x} you can {use}."), ("{a_x}", "{use}"), _use, lead=True),
    "home": Task(
        ("Where does {a_x} live?", "Where do {xs} live?", "What is the home of {a_x}?", "Where can you find {a_x}?",
         "Where is {a_x} at home?",
         "Tell me where {xs} live.", "In which place do {xs} live?"),
        ("{a_x} lives {home}.",), ("lives {home}",), _home, lead=True),
    "eats": Task(
        ("What does {a_x} eat?", "What do {xs} eat?", "What is the food of {a_x}?", "What do you feed {a_x}?", "What do {xs} like to eat?",
         "Tell me what {a_x} eats.", "What should I give {a_x} to eat?", "I want to know what {a_x} eats.",
         "Say what {a_x} eats.", "Do you know what {a_x} eats?"),
        ("{a_x} eats {food}.",), ("eats {food}",), _eats, lead=True),
    "ability": Task(
        ("Can {a_x} {verb}?", "Can {xs} {verb}?", "Is {a_x} able to {verb}?", "Are {xs} able to {verb}?",
         "Do you know whether {xs} can {verb}?",
         "Does {a_x} {verb}?", "Do {xs} {verb}?"),
        ("{answer}.",), ("{a_x} {can}",), _can_fly, lead=True),
    "quality": Task(
        ("Is {x} {y} or {z}?", "Would you call {x} {y} or {z}?", "{x}: {y} or {z}?", "What is {x}, {y} or {z}?",
         "Tell me whether {x} is {y} or {z}.",
         "Is it true that {x} is {quality}?", "Is {x} {quality}?"),
        ("{x} is {quality}.",), ("{x} is {quality}",), _feeling, lead=True),
    "made_of": Task(
        ("What is {a_x} made of?", "What is {a_x} made from?", "From what do you make {a_x}?", "What do you need to make {a_x}?",
         "Which material is {a_x} made of?", "What is in {a_x}, mostly?"),
        ("{a_x} is made of {stuff}.",), ("{a_x} is made of {stuff}",), _made_of, lead=True),
    "fun_fact": Task(
        ("Tell me a fun fact.", "Tell me a fact.", "Do you know a fun fact?", "Tell me something interesting.", "Give me a fact.",
         "Fun fact please", "Teach me something.", "Tell me something I do not know.", "I want to learn something.",
         "Say something clever.",
         "Tell me something about the world.", "Share a fun fact.", "Give me a random fact.", "What is an interesting fact?",
         "Did you know something interesting?"),
        ("Here is a fact: {fact}.",), ("here is a fact",), _general, lead=True),
}  # fmt: skip
