"""A drafter that guesses a block of tokens in one step (PARD): behind what was written stand mask tokens, and
each guesses the token one further ahead.

All weights go on learning from recorded answers, with an embedding of each distance beside them. In one
sequence many places have masks of their own: those of a place see the text up to it, and each other.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.drafters.ceilings import Prices
from lab.drafters.corpus import few, vocabulary_of
from lab.drafters.guesses import trace_of
from lab.drafters.score import table
from lab.drafters.shards import Recorded, read_shards
from lab.drafters.spelling import Spelling
from lab.drafters.training.pause import hold
from lab.seeds.seed_rounds import leading
from lab.seeds.seed_table import load

PLACES = 24  # of an answer that have masks in a step of training
ANSWERS = 4  # of a step
RATE, OF_MASKS, WARMUP = 3e-4, 3e-3, 20


@dataclass(slots=True)
class Block:
    """A drafter of `transformers` with its `masks` [length - 1, hidden]."""

    model: Any
    masks: torch.nn.Parameter

    @property
    def length(self) -> int:
        return len(self.masks) + 1

    @classmethod
    def new(cls, drafter: str, length: int) -> Block:
        model = load(drafter)
        mean = model.get_input_embeddings().weight.detach().mean(0)
        return cls(model, torch.nn.Parameter(mean.repeat(length - 1, 1)))

    def logits(self, ids: Tensor, places: Tensor) -> Tensor:
        """[places, length, D]: what comes one, two, … tokens behind each of these places of `ids` [n]."""
        embedded = self.model.get_input_embeddings()(ids)
        count, ahead = len(places), len(self.masks)
        distance = torch.arange(1, ahead + 1).repeat(count)
        owner = places.repeat_interleave(ahead)
        at = torch.cat([torch.arange(len(ids)), owner + distance])
        first = torch.cat([torch.full((len(ids),), -1), owner])  # the place that a mask stands behind
        # a row sees the text up to its place, and the masks of this place up to itself
        text = torch.arange(len(ids))[None] <= torch.where(first < 0, at, first)[:, None]
        masks = (owner[None] == first[:, None]) & ((owner + distance)[None] <= at[:, None])
        seen = torch.cat([text, masks], 1)
        scores = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
        inputs = torch.cat([embedded, self.masks.repeat(count, 1)])
        states = self.model.model(
            inputs_embeds=inputs[None], attention_mask=scores[None, None], position_ids=at[None],
            use_cache=False,
        ).last_hidden_state[0]  # fmt: skip
        rows = torch.cat([states[places][:, None], states[len(ids) :].view(count, ahead, -1)], 1)
        return self.model.lm_head(rows)


def wanted(ids: Tensor, places: Tensor, length: int) -> Tensor:
    """[places, length], what stands there; -100 behind the end."""
    at = places[:, None] + torch.arange(1, length + 1)
    return torch.where(at < len(ids), ids[at.clamp(max=len(ids) - 1)], -100)


def train(
    block: Block, texts: Sequence[tuple[NDArray[np.int32], int]], minutes: float,
    report: Callable[[str], None], pause: Path | None = None, clock: Callable[[], float] = time.monotonic,
    seed: int = 0,
) -> int:  # fmt: skip
    """Learn from texts, each with the number of its ids that the prompt has, for so long; returns how many
    were read. `pause`: nothing is computed while this file exists."""
    optimiser = torch.optim.AdamW(
        [{"params": list(block.model.parameters()), "lr": RATE}, {"params": [block.masks], "lr": OF_MASKS}],
        betas=(0.9, 0.95), weight_decay=0.0,
    )  # fmt: skip
    rates, rng, began, read, step = [RATE, OF_MASKS], random.Random(seed), clock(), 0, 0
    order = list[int]()
    while (done := (clock() - began) / (60 * minutes)) < 1:
        began += hold(pause)
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * min(1.0, (step + 1) / WARMUP, 2 * (1 - done))
        total = 0.0
        for _ in range(ANSWERS):
            order = order or rng.sample(range(len(texts)), len(texts))
            ids, first = texts[order.pop()]
            own = range(first - 1, len(ids) - 1)
            places = torch.tensor(sorted(rng.sample(own, min(PLACES, len(own)))))
            goal, text = torch.from_numpy(ids.astype(np.int64)), len(ids)
            logits = block.logits(goal[:text], places)
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), wanted(goal, places, block.length).flatten()
            )
            (loss / ANSWERS).backward()
            total += loss.item() / ANSWERS
        torch.nn.utils.clip_grad_norm_([*block.model.parameters(), block.masks], 1.0)
        optimiser.step()
        optimiser.zero_grad()
        read, step = read + ANSWERS, step + 1
        if step % 50 == 0:
            report(f"{step} steps, {read:,} answers, loss {total:.3f}, {(clock() - began) / 60:.1f} min")
    return read


@torch.inference_mode()
def right_ahead(block: Block, ids: NDArray[np.int32], first: int) -> NDArray[np.bool_]:
    """[answer ids, length]: whether the likeliest token one, two, … ahead stands there."""
    goal, places = torch.from_numpy(ids.astype(np.int64)), torch.arange(first - 1, len(ids) - 1)
    found = block.logits(goal, places).argmax(-1) == wanted(goal, places, block.length)
    return found.numpy()


def chained(right: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """The same of a drafter that guesses one token a step, from whether each guess is right [answer ids]."""
    padded = np.concatenate([right, np.zeros(length, bool)])
    return np.stack([padded[ahead : ahead + len(right)] for ahead in range(length)], 1)


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer: whether the guesses ahead of each of its drafter tokens are right, of the block and of
    another drafter; and where each target token begins among them (its own end last)."""

    answer: Recorded
    block: NDArray[np.bool_]
    other: NDArray[np.bool_]
    starts: Sequence[int]


