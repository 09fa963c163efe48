"""Recording `AnswerRows`: a target writes, and its drafter drafts from each position of what was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import empty

from lab.drafters import prompt_sets
from lab.sources.answer_rows import CHAIN, TOP, AnswerRows
from omnidemo.backends.rollout_backend import RolledDraws, rolls
from omnidemo.core.records import Prompt
from omnidemo.core.tasks import TASKS, task
from omnidemo.decoding.backend import Draft, KVCache, RoundPlan, RoundResult, StageSeconds
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import FixedPolicy
from omnidemo.decoding.engine import AnswerPlan, Limits, decode
from omnidemo.decoding.method import Method
from omnidemo.decoding.methods import make_method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.round import RoundContext
from omnidemo.decoding.sampling import SamplingParams, as_array
from omnidemo.decoding.state import DecodingState, TargetContext
from omnidemo.pair.ngram_memory import remember
from omnidemo.pair.pair import Pair
from omnidemo.pair.repeated_task import prompt_of
from omnidemo.pair.replay import KnownTarget
from omnidemo.vocabulary.ngram_cache import NgramCache

BUDGET = 12  # drafter tokens of a chain


def prompts_of(
    pair: Pair, folder: Path | None, inputs: int, most: int, wanted: Sequence[str] = ()
) -> dict[str, list[Prompt]]:
    """The prompts of the tasks that ship with the project, `inputs` each in the order of seed 1, and at most
    `most` of each set that a folder of prompt files keeps to score with, whose sql is called spider.
    ValueError for a set that there is not."""
    found: dict[str, list[Prompt]] = {
        name: [prompt_of(pair, task(name), one) for one in task(name).inputs(inputs, 1)] for name in TASKS
    }
    sets = prompt_sets.kept(folder) if folder is not None else {}
    for name, each in sets.items():
        found["spider" if name in found else name] = [one.text for one in prompt_sets.some(each, most)]
    if unknown := sorted(set(wanted) - set(found)):
        raise ValueError(f"{unknown[0]!r} is no set; there are {', '.join(found)}")
    return {name: prompts for name, prompts in found.items() if not wanted or name in wanted}


def record(
    pair: Pair, sets: dict[str, list[Prompt]], folder: Path, length: int, say: Callable[[str], object]
) -> None:
    """Write the rows of each answer of at most `length` ids to a file; answers that have one are not written
    again. Each set begins with a drafter without n-grams."""
    for name, prompts in sets.items():
        ngrams = NgramCache(pair.drafter.runner.rows)
        target = TargetContext(pair.target.runner.new_cache())
        for number, prompt in enumerate(prompts):
            path = folder / name / f"{number:03}.npz"
            if path.exists():
                for token in AnswerRows.load(path).ids.tolist():
                    if spelled := pair.map.ngram(token):
                        ngrams.insert(token, spelled)
                continue
            rows = rows_of_answer(pair, target, ngrams, pair.prompt_ids(prompt), length)
            rows.save(path)
            say(f"{name} {number}: {len(rows.ids)} tokens")


def rows_of_answer(
    pair: Pair, target: TargetContext, ngrams: NgramCache, prompt: Sequence[int], length: int
) -> AnswerRows:
    """Write an answer without a draft, and draft from each of its positions. The n-grams that it brings are
    inserted."""
    ends = pair.map.target.roles.get("end", ())
    ids, top, probs = write(target, prompt, ends, length)
    chains = Chains(ids)
    go_through(pair, chains, ngrams, prompt)
    columns = [np.array(one) for one in chains.columns]
    return AnswerRows(
        np.array(prompt, np.int32), np.array(ids, np.int32), np.array(ends, np.int32), top, probs, *columns
    )


def write(
    target: TargetContext, prompt: Sequence[int], ends: Sequence[int], length: int
) -> tuple[list[int], NDArray[Any], NDArray[Any]]:
    """(ids [n], the most probable ids at each position [n, TOP], their probabilities): greedy, up to an end
    token."""
    target.start(prompt)
    ids, top, probs = list[int](), list[NDArray[Any]](), list[NDArray[Any]]()
    while len(ids) < length and target.free_positions > 0 and not (ids and ids[-1] in ends):
        best, chances = highest_of(as_array(target.verify([]).logits)[0])
        top.append(best)
        probs.append(chances)
        ids.append(int(best[0]))
        target.append(ids[-1:])
    return ids, np.array(top), np.array(probs)


def highest_of(logits: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """([TOP] ids, [TOP] probabilities), the highest first, the first of equals as `argmax` has it."""
    count = min(TOP, len(logits))
    best = np.argpartition(-logits, count - 1)[:count]
    best = best[np.lexsort((best, -logits[best]))]
    scaled = np.exp(logits - logits[best[0]])
    ids, probs = np.full(TOP, -1, np.int32), np.zeros(TOP, np.float32)
    ids[:count], probs[:count] = best, scaled[best] / scaled.sum(dtype=np.float64)
    ids[probs == 0.0] = -1
    return ids, probs


class Chains:
    """A backend that drafts from each position of a known answer, and goes on by one id, whatever was
    drafted. `columns`: the last five arrays of `AnswerRows`, a row for each round."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids
        self.columns: tuple[list[Any], ...] = ([], [], [], [], [])

    def run_round(self, context: RoundContext, method: Method, plan: RoundPlan) -> RoundResult:
        draft = Draft()
        if plan.draft_length:
            context.prefetch = RolledDraws() if rolls(context) else None
            draft = method.draft(context, plan.draft_length)
            context.prefetch = None
        self._note(context, draft)
        token = self.ids[len(self.columns[0]) - 1]
        return RoundResult(
            [], 0, token, False, [], [1.0], draft.drafted, empty(1, 0), StageSeconds()
        )  # fmt: skip

    def _note(self, context: RoundContext, draft: Draft) -> None:
        guess, sure = np.full(TOP, -1, np.int32), np.zeros(TOP, np.float32)
        chain, chances, steps = np.full(CHAIN, -1, np.int32), np.zeros(CHAIN, np.float32), np.zeros(CHAIN)
        if draft.slots and () in draft.slots[0].distributions:
            found, sure = highest_of(as_array(draft.slots[0].distributions[()]))
            targets = np.array(context.map.targets)
            guess = np.where(found >= 0, targets[found], -1).astype(np.int32)
            sure = np.where(guess >= 0, sure, 0.0).astype(np.float32)
        slots = [slot for slot in draft.slots[:CHAIN] if slot.target_id >= 0]
        for place, slot in enumerate(slots):
            chain[place], steps[place] = slot.target_id, max(1, len(slot.draft_ids))
            chances[place] = np.prod(slot.draft_probs) if slot.draft_probs else slot.q
        for column, value in zip(
            self.columns, (guess, sure, chain, chances, steps.astype(np.uint8)), strict=True
        ):
            column.append(value)


def go_through(pair: Pair, chains: Chains, ngrams: NgramCache, prompt: Sequence[int]) -> None:
    """Go through a known answer, one round an id. Drafts reach beyond its end."""
    cache: KVCache = KnownTarget(pair.target.runner.max_positions)
    state = DecodingState(TargetContext(cache), DrafterContext(pair.drafter.runner.new_cache(), pair.map))
    state.start(prompt)
    plan = AnswerPlan(
        make_method("ngram-exact", pair.map), pair.map, ngrams, SamplingParams(0.0), Sampler(0),
        Limits(len(chains.ids) + BUDGET + 1), FixedPolicy(BUDGET), backend=chains,
    )  # fmt: skip
    for _, done in zip(chains.ids, decode(state, plan), strict=False):
        remember(ngrams, done)
