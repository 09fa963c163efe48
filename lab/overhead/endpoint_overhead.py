"""What the endpoint costs: the same answers by calls of the Python API and as streams from an app in another
process, in turns."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from lab.torture.server import served
from omnidemo.backends import compile_kernels
from omnidemo.core.config import GREEDY, Settings
from omnidemo.core.records import Generation
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import build_pair

WARM_UP = 3  # untimed answers of both
LONGEST_WAIT = 300.0


@dataclass(frozen=True, slots=True)
class Paired:
    """One prompt, answered both ways. Tokens per second: of the whole call, of the whole request as its
    client sees it, and by the server's engine. `events`: of the stream, one for each round."""

    prompt: str
    tokens: int
    events: int
    python: float
    endpoint: float
    engine: float | None
    same: bool  # whether both wrote the same text

    @property
    def ratio(self) -> float:
        return self.endpoint / self.python


def run(settings: Settings, prompts: Sequence[str], passes: int, tokens: int) -> Iterator[Paired]:
    """Start the app with a storage folder that is dropped at the end, and yield one `Paired` for each prompt
    of each pass, the order of the two alternating. Drafts have a fixed length, so that both make the same
    rounds, and nothing is learned. RuntimeError where the app does not answer."""
    settings = settings.model_copy(update={"training": "off", "draft_policy": "fixed"})
    if settings.backend != "reference":
        compile_kernels.wait()
    pair = build_pair(settings.target, settings.drafter, settings)
    names = ("target", "drafter", "backend", "device", "training", "draft_policy", "draft_length", "method")
    given = {name.upper(): str(getattr(settings, name)) for name in names}
    with (
        tempfile.TemporaryDirectory(prefix="omnidemo-") as folder,
        served(Path(folder), given) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=LONGEST_WAIT) as client,
    ):
        for prompt in prompts[:WARM_UP]:
            _python(pair, settings, prompt, tokens)
            _stream(client, settings, prompt, tokens)
        for turn, prompt in enumerate(list(prompts) * passes):
            own = _python(pair, settings, prompt, tokens) if turn % 2 else None
            text, written, events, engine, waited = _stream(client, settings, prompt, tokens)
            made, took = own or _python(pair, settings, prompt, tokens)
            speeds = len(made.token_ids) / took, written / waited, engine
            yield Paired(prompt, written, events, *speeds, text == made.text)


def summary(pairs: Sequence[Paired], tokens: int) -> tuple[int, float, tuple[float, float]]:
    """How many answers have so many tokens and the same text; median and quartiles of their ratios.
    ValueError for fewer than two."""
    ratios = [one.ratio for one in pairs if one.same and one.tokens == tokens]
    if len(ratios) < 2:
        raise ValueError(
            f"{len(ratios)} of {len(pairs)} answers were the same and had {tokens} tokens; take fewer tokens,"
            " or more prompts"
        )
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return len(ratios), middle, (low, high)


def _python(pair: Pair, settings: Settings, prompt: str, tokens: int) -> tuple[Generation, float]:
    began = time.perf_counter()
    made = pair.generate(
        [{"role": "user", "content": prompt}], method=settings.method, max_new_tokens=tokens,
        **GREEDY.options, seed=0, learn=False,
        draft_policy="fixed", draft_length=settings.draft_length,
    )  # fmt: skip
    return made, time.perf_counter() - began


def _stream(
    client: httpx.Client, settings: Settings, prompt: str, tokens: int
) -> tuple[str, int, int, float | None, float]:
    """Text, tokens, events, the engine's tokens per second, and seconds until the mark at the end."""
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "seed": 0,
        **GREEDY.options,
    }
    body |= {
        "stream": True,
        "stream_options": {"include_usage": True},
        "omnidemo": {"learn": False, "method": settings.method},
    }
    began = time.perf_counter()
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = [line for line in answer.iter_lines() if line]
    waited = time.perf_counter() - began
    if answer.status_code != 200 or lines[-1] != "data: [DONE]":
        raise RuntimeError(f"the app did not answer: {' '.join(lines)[:300]}")
    told = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]  # else a sign of life
    *rounds, last, usage = (json.loads(line) for line in told[:-1])
    text = "".join(one["choices"][0]["delta"].get("content", "") for one in [*rounds, last])
    pace = last["omnidemo"]["tokens_per_second"]
    return text, usage["usage"]["completion_tokens"], len(rounds), pace, waited
