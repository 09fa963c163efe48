"""News-like reports: one-sentence summaries, short reports from a topic, and questions about a report."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .base import Example, Pattern
from .lexicon import BOYS, GIRLS, SURNAMES, TOWNS, a
from .news_words import COMMON, DAY_PARTS, EVENTS, GLAD_QUOTES, JOBS, MISHAP_QUOTES, MONTHS, WEEKDAYS, Event

_SLOT = re.compile(r"\{(a )?(\w+)\}|\[(\d+)-(\d+)(?:/(\d+))?\]")
_NUMBER = re.compile(r"\d[\d,]*")
_DAYS_IN = dict(zip(MONTHS, (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), strict=True))


@dataclass(frozen=True, slots=True)
class Report:
    """What one report is made of; sentences are whole ones, `subject` is lower case where it may be."""

    event: Event
    town: str
    day: str
    subject: str
    who: str
    did: str
    topic: str
    ask: str
    number: str
    number_ask: str
    detail: str
    quote: str
    speaker: str
    job: str
    outlook: str
    next: str

    @property
    def core(self) -> str:
        """The lead in its plain order, without capital and full stop: what every answer is made from."""
        return f"{self.subject} {self.did} in {self.town} on {self.day}"

    @property
    def lead(self) -> str:
        return _sentence(self.core)

    @property
    def quoted(self) -> str:
        return f'"{self.quote}," said {self.speaker}, {self.job}.'

    @property
    def facts(self) -> tuple[str, ...]:
        return (self.town, self.who, self.day)


def _up(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(text: str) -> str:
    return _up(text) + "."


def _down(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _full_name(rng: random.Random) -> str:
    return f"{rng.choice(GIRLS if rng.random() < 0.5 else BOYS)} {rng.choice(SURNAMES)}"


def _day(rng: random.Random, months: Sequence[str]) -> str:
    form = rng.random()
    if form < 0.35:
        return rng.choice(WEEKDAYS)
    if form < 0.65:
        return f"{rng.choice(WEEKDAYS)} {rng.choice(DAY_PARTS)}"
    month = rng.choice(months)
    return f"{rng.randint(1, _DAYS_IN[month])} {month}"


class _Slots:
    """Fills templates; a slot keeps its first word for the whole report."""

    def __init__(self, rng: random.Random, event: Event) -> None:
        self._rng, self._event = rng, event
        self._bound: dict[str, str] = {}

    def word(self, slot: str) -> str:
        if slot not in self._bound:
            if slot == "name":
                self._bound[slot] = _full_name(self._rng)
            elif slot == "sur":
                self._bound[slot] = self._rng.choice(SURNAMES)
            else:
                self._bound[slot] = self._rng.choice(self._event.words.get(slot) or COMMON[slot])
        return self._bound[slot]

    def _one(self, match: re.Match[str]) -> str:
        article, slot, low, high, step = match.groups()
        if slot:
            word = self.word(slot)
            return a(word) if article else word
        return f"{self._rng.randrange(int(low), int(high) + 1, int(step or 1)):,}"

    def fill(self, template: str) -> str:
        return _SLOT.sub(self._one, template)

    def pick(self, templates: Sequence[str]) -> str:
        return self.fill(self._rng.choice(templates))


def _draw(rng: random.Random, event: Event) -> Report:
    slots = _Slots(rng, event)
    subject = slots.pick(event.subject)
    number, number_ask = rng.choice(event.numbers)
    shared = MISHAP_QUOTES if event.mishap else GLAD_QUOTES
    own = event.jobs and rng.random() < 0.5
    return Report(
        event=event,
        town=rng.choice(TOWNS),
        day=_day(rng, event.words.get("season", MONTHS)),
        subject=subject,
        who=slots.fill(event.who) if event.who else subject,
        did=slots.pick(event.did),
        topic=slots.fill(event.topic),
        ask=slots.fill(event.ask),
        number=_sentence(slots.fill(number)),
        number_ask=slots.fill(number_ask),
        detail=_sentence(slots.pick(event.details)),
        quote=slots.pick(event.quotes if rng.random() < 0.4 else shared),
        speaker=_full_name(rng),
        job=a(rng.choice(event.jobs if own else JOBS)),
        outlook=_sentence(slots.pick(event.outlook)),
        next=slots.word("next"),
    )


def _paragraph(rng: random.Random, report: Report, needs: str = "") -> str:
    """Lead first, the number next (or after a detail), then detail, quote and outlook as far as there is room."""
    r = report
    lead = rng.choice(
        (
            r.lead,
            r.lead,
            f"On {r.day}, {r.subject} {r.did} in {r.town}.",
            f"In {r.town}, {r.subject} {r.did} on {r.day}.",
            f"In the town of {r.town}, {r.subject} {r.did} on {r.day}.",
        )
    )
    while True:
        extras = {part for part in ("detail", "quote", "outlook") if part == needs or rng.random() < 0.65}
        facts = [r.number]
        if "detail" in extras:
            facts.insert(rng.randrange(2), r.detail)
        sentences = [lead, *facts]
        if "quote" in extras:
            sentences.append(r.quoted)
        if "outlook" in extras:
            sentences.append(r.outlook)
        text = " ".join(sentences)
        if len(sentences) >= 3 and 35 <= len(text.split()) <= 75:
            return text


def _summary(report: Report) -> str:
    return f"{_up(report.core)}, and {_down(report.number)}"


def _careless(rng: random.Random, instruction: str) -> str:
    """The instruction as a hurried user types it, in about 15 % of the prompts."""
    if rng.random() > 0.15:
        return instruction
    form = rng.randrange(4)
    if form == 0:
        return _down(instruction)
    if form == 1 and instruction[-1] in ".?:":
        return instruction[:-1]
    if form == 2:
        return "Please " + _down(instruction) if not instruction.endswith("?") else instruction[:-1] + " please?"
    if instruction.endswith("?"):
        return _down(instruction[:-1])
    return "Can you " + _down(instruction[:-1]) + ("?" if instruction.endswith(".") else instruction[-1])


def _with_text(rng: random.Random, instruction: str, text: str) -> str:
    """`instruction` ending in ":" goes before the text; ending in "." or "?" after it, or before it on its own line."""
    typed = _careless(rng, instruction)
    if instruction.endswith(":") or rng.random() < 0.5:
        return f"{typed}\n{text}"
    return f"{text}\n{typed}"


SUMMARY_PHRASES = (
    "Summarise this in one sentence:",
    "Summarise this report in one sentence:",
    "Sum up this news item in a single sentence:",
    "Give me a one-sentence summary of this text:",
    "Write one sentence that sums up this report:",
    "Shorten this news report to one sentence:",
    "Say in one sentence what this report is about.",
)

# {ask} is the question of the event kind, {number} that of the number sentence.
QUESTION_PHRASES: dict[str, tuple[str, ...]] = {
    "who": (
        "{ask}",
        "Read this report and answer: {ask}",
        "Answer the question with a full sentence: {ask}",
        "Look at this news item and tell me: {ask}",
        "Use the text to answer this: {ask}",
        "One question about this report: {ask}",
    ),
    "when": (
        "When did it happen?",
        "On which day did it happen?",
        "Tell me when this happened.",
        "What day does the report speak of?",
        "Find the day in this report.",
        "When did the event in this report take place?",
    ),
    "where": (
        "Where did it happen?",
        "In which town did it happen?",
        "Tell me where this happened.",
        "What town does the report speak of?",
        "Find the town in this report.",
        "Where did the event in this report take place?",
    ),
    "number": (
        "{number}",
        "Read this report and answer: {number}",
        "Answer the question with a full sentence: {number}",
        "Look at this news item and tell me: {number}",
        "Use the text to answer this: {number}",
        "Find the number in this report: {number}",
    ),
    "headline": (
        "Give a headline for this:",
        "Write a headline for this report:",
        "What would be a good headline for this?",
        "Find a headline for this news item.",
        "Give this report a short headline:",
        "Think of a headline for the following text:",
    ),
    "quote": (
        "Who is quoted in this report?",
        "Who said something in this report?",
        "Give the quote from this report.",
        "Who is quoted here, and what are the words?",
        "Find the person who is quoted in this text.",
        "Tell me who spoke to the reporter.",
    ),
    "next": (
        "What will happen next?",
        "What does the report say about the future?",
        "Tell me what is planned next.",
        "What comes next, according to this report?",
        "Find the plan for the future in this report.",
        "Which plans does this news item mention?",
    ),
    "facts": (
        "Give me the two main facts of this report:",
        "List the two most important facts in this text:",
        "Summarise this in two sentences:",
        "What are the two main facts here?",
        "Shorten this report to two sentences:",
        "Tell me the main fact and the number in this report.",
    ),
}

ANSWERS: dict[str, Callable[[Report], tuple[str, tuple[str, ...]]]] = {
    "who": lambda r: (r.lead, r.facts),
    "when": lambda r: (f"It happened on {r.day}, when {r.subject} {r.did} in {r.town}.", r.facts),
    "where": lambda r: (f"It happened in {r.town}, where {r.subject} {r.did} on {r.day}.", r.facts),
    "number": lambda r: (r.number, tuple(_NUMBER.findall(r.number))),
    "headline": lambda r: (f"{_up(r.subject)} {r.did} in {r.town}.", (r.town, r.who)),
    "quote": lambda r: (f'{r.speaker}, {r.job}, said: "{r.quote}."', (r.speaker, r.job)),
    "next": lambda r: (r.outlook, (r.next,)),
    "facts": lambda r: (f"{r.lead} {r.number}", r.facts),
}

REPORT_PHRASES = (
    "Write a short news report about {topic} in {town} on {day}. Mention {who}.",
    "Write a news item about {topic}. It happened in {town} on {day}, and {who} should be named.",
    "Write a few sentences for the newspaper about {topic} in {town}. Day: {day}. Name: {who}.",
    "Make a short news report from these notes:\nWho: {Subject}\nWhat: {did}\nWhere: {town}\nWhen: {day}",
    "Turn this into a short news report: {lead}",
    "Write a news report that begins like this: {lead}",
    "Write a short news report about this: {subject} {did} in {town} on {day}. Use this fact: {number}",
)


def _plain(text: str) -> str:
    """A subject with an apposition ends in a comma, which only belongs before its verb."""
    return text.rstrip(",")


def _summary_pattern(name: str, event: Event, phrase: str) -> Pattern:
    def make(rng: random.Random) -> Example:
        while True:
            report = _draw(rng, event)
            answer = _summary(report)
            if 15 <= len(answer.split()) <= 32:
                break
        prompt = _with_text(rng, phrase, _paragraph(rng, report))
        return Example("news", name, ((prompt, answer),), tuple(map(_plain, report.facts)))

    return make


def _question_pattern(name: str, events: Sequence[Event], kind: str, phrase: str) -> Pattern:
    def make(rng: random.Random) -> Example:
        report = _draw(rng, rng.choice(events))
        instruction = phrase.format(ask=report.ask, number=report.number_ask)
        prompt = _with_text(rng, instruction, _paragraph(rng, report, {"next": "outlook"}.get(kind, kind)))
        answer, facts = ANSWERS[kind](report)
        return Example("news", name, ((prompt, answer),), tuple(map(_plain, facts)))

    return make


def _report_pattern(name: str, event: Event, phrase: str) -> Pattern:
    def make(rng: random.Random) -> Example:
        while True:
            r = _draw(rng, event)
            for sentences in ((r.lead, r.number, r.detail, r.quoted), (r.lead, r.number, r.detail, r.quoted, r.outlook)):
                answer = " ".join(sentences)
                if 40 <= len(answer.split()) <= 70:
                    prompt = phrase.format(
                        topic=r.topic, town=r.town, day=r.day, who=_plain(r.who), subject=r.subject,
                        Subject=_plain(_up(r.subject)), did=r.did, lead=r.lead, number=r.number,
                    )  # fmt: skip
                    return Example("news", name, ((_careless_report(rng, prompt), answer),), tuple(map(_plain, r.facts)))

    return make


def _careless_report(rng: random.Random, prompt: str) -> str:
    """A prompt of several sentences bears fewer slips than a bare instruction."""
    slip = rng.random()
    if slip < 0.05:
        return _down(prompt)
    if slip < 0.1:
        return "Please " + _down(prompt)
    if slip < 0.15 and prompt.endswith("."):
        return prompt[:-1]
    return prompt


def _patterns() -> dict[str, Pattern]:
    made: dict[str, Pattern] = {}
    for event in EVENTS:
        for variant, phrase in enumerate(SUMMARY_PHRASES):
            name = f"news/summary_{event.name}/{variant}"
            made[name] = _summary_pattern(name, event, phrase)
        for variant, phrase in enumerate(REPORT_PHRASES):
            name = f"news/report_{event.name}/{variant}"
            made[name] = _report_pattern(name, event, phrase)
    for group in ("town", "nature", "culture"):
        events = [event for event in EVENTS if event.group == group]
        for kind, phrases in QUESTION_PHRASES.items():
            for variant, phrase in enumerate(phrases):
                name = f"news/{kind}_{group}/{variant}"
                made[name] = _question_pattern(name, events, kind, phrase)
    return made


PATTERNS: dict[str, Pattern] = _patterns()
