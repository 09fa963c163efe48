"""Answers that quote: sentences of a given report word for word, a summary with a quote, and questions after a report."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .base import Example, Pattern
from .news import SUMMARY_PHRASES, Report, _careless, _draw, _plain, _summary, _up
from .news_words import EVENTS


@dataclass(frozen=True, slots=True)
class Text:
    """A report as its sentences; `where` is the first, which names the town and the day."""

    report: Report
    sentences: tuple[str, ...]

    @property
    def where(self) -> str:
        return self.sentences[0]

    @property
    def whole(self) -> str:
        return " ".join(self.sentences)


def _text(rng: random.Random, quote: bool = False, outlook: bool = False) -> Text:
    r = _draw(rng, rng.choice(EVENTS))
    lead = rng.choice((r.lead, f"On {r.day}, {r.subject} {r.did} in {r.town}.", f"In {r.town}, {r.subject} {r.did} on {r.day}."))
    sentences = [lead, r.number]
    if rng.random() < 0.6:
        sentences.append(r.detail)
    if quote or rng.random() < 0.3:
        sentences.append(r.quoted)
    if outlook or rng.random() < 0.3 or len(sentences) < 3:
        sentences.append(r.outlook)
    return Text(r, tuple(sentences))


Made = tuple[Text, dict[str, str], str, tuple[str, ...]]


def _put(rng: random.Random, instruction: str, text: str) -> str:
    """The instruction with its text; a bare wish is now and then typed in a hurry."""
    bare = not re.search(r"[.?,;] |please|again|^[a-z]|tl;dr", instruction) and instruction.endswith((".", ":"))
    typed = _careless(rng, instruction) if bare and " said" not in instruction else instruction
    return f"{typed}\n{text}" if instruction.endswith(":") or rng.random() < 0.5 else f"{text}\n{typed}"


def _quoted(lead: str, sentence: str) -> str:
    return f'{lead} "{sentence}"' if '"' not in sentence else f"{lead} {sentence}"


def _first(rng: random.Random) -> Made:
    text = _text(rng)
    return text, {}, text.where, (text.where,)


def _last(rng: random.Random) -> Made:
    text = _text(rng)
    return text, {}, text.sentences[-1], (text.sentences[-1],)


def _nth(rng: random.Random) -> Made:
    text = _text(rng)
    place = rng.randrange(min(3, len(text.sentences)))
    return text, {"nth": ("first", "second", "third")[place]}, text.sentences[place], (text.sentences[place],)


def _whole(rng: random.Random) -> Made:
    text = _text(rng)
    return text, {}, text.whole, text.sentences


def _where(rng: random.Random) -> Made:
    text = _text(rng)
    return text, {}, text.where, (text.where,)


def _number(rng: random.Random) -> Made:
    text = _text(rng)
    return text, {"ask": text.report.number_ask}, text.report.number, (text.report.number,)


def _next(rng: random.Random) -> Made:
    text = _text(rng, outlook=True)
    return text, {}, text.report.outlook, (text.report.outlook,)


def _says(rng: random.Random) -> Made:
    text = _text(rng, quote=True)
    r = text.report
    return text, {"speaker": r.speaker, "job": r.job.split(" ", 1)[1]}, f'"{r.quote}"', (r.quote,)


def _speech(rng: random.Random) -> Made:
    text = _text(rng, quote=True)
    r = text.report
    return text, {"speaker": r.speaker, "job": r.job.split(" ", 1)[1]}, r.quoted, (r.quoted,)


def _mention(rng: random.Random) -> Made:
    """A word that stands in one sentence only, and that sentence."""
    text = _text(rng)
    found = [
        (word, sentence)
        for sentence in text.sentences
        for word in (part.strip('.,"') for part in sentence.split())
        if len(word) > 5 and word.isalpha() and word.islower() and text.whole.count(word) == 1
    ]
    word, sentence = rng.choice(found) if found else (text.report.town, text.where)
    return text, {"word": word}, sentence, (sentence,)


def _summary_where(rng: random.Random) -> Made:
    text = _text(rng)
    answer = _summary(text.report)
    facts = (text.report.town, text.report.day, text.where)
    return text, {}, _quoted(f"{answer}\nIt says where:", text.where), facts


def _summary_number(rng: random.Random) -> Made:
    text = _text(rng)
    r = text.report
    return text, {}, _quoted(f"{r.lead}\nThe number is in this sentence:", r.number), (r.town, r.day, r.number)


def _summary_speech(rng: random.Random) -> Made:
    text = _text(rng, quote=True)
    r = text.report
    return text, {"speaker": r.speaker}, f'{r.lead}\n{r.speaker} said: "{r.quote}."', (r.town, r.day, r.quote)


def _replaced(rng: random.Random) -> Made:
    text = _text(rng)
    town = rng.choice([other for other in ("Marlow", "Kingsbridge", "Easton", "Wellford", "Newport", "Hartley") if other not in text.whole])
    old = text.report.town
    answer = text.whole.replace(old, town)
    return text, {"old": old, "new": town}, answer, tuple(sentence.replace(old, town) for sentence in text.sentences)


QUOTES: dict[str, tuple[Callable[[random.Random], Made], tuple[str, ...]]] = {
    "quote_first": (_first, (
        "Quote the first sentence.", "Repeat the first sentence:", "Copy the first sentence of this text.", "first sentence?",
        "What is the first sentence of this report?", "Give me only the beginning, the first sentence:",
    )),
    "quote_last": (_last, (
        "Quote the last sentence.", "What is the last sentence?", "Copy the last sentence of this text:", "Repeat only the last sentence.",
        "How does the text end? Quote it.",
    )),
    "quote_nth": (_nth, (
        "Quote the {nth} sentence.", "What is the {nth} sentence?", "Copy the {nth} of these sentences:",
        "Repeat the {nth} sentence word for word.",
        "{nth} sentence please:",
    )),
    "quote_whole": (_whole, (
        "Repeat the text word for word.", "Copy this text:", "Write this again, word for word:", "Say that again exactly:",
        "Repeat after me:", "Type this out once more:",
    )),
    "quote_where": (_where, (
        "Quote the sentence that says where it happened.", "Which sentence names the town?", "Copy the sentence with the place:",
        "Which sentence says when and where it happened?", "Find the sentence that names the place and quote it.",
        "Where does it say in which town it was? Quote it.",
    )),
    "quote_figure": (_number, (
        "Quote the sentence that answers this: {ask}", "Which sentence answers the question: {ask}", "{ask} Quote the sentence.",
        "{ask} Answer with the sentence from the text.", "Copy the sentence that tells me this: {ask}",
    )),
    "quote_plan": (_next, (
        "Quote the sentence about the future.", "Which sentence says what comes next?", "Copy the sentence about the plans:",
        "Which sentence is about later? Quote it.", "Repeat the sentence that says what will happen.",
    )),
    "quote_words": (_says, (
        "What did {speaker} say? Only the words.", "Give me the words of {speaker}.", "Repeat what {speaker} said:",
        "Quote the {job}.", "What were the exact words of the {job}?",
    )),
    "quote_speech": (_speech, (
        "Which sentence names {speaker}?", "Quote the sentence that mentions the {job}.", "Which sentence mentions the {job}?",
        "Copy the sentence in which {speaker} speaks:", "Find the sentence with {speaker} in it.",
    )),
    "quote_mention": (_mention, (
        'Which sentence mentions "{word}"?', 'Quote the sentence with the word "{word}".', 'Copy the sentence that has "{word}" in it:',
        'Find the word "{word}" and quote its sentence.', "In which sentence is the word {word}? Repeat it.",
    )),
    "quote_and_where": (_summary_where, (
        "Summarise this in one sentence and quote the sentence that says where it happened.",
        "Sum it up, then quote the sentence with the town:",
        "First a summary in one sentence, then the sentence that names the place:", "Shorten this and quote where it happened.",
        "Give me a summary, and copy the sentence about the place.",
    )),
    "quote_and_figure": (_summary_number, (
        "Summarise this in one sentence and quote the sentence with the number.", "Say what happened, then quote the number sentence:",
        "Sum it up and copy the sentence with the figure.", "One sentence about it, then the sentence that has the number:",
    )),
    "quote_and_words": (_summary_speech, (
        "Summarise this and quote {speaker}.", "Say in one sentence what happened, then quote what was said:",
        "Sum it up in one sentence and add the words of {speaker}.", "What happened, and what did {speaker} say?",
    )),
    "quote_replace": (_replaced, (
        "Replace {old} by {new} and write the text again.", "It was not in {old} but in {new}. Correct the text:",
        "Write this again with {new} instead of {old}:", "Change {old} to {new} in this text.", "The town should be {new}:",
    )),
}  # fmt: skip


def _quote(rng: random.Random, *, pattern: str, make: Callable[[random.Random], Made], phrase: str) -> Example:
    text, slots, answer, facts = make(rng)
    typed = phrase.format(**slots)
    prompt = _put(rng, _up(typed) if phrase.startswith("{ask}") else typed, text.whole)
    return Example("news", pattern, ((prompt, answer),), facts)


FOLLOWS: dict[str, tuple[str, ...]] = {
    "shorter": ("shorter", "Make it shorter.", "Even shorter, please.", "Shorter!", "Just the main thing.", "in a few words"),
    "who": ("who?", "Who was it?", "And who did that?", "Who is it about?"),
    "where": ("where was that?", "Where was that?", "In which town?", "where?", "Where did it happen?"),
    "when": ("when?", "When was that?", "On which day?", "And when did it happen?"),
    "number": ("{number}", "And one more thing: {number}", "I forgot to ask: {number}"),
    "quote": (
        "Quote the first sentence.",
        "Now quote the first sentence of the text.",
        "What was the first sentence?",
        "quote the beginning",
    ),
    "said": ("Who said something?", "Who is quoted?", "What was said?", "And the quote?"),
    "next": ("What comes next?", "what are the plans?", "And in the future?", "What will happen then?"),
    "headline": ("Give it a headline.", "And a headline?", "headline please", "What would be a good title?"),
    "again": ("Say that again.", "Repeat that.", "again please", "Can you repeat it?"),
    "text": ("Repeat the whole text.", "Write the text again.", "give me the text again", "Copy the text, please."),
}
# The first turn of these is a report to sum up; of "said" and "next" one that has a quote or a plan.
_FIRST = (*(phrase for phrase in SUMMARY_PHRASES[:1]), "What is this about?", "Sum this up, please:", "In one sentence, please:", "tl;dr",
          "What happened here?", "Give me the short version:")  # fmt: skip
_ANSWERS: dict[str, Callable[[Text, str], tuple[str, tuple[str, ...]]]] = {
    "shorter": lambda t, said: (f"{_up(t.report.subject)} {t.report.did} in {t.report.town}.", (t.report.town, _plain(t.report.who))),
    "who": lambda t, said: (f"It is about {_plain(t.report.who)}.", (_plain(t.report.who),)),
    "where": lambda t, said: (f"It happened in {t.report.town}.", (t.report.town,)),
    "when": lambda t, said: (f"It happened on {t.report.day}.", (t.report.day,)),
    "number": lambda t, said: (t.report.number, (t.report.number,)),
    "quote": lambda t, said: (t.where, (t.where,)),
    "said": lambda t, said: (f'{t.report.speaker}, {t.report.job}, said: "{t.report.quote}."', (t.report.speaker, t.report.quote)),
    "next": lambda t, said: (t.report.outlook, (t.report.outlook,)),
    "headline": lambda t, said: (f"{_up(t.report.subject)} {t.report.did} in {t.report.town}.", (t.report.town, _plain(t.report.who))),
    "again": lambda t, said: (said, (said,)),
    "text": lambda t, said: (t.whole, t.sentences),
}


def _follow(rng: random.Random, *, pattern: str, kind: str, phrase: str) -> Example:
    text = _text(rng, quote=kind == "said", outlook=kind == "next")
    said = _summary(text.report)
    answer, facts = _ANSWERS[kind](text, said)
    asked = _put(rng, rng.choice(_FIRST), text.whole)
    after = _careless(rng, phrase.format(number=text.report.number_ask)) if phrase[0].isupper() or phrase[0] == "{" else phrase
    return Example("news", pattern, ((asked, said), (after, answer)), facts)


def _patterns() -> dict[str, Pattern]:
    table: dict[str, Pattern] = {}
    for task, (make, phrases) in QUOTES.items():
        for i, phrase in enumerate(phrases):
            name = f"news/{task}/{i}"
            table[name] = partial(_quote, pattern=name, make=make, phrase=phrase)
    for kind, phrases in FOLLOWS.items():
        for i, phrase in enumerate(phrases):
            name = f"news/follow_{kind}/{i}"
            table[name] = partial(_follow, pattern=name, kind=kind, phrase=phrase)
    return table


PATTERNS: dict[str, Pattern] = _patterns()
