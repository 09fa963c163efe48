"""Drafting here for a target at an address, by the delay of the link, beside the server that writes alone and
streams: the same greedy answers, in turns, over a proxy that holds bytes back."""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from lab.overhead.endpoint_overhead import _stream
from lab.torture.server import served
from omnidemo.api import load_pair
from omnidemo.backends import compile_kernels
from omnidemo.core.config import GREEDY, Settings
from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.price_list import PriceList, Timed
from omnidemo.models.names import known_settings
from omnidemo.pair.conversation_pool import DOMAIN
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import build_measured_pair

HEADINGS = (
    "delay, ms", "answers", "same text", "here, tokens/s", "alone, tokens/s", "ratio", "tokens a round",
)  # fmt: skip
RESENT_SECONDS = 0.2  # how much later a lost packet comes: TCP's shortest wait before it sends again
CHUNK = 65536
# Seconds of SmolLM2's passes of so many rows, of a drafter's step and of a draft besides, on two quiet cores
# (notebook/price-list.md)
PASSES = {1: 0.0046, 2: 0.0049, 4: 0.0065, 6: 0.0087, 8: 0.011, 12: 0.0167}
STEP, DRAFT = 0.00035, 0.0003


@dataclass(frozen=True, slots=True)
class Delayed:
    """Answers over a link that takes `delay` seconds both ways together; medians over prompts."""

    delay: float
    answers: int
    same: int
    here: float
    alone: float
    ratio: float
    per_round: float

    def cells(self) -> tuple[str, ...]:
        return (
            f"{1000 * self.delay:.0f}", str(self.answers), str(self.same), f"{self.here:.1f}",
            f"{self.alone:.1f}", f"{self.ratio:.2f}", f"{self.per_round:.2f}",
        )  # fmt: skip


@contextmanager
def delaying(port: int, delay: float, loss: float, seed: int = 0) -> Iterator[int]:
    """The port of a proxy before another one of this machine. Bytes come `delay` / 2 seconds later in each
    direction, in order; a share `loss` of the chunks RESENT_SECONDS later still."""
    loop, chance = asyncio.new_event_loop(), random.Random(seed)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        due, waiting = 0.0, asyncio.Queue[tuple[float, bytes]]()

        async def deliver() -> None:
            while True:
                when, data = await waiting.get()
                await asyncio.sleep(max(0.0, when - loop.time()))
                writer.write(data)
                if not data:
                    writer.close()
                    return

        task = loop.create_task(deliver())
        while data := await reader.read(CHUNK):
            late = RESENT_SECONDS if chance.random() < loss else 0.0
            due = max(due, loop.time() + delay / 2 + late)
            waiting.put_nowait((due, data))
        waiting.put_nowait((due, b""))
        await task

    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(pump(reader, back), pump(there, writer))

    async def end() -> None:
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    server = loop.run_until_complete(asyncio.start_server(joined, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)


def run(
    settings: Settings, prompts: Sequence[str], delays: Sequence[float], loss: float, tokens: int
) -> Iterator[Delayed]:
    """Start an app with the target and yield one `Delayed` for each delay in seconds. Drafts go by the policy
    `cost`, whose prices have the delay; the server writes by plain decoding. RuntimeError where the app does
    not answer."""
    settings = known_settings(settings)
    plain = settings.model_copy(update={"training": "off", "method": "autoregressive"})
    if settings.backend != "reference":
        compile_kernels.wait()
    given = {name.upper(): str(getattr(plain, name)) for name in ("target", "drafter", "backend", "training")}
    with tempfile.TemporaryDirectory(prefix="omnidemo-") as folder, served(Path(folder), given) as server:
        for delay in delays:
            with delaying(server.port, delay, loss) as port:
                address = f"http://127.0.0.1:{port}"
                pair = load_pair(address, settings.drafter, settings=settings)
                with closing(httpx.Client(base_url=address, timeout=300.0)) as client:
                    yield _measured(pair, client, plain, prompts, tokens, delay)
                pair.target.runner.link.close()  # type: ignore[attr-defined]


class Charged(PriceList):
    """A list that no round corrects."""

    def note(self, round: Timed, at: float | None = None) -> None: ...


def charged(
    settings: Settings, prompts: Sequence[str], delays: Sequence[float], tokens: int
) -> Iterator[Delayed]:
    """As `run`, without a server and without a clock: a local pair whose list has the delay in every pass,
    and each round is charged by that list. So a busy machine changes nothing."""
    settings = known_settings(settings)
    pair = build_measured_pair(settings.target, settings.drafter, settings)
    made = {"max_new_tokens": tokens, **GREEDY.options, "learn": False, "reuse": False}
    plain = [pair.generate(prompt, method="autoregressive", **made) for prompt in prompts]
    alone_price = PASSES[1]
    for delay in delays:
        passes = {rows: delay + seconds for rows, seconds in PASSES.items()}
        listed = Charged(passes, STEP, 0.0, DRAFT, 0.05, "measured", 0.0)
        pair.prices.list = listed
        pair._line(DOMAIN).cost_model = CostModel(listed)
        found = []
        for prompt, own in zip(prompts, plain, strict=True):
            answer = pair.generate(
                prompt, draft_policy="cost", longest_draft=settings.longest_draft, copying=True, **made
            )
            took = sum(listed.price(one.proposed + 1, 0, one.drafted) for one in answer.rounds)
            count = len(answer.token_ids)
            alone = count / (delay + count * alone_price)
            found.append((count / took, alone, answer.token_ids == own.token_ids, count / len(answer.rounds)))
        yield _middle(delay, found)


def _measured(
    pair: Pair, client: httpx.Client, plain: Settings, prompts: Sequence[str], tokens: int, delay: float
) -> Delayed:
    found = []
    for prompt in [prompts[0], *prompts]:  # the first is not timed: chances and pages are cold
        began = time.perf_counter()
        made = pair.generate(
            [{"role": "user", "content": prompt}], max_new_tokens=tokens, **GREEDY.options, seed=0,
            draft_policy="cost", longest_draft=plain.longest_draft,
        )  # fmt: skip
        took = time.perf_counter() - began
        text, written, _, _, waited = _stream(client, plain, prompt, tokens)
        here = len(made.token_ids) / took
        found.append((here, written / waited, text == made.text, len(made.token_ids) / len(made.rounds)))
    return _middle(delay, found[1:])


def _middle(delay: float, found: Sequence[tuple[float, float, bool, float]]) -> Delayed:
    speeds, alone, same, per_round = zip(*found, strict=True)
    ratio = statistics.median(one / other for one, other in zip(speeds, alone, strict=True))
    middle = statistics.median
    return Delayed(delay, len(same), sum(same), middle(speeds), middle(alone), ratio, middle(per_round))
