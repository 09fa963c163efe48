"""Rounds of pairs of real shapes, timed: where their time goes, what single passes cost, and what is left
over."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from types import SimpleNamespace

import torch

from lab.measured_rows import make_writable
from lab.races.floor import floor
from lab.races.machine import Probe, facts, synchronise
from lab.races.watch import Read, bare, take_reads, unwatched_cache, waiting_clock
from lab.shapes import shape_report
from lab.shapes.real_shapes import (
    DRAFTER,
    KINDS,
    TARGETS,
    Kind,
    Made,
    check_memory,
    form,
    make,
    parameters,
    scripted_pairs,
)
from lab.shapes.shape_report import Row
from omnidemo.backends import compile_kernels
from omnidemo.backends.compiled_passes import CompiledPasses
from omnidemo.backends.fused_cache import pick_threads
from omnidemo.core.records import Round
from omnidemo.models.load import pick_device, pick_dtype
from omnidemo.pair.pair import Pair
from omnidemo.serving.measuring.report_tables import Stage, recorded

# bytes: no cache holds so much, so a larger probe would measure the same bandwidth and might not fit
LARGEST = 1 << 30
NGRAMS = 20_000  # in the cache, as many as the app keeps


@dataclass(frozen=True, slots=True)
class ShapesRequest:
    """What `run` does. rounds: timed ones of each answer; repeats: answers of each kind, after one that warms
    up. threads: of a CPU, 0 picks by the target's size."""

    out: Path
    shapes: Sequence[str] = TARGETS
    drafter: str = DRAFTER
    device: str = "auto"
    dtype: str = "auto"
    draft_lengths: Sequence[int] = (2, 3, 4, 5, 6, 7, 8)
    rounds: int = 20
    repeats: int = 5
    temperature: float = 0.0
    threads: int = 0
    command: str = ""

    @property
    def prompt_tokens(self) -> int:
        """As many as an answer has at most, so that the conversation goes on from the prompt of the one
        before."""
        return (self.rounds + 2) * (max(self.draft_lengths) + 2)


def run(order: ShapesRequest) -> Iterator[Row | Stage]:
    """Measure, and yield each row, and how far it is; `shapes.csv` has it by then, `shapes.md` follows after
    each shape.

    ValueError or ModelError, before anything is measured, for what cannot be.
    """
    device, dtype = check(order)
    total = len(order.shapes) * len(order.draft_lengths) * len(KINDS) * order.repeats
    yield from recorded(_measure(order, device, dtype), order.out / "shapes.csv", Row, "answers", total)


def _measure(order: ShapesRequest, device: torch.device, dtype: torch.dtype) -> Iterator[Row]:
    """The rows, shape by shape, and the report after each."""
    about = (
        {"command": order.command}
        | facts(device)
        | {"dtype": str(dtype).removeprefix("torch."), "drafter": order.drafter}
    )
    about |= {
        "temperature": order.temperature,
        "prompt": f"{order.prompt_tokens} tokens",
        "rounds": f"{order.rounds} of each answer",
    }
    rows: list[Row] = []
    probe = Probe(device, dtype, LARGEST)
    if device.type == "cpu":
        compile_kernels.wait()
    drafter = make(order.drafter, device, dtype, seed=1)
    for name in order.shapes:
        if device.type == "cpu":
            torch.set_num_threads(order.threads or pick_threads(parameters(name)))
        stand = _Stand(order, make(name, device, dtype), drafter, probe)
        for row in stand.rows():
            rows.append(row)
            yield row
        (order.out / "shapes.md").write_text(shape_report.markdown(rows, about), encoding="utf-8")
        del stand  # the next target needs its memory
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


def check(order: ShapesRequest) -> tuple[torch.device, torch.dtype]:
    """Device and dtype of an order that can be measured; ValueError or ModelError, one sentence, for
    another."""
    if not order.shapes or not order.draft_lengths:
        raise ValueError("give at least one shape and one draft length")
    if (
        not all(1 <= length <= 32 for length in order.draft_lengths)
        or order.rounds < 2
        or order.repeats < 1
        or order.temperature < 0
    ):
        raise ValueError(
            "draft lengths lie between 1 and 32, rounds are at least 2, repeats at least 1 and the"
            " temperature 0 or more"
        )
    window = min(form(name).max_position_embeddings for name in (*order.shapes, order.drafter))
    if 2 * order.prompt_tokens > window:
        raise ValueError(
            f"a prompt and an answer of {order.prompt_tokens} tokens each exceed a window of {window}; give"
            " fewer --rounds"
        )
    place, spread = pick_device(order.device)
    if spread is not None:
        raise ValueError("each pair is timed on one device; give --device cpu, cuda:0 or another single one")
    device, dtype = torch.device(place), pick_dtype(order.dtype, place, SimpleNamespace(dtype=torch.bfloat16))
    for name in order.shapes:
        check_memory([name, order.drafter], device, dtype)
    make_writable(order.out / "shapes.csv")
    return device, dtype


