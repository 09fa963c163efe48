"""The page's labels, helps and legend, and small functions that make a sentence of them."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from omnidemo.core.config import SAMPLING, Manner, Settings, option_named

TITLE = "OmniDemo"
PAPER = {"title": "OmniDraft, 2507.02659", "href": "https://arxiv.org/abs/2507.02659"}
SUBTITLE = (
    "A small model guesses ahead, the big one checks all guesses at once: the same text in fewer steps."
)

# Legend in the order of the page: key of the browser's lines → title, help with the field's term. Each token
# of an answer is in one class, so the counts without the last add up to its tokens.
CLASSES: dict[str, tuple[str, str]] = {
    "direct": (
        "guessed right",
        "The small model guessed this token and the big one agreed. Both vocabularies have it (“direct”).",
    ),
    "ngram": (
        "several guesses, one word",
        (
            "Several guesses of the small model that spell one token of the big model, which agreed, as in"
            " There|fore → Therefore (“n-gram”)."
        ),
    ),
    "copied": (
        "copied",
        (
            "The chat, an earlier answer or a phrase that the big model often writes had gone on like this"
            " before: proposed again without the small model, and the big one agreed."
        ),
    ),
    "forced": (
        "the form",
        (
            "The form that the answer has to have left no other token, so it was proposed and the big model"
            " had to agree (“forced”)."
        ),
    ),
    "corrected": (
        "corrected",
        "No guess here was right: the big model wrote its own word (“corrected”).",
    ),
    "bonus": (
        "bonus word",
        "All guesses were right, and the same step of the big model wrote the next word, too (“bonus”).",
    ),
    "plain": ("no guess", "Written by the big model alone, one token for one step (“plain”)."),
    "discarded": (
        "thrown away",
        (
            "Guessed or copied, and not used: the text never held it (“discarded”). Press it to see them in"
            " the answer, struck through."
        ),
    ),
}

SPLIT: dict[str, str] = {
    "draft_seconds": "drafting",
    "verify_seconds": "verifying",
    "rest_seconds": "the rest",
}

STAGES: dict[str, str] = {
    "absent": "not loaded", "queued": "waiting to load", "files": "checking files",
    "downloading": "downloading", "tokenizers": "reading the tokenizers", "target": "reading the big model",
    "compiling": "compiling machine code, a minute the first time", "drafter": "reading the small model",
    "vocabulary map": "matching the two vocabularies",
    "cache and adapter": "bringing back n-grams and adapter", "ready": "ready",
    "failed": "could not be loaded",
}  # fmt: skip

# Whether a model can be had, in a picker; the list of models says why not.
AVAILABILITY: dict[str, str] = {
    "bundled": "bundled", "cached": "on this machine", "downloadable": "to download",
    "gated": "needs its licence", "too big": "too big", "missing": "not here", "unusable": "cannot be used",
}  # fmt: skip
# Who keeps a model's files.
SOURCES: dict[str, str] = {
    "bundled": "bundled", "fetched": "fetched", "hub": "Hugging Face", "ollama": "Ollama",
    "lmstudio": "LM Studio", "folder": "a folder",
}  # fmt: skip

TRAINER: dict[str, str] = {
    "idle": "collecting", "waiting": "about to learn", "training": "learning now", "paused": "paused",
    "off": "off", "failed": "the last update failed",
}  # fmt: skip

LIKELY = "Show every likely guess"
# Where "omni-" and the name are the id of a picker, its help is a hover title, to keep the bars low.
HELP: dict[str, str] = {
    "target": "The big model. It decides every token of the answer.",
    "drafter": "The small model that guesses ahead. One drafter serves every target.",
    "method": "How guesses are made and judged.",
    "line": (
        "Which topic's memory (an adapter line) guesses and learns. Automatic chooses by your words; type a"
        " new name to start one."
    ),
    "learn": "The small model learns from the answers of this chat, while learning is switched on.",
    "keep": "Keep what you ask from now on in the history, with answers and figures.",
    "likely": (
        "On, the page guesses wherever a guess is likely to be right, so an answer may take longer than"
        " without guessing. Off, it guesses only where that is faster."
    ),
    "figures": "Keep the figures of what you ask from now on in the history; texts are never stored here.",
}


# The numbers of a model's manner: name → label, plain-language help, step of the field.
MANNER = {name: astuple(option_named(name))[1:4] for name in SAMPLING}


def manner(own: Manner) -> str:
    """One sentence on where a model's manner comes from."""
    return own.source or "This model names no numbers of its own, so the most probable token is always taken."


