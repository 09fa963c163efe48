"""Word tables of the code domain: nouns that become arguments, and words that become function names."""

from __future__ import annotations

import builtins
import keyword

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


# Few and common nouns, on purpose: a model of nine million parameters copies a word from the prompt reliably once it has met it often.
NUMBER_NOUNS = _words(
    "price score age weight height width distance speed salary bill fee balance amount rating mark cost budget size level tax grade "
    "tip area volume angle goal target limit income average"
)
TEXT_NOUNS = _words(
    "name city title message sentence label phrase comment answer question country tag note song poem street email recipe team story"
)
ITEM_NOUNS = _words(
    "apple book card chair coin cup duck flower game hat lamp map orange pen pencil plant plate ring shell shoe shirt sock spoon "
    "stamp star stone table ticket toy tree window cat dog bird frog goat horse rabbit cake cookie egg lemon pear"
)
LITERALS = _words(
    "red blue green yellow black white brown pink purple grey orange gold apple banana lemon cherry grape pear carrot tomato onion "
    "potato cat dog bird duck frog goat horse rabbit lion tiger bear mouse book lamp cup spoon fork hat shoe sock shirt coat star "
    "stone tree flower river ball drum bell kite boat train"
)
LETTERS = "abcdefghiklmnoprstuw"

NAME_VERBS = _words(
    "make get find build check handle process update prepare measure solve apply change create fetch pick read show track use work "
    "clean collect keep list mark parse plan play select sort spot tidy turn write"
)
NAME_ADJECTIVES = _words("new old big small fast red blue green bright dark cold warm easy early late happy quick quiet short simple")
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
