"""Recordings and arms as jobs, in processes of one thread. A job is done when its file is there."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from lab.experiments import answer_counts
from lab.experiments.arm import World, run_arm
from lab.experiments.plans import Arm
from lab.experiments.replayed_target import RecordedAnswer, TargetRecords
from omnidemo.core.config import Settings
from omnidemo.core.processes import deaf_to_ctrl_c
from omnidemo.core.records import Trace
from omnidemo.learning.distill.process_worker import TRAINING_ENVIRONMENT
from omnidemo.serving.pair_loading import build_measured_pair

PROMPTS_PER_JOB = 100  # of a recording: a few seconds of loading, half a minute of work
LOOK_SECONDS = 1.0  # between two looks at what jobs in other processes have done

# its name, and a call that can be sent to another process and yields after each answer
Job = tuple[str, Callable[[], Iterator[None]]]


def result_path(world: World, arm: Arm, seed: int) -> Path:
    """Where an arm's result is kept: another one for any change of the plan, the settings, the models or the
    prompts."""
    models = [world.recorded(target).key for target in arm.targets]
    settings = world.settings.model_dump(
        mode="json", exclude={"storage", "database_url", "host", "port", "auth", "share"}
    )
    traffic = {name: list(texts) for name, texts in world.traffic.items()}
    known = arm, seed, models, settings, traffic, dict(world.held_out)
    key = hashlib.sha256(repr(known).encode()).hexdigest()[:12]
    readable = re.sub(r"[^a-zA-Z0-9]+", "-", arm.name).strip("-")
    return world.out / "arms" / f"{readable}-s{seed}-{key}.json"


def recordings(world: World, arms: Sequence[Arm], seeds: Sequence[int]) -> list[Job]:
    """The missing recordings, in jobs of about the same size."""
    needed: dict[str, list[str]] = {}
    for arm, seed in product(arms, seeds):
        for target, prompts in world.prompts(arm, seed).items():
            needed.setdefault(target, []).extend(prompts)
    jobs: list[Job] = []
    for target, prompts in needed.items():
        records = world.recorded(target)
        missing = records.missing(prompts)
        for start in range(0, len(missing), PROMPTS_PER_JOB):
            part = missing[start : start + PROMPTS_PER_JOB]
            jobs.append((f"recording of {target}", partial(record, records, part, world.settings)))
    return jobs


def record(records: TargetRecords, prompts: Sequence[str], settings: Settings) -> Iterator[None]:
    """Answer the prompts greedily without a draft, and keep each with its trace as soon as it is there; then
    yield.

    ValueError for a prompt that the target cannot read; ModelError as in `load_model`.
    """
    pair = build_measured_pair(records.target, records.drafter, settings)
    traces: list[Trace] = []
    pair.learners.append(traces.append)
    records.note(pair.target)
    for prompt in prompts:
        ids = pair.prompt_ids(prompt)
        traces.clear()
        made = pair.generate(
            ids, method="autoregressive", max_new_tokens=settings.max_new_tokens, reuse=False
        )
        if not traces:
            raise RuntimeError(
                f"the answer to {prompt[:40]!r}… left no trace to learn from; leave this prompt out"
            )
        records.save(prompt, RecordedAnswer(tuple(ids), made.token_ids, traces[0]))
        yield


def arms_left(world: World, arms: Sequence[Arm], seeds: Sequence[int]) -> list[Job]:
    """The arms without a result; those of one seed follow each other, so that whole comparisons come
    early."""
    places = [(arm, seed, result_path(world, arm, seed)) for seed in seeds for arm in arms]
    return [
        (f"{arm.name}, seed {seed}", partial(run_arm, world, arm, seed, path))
        for arm, seed, path in places
        if not path.exists()
    ]


def run_jobs(jobs: Sequence[Job], workers: int) -> Iterator[tuple[int, int]]:
    """Run the jobs, `workers` at a time (0: here, one after the other). Yields now and then (jobs done,
    answers made by all).

    RuntimeError, with the job's own message, where one fails; the others are then ended, as when the caller
    stops iterating.
    """
    if workers == 0 or not jobs:
        answers = 0
        for done, (_, call) in enumerate(jobs):
            for answers, _ in enumerate(call(), answers + 1):  # noqa: B020
                yield done, answers
            yield done + 1, answers
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    made = context.Value("q", 0)
    pool = ProcessPoolExecutor(min(workers, len(jobs)), context, _prepare_worker, (made,))
    try:
        with _environment(TRAINING_ENVIRONMENT), deaf_to_ctrl_c():  # has to stand before the workers start
            names = {pool.submit(answer_counts.run, call): name for name, call in jobs}
        left = set(names)
        while left:
            ended, left = wait(left, LOOK_SECONDS, FIRST_COMPLETED)
            for job in ended:
                if (error := job.exception()) is not None:
                    said = " ".join(str(error).split()) or type(error).__name__
                    raise RuntimeError(
                        f"{names[job]} failed: {said}; start the command again to go on from here"
                    ) from error
            yield len(names) - len(left), made.value
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        workers_left = set(multiprocessing.active_children()) - others
        for process in workers_left:
            process.terminate()
        for process in workers_left:
            process.join(5)


def _prepare_worker(made: Any) -> None:
    answer_counts.share(made)
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    warnings.simplefilter("ignore", FutureWarning)  # meant for the authors of libraries


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def rows_of(world: World, arms: Sequence[Arm], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """What was written of the arms that are done, seed by seed."""
    paths = [result_path(world, arm, seed) for seed in seeds for arm in arms]
    return [row for path in paths if path.exists() for row in json.loads(path.read_text(encoding="utf-8"))]