def kept(block: Block, drafter: Any, answers: Sequence[Recorded], spelling: Spelling) -> Iterator[Kept]:
    """Of greedy answers. Tokens that the drafter cannot spell belong to the one before them."""
    for answer in answers:
        found = trace_of(answer, spelling)
        if found is None or answer.temperature > 0:
            continue
        trace, first = found
        ids = torch.from_numpy(trace.drafter_ids.astype(np.int64))
        with torch.inference_mode():
            other = (drafter(ids[None]).logits[0, first - 1 : -1].argmax(-1) == ids[first:]).numpy()
        starts = sorted({int(one) - first for one in trace.starts if one >= first})
        one = right_ahead(block, trace.drafter_ids, first)
        yield Kept(answer, one, chained(other, block.length), [*starts, len(one)])


def rounds(right: NDArray[np.bool_], starts: Sequence[int], length: int) -> tuple[int, list[int]]:
    """(tokens, the number proposed in each round) of rounds that draft `length` drafter tokens."""
    at, proposed = 0, list[int]()
    last = len(starts) - 1
    while at < last:
        begin = starts[at]
        ends = [one - begin for one in starts[at + 1 :] if one - begin <= length]
        hit = leading(right[begin, :length].tolist())
        proposed.append(len(ends))
        at += sum(end <= hit for end in ends) + 1
    return last, proposed


def block_table(found: Sequence[Kept], prices: Prices) -> str:
    """A line for each length of a draft."""
    rows, lines = prices.of_rows(32), list[list[str]]()
    for length in range(1, found[0].block.shape[1] + 1):
        speeds, cells = [], [str(length)]
        for kind, steps in (("other", length), ("block", 1)):
            rights = [getattr(one, kind)[:, length - 1] for one in found]
            before = [getattr(one, kind)[:, : length - 1].all(1) for one in found]
            share = sum(int((a & b).sum()) for a, b in zip(rights, before, strict=True))
            of = sum(int(one.sum()) for one in before)
            made = [rounds(getattr(one, kind), one.starts, length) for one in found]
            ms = [sum(rows[n + 1] + steps * prices.step for n in proposed) for _, proposed in made]
            tokens = sum(count for count, _ in made)
            speeds.append(np.array([count for count, _ in made]) / np.array(ms))
            cells += [
                f"{share / max(1, of):.3f}", f"{tokens / sum(len(one) for _, one in made):.2f}",
                f"{rows[1] * tokens / sum(ms):.3f}",
            ]  # fmt: skip
        change = speeds[1] / speeds[0] - 1
        error = change.std(ddof=1) / len(change) ** 0.5 if len(change) > 1 else np.nan
        lines.append([*cells, f"{100 * change.mean():+.1f} ± {100 * error:.1f} %"])
    own = ("right", "tokens a round", "× plain")
    heads = ["length", *(f"steps: {one}" for one in own), *(f"block: {one}" for one in own), "change"]
    return table(heads, lines)


def run(
    drafter: str, targets: Mapping[str, str], shards: Path, scored: Path, length: int, minutes: float,
    prices: Mapping[str, Prices], report: Callable[[str], None], pause: Path | None = None,
) -> None:  # fmt: skip
    """Train on all targets' answers in `shards`, then report a table of each one's in `scored`."""
    block, texts = Block.new(drafter, length), list[tuple[NDArray[np.int32], int]]()
    spellings = {
        name: Spelling(vocabulary_of(place), vocabulary_of(drafter)) for name, place in targets.items()
    }
    for name, spelling in spellings.items():
        for answer in read_shards(shards, name):
            spelled = spelling.spell(answer.prompt, answer.ids)
            if len(spelled.ids) > spelled.first:
                texts.append((np.array(spelled.ids, np.int32), spelled.first))
    read = train(block, texts, minutes, report, pause)
    report(f"\n{read:,} answers were read, of {len(texts):,}")
    other = load(drafter)
    for name, spelling in spellings.items():
        found = list(kept(block, other, list(few(read_shards(scored, name), 60)), spelling))
        report(f"\n{name}, {len(found)} greedy answers\n\n{block_table(found, prices[name])}")
