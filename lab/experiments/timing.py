"""Measured speedups: the final drafters of all arms decode with the real target, interleaved, in one quiet
process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from safetensors.torch import load_file

from lab.experiments.arm import World, figures, options
from lab.experiments.jobs import result_path
from lab.experiments.plans import Arm, Reading
from lab.races.arms import in_turn
from omnidemo.core.private_folders import replacing
from omnidemo.core.records import Generation, NgramEntry
from omnidemo.decoding.methods import BASELINE
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import build_measured_pair

Contender = tuple[Arm, Reading, Pair]  # one arm's final drafter and n-gram cache, with the way it decodes


def timed_path(world: World, arms: Sequence[Arm], seed: int, prompts: int) -> Path:
    """Where the times of a seed are kept: beside the arms' results, under a name of all of theirs."""
    names = "-".join(result_path(world, arm, seed).stem.rsplit("-", 1)[-1][:4] for arm in arms)
    return world.out / "arms" / f"timed-{prompts}-s{seed}-{names}.json"


def measure(world: World, arms: Sequence[Arm], seed: int, prompts: int) -> Iterator[int]:
    """Time one seed's arms on the first held-out prompts, and write the rows; yields the answers so far.

    Plain decoding comes first and last on every prompt, and its mean time counts; the order of the others
    rotates. RuntimeError where ids differ from plain decoding's.
    """

    def decode(pair: Pair, text: str, how: Mapping[str, Any]) -> Generation:
        return pair.generate(
            text, max_new_tokens=world.settings.max_new_tokens, learn=False, copying=False, reuse=False, **how
        )

    contenders = _contenders(world, arms, seed)
    first, plainly = contenders[0][2], {"method": BASELINE}
    texts = world.held_out[arms[0].sources[0]][:prompts]
    rows: list[dict[str, Any]] = []
    # untimed, so that every drafter has been read and every weight swapped in
    for _, reading, pair in contenders:
        decode(pair, texts[0], options(reading))
    for number, text in enumerate(texts):
        before, made = decode(first, text, plainly), list[tuple[Arm, Reading, Generation]]()
        for arm, reading, pair in in_turn(contenders, number):
            made.append((arm, reading, decode(pair, text, options(reading))))
            yield number * len(contenders) + len(made)
        seconds = fmean(one.metrics["seconds"] or 0.0 for one in (before, decode(first, text, plainly)))
        for arm, reading, one in made:
            if one.token_ids != before.token_ids:
                raise RuntimeError(
                    f"{arm.name} {reading.name} wrote other ids than plain decoding to {text[:40]!r}…"
                )
            took = one.metrics["seconds"]
            speed = {
                "tokens_per_second": one.metrics["tokens_per_second"],
                "speedup": seconds / took if took else None,
            }
            place = {
                "arm": arm.name,
                "reading": reading.name,
                "seed": seed,
                "kind": "timed",
                "requests": arm.requests,
            }
            rows.append(
                {
                    **place,
                    "target": arm.targets[0],
                    "source": arm.sources[0],
                    **figures(one),
                    **speed,
                    "prompt": number,
                }
            )
    with replacing(timed_path(world, arms, seed, prompts)) as partial:
        partial.write_text(json.dumps(rows), encoding="utf-8")


def _contenders(world: World, arms: Sequence[Arm], seed: int) -> list[Contender]:
    """A pair for each arm and reading, all with the same two models: arms that are timed have one target."""
    models = build_measured_pair(arms[0].targets[0], world.drafter, world.settings)
    found: list[Contender] = []
    for arm in arms:
        path = result_path(world, arm, seed)
        kept = json.loads(path.read_text(encoding="utf-8"))
        tensors = load_file(path.with_suffix(".safetensors"))
        weights = {
            name.removeprefix("weight."): one for name, one in tensors.items() if name.startswith("weight.")
        }
        head = {name.removeprefix("head."): one for name, one in tensors.items() if name.startswith("head.")}
        for reading in arm.readings:
            entries = kept["caches"][repr(reading.cache)]
            pair = Pair(
                models.target,
                models.drafter,
                cache_size=max(len(entries), 1),
                cache_policy=reading.cache_policy,
            )
            pair.ngrams.load(NgramEntry(int(one[0]), tuple(one[1]), *one[2:]) for one in entries)
            if weights:
                pair.publish(1, weights, head)
            found.append((arm, reading, pair))
    return found


def read_rows(world: World, arms: Sequence[Arm], seeds: Sequence[int], prompts: int) -> list[dict[str, Any]]:
    """The rows of the seeds that have been timed."""
    paths = [timed_path(world, arms, seed, prompts) for seed in seeds]
    return [row for path in paths if path.exists() for row in json.loads(path.read_text(encoding="utf-8"))]
