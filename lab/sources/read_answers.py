"""Greedy answers of a target, which `transformers` writes in float32 and reads again, with what each of its
first layers would say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.drafters import prompt_sets
from lab.drafters.batched import TOP
from lab.drafters.prompt_sets import Prompt
from lab.drafters.shards import Recorded

TOGETHER = 12  # answers that are written at once


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer, and at each of its n tokens the first choice of each exit [exits, n] with its
    probability."""

    answer: Recorded
    choices: NDArray[np.int64]
    sure: NDArray[np.float64]


def prompts_of(paths: Sequence[Path], most: int, wanted: Collection[str] = ()) -> dict[str, list[Prompt]]:
    """The prompts of each set, at most so many: those that a folder of prompt files keeps to score with, and
    whole files. ValueError for a set that there is not, FileNotFoundError for a file."""
    found: dict[str, list[Prompt]] = {}
    for path in paths:
        try:
            found |= prompt_sets.kept(path) if path.is_dir() else {path.stem: prompt_sets.read_lines(path)}
        except KeyError:
            raise ValueError(f"a line of {path} has no prompt") from None
    if unknown := sorted(set(wanted) - set(found)):
        raise ValueError(f"{unknown[0]!r} is no set; there are {', '.join(found)}")
    return {
        name: prompt_sets.some(prompts, most)
        for name, prompts in found.items()
        if not wanted or name in wanted
    }


def record(
    model: Any, sets: dict[str, list[Prompt]], spell: Callable[[str], list[int]], ends: Sequence[int],
    exits: Sequence[int], length: int,
) -> Iterator[Reading]:  # fmt: skip
    """The answers to all prompts, set by set. `model` is one of `transformers`, `exits` the numbers of layers
    after which it might stop."""
    for name, prompts in sets.items():
        asked = [(one.id, spell(one.text)) for one in prompts]
        for begin in range(0, len(asked), TOGETHER):
            some = asked[begin : begin + TOGETHER]
            for (prompt_id, prompt), ids in zip(
                some, write(model, [ids for _, ids in some], ends, length), strict=True
            ):
                if ids:
                    yield read(
                        model,
                        Recorded(name, f"target/{name}/{prompt_id}/0", "target", 0.0, "", prompt, ids),
                        exits,
                    )


@torch.inference_mode()
def write(model: Any, prompts: Sequence[list[int]], ends: Sequence[int], length: int) -> list[list[int]]:
    """Greedy answers, all at once, each to its first end token."""
    width = max(map(len, prompts))
    ids = torch.tensor([[ends[0]] * (width - len(one)) + one for one in prompts])
    mask = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in prompts])
    found = model.generate(
        ids,
        attention_mask=mask,
        max_new_tokens=length,
        do_sample=False,
        eos_token_id=list(ends),
        pad_token_id=ends[0],
        use_cache=True,
    )[:, width:].tolist()
    return [one[: next((at + 1 for at, token in enumerate(one) if token in ends), len(one))] for one in found]


@torch.inference_mode()
def read(model: Any, answer: Recorded, exits: Sequence[int]) -> Reading:
    """One pass over the whole text. An exit's states go through the final norm and the output layer, as the
    last ones do."""
    base, first = model.base_model, len(answer.prompt) - 1
    found = base(torch.tensor([answer.prompt + answer.ids[:-1]]), output_hidden_states=True)
    log = model.lm_head(found.last_hidden_state[0, first:]).float().log_softmax(-1)
    values, top = log.topk(min(TOP, log.shape[1]))
    answer.top, answer.logprobs = top.int().numpy(), values.to(torch.float16).numpy()
    early = [
        model.lm_head(base.norm(found.hidden_states[layers][0, first:])).float().softmax(-1).max(-1)
        for layers in exits
    ]
    shape = len(exits), len(answer.ids)
    return Reading(
        answer,
        np.array([one.indices.numpy() for one in early], np.int64).reshape(shape),
        np.array([one.values.numpy() for one in early], np.float64).reshape(shape),
    )
