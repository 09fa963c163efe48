"""The router from prompts to adapter lines: a small classifier of words, which learns from every labelled
request (OSD, 4.3)."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from omnidemo.core.private_folders import replacing

log = logging.getLogger(__name__)
OTHER = "other"  # the topic of prompts without a known topic
DEFAULT = "default"  # the line of prompts without a line of their own; it is never taught
FEATURES = 2**14  # hashed words and pairs of words
SMOOTHING = 0.05  # count that every word has in every domain
# Words repeat each other, so n words count as n^0.4. The exponent was chosen on the traffic prompts; with it
# the mean confidence is a little below the rate of right answers on the held-out ones (0.74 against 0.78).
EXPONENT = 0.6
SURE = 0.6  # least confidence that routes a prompt
CHOSEN = 1.5  # nats that a taught domain is ahead of a domain that is known from seeds alone
LONGEST = 4_000  # characters of a prompt that are read
SAVE_SECONDS = 10.0  # least time between two saves while prompts come in
CJK = "\u3040-\u30ff\u3400-\u9fff"  # written without spaces: each character counts as a word
WORD = rf"[{CJK}]|[^\W{CJK}]+"


@dataclass(frozen=True, slots=True)
class Route:
    """The adapter line (`domain`) of a prompt. `confidence`: 0 to 1. `why`: one or two sentences. `words`:
    the evidence with weights in nats, the heaviest first. `topic`: a label of the prompt, for a line chosen
    by hand too; `topic_why`: its reason."""

    domain: str
    confidence: float
    why: str
    words: tuple[tuple[str, float], ...] = ()
    topic: str = OTHER
    topic_why: str = ""


class Router:
    """Naive Bayes over hashed words and pairs of words. It keeps their counts per domain and no text.
    Thread-safe.

    file: of the counts (None: they are not kept). An unreadable file is set aside with a warning, and
    learning begins anew. seeds: labelled prompts (prompt, domain), learned on first use. A taught domain
    comes from the file alone, any other from the seeds alone, so that it changes with them.
    """

    def __init__(self, file: Path | None = None, seeds: Iterable[tuple[str, str]] = ()) -> None:
        self._file, self._seeds = None if file is None else Path(file), seeds
        self._lock = threading.RLock()
        self._names: list[str] = []
        self._counts = np.zeros((0, FEATURES))
        self._taught: set[str] = set()
        self._dirty = self._ready = False
        self._saved_at = 0.0

    def route(self, prompt: str) -> Route:
        """The domain of a prompt; "default" where fewer than two are known or none is likely enough."""
        with self._lock:
            self._prepare()
            if len(self._names) < 2:
                known = f"only “{self._names[0]}” is" if self._names else "none is"
                how = "choose one by hand, or play traffic, to teach it"
                return Route(DEFAULT, 0.0, f"Two topics have to be known and {known}; {how}.")
            words, columns = self._read(prompt)
            met = self._counts.sum(axis=0) > 0  # other words are no evidence
            words, columns = list(compress(words, met[columns])), columns[met[columns]]
            if not words:
                why = "No word of this prompt has been met before, so it goes to the default line."
                return Route(DEFAULT, 0.0, why)
            smooth = self._counts.sum(axis=1, keepdims=True) + SMOOTHING * met.sum()
            # [domains, words] nats
            evidence = np.log((self._counts[:, columns] + SMOOTHING) / smooth) / len(words) ** EXPONENT
            scores = evidence.sum(axis=1) + np.array(
                [CHOSEN * (name in self._taught) for name in self._names]
            )
            chances = np.exp(scores - np.logaddexp.reduce(scores))
            best = int(chances.argmax())
            weights = evidence[best] - np.delete(evidence, best, axis=0).mean(axis=0)
            spoke = tuple((words[i], float(weights[i])) for i in np.argsort(-weights)[:3] if weights[i] > 0)
            name = self._names[best]
            sure = float(chances[best])
            seeded = name not in self._taught
        if sure < SURE:
            why = f"“{name}” is the likeliest topic, but with {sure:.0%} not likely enough."
            return Route(DEFAULT, sure, why, spoke)
        return Route(name, sure, _sentence(name, sure, [word for word, _ in spoke], seeded), spoke)

    def teach(self, prompt: str, domain: str) -> None:
        """Learn that a prompt belongs to a domain, which may be a new one. "default" teaches nothing."""
        with self._lock:
            self._prepare()
            if self._learn([(prompt, domain)]):
                self._taught.add(domain)
            due = time.monotonic() - self._saved_at > SAVE_SECONDS
        if due:
            self.save()

    def domains(self) -> list[str]:
        """The known domains, in order of appearance."""
        with self._lock:
            self._prepare()
            return list(self._names)

    def save(self) -> None:
        """Write changed counts, whole or not at all. A failure is logged."""
        with self._lock:
            if self._file is None or not self._dirty:
                return
            rows, columns = np.nonzero(self._counts)
            counts: dict[str, np.ndarray] = {"counts": self._counts[rows, columns]}
            counts |= {"rows": rows.astype(np.int32), "columns": columns.astype(np.int32)}
            names = {"domains": json.dumps(self._names), "taught": json.dumps(sorted(self._taught))}
            try:
                with replacing(self._file) as partial, partial.open("wb") as file:
                    file.write(save(counts, names))
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                log.warning(
                    "The router's word counts could not be written to %s (%s); make the folder writable.",
                    self._file,
                    error,
                )
            else:
                self._dirty = False
            self._saved_at = time.monotonic()

    # From here on the lock is held.

    def _prepare(self) -> None:
        if self._ready:
            return
        # importing takes half a second
        from sklearn.feature_extraction import FeatureHasher
        from sklearn.feature_extraction.text import CountVectorizer

        self._split = CountVectorizer(ngram_range=(1, 2), token_pattern=WORD).build_analyzer()
        self._hasher = FeatureHasher(FEATURES, input_type="string", alternate_sign=False)
        self._load()
        self._learn((prompt, domain) for prompt, domain in self._seeds if domain not in self._taught)
        self._dirty = False  # seeds are learned again at every start
        self._ready = True

    def _read(self, prompt: str) -> tuple[list[str], np.ndarray]:
        """The different words and pairs of a prompt, and the column [words] of each."""
        words = list(dict.fromkeys(self._split(prompt[:LONGEST])))
        columns = (
            self._hasher.transform([[word] for word in words]).indices if words else np.zeros(0, np.int64)
        )
        return words, columns

    def _learn(self, labelled: Iterable[tuple[str, str]]) -> bool:
        """Count the words of labelled prompts; whether there were any."""
        learned = False
        for prompt, domain in labelled:
            _, columns = self._read(prompt)
            if domain == DEFAULT or not len(columns):
                continue
            if domain not in self._names:
                self._names.append(domain)
                self._counts = np.vstack([self._counts, np.zeros((1, FEATURES))])
            self._counts[self._names.index(domain), columns] += 1
            learned = self._dirty = True
        return learned

    def _load(self) -> None:
        """Read the counts of taught domains from the file."""
        if self._file is None or not self._file.exists():
            return
        try:
            with safe_open(self._file, "numpy") as opened:
                names, taught = (
                    [str(name) for name in json.loads(opened.metadata()[key])]
                    for key in ("domains", "taught")
                )
                rows, columns, counts = (opened.get_tensor(name) for name in ("rows", "columns", "counts"))
            table = np.zeros((len(names), FEATURES))
            np.add.at(table, (rows, columns), counts)
            if len(set(names)) < len(names) or not np.isfinite(table).all() or (table < 0).any():
                raise ValueError("its counts are not whole")
        except (SafetensorError, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            aside = self._file.with_name(self._file.name + ".damaged")
            log.warning(
                "The router's word counts in %s are damaged (%s); they are set aside as %s.",
                self._file,
                error,
                aside.name,
            )
            try:
                os.replace(self._file, aside)
            except OSError:
                log.warning("%s could not be moved; the next save replaces it.", self._file)
            return
        own = [place for place, name in enumerate(names) if name in taught]
        self._names, self._counts, self._taught = [names[place] for place in own], table[own], set(taught)


def _sentence(name: str, sure: float, words: list[str], seeded: bool) -> str:
    told = [f"“{word}”" for word in _distinct(words)]
    who = " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)
    verb = "speaks" if len(told) == 1 else "speak"
    sentence = (
        f"{who} {verb} for {name} ({sure:.0%})." if told else f"{name} is the likeliest topic ({sure:.0%})."
    )
    return sentence + (" Learned from the sample prompts." if seeded else "")


def _distinct(words: list[str]) -> list[str]:
    """Without words that are part of a listed pair."""
    return [
        word
        for word in words
        if not any(word != other and re.search(rf"(?<!\S){re.escape(word)}(?!\S)", other) for other in words)
    ]