@dataclass(frozen=True, slots=True)
class _Answer:
    """Rounds of one answer, seconds from the first to the last, and what the target and the drafter read in
    them."""

    rounds: list[Round]
    seconds: float
    reads: tuple[list[Read], list[Read]]


class _Stand:
    """One target and the drafter, with a pair, and caches for bare passes, of each kind of runner."""

    def __init__(self, order: ShapesRequest, target: Made, drafter: Made, probe: Probe) -> None:
        self.order, self.target, self.drafter, self.probe = order, target, drafter, probe
        self.device = probe.device
        self.pairs, ids = scripted_pairs(target, drafter, NGRAMS)
        self.prompt = [ids[place % len(ids)] for place in range(order.prompt_tokens)]
        self.bare = {
            kind: (unwatched_cache(pair.target), unwatched_cache(pair.drafter))
            for kind, pair in self.pairs.items()
        }
        self.plain = {
            kind: (target.runners[kind].new_cache(), drafter.runners[kind].new_cache()) for kind in KINDS
        }

    def rows(self) -> Iterator[Row]:
        """Every draft length by both kinds alternately, several times over; the first time, which warms up,
        is not counted."""
        for repeat in range(self.order.repeats + 1):
            for length in self.order.draft_lengths:
                for kind in KINDS if repeat % 2 else KINDS[::-1]:
                    row = self._row(kind, length, repeat)
                    if repeat:
                        yield row

    @torch.inference_mode()
    def _row(self, kind: Kind, length: int, repeat: int) -> Row:
        pair, count = self.pairs[kind], self.order.rounds
        timed = split = self._answer(pair, length)
        if self.device.type != "cpu":  # the same again, each stage waited for
            with waiting_clock(pair):
                split = self._answer(pair, length)
        stages = {
            f"{name}_ms": 1e3 * fmean(one.seconds[name] for one in split.rounds)
            for name in ("draft", "verify", "settle")
        }
        round_ms = 1e3 * timed.seconds / count
        bare_ms = 1e3 / count * bare(self.device, *zip(self.bare[kind], timed.reads, strict=True))
        costs = (self.target.costs[kind], self.drafter.costs[kind])
        read = [(cost, one.shape) for cost, reads in zip(costs, timed.reads, strict=True) for one in reads]
        passes = getattr(self.target.runners[kind], "passes", None)
        threads = passes.helpers + 1 if isinstance(passes, CompiledPasses) else torch.get_num_threads()
        floor_ms = 1e3 / count * floor(read, self.probe, threads)[-1]
        step_ms, pass_ms, drafter_ms = self._passes(kind, length + 1)
        return Row(
            shape=self.target.name,
            drafter_shape=self.drafter.name,
            device=self.device.type,
            runner=kind,
            draft_length=length,
            repeat=repeat,
            threads=threads,
            rounds=count,
            tokens_per_round=fmean(len(one.tokens) for one in timed.rounds),
            drafter_passes=len(timed.reads[1]) / count,
            scripted_acceptance=sum(one.accepted for one in timed.rounds)
            / max(1, sum(one.proposed for one in timed.rounds)),
            round_ms=round_ms,
            **stages,
            other_ms=1e3 * split.seconds / count - sum(stages.values()),
            bare_ms=bare_ms,
            overhead=1 - bare_ms / round_ms,
            drafter_step_ms=drafter_ms,
            step_ms=step_ms,
            pass_ms=pass_ms,
            pass_over_step=pass_ms / step_ms,
            floor_ms=floor_ms,
            over_floor=round_ms / floor_ms,
        )

    def _answer(self, pair: Pair, length: int) -> _Answer:
        """Go on with the conversation from the prompt on. Its first round, which may have to read, does not
        count."""
        order, models = self.order, (pair.target, pair.drafter)
        stream = pair.stream(
            self.prompt,
            max_new_tokens=order.prompt_tokens,
            temperature=order.temperature,
            draft_length=length,
            seed=0,
            learn=False,
        )
        next(stream)
        for model in models:
            take_reads(model)
        synchronise(self.device)
        began = perf_counter()
        rounds = [next(stream) for _ in range(order.rounds)]
        synchronise(self.device)
        seconds = perf_counter() - began
        stream.close()
        return _Answer(rounds, seconds, (take_reads(models[0]), take_reads(models[1])))

    def _passes(self, kind: Kind, tokens: int) -> tuple[float, float, float]:
        """Milliseconds behind the prompt, medians: the target reads one token, it reads `tokens`, the drafter
        reads one."""
        target, drafter = self.plain[kind]
        start = len(self.prompt)
        times: tuple[list[float], list[float], list[float]] = ([], [], [])
        for _ in range(self.order.rounds):
            for cache, count, found in zip((target, target, drafter), (1, tokens, 1), times, strict=True):
                found.append(1e3 * bare(self.device, (cache, [Read(start, self.prompt[:count], count)])))
        return median(times[0]), median(times[1]), median(times[2])
