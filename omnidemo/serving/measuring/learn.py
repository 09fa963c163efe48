"""A drafter for one's own model: the target answers prompts, many at once, and an adapter of the drafter
learns from the answers beside it. Kept prompts tell what it is worth."""

from __future__ import annotations

import json
import queue
import random
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from omnidemo.backends import compile_kernels
from omnidemo.backends.batched_writer import BatchedWriter, Order, WrittenAnswer, order_of
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Settings
from omnidemo.core.private_folders import hold, let_go, replacing
from omnidemo.core.records import Agreement, Trace
from omnidemo.core.resources import usable_cores
from omnidemo.decoding.methods import BASELINE
from omnidemo.decoding.tracing import labelled_trace
from omnidemo.learning.distill.learner import Learner, learner_for
from omnidemo.learning.distill.trace_buffer import usable
from omnidemo.learning.distill.train_step import agree, train
from omnidemo.learning.distill.worker import plan_of
from omnidemo.learning.lines.learned_file import Learned, check_ids, facts_of, write_learned
from omnidemo.learning.lines.measurer import mean_of
from omnidemo.learning.lines.sample_prompts import TOPICS
from omnidemo.learning.lines.sample_prompts import prompts as ours
from omnidemo.models.adapters.adapter_state import (
    AdapterState,
    AdapterVersion,
    BaseWeights,
    OptimiserState,
    StoredVersion,
    merged_weights,
    packed,
)
from omnidemo.models.names import at_its_pace
from omnidemo.pair.in_turns import Budget, passes_of, spread
from omnidemo.pair.pair import Pair
from omnidemo.serving.measuring.report_tables import Stage
from omnidemo.storage.tables import utc
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

LENGTH, LABELS = 192, 16  # tokens of an answer, and most labels at each
POSITIONS = 768  # most tokens of a prompt and its answer
ROWS = 16  # answers that a thread writes at once
STEPS, SIZE = 12, 8  # steps of an update, and answers of a step, drawn from the newest NEWEST
NEWEST, FEWEST = 4_000, 32  # answers; fewer than FEWEST teach nothing yet
VISITS = 24  # times that an answer is read, after which nothing is left to learn from it
KEPT, MOST_KEPT = 10, 48  # every tenth prompt tells, and not more than so many
LOOK, LOOKED_AT = 8, 12  # updates between two looks at the agreement, and kept prompts looked at
ROUNDS = 8  # answers to each prompt, at most
MEASURED, MEASURED_TOKENS = 8, 96  # kept prompts that are timed at the end, and tokens of each answer
LEFT = 0.9  # share of the time after which no answer is written any more: the rest is for measuring
DOMAIN, STATE = "default", "state.safetensors"


@dataclass(frozen=True, slots=True)
class Gain:
    """What an adapter is worth on kept prompts. `speeds`: × plain, before and after, and where each median
    lies; `most`, `least`: (prompt, change of agreement)."""

    before: Agreement
    after: Agreement
    plain: float = 0.0  # tokens/s
    speeds: tuple[tuple[float, float, float], ...] = ()
    most: tuple[tuple[str, float], ...] = ()
    least: tuple[tuple[str, float], ...] = ()


@dataclass(slots=True)
class State:
    """What is learned so far. `answers`: by order, in the order in which they were written."""

    adapter: AdapterState | None = None
    optimiser: OptimiserState | None = None
    answers: dict[str, WrittenAnswer] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return sum(len(one.ids) for one in self.answers.values())


def need(runner: FusedLlama, threads: int) -> int:
    """Bytes of keys and values beside the model."""
    numbers = int(np.prod(runner.buffer_size(POSITIONS)))
    return threads * (ROWS + 1) * numbers * (2 if runner.form == "packed" else 4)


def default_prompts() -> list[str]:
    """The project's own prompts, of all topics in turns."""
    topics = [list(ours(topic, "train")) for topic in TOPICS]
    most = max(map(len, topics))
    return [topic[place] for place in range(most) for topic in topics if place < len(topic)]


