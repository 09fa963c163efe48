"""The rule by which a story's free choices follow from the words that were asked for.

Every choice is a table lookup by a single asked word (a stable hash picks the entry), so that a model can learn it word by word:
different prompts get different heroes, homes and turns of the plot, and the same prompt always gets the same ones.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from .lexicon import BOYS, GIRLS
from .story_tables import FEMALE_KINDS, KINDS, MALE_KINDS

T = TypeVar("T")

NAMES_A_KIND = 4

# habitat -> (kinds, (preposition, place) of their homes)
_HABITATS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "pond": (
        "beaver, crocodile, dragonfly, duck, duckling, flamingo, frog, goose, heron, hippo, kingfisher, newt, otter, pelican, salamander,"
        " stork, swan, toad",
        (("by", "pond"), ("beside", "river"), ("at the edge of", "lake"), ("on the bank of", "stream"), ("near", "waterfall")),
    ),
    "sea": (
        "crab, dolphin, fish, gull, lobster, mermaid, octopus, pirate, puffin, seal, shark, turtle, whale",
        (("in", "bay"), ("near", "beach"), ("not far from", "lighthouse"), ("close to", "harbour"), ("beside", "island")),
    ),
    "wood": (
        "badger, bear, chipmunk, cub, deer, elf, fox, gnome, hare, hedgehog, magpie, mole, moose, owl, porcupine, raccoon, raven, robin,"
        " salamander, skunk, squirrel, troll, weasel, wolf, woodpecker, lynx, bat",
        (("in", "forest"), ("at the edge of", "wood"), ("under", "oak tree"), ("beside", "forest path"), ("on", "hill")),
    ),
    "farm": (
        "alpaca, bull, bunny, chicken, cow, crow, donkey, dove, foal, goat, hen, horse, lamb, llama, pig, pony, rabbit, sheep, turkey",
        (("on", "farm"), ("in", "barn"), ("near", "mill"), ("behind", "stable"), ("in", "meadow")),
    ),
    "house": (
        "canary, cat, cricket, dog, ferret, gerbil, guinea pig, hamster, kitten, mouse, parrot, pigeon, puppet, puppy, robot, teddy bear",
        (("in", "cottage"), ("above", "bakery"), ("in", "house by the sea"), ("behind", "bookshop"), ("under", "staircase")),
    ),
    "wild": (
        "antelope, armadillo, baboon, camel, cheetah, elephant, gecko, giraffe, gorilla, iguana, jackal, jaguar, kangaroo, koala, lemur,"
        " leopard, lion, lizard, monkey, ostrich, panda, panther, rhino, sloth, tiger, toucan, wombat, zebra",
        (("in", "jungle"), ("on", "plain"), ("under", "palm tree"), ("beside", "water hole"), ("near", "valley")),
    ),
    "garden": (
        "ant, bee, beetle, blackbird, butterfly, finch, fairy, ladybird, peacock, pixie, snail, sparrow, spider, swallow, tortoise",
        (("in", "garden"), ("under", "rose bush"), ("in", "orchard"), ("behind", "garden wall"), ("beside", "flower bed")),
    ),
    "snow": (
        "bison, eagle, falcon, hawk, penguin, reindeer, snowman, walrus, yak",
        (("on", "mountain"), ("beside", "frozen lake"), ("in", "valley"), ("near", "glacier"), ("in", "village in the north")),
    ),
    "castle": (
        "alien, dinosaur, dragon, giant, king, knight, monster, prince, princess, queen, unicorn, witch, wizard",
        (("in", "castle"), ("in", "tower"), ("near", "cave"), ("in", "land far away"), ("behind", "seven hills")),
    ),
    "child": (
        "boy, girl",
        (("in", "village"), ("in", "town by the sea"), ("on", "farm"), ("in", "house on a hill"), ("near", "park")),
    ),
}
_LOOKS = ("quiet", "green", "small", "sunny", "old", "beautiful", "little", "big", "lovely", "misty", "famous", "peaceful")
_HABITAT_OF = {kind: name for name, (kinds, _) in _HABITATS.items() for kind in kinds.split(", ")}


def choose(word: str, what: str, options: Sequence[T]) -> T:
    """The option that `word` stands for when `what` is chosen; the same in every process."""
    return options[zlib.crc32(f"{what}:{word}".encode()) % len(options)]


@cache
def neighbours(kind: str) -> tuple[str, ...]:
    """Kinds that a hero of this kind may meet: those of the same habitat, or any animal for a child."""
    habitat = _HABITAT_OF.get(kind, "wood")
    known = frozenset(KINDS)
    kinds = _HABITATS["house" if habitat == "child" else habitat][0].split(", ")
    return tuple(other for other in kinds if other != kind and other in known)


@cache
def names(kind: str) -> tuple[tuple[str, bool], ...]:
    """Names for heroes of a kind, each with whether it is a girl's; they begin like the kind: Daisy the duck, Felix the fox."""
    if kind in ("girl", "boy"):
        return tuple((name, kind == "girl") for name in (GIRLS if kind == "girl" else BOYS))
    girls = [(name, True) for name in GIRLS if name[0] == kind[0].upper()] if kind not in MALE_KINDS else []
    boys = [(name, False) for name in BOYS if name[0] == kind[0].upper()] if kind not in FEMALE_KINDS else []
    own = girls + boys or [(name, True) for name in GIRLS if kind not in MALE_KINDS] or [(name, False) for name in BOYS]
    return tuple(random.Random(kind).sample(own, min(NAMES_A_KIND, len(own))))


def home(kind: str, word: str) -> str:
    """Where the hero lives, to follow "lived": the kind says where, the other asked word what it looks like."""
    preposition, place = choose(kind, "home", _HABITATS[_HABITAT_OF.get(kind, "wood")][1])
    look = choose(word, "look", _LOOKS)
    if (place, look) in (("seven hills", look), ("land far away", look)):
        return f"{preposition} {'the ' if place == 'seven hills' else 'a '}{place}"
    return f"{preposition} {'an' if look[0] in 'aeiou' else 'a'} {look} {place}"
