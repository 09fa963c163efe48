"""Word tables of the code domain: nouns that become arguments, and words that become function names."""

from __future__ import annotations

import builtins
import keyword

from . import lexicon

# Names that the bodies use themselves, so no argument and no function may take them.
LOCALS = frozenset(
    ["total", "result", "count", "counts", "index", "letter", "part", "pairs", "value", "values", "key", "first", "last", "best",
    "largest", "seen", "item", "row", "rows", "divisor", "digit", "step", "left", "right", "inverted", "merged", "current", "longest",
    "product", "numerator", "hours", "minutes", "n", "pair", "position", "line", "chunk", "year"]
)


def usable(word: str) -> bool:
    """Whether a word can be an argument or a function name."""
    free = word not in LOCALS and not keyword.iskeyword(word) and not keyword.issoftkeyword(word) and not hasattr(builtins, word)
    return free and word.isalpha() and word.islower() and word.isascii()


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in text.split() if usable(word)))


NUMBER_NOUNS = _words(
    "price score age weight height width distance speed salary rent bill fee temperature balance amount rating mark cost budget "
    "size depth level tax fine debt loan profit loss wage bonus discount reading grade payment deposit tip fare toll "
    "refund area volume angle duration delay vote goal target limit quantity charge income mass capacity altitude percentage "
    "voltage pressure dose share markup stake pension allowance premium subsidy dividend forecast estimate average"
)
TEXT_NOUNS = _words(
    "name city title message sentence label phrase password nickname street comment answer question country tag username "
    "headline caption slogan note reply village song poem verse brand keyword filename hashtag signature proverb saying remark "
    "riddle statement code email address surname subject topic "
    "theme team club recipe motto quote greeting station region prefix suffix command paragraph chapter report novel"
)
ITEM_NOUNS = tuple(
    noun
    for noun in dict.fromkeys((*lexicon.OBJECTS, *lexicon.FOODS, *lexicon.ANIMALS))
    if usable(noun) and usable(lexicon.plural(noun)) and lexicon.plural(noun) != noun
)
LITERALS = tuple(
    dict.fromkeys(w for w in (*lexicon.COLOURS, *lexicon.FOODS, *lexicon.ANIMALS, *lexicon.OBJECTS) if w.isalpha() and w.islower())
)
LETTERS = "abcdefghiklmnoprstuw"

NAME_VERBS = _words(
    "make get find build check handle process compute update prepare adjust measure solve apply change convert create fetch "
    "pick read scan show track trim use verify work run load clean collect fix gather guess inspect judge keep list mark move "
    "note parse plan play rank scale select serve shape sort spot study tidy transform treat try turn view weigh wrap write"
)
NAME_ADJECTIVES = _words(
    "new old big small fast slow red blue green bright dark clean cold warm easy early late happy lucky plain quick quiet rare "
    "round sharp short simple smart soft strong tidy tiny tall thin true young main daily weekly local final basic next other raw"
)
NAME_NOUNS = tuple(noun for noun in dict.fromkeys((*ITEM_NOUNS, *TEXT_NOUNS, *NUMBER_NOUNS)) if noun != "name")

# (name, from unit, to unit, how many of the second make one of the first)
UNITS = (
    ("minutes", "seconds", 60), ("hours", "minutes", 60), ("hours", "seconds", 3600), ("days", "hours", 24), ("weeks", "days", 7),
    ("dollars", "cents", 100), ("euros", "cents", 100), ("pounds", "pence", 100), ("metres", "centimetres", 100),
    ("kilometres", "metres", 1000), ("kilograms", "grams", 1000), ("feet", "inches", 12), ("years", "months", 12),
    ("litres", "millilitres", 1000), ("tonnes", "kilograms", 1000), ("yards", "feet", 3), ("centimetres", "millimetres", 10),
    ("decades", "years", 10), ("centuries", "years", 100), ("dozens", "eggs", 12), ("days", "minutes", 1440),
        ("seconds", "milliseconds", 1000),
    ("gallons", "pints", 8), ("pounds", "ounces", 16), ("weeks", "hours", 168), ("metres", "millimetres", 1000),
)  # fmt: skip
LABELS = (
    ("pass", "fail"), ("high", "low"), ("big", "small"), ("hot", "cold"), ("yes", "no"), ("full", "empty"), ("fast", "slow"),
    ("good", "bad"), ("rich", "poor"), ("open", "closed"), ("win", "lose"), ("ready", "wait"), ("old", "new"), ("heavy", "light"),
    ("long", "short"), ("go", "stop"), ("accept", "reject"), ("strong", "weak"), ("safe", "risky"), ("warm", "cool"),
)  # fmt: skip
GREETINGS = (
    "Hello", "Hi", "Welcome", "Goodbye", "Thanks", "Congratulations", "Cheers", "Greetings", "Farewell", "Bravo", "Hey", "Sorry",
)  # fmt: skip