def is_kept(prompt: str) -> bool:
    return zlib.crc32(prompt.encode(errors="replace")) % KEPT == 0


class _Ended(Exception):
    """The writing threads are to end."""


class Learning:
    """A run for one pair. `folder`: where it is kept, so that another run goes on."""

    def __init__(self, pair: Pair, settings: Settings, prompts: Sequence[str], folder: Path) -> None:
        """ValueError, one sentence, for a target that cannot write many answers at once, for a drafter that
        cannot learn, and for too few prompts."""
        runner = pair.target.runner
        if not isinstance(runner, FusedLlama) or runner.passes is None or not compile_kernels.wait():
            why = compile_kernels.failure() or "it has no Llama or Qwen shape, or is not on a CPU"
            raise ValueError(
                f"{pair.target.name} has no compiled passes ({why}), and answers are written in many rows by"
                " such alone; chat with it instead: the app learns from every answer"
            )
        if not pair.drafter.learns:
            raise ValueError(f"the drafter {pair.drafter.name} cannot be trained; choose one of safetensors")
        self.pair, self.runner, self.folder = pair, runner, folder
        self.settings = at_its_pace(settings, pair.drafter.name, pair.target.name)
        self.plan = plan_of(self.settings.model_copy(update={"head": "off"}))
        unique = list(dict.fromkeys(prompts))
        self.long = len(unique)
        unique = [one for one in unique if self._fits(one)]
        self.long -= len(unique)  # prompts that are left out
        self.kept = [one for one in unique if is_kept(one)][:MOST_KEPT]
        self.taught = [one for one in unique if not is_kept(one)]
        if not self.kept or len(self.taught) < FEWEST:
            raise ValueError(
                f"{len(unique)} prompts{self._left_out} are too few: every tenth is kept to measure with, and"
                f" at least {FEWEST} others have to teach"
            )
        self.map: VocabularyMap = pair.map
        self.state = State()
        self.traces: deque[Trace] = deque(maxlen=NEWEST)
        self.learners: dict[tuple[str, int, int], Learner] = {}
        self.held: dict[str, Trace] = {}  # by prompt
        self.chance, self.ended = random.Random(self.plan.seed), threading.Event()
        self.seconds = 0.0  # of all runs together
        self.elapsed = 0.0  # seconds of this run
        self.so_far = ""  # what the kept prompts say now
        self._restore()

    def _fits(self, prompt: str) -> bool:
        try:
            return len(self.pair.prompt_ids(prompt)) <= POSITIONS - LENGTH
        except ValueError:  # too long for the model
            return False

    @property
    def _left_out(self) -> str:
        return f" (and {self.long} of more than {POSITIONS - LENGTH} tokens, left out)" if self.long else ""

    def needs(self) -> str:
        """How much of memory and disk a run takes, for people."""
        threads = self.threads
        megabytes = need(self.runner, threads) / 1e6
        return (
            f"{len(self.kept) + len(self.taught):,} prompts{self._left_out}."
            f" Keys and values of {threads * ROWS} answers at once take {megabytes:,.0f} MB beside the"
            f" models, an hour's answers some 10 MB in {self.folder}."
        )

    @property
    def threads(self) -> int:
        """Each has a core of its own."""
        return max(1, min(8, usable_cores()))

    # what is kept

    def _restore(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.folder.glob("answers-*.npz")):
            with suppress(ValueError, OSError, KeyError):  # an interrupted one: its answers are written anew
                for answer in _read_answers(path):
                    self._take(answer)
        with suppress(SafetensorError, ValueError, OSError, KeyError):
            self.state.adapter, self.state.optimiser, self.seconds = _read_state(self.folder)

    def _save(self, new: Sequence[WrittenAnswer]) -> None:
        if new:
            _write_answers(self.folder / f"answers-{len(self.state.answers):06d}.npz", new)
        if self.state.adapter is not None:
            _write_state(self.folder, self.state, self.seconds)

    # answers

    def orders(self) -> list[tuple[str, Order]]:
        """What is to be written, kept prompts first; of each round every other answer is greedy, the others
        in the target's own manner."""
        manner, found = self.pair.target.manner, list[tuple[str, Order]]()
        for turn in range(ROUNDS):
            for number, prompt in enumerate([*(self.kept if not turn else ()), *self.taught]):
                seed = zlib.crc32(f"{turn}/{prompt}".encode(errors="replace"))
                name = f"{zlib.crc32(prompt.encode(errors='replace')):08x}"
                # a greedy answer is the same each time
                greedy = turn < 2 and (number + turn) % 2 == 0
                filters = () if greedy else (
                    manner.temperature or 0.7, manner.top_p, manner.repetition_penalty, manner.top_k
                )  # fmt: skip
                order = Order("kept" if prompt in self.kept else str(turn), name, seed, LENGTH, *filters)
                if order_of(order.set, order.id, order.temperature) not in self.state.answers:
                    found.append((prompt, order))
        return found

    def write(self, found: queue.Queue[WrittenAnswer | Exception | None]) -> list[threading.Thread]:
        """Begin to put answers into a queue, by threads of one core each; each puts None at its end, and
        before it the error that ended it."""
        self.runner.threads, orders = 1, self.orders()

        def hold_up() -> None:
            if self.ended.is_set():
                raise _Ended

        def spelled(part: Sequence[tuple[str, Order]]) -> Iterator[tuple[list[int], list[Order]]]:
            for prompt, order in part:
                yield self.pair.prompt_ids(prompt), [order]

        def work(number: int) -> None:
            ends = self.pair.target.vocabulary.roles["end"]
            try:
                writer = BatchedWriter(self.runner, ends, ROWS, POSITIONS, LABELS, hold=hold_up)
                for answer in writer.write(spelled(orders[number :: self.threads])):
                    found.put(answer)
            except _Ended:
                pass
            except Exception as error:
                found.put(error)
            found.put(None)

        workers = [
            threading.Thread(target=work, args=(number,), daemon=True) for number in range(self.threads)
        ]
        for worker in workers:
            worker.start()
        return workers

    def _take(self, answer: WrittenAnswer) -> None:
        self.state.answers[answer.order] = answer
        assert answer.labels is not None and answer.probs is not None
        made = labelled_trace(
            self.map, answer.prompt, answer.ids, answer.labels, answer.probs, answer.temperature
        )
        if made is None or not usable(made[0]):
            return
        if answer.set == "kept":
            self.held[answer.id] = made[0]
        else:
            self.traces.append(made[0])

    # learning

    def learner(self) -> Learner:
        return learner_for(self.learners, self.pair.drafter.folder, self.state.adapter, self.plan)

    def update(self) -> float:
        """Train on some of the newest answers; the mean loss."""
        state, size = self.state, min(SIZE, len(self.traces))
        batches = [self.chance.sample(self.traces, size) for _ in range(STEPS)]
        state.adapter, state.optimiser, done = train(
            self.learner(), state.adapter, state.optimiser, batches, self.plan
        )
        return fmean(step.loss for step in done)

    def agreement(self, adapter: AdapterState | None) -> dict[str, Agreement]:
        """Of each kept prompt."""
        found = agree(self.learner(), adapter, list(self.held.values()))
        return dict(zip(self.held, found, strict=True))

    def run(
        self, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> Generator[Stage, None, None]:
        """Write and learn for so many seconds, or until every prompt has had its answers and each was read
        often enough. What is learned is kept after each update. RuntimeError where the target failed."""
        began, before, left, updates = clock(), self.seconds, self.threads, 0
        new, found = list[WrittenAnswer](), queue.Queue[WrittenAnswer | Exception | None]()
        torch.set_num_threads(1)
        workers = self.write(found)
        try:
            while self.elapsed < LEFT * seconds:
                with suppress(queue.Empty):  # all that is there; none is waited for where there is work
                    while left:
                        one = found.get(timeout=0.0 if len(self.traces) >= FEWEST else 1.0)
                        if isinstance(one, Exception):
                            raise RuntimeError(f"the target could not answer ({one})")
                        if one is None:
                            left -= 1
                        else:
                            self._take(one)
                            new.append(one)
                if len(self.traces) >= FEWEST:
                    self.update()
                    updates += 1
                elif not left:
                    break
                self.elapsed = clock() - began
                self.seconds = before + self.elapsed
                if self.state.adapter is not None:
                    self._save(new)
                    new.clear()
                if self.held and updates % LOOK == 1:
                    self._look()
                yield Stage("tokens", self.state.tokens, None)
                if not left and self.visits >= VISITS:
                    break
        finally:
            self.ended.set()
            if new:
                self._save(new)
            for worker in workers:
                worker.join()

    @property
    def visits(self) -> float:
        """How often an answer was read, in the mean."""
        steps = self.state.optimiser.step if self.state.optimiser else 0
        return steps * SIZE / max(1, len(self.state.answers))

    def _look(self) -> None:
        """How far drafter and target agree on some kept prompts."""
        some = list(self.held.values())[:LOOKED_AT]
        first, now = (mean_of(agree(self.learner(), each, some)) for each in (None, self.state.adapter))
        if first is not None and now is not None:
            self.so_far = f", agreement {first.overlap:.3f} → {now.overlap:.3f}"

    # what comes of it

    def learned(self, **more: Any) -> Learned:
        """n-grams of the answers, and the answers themselves as memory."""
        answers = [one.ids for one in self.state.answers.values() if one.set != "kept"]
        ids = sorted({token for answer in answers for token in answer})
        ngrams = [(token, spelled) for token in ids if (spelled := self.map.ngram(token))]
        facts = facts_of(
            self.pair, answers=len(answers), tokens=sum(map(len, answers)), made=utc(),
            minutes=round(self.seconds / 60, 1), **more,
        )  # fmt: skip
        found = Learned(ngrams, answers, facts)
        check_ids(found, self.pair)
        return found

    def write_file(self, file: Path, **more: Any) -> Path:
        """The one file. ValueError where nothing is learned yet."""
        state, pair = self.state, self.pair
        if state.adapter is None or state.optimiser is None:
            raise ValueError("nothing was learned yet, so there is no file; give it more time")
        info = AdapterVersion(
            1, pair.drafter.name, pair.target.name, DOMAIN, None, None, None, len(state.answers),
            state.optimiser.step, None, utc(),
        )  # fmt: skip
        version = StoredVersion(info, state.adapter, state.optimiser)
        return write_learned(file, version, self.learned(**more))

    def measure(self, seconds: float) -> Gain:
        """Agreement of kept prompts before and after, and speeds in turns with plain decoding at temperature
        0: as a fresh pair writes, and as one with the file does."""
        before, after = self.agreement(None), self.agreement(self.state.adapter)
        texts = {f"{zlib.crc32(one.encode(errors='replace')):08x}": one for one in self.kept}
        change = sorted((after[name].overlap - before[name].overlap, texts[name]) for name in before)
        told = [(text, up) for up, text in change]
        first, last = mean_of(list(before.values())), mean_of(list(after.values()))
        assert first is not None and last is not None
        self.runner.threads = self.settings.threads
        pair, fresh = self.pair, Pair(self.pair.target, self.pair.drafter)
        if self.state.adapter is not None:
            base = BaseWeights(pair.drafter.folder)
            pair.publish(1, merged_weights(base, self.state.adapter))
        known = self.learned()
        pair.know(DOMAIN, known.ngrams, known.answers)
        fresh.prices, fresh.phrases = pair.prices, pair.phrases
        pair.measure_prices()
        lanes = {"plain": (pair, BASELINE), "before": (fresh, "ngram-exact"), "after": (pair, "ngram-exact")}
        ratios: dict[str, list[float]] = {"before": [], "after": []}
        plain, until = list[float](), time.monotonic() + seconds
        for prompt in self.kept[:MEASURED]:
            if plain and time.monotonic() > until:
                break
            (made,) = passes_of(
                {name: _lane(*lane, prompt) for name, lane in lanes.items()}, Budget(), time.monotonic
            )
            plain.append(made["plain"])
            for name, found in ratios.items():
                found.append(made[name] / made["plain"])
        speeds = tuple((median(found), *spread(found)) for found in ratios.values())
        return Gain(first, last, median(plain), speeds, tuple(told[::-1][:3]), tuple(told[:3]))


def _lane(pair: Pair, method: str, prompt: str) -> Callable[[], float]:
    def rate() -> float:
        made = pair.generate(
            prompt, method=method, temperature=0.0, repetition_penalty=1.0, draft_policy="cost",
            max_new_tokens=MEASURED_TOKENS, learn=False, reuse=False,
        )  # fmt: skip
        return made.metrics["tokens_per_second"] or 0.0

    return rate


@contextmanager
def begun(pair: Pair, settings: Settings, prompts: Sequence[str], folder: Path) -> Iterator[Learning]:
    """A run, which goes on where an earlier one in the folder ended. ValueError as `Learning`, and where
    another process learns there."""
    folder.mkdir(parents=True, exist_ok=True)
    hold(folder)
    try:
        yield Learning(pair, settings, prompts, folder)
    finally:
        let_go(folder)


def _write_answers(path: Path, answers: Sequence[WrittenAnswer]) -> None:
    arrays: dict[str, Any] = {"heads": np.array([_head(one) for one in answers])}
    for name in ("prompt", "ids", "labels", "probs"):
        arrays[name] = np.concatenate([np.asarray(getattr(one, name)) for one in answers])
    arrays["sizes"] = np.array([[len(one.prompt), len(one.ids)] for one in answers])
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _head(one: WrittenAnswer) -> tuple[str, ...]:
    return one.set, one.id, repr(one.temperature), one.reason, repr(one.penalty)


def _read_answers(path: Path) -> Iterator[WrittenAnswer]:
    with np.load(path) as arrays:
        found = {name: arrays[name] for name in arrays}
    asked = at = 0
    for (name, key, heat, reason, penalty), (prompt, tokens) in zip(
        found["heads"].tolist(), found["sizes"].tolist(), strict=True
    ):
        here = slice(at, at + tokens)
        yield WrittenAnswer(
            name, key, float(heat), reason, found["prompt"][asked : asked + prompt].tolist(),
            found["ids"][here].tolist(), found["labels"][here], found["probs"][here], float(penalty),
        )  # fmt: skip
        asked, at = asked + prompt, at + tokens


def _write_state(folder: Path, state: State, seconds: float) -> None:
    """The adapter and its optimiser in one file."""
    assert state.adapter is not None and state.optimiser is not None
    tensors = {f"adapter.{name}": tensor for name, tensor in state.adapter.weights.items()}
    tensors |= {f"optimiser.{name}": tensor for name, tensor in state.optimiser.moments.items()}
    facts = {
        "step": str(state.optimiser.step), "seconds": repr(seconds),
        "config": json.dumps(dict(state.adapter.config)),
    }  # fmt: skip
    with replacing(folder / STATE) as partial:
        partial.write_bytes(packed(tensors, **facts))


def _read_state(folder: Path) -> tuple[AdapterState, OptimiserState, float]:
    with safe_open(folder / STATE, "pt") as opened:
        names, facts = list(opened.keys()), opened.metadata()
        tensors = {name: opened.get_tensor(name) for name in names}

    def part(of: str) -> dict[str, Tensor]:
        return {name.removeprefix(of): one for name, one in tensors.items() if name.startswith(of)}

    adapter = AdapterState(part("adapter."), json.loads(facts["config"]))
    return adapter, OptimiserState(int(facts["step"]), part("optimiser.")), float(facts["seconds"])
