"""Greedy answers, id for id, beside those of `transformers`' own `generate`: architectures × tokenizer
families × methods × edge cases.

Everything is made here: tiny models, taught a few sentences, in a temporary folder. float32 on the CPU.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig

from lab.equality import tiny
from lab.equality.silence import quietly
from omnidemo.backends import compile_kernels
from omnidemo.core.config import GREEDY
from omnidemo.core.records import Generation
from omnidemo.decoding.contexts import common_prefix
from omnidemo.decoding.methods import METHODS
from omnidemo.models.load import LanguageModel, load_model
from omnidemo.models.read_weights import read_model
from omnidemo.pair.pair import Pair

WINDOW = 48  # of the drafter; the targets read 600 tokens
TEXT = "the small"
NAMES = list(tiny.FAMILIES)
# a family whose tokenizer has another vocabulary
OTHER = dict(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))
NEAR = 1e-5  # two logits this close, relative to the largest, may change places with the order of a sum


@dataclass(frozen=True, slots=True)
class Case:
    """What is special about a generation. `prompt` None: no ids at all; "": the begin token alone."""

    prompt: str | None = TEXT
    max_new_tokens: int = 24
    draft_length: int = 4
    same_vocabulary: bool = False  # a drafter with the target's tokenizer
    several_ends: bool = False  # a second end id, which the answer meets in its middle
    cold: bool = False  # an empty n-gram cache that learns on the way
    again: bool = False  # asked before: the kept conversation has to be rolled back to the prompt first
    penalty: float = 1.0


CASES = {
    "text": Case(),
    "end in a block": Case(
        "the small duck swims in the pond and the other ducks swim with the small", draft_length=8
    ),
    "several ends": Case(several_ends=True),
    "one token": Case(max_new_tokens=1),
    "limit in a block": Case(max_new_tokens=6, draft_length=8),
    "empty prompt": Case(None),
    "begin token": Case(""),
    "prompt beyond the drafter's window": Case(" ".join(tiny.SENTENCES) * 2),
    "asked again": Case(again=True),
    "cold cache": Case(cold=True),
    "one vocabulary": Case(same_vocabulary=True),
    "drafts of one": Case(draft_length=1),
    "repetition penalty": Case(penalty=1.3),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `equal` is None where the method cannot serve the pair; `note` says why, or where the
    answers part.

    `accepted` and `rejected` count proposed target tokens; `ended_by_draft` tells that the drafter proposed
    the end.
    """

    architecture: str
    family: str
    method: str
    case: str
    equal: bool | None
    note: str = ""
    accepted: int = 0
    rejected: int = 0
    ended_by_draft: bool = False