# What the pickers call a method; the others keep the name of the field.
METHODS = {
    "ngram-exact": "Recommended: exact, merges guesses",
    "copy": "Copying alone, without the small model",
    "autoregressive": "Without guessing",
}


def method_title(info: Any) -> str:
    """What the page calls a method."""
    return METHODS.get(info.name, info.title)


FRESH = (
    "With the fresh small model",
    "The recommended method with the small model as it came, before it learned anything.",
)

# of a comparison; the others are called as in the pickers
LANES = {"fresh": FRESH[0], "ngram-exact": "With today's small model"}

LOSSLESS = "Writes just as the big model alone would"
APPROXIMATE = "Not lossless: above temperature 0 another text than the big model's"


def notice(keep_text: bool, training: bool) -> str:
    """One line on what becomes of a chat, which two of its switches can prevent. keep_text and training are
    the operator's settings."""
    kept = "Chats are saved" if keep_text else "Figures of chats, no texts, are saved"
    learned = " and used for learning" if training else ""
    shared = (
        " Everybody who uses this app shares what it learns. For a memory of your own, name one under Expert."
    )
    private = " Don’t enter anything private." if keep_text or training else ""
    return f"{kept} here{learned}.{shared if training else ''}{private}"


def foreign(message: str, target: str) -> str:
    """Why a bundled target can make nothing of a message, most of whose letters are not Latin; empty where it
    may."""
    letters = [letter for letter in message if letter.isalpha()]
    if not target.startswith("bundled/") or 2 * sum(letter < "\u0250" for letter in letters) >= len(letters):
        return ""
    return (
        "This model has only learned English and cannot read this. Write in English, or choose another"
        " model under Details."
    )


def meanwhile(title: str) -> str:
    """The sentence under a conversation whose model is not ready."""
    return f"Meanwhile {title} answers."


def reads(turns: int | None) -> str:
    """The sentence under a conversation of which a model reads only the newest part; empty where it reads all
    of it."""
    if turns is None:
        return ""
    if turns == 1:
        return "This model reads only your newest message."
    return (
        f"This model reads your newest message and the {turns - 1} exchange{'' if turns == 2 else 's'}"
        " before it."
    )


def kept(settings: Settings, public: bool) -> str:
    """What is kept of a visitor, in one plain sentence."""
    if not public:
        return notice(settings.keep_text, settings.training != "off")
    kept_ones = "Your chats are" if settings.keep_text else "Figures of your chats, not their texts, are"
    learns = (
        f", and teach a small model of your own that goes after {settings.visitor_minutes:g} minutes unused"
    )
    stays = (
        f"kept for {settings.visitor_hours:g} hours, for you"
        f" alone{learns if settings.training != 'off' else ''}"
    )
    return f"{kept_ones} {stays}; enter nothing private."


API_EXAMPLE = (
    "Answer one prompt and return its text and figures. Nothing is stored or learned from. Empty names take"
    " the app's defaults."
)

AUTO_LINE = "auto"
# What the router and the sample prompts call a topic → what people read.
TOPICS = {"maths": "maths", "code": "code", "sql": "SQL", "summaries": "summaries", "letters": "letters"}
TOPICS |= {"explain": "explanations", "howto": "how-to", "other": "other things"}
LINES = {"auto": "automatic", "default": "default"}
