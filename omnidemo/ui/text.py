"""Every sentence the page shows: labels, one-sentence helps, the legend. No code but the sentences."""

from __future__ import annotations

TITLE = "OmniDemo"
SUBTITLE = "A big model writes. A small one guesses ahead. The guesses get better as you chat."

# Legend in the order of the page: key of the browser's lines → title, help.
CLASSES: dict[str, tuple[str, str]] = {
    "direct": ("direct", "Guessed by the drafter as a token both vocabularies have, and accepted by the target."),
    "ngram": ("n-gram", "Guessed as several drafter tokens that spell one target token, and accepted by the target."),
    "accepted": ("accepted", "Direct and n-gram together: tokens the target did not have to write one by one."),
    "corrected": ("corrected", "Written by the target after it rejected the guess, or when there was nothing to guess with."),
    "bonus": ("bonus", "Written by the target for free after it had accepted everything that was guessed."),
    "plain": ("plain", "Written by the target alone, without any guess."),
    "discarded": ("discarded", "Guessed and thrown away; the text never held it. Shown struck through while “discarded” is on."),
}

# Figures: key of Generation.metrics → label, help, how the browser prints it.
FIGURES: dict[str, tuple[str, str, str]] = {
    "tokens_per_second": ("tok/s", "Target tokens per second, over the whole answer.", "number"),
    "acceptance_rate": ("accepted", "Share of the proposed tokens that the target accepted.", "percent"),
    "block_efficiency": (
        "per pass",
        "Block efficiency: target tokens written per forward pass of the target. Plain decoding is 1.",
        "number",
    ),
    "ngram_hits": ("n-grams/round", "Merged n-grams accepted per round, on average.", "number"),
    "tokens": ("tokens", "Target tokens in this answer.", "count"),
    "time_to_first_token": ("first token", "Time from the request to the first token.", "seconds"),
    "estimated_speedup": (
        "plain decoding, estimated",
        "Estimated against rounds without a draft inside the same answer; Compare measures it.",
        "times",
    ),
}

SPLIT: dict[str, str] = {"draft_seconds": "drafting", "verify_seconds": "verifying", "rest_seconds": "the rest"}

STAGES: dict[str, str] = {
    "absent": "not loaded",
    "queued": "waiting to load",
    "downloading": "downloading",
    "tokenizers": "reading the tokenizers",
    "target": "reading the target",
    "drafter": "reading the drafter",
    "vocabulary map": "matching the two vocabularies",
    "cache and adapter": "bringing back n-grams and adapter",
    "ready": "ready",
    "failed": "could not be loaded",
}

TRAINER: dict[str, str] = {
    "idle": "up to date",
    "waiting": "waiting",
    "training": "learning now",
    "paused": "paused",
    "off": "off",
    "failed": "stopped by an error",
}

HELP: dict[str, str] = {
    "target": "The big model. It decides every token of the answer.",
    "drafter": "The small model that guesses ahead. One drafter serves every target.",
    "method": "How guesses are made and judged.",
    "draft_length": "Drafter tokens guessed per round. 0 switches guessing off.",
    "temperature": "0 always takes the most probable token; higher is more varied.",
    "top_p": "Only the most probable tokens that together reach this share may be drawn.",
    "max_new_tokens": "Longest answer, in target tokens.",
    "seed": "Repeats a sampled answer; empty draws a new one.",
    "learn": "The drafter trains on the answers of this chat.",
    "keep": "Keep this chat's prompts and answers in the history.",
}

# Pickers whose help is a hover title, to keep the bars low: elem_id without "omni-" → HELP.
HELP_OF = {"target": "target", "drafter": "drafter", "method": "method", "length": "draft_length", "temperature": "temperature"}

LOSSLESS = "lossless: the target's own output"
APPROXIMATE = "approximate above temperature 0"


def notice(keep_text: bool, training: bool) -> str:
    """One line on what becomes of a chat. keep_text and training are the operator's settings."""
    uses = [use for use, on in (("kept in this server's history", keep_text), ("learned from", training)) if on]
    if not uses:
        return "Your chat is neither stored nor learned from."
    return f"Prompts and answers are {' and '.join(uses)}; Advanced switches that off. Enter nothing private."


API_EXAMPLE = "Answer one prompt and return its text and figures. Nothing is stored or learned from. Empty names take the app's defaults."