class Laboratory:
    """Tiny models in a folder, made when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.saved, self.target, self.drafter = cache(self._saved), cache(self._target), cache(self._drafter)
        self.pair, self.reference = cache(self._pair), cache(self._reference)
        self.answer, self.row = cache(self._answer), cache(self.compare)

    def compare(self, architecture: str, family: str, method: str, name: str) -> Row:
        """One row of the matrix."""
        case = CASES[name]
        ends = case.several_ends
        # some methods need one vocabulary
        drafters = [family] if case.same_vocabulary else [OTHER[family], family]
        pairs = [self.pair(architecture, family, drafter_family, ends) for drafter_family in drafters]
        pair = next((pair for pair in pairs if METHODS[method].refusal(pair.map) is None), None)
        if pair is None:
            return Row(architecture, family, method, name, None, METHODS[method].refusal(pairs[-1].map) or "")
        done = _generate(pair, case, method, self.prompt(architecture, family, name))
        wanted = self.answer(architecture, family, name)
        note = (
            ""
            if done.token_ids == wanted
            else self._difference(architecture, family, name, done.token_ids, wanted)
        )
        accepted = sum(r.accepted for r in done.rounds)
        rejected = sum(token.accept == 0.0 for r in done.rounds for token in r.discarded)
        by_draft = done.finish_reason == "end" and done.rounds[-1].tokens[-1].accept is not None
        return Row(architecture, family, method, name, not note, note, accepted, rejected, by_draft)

    def prompt(self, architecture: str, family: str, name: str) -> tuple[int, ...]:
        """The target's ids of a case's prompt; none for the empty one."""
        if CASES[name].prompt is None:
            return ()
        model = self.target(architecture, family, CASES[name].several_ends)
        return (model.tokenizer.bos_token_id, *model.tokenizer(CASES[name].prompt)["input_ids"])

    def _target(self, architecture: str, family: str, ends: bool) -> LanguageModel:
        return load_model(str(self.saved(architecture, family, ends)), device="cpu", dtype="float32")

    def _drafter(self, family: str) -> LanguageModel:
        folder = tiny.save(
            self.folder / f"drafter-{family}", "llama", family, seed=1, steps=60, window=WINDOW
        )
        return load_model(str(folder), device="cpu", dtype="float32")

    def _pair(self, architecture: str, family: str, drafter_family: str, ends: bool) -> Pair:
        return Pair(self.target(architecture, family, ends), self.drafter(drafter_family))

    def _saved(self, architecture: str, family: str, ends: bool) -> Path:
        folder = self.folder / f"{architecture}-{family}{'-ends' if ends else ''}"
        if not ends:
            return tiny.save(folder, architecture, family)
        shutil.copytree(self.saved(architecture, family, False), folder)
        answer, settings = self.answer(architecture, family, "text"), GenerationConfig.from_pretrained(folder)
        settings.eos_token_id = [settings.eos_token_id, answer[min(6, max(0, len(answer) - 2))]]
        settings.save_pretrained(folder)
        return folder

    def _reference(self, architecture: str, family: str, ends: bool) -> Any:
        with quietly():
            # Its settings for generating say where an answer ends.
            return read_model(
                self.saved(architecture, family, ends), dtype=torch.float32, generation_config=None
            ).eval()

    def _answer(self, architecture: str, family: str, name: str) -> tuple[int, ...]:
        """What `generate` writes."""
        case = CASES[name]
        model = self.reference(architecture, family, case.several_ends)
        prompt = self.prompt(architecture, family, name) or (model.config.bos_token_id,)
        ids = torch.tensor([prompt])
        written = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=case.max_new_tokens,
            repetition_penalty=case.penalty,
        )
        return tuple(written[0, len(prompt) :].tolist())

    @torch.no_grad()
    def _difference(
        self, architecture: str, family: str, name: str, got: Sequence[int], wanted: Sequence[int]
    ) -> str:
        """Where two answers part, and whether the target could hardly choose there."""
        place = common_prefix(got, wanted)
        if place == min(len(got), len(wanted)):
            return f"{len(got)} ids instead of {len(wanted)}"
        model = self.reference(architecture, family, CASES[name].several_ends)
        prompt = self.prompt(architecture, family, name) or (model.config.bos_token_id,)
        logits = model(torch.tensor([[*prompt, *wanted[:place]]])).logits[0, -1]
        gap = float((logits[wanted[place]] - logits[got[place]]).abs() / logits.abs().max())
        return f"id {got[place]} instead of {wanted[place]} at {place}" + (
            f", a near-tie ({gap:.0e})" if gap < NEAR else ""
        )


def equality_matrix(
    architectures: Sequence[str] = tuple(tiny.ARCHITECTURES),
    families: Sequence[str] = tuple(tiny.FAMILIES),
    methods: Sequence[str] = tuple(METHODS),
    cases: Sequence[str] = tuple(CASES),
    *,
    pairwise: bool = False,
) -> Iterator[Row]:
    """Compare all combinations, or with `pairwise` so few that every two values meet once. Rows come as they
    are made.

    It waits until passes are compiled, where they can be: those are what people's answers come from.
    KeyError for an unknown architecture, family or case.
    """
    compile_kernels.wait()
    rows = (
        all_pairs(architectures, families, methods, cases)
        if pairwise
        else itertools.product(architectures, families, methods, cases)
    )
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(Path(folder))
        for row in rows:
            yield laboratory.compare(*row)


def all_pairs(*factors: Sequence[str]) -> list[tuple[str, ...]]:
    """Rows with one value of each factor, such that every two values of different factors meet in a row.
    Greedy, and always the same."""
    Value = tuple[int, str]
    open_pairs: set[frozenset[Value]] = {
        frozenset(((i, a), (j, b)))
        for i, j in itertools.combinations(range(len(factors)), 2)
        for a in factors[i]
        for b in factors[j]
    }
    rows = []
    while open_pairs:
        row: dict[int, str] = dict(min(open_pairs, key=sorted))
        for index, values in enumerate(factors):
            if index not in row:
                chosen = list(row.items())
                row[index] = max(
                    values,
                    key=lambda v: sum(frozenset(((index, v), other)) in open_pairs for other in chosen),
                )
        open_pairs -= {frozenset(two) for two in itertools.combinations(row.items(), 2)}
        rows.append(tuple(row[index] for index in range(len(factors))))
    return rows


def _generate(pair: Pair, case: Case, method: str, prompt: Sequence[int]) -> Generation:
    """Decode with the product."""
    if case.cold:
        pair.clear_cache()
    else:
        pair.fill_cache()
    options: dict[str, Any] = GREEDY.options | {"repetition_penalty": case.penalty, "method": method}
    options |= {"draft_length": case.draft_length, "learn": case.cold, "reuse": case.again}
    if case.again:
        pair.generate(prompt, max_new_tokens=12, **options)
    return pair.generate(prompt, max_new_tokens=case.max_new_tokens, **options)
