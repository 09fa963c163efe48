"""An experiment from beginning to end: record, run the arms, report. Each stage goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transformers.utils import logging

from lab.experiments import experiment_report
from lab.experiments.arm import World
from lab.experiments.jobs import arms_left, recordings, rows_of, run_jobs
from lab.experiments.plans import EXPERIMENTS, Arm
from lab.races.machine import commit
from omnidemo.serving.measuring.report_tables import Stage

TOPICS = ("maths", "code", "howto")
# `drafter-3` is a target here for its vocabulary.
TARGETS = ("bundled/large", "bundled/drafter-3")


@dataclass(frozen=True, slots=True)
class ExperimentRequest:
    """What to run."""

    name: str
    targets: Sequence[str]
    sources: Sequence[str]
    requests: int
    seeds: Sequence[int]
    workers: int

    def arms(self) -> list[Arm]:
        """ValueError for an unknown experiment, or one that needs more targets or topics."""
        if self.name not in EXPERIMENTS:
            raise ValueError(f"there is no experiment {self.name}; choose one of {', '.join(EXPERIMENTS)}")
        experiment = EXPERIMENTS[self.name]
        return experiment.plan(self.targets, self.sources, max(1, round(experiment.share * self.requests)))


def run(world: World, order: ExperimentRequest) -> Iterator[Stage]:
    """Run what is missing and write the report anew: `NAME.csv`, `.json` and `.md` in the folder of the
    world.

    ValueError or ModelError, before anything runs, for what cannot be run. RuntimeError where an arm fails.
    """
    arms = order.arms()
    if empty := [name for name, prompts in world.traffic.items() if not prompts]:
        raise ValueError(
            f"{empty[0]} has no prompts left for the traffic; give more of them or a smaller --limit"
        )
    for target in {target for arm in arms for target in arm.targets}:
        world.recorded(target)
    logging.disable_progress_bar()  # of every drafter that learns, in the middle of the run's own
    for stage, jobs in (("recordings", recordings), ("arms", arms_left)):
        left = jobs(world, arms, order.seeds)
        yield Stage(stage, 0, len(left))
        told = 0
        for done, answers in run_jobs(left, order.workers):
            yield Stage(f"answers of the {stage}", answers, None)
            if done > told:
                yield Stage(stage, told := done, len(left))
    write(world, order, arms)


def write(world: World, order: ExperimentRequest, arms: Sequence[Arm]) -> None:
    """The report on what is there so far."""
    rows, path = rows_of(world, arms, order.seeds), world.out / order.name
    facts = f"{order.requests} requests, seeds {', '.join(map(str, order.seeds))}, commit {commit()}."
    experiment_report.write_facts(
        path.with_suffix(".json"), world, arms, seeds=list(order.seeds), requests=order.requests
    )
    experiment_report.write_rows(path.with_suffix(".csv"), order.name, rows)
    path.with_suffix(".md").write_text(
        experiment_report.markdown(
            order.name, EXPERIMENTS[order.name], experiment_report.framed(rows), facts
        ),
        encoding="utf-8",
    )
