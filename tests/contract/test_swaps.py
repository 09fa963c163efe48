"""Learning never touches the answer: greedy ids are those of plain decoding with training on, off, paused,
crashing and swapping."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from omnidemo.core.config import Settings
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.records import Generation
from omnidemo.learning.lines.trainer_pool import TrainerPool
from omnidemo.models.adapters import acceptance_head
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import attach_storage, build_pair
from omnidemo.storage.store import Store

METHODS = ("ngram-exact", "token-intersection", "string-exact-match")
WAYS = list(itertools.product(METHODS, get_args(Policy)))
PROMPTS = ("the other ducks swim — naïve ✓", "def double(n):", "the small duck")
DOMAINS = ("default", "maths", "code")
COUNT = 32  # tokens of an answer
# seconds after each further answer while something is waited for that happens in another process, which needs
# the cores
LEISURE = 0.05
PATIENCE = 120.0  # seconds, for a busy machine: a training process that starts imports torch


@pytest.fixture(scope="module")
def expected(models: tuple[str, str]) -> dict[str, tuple[int, ...]]:
    pair = build_pair(*models, Settings())
    plain = {"method": "autoregressive", "max_new_tokens": COUNT, "learn": False, "reuse": False}
    return {prompt: pair.generate(prompt, **plain).token_ids for prompt in PROMPTS}


@dataclass
class World:
    """A pair that learns from its traffic as the app's does, and what it answered so far."""

    pair: Pair
    lines: TrainerPool
    expected: dict[str, tuple[int, ...]]
    answers: list[Generation]

    def ask(self, number: int) -> None:
        """One answer: methods, draft policies, prompts and lines take turns; its ids are those of plain
        decoding."""
        (method, policy), prompt, domain = (
            WAYS[number % len(WAYS)],
            PROMPTS[number % len(PROMPTS)],
            DOMAINS[number // 2 % len(DOMAINS)],
        )
        options: dict[str, Any] = {
            "method": method,
            "draft_policy": policy,
            "longest_draft": 6,
            "domain": domain,
        }
        with self.lines.using(domain):
            made = self.pair.generate(prompt, max_new_tokens=COUNT, **options)
            self.lines.run_pending(domain)
        self.answers.append(made)
        time.sleep(0.01)
        assert made.token_ids == self.expected[prompt], (number, options, made.adapter_version)

    def everything(self, enough: Callable[[], bool] = lambda: True) -> None:
        """Every method with every policy twice, and on until something has happened often enough."""
        deadline, numbers = time.monotonic() + PATIENCE, itertools.count()
        for number in numbers:
            self.ask(number)
            if number + 1 >= 2 * len(WAYS):
                if enough():
                    return
                time.sleep(LEISURE)
            assert time.monotonic() < deadline, "it did not happen"

    def configure(self, **changes: Any) -> None:
        self.lines.configure(self.lines.settings.model_copy(update=changes))

    def judged_drafts(self) -> None:
        """The drafts mattered: some proposals were accepted and some were not."""
        assert self.mattered()

    def mattered(self) -> bool:
        rounds = [done for made in list(self.answers) for done in made.rounds]
        accepted, proposed = sum(done.accepted for done in rounds), sum(done.proposed for done in rounds)
        return accepted > 20 and proposed - accepted > 20

    def learnt(self) -> None:
        """Versions were swapped in, without trouble and with effect."""
        assert len({(made.domain, made.adapter_version) for made in self.answers}) > 5
        assert all(self.lines.status(domain).error is None for domain in DOMAINS)
        self.judged_drafts()

    def published(self) -> int:
        """The newest version of each line, added up."""
        return sum(self.lines.status(domain).version for domain in DOMAINS)


@contextmanager
def world(
    models: tuple[str, str], expected: dict[str, tuple[int, ...]], storage: Path, **options: Any
) -> Iterator[World]:
    values = {
        "update_interval": 2,
        "steps_per_update": 12,
        "batch_size": 4,
        "lora_rank": 16,
        "learning_rate": 2e-2,
        "patience": 0.05,
    }
    settings = Settings(storage=storage, **{**values, **options})  # type: ignore[arg-type]
    store = Store(f"sqlite:///{storage / 'omnidemo.db'}")
    pair = build_pair(*models, settings)
    lines = attach_storage(pair, settings, store)
    lines._worker.nice = 0  # these chats never pause, and a busy machine would let it starve
    try:
        yield World(pair, lines, expected, [])
    finally:
        lines.close()
        store.close()


@contextmanager
def beside(work: Callable[[random.Random], None], count: int = 1) -> Iterator[None]:
    """Run `work` again and again in other threads; what it raises is raised here."""
    ended, troubles = threading.Event(), list[BaseException]()

    def loop(seed: int) -> None:
        draw = random.Random(seed)
        try:
            while not ended.is_set():
                work(draw)
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=loop, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    if troubles:
        raise troubles[0]


def test_learning_off_or_paused(models: Any, expected: Any, tmp_path: Path) -> None:
    with world(models, expected, tmp_path, training="off") as off:
        off.everything()
        assert off.published() == 0
    with world(models, expected, tmp_path / "paused", training="inline") as paused:
        for domain in DOMAINS:
            paused.lines.pause(domain)
        paused.everything()
        assert paused.published() == 0 and all(
            paused.lines.status(domain).requests_seen for domain in DOMAINS
        )


def test_learning_after_each_answer(models: Any, expected: Any, tmp_path: Path) -> None:
    with world(
        models, expected, tmp_path, training="inline", head="interleaved", draft_policy="head"
    ) as learning:
        learning.everything(lambda: learning.published() >= 9)
        learning.learnt()


@pytest.mark.long
def test_learning_beside_the_answers_between_them_and_where_its_process_is_killed(
    models: Any, expected: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Beside the answers, then (`idle`) with a process that stands still for a while whenever one is written.
    Then the process is killed in the middle of updates and while it starts; afterwards the lines learn on.
    One after the other, for each start takes seconds."""
    with world(
        models, expected, tmp_path, training="concurrent", head="joint", draft_policy="head"
    ) as learning:
        learning.everything(lambda: learning.published() >= 5)
        learning.configure(training="idle")
        before = learning.published()
        learning.everything(lambda: learning.published() >= before + 4)
        learning.learnt()
        if hasattr(signal, "SIGKILL"):
            learning.configure(training="concurrent", steps_per_update=40)
            survive_kills(learning, caplog)


def survive_kills(crashing: World, caplog: pytest.LogCaptureFixture) -> None:
    killed: set[int] = set()

    def survived() -> bool:  # one killed between two requests of an update is replaced without a word
        return len(killed) >= 2 and "ended unexpectedly" in caplog.text

    def kill(draw: random.Random) -> None:
        pid = crashing.lines._worker.pid
        learning = any(crashing.lines.status(domain).state == "training" for domain in DOMAINS)
        if pid is not None and learning and crashing.published():
            time.sleep(draw.uniform(0, 0.3))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        time.sleep(0.02)

    with beside(kill):
        crashing.everything(survived)
    before = crashing.published()
    crashing.everything(lambda: crashing.published() >= before + 2)


def test_drafters_that_are_swapped_at_random(
    models: Any, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random weights and heads for random lines at random moments, lines that vanish, and learning on top;
    two more chats beside."""
    with world(models, expected, tmp_path, training="inline") as swapping:
        pair = swapping.pair
        base = {name: weight.clone() for name, weight in pair.drafter.runner.weights().items()}
        swaps, learnt, publish = itertools.count(), [base], pair.publish

        def noted(version: int, weights: Mapping[str, Tensor], made: Any, domain: str) -> None:
            learnt.append(dict(weights))
            publish(version, weights, made, domain)

        monkeypatch.setattr(pair, "publish", noted)

        def swap(draw: random.Random) -> None:
            generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
            chosen = draw.sample(sorted(base), draw.randint(0, len(base)))
            size = draw.choice([0.0, 0.1, 3.0])
            weights = {
                name: base[name] + size * torch.randn(base[name].shape, generator=generator)
                for name in chosen
            }
            weights = draw.choice([weights, draw.choice(learnt)])
            made = acceptance_head.fresh(32, draw.randrange(100))
            noisy = {
                name: tensor + torch.randn(tensor.shape, generator=generator) for name, tensor in made.items()
            }
            domain = draw.choice(DOMAINS)
            publish(1000 + next(swaps), weights, draw.choice([None, {}, made, noisy]), domain)
            if draw.random() < 0.1:
                pair.drop_domain(domain)
            time.sleep(draw.uniform(0, 0.01))

        def chat(draw: random.Random) -> None:
            swapping.ask(draw.randrange(1000))

        with beside(swap), beside(chat, 2):
            swapping.everything(
                lambda: (
                    len({made.adapter_version for made in swapping.answers}) > 20
                    and swapping.published() > 3
                    and swapping.mattered()
                )
            )
        assert {made.domain for made in swapping.answers} == set(DOMAINS) and swapping.published() > 3
        swapping.judged_drafts()
        assert len(swapping.answers) > 4 * len(WAYS) and pair.mismatches == 0
