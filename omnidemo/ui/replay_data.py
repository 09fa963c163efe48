"""The server's part of a replay: recorded rounds of the history, and measured repetitions of an answer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from omnidemo.core.config import SAMPLING, GenerationConfig
from omnidemo.core.records import Generation, Round
from omnidemo.decoding.methods import BASELINE
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.pair.in_turns import median_run
from omnidemo.pair.repeated_task import options_of
from omnidemo.serving.comparison import FRESH, TODAY
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.recorded_rounds import round_lines
from omnidemo.ui import answer_lines, downloads, task_rows
from omnidemo.ui.chat_request import conversation, read_seed
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import report
from omnidemo.ui.job import wire
from omnidemo.ui.shell import longest_answer, widget

PLAIN_SECONDS, RACE_SECONDS = 5.0, 20.0  # of one lane, and of two between which a small difference counts
PATIENCE = 60.0  # seconds in which the newest answer is measured that somebody wants to see


def _lane(rounds: Iterable[Round], version: int, **about: Any) -> dict[str, Any]:
    """One lane of the player."""
    return {
        "lines": "".join(line for done in rounds for line in round_lines(done)),
        "version": version,
        **about,
    }


def lane(runs: Sequence[Generation]) -> dict[str, Any]:
    """A lane of measured runs: the median one, and the seconds of each."""
    shown, seconds = median_run(runs, _seconds), [*map(_seconds, runs)]
    about = {"method": shown.method, "at": time.time(), "runs": len(runs), "seconds": seconds}
    return _lane(shown.rounds, shown.adapter_version, **about)


def _seconds(run: Generation) -> float:
    return sum(done.seconds["total"] for done in run.rounds)


def beside(services: PublicServices, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The lanes of a measurement beside an answer. `wanted` comes from the browser: target,
    drafter, message, history, system, tokens; the answer's key (where that answer was
    measured, both its lanes are known; `again` measures it anew), seed and what the text was drawn with
    (SAMPLING). RuntimeError or ValueError, one sentence, where there are none."""
    checked = GenerationConfig.of(
        max_new_tokens=wanted.get("tokens") or 1,
        **{name: wanted.get(name) for name in SAMPLING},
        seed=read_seed(wanted.get("seed")),
    )
    asked: dict[str, Any] = {name: str(wanted.get(name) or "") for name in ("target", "drafter")}
    asked["messages"] = conversation(
        wanted.get("history"), str(wanted.get("message") or ""), wanted.get("system")
    )
    asked["max_new_tokens"] = min(checked.max_new_tokens, longest_answer(services.settings))
    if (
        wanted.get("kind") == "plain"
        and (speed := services.speed_lanes(str(wanted.get("key") or ""), PATIENCE, bool(wanted.get("again"))))
        is not None
    ):
        both = ((speed.plain, BASELINE), (speed.guessed, str(wanted.get("method") or "")))
        return {
            "lanes": [_lane(rounds, 0, method=name, at=time.time(), runs=1) for rounds, name in both],
            "speed": answer_lines.speed(speed),
        }
    asked |= {name: getattr(checked, name) for name in SAMPLING} | {"seed": checked.seed}
    return {"lanes": [*map(lane, services.race(methods=[BASELINE], seconds=PLAIN_SECONDS, **asked))]}


def former(services: PublicServices, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The next input of a task, which is in no memory, by its line as it was before the first answer and by
    the line of now. `wanted`: target, drafter, and as `task` what the page asks of a task; where that has no
    further input, its last one. RuntimeError or ValueError, one sentence, where it cannot be made."""
    given = downloads.fields(wanted.get("task"), "task")
    task, first = task_rows.asked_task(given), task_rows.first_of(given)
    (text,) = task.inputs(1, first=first) or [task.written[-1]]
    made = services.race(
        target=str(wanted.get("target") or ""), drafter=str(wanted.get("drafter") or ""),
        messages=task.messages(text), methods=[FRESH, TODAY], seconds=RACE_SECONDS, recall=True,
        **options_of(task, {"domain": DEFAULT if services.own else task.name}),
    )  # fmt: skip
    return {"lanes": [*map(lane, made)], "input": text}


def recall(services: PublicServices, request: Any) -> dict[str, Any]:
    """A recorded answer of the caller's history, as the player reads it. ValueError, one sentence, where
    there is none."""
    recording = services.store.recording(request) if isinstance(request, int) else None
    if not recording:
        raise ValueError(
            "The rounds of this answer are not kept any more: only those of your newest answers are."
        )
    about = {
        name: recording[name]
        for name in ("prompt", "method", "target", "drafter", "kept", "rounds", "finish_reason", "lines")
    }
    return about | {"version": recording["adapter_version"]}


def build(services: PublicServices) -> None:
    """The events of the player; the page itself opens and draws it."""

    def recorded(request: Any) -> dict[str, Any]:
        try:
            return recall(services, request)
        except Exception as error:  # any error: it would reach the page as nothing
            return {"error": report(error, "a recording")}

    def measure(asked: Mapping[str, Any], cancel: Any) -> Iterator[str]:
        make = former if asked.get("kind") == "former" else beside
        yield for_browser({"k": "lanes", **make(services, asked)}) + "\n"

    page = widget("replay", events=("measure",), visible="hidden", server_functions=[recorded])
    wire(services, page, "measure", measure, [], "measure_beside", line=services.beside)
