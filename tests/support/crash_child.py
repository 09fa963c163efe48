"""The process that `test_crash.py` kills: it chats, learns and writes for ever. Started once, it forks itself
for every life."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from omnidemo import load_pair
from omnidemo.core.config import Settings
from omnidemo.learning.distill.distiller import Distiller
from omnidemo.learning.distill.learner import Learner, learner_for
from omnidemo.learning.distill.worker import plan_of
from omnidemo.pair.pair import Pair
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.store import Store
from tests.support.row_counts import row_counts

PROMPTS = ("the other ducks swim — naïve ✓", "the small duck", "def double(n):", "there is another theory")


def settings(storage: Path) -> Settings:
    values: dict[str, Any] = {
        "update_interval": 2,
        "steps_per_update": 2,
        "batch_size": 2,
        "lora_rank": 4,
        "adapters_kept": 4,
    }
    return Settings(training="inline", storage=storage, head="joint", draft_policy="head", **values)


def distil(pair: Pair, storage: Path, store: Store, publish: Any) -> Distiller:
    return Distiller(
        pair.drafter.folder, "drafter", "target", settings(storage), storage, publish=publish, store=store
    )


def live(pair: Pair, known: dict[tuple[str, int, int], Learner], storage: Path) -> None:
    """Answer, note and learn until it is killed. What is certain is written to a log, each in one write."""
    log = os.open(storage / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store = Store(f"sqlite:///{storage / 'omnidemo.db'}")
    pair.attach(store)

    def publish(version: int, weights: Any, head: Any) -> None:
        pair.publish(version, weights, head)
        os.write(log, f"version {version}\n".encode())

    distiller = distil(pair, storage, store, publish)
    distiller._inline_worker._learners = known
    distiller.restore()
    pair.learners.append(distiller.observe)
    number = 0
    while True:
        prompt = PROMPTS[number % len(PROMPTS)]
        number += 1
        done = pair.generate(prompt, max_new_tokens=10, temperature=1.0, reuse=False)
        now = datetime.now(UTC).isoformat()
        store.record_request(
            RequestRecord(
                "s", pair.target.name, pair.drafter.name, "default", done.method, prompt, done, {}, now
            )
        )
        distiller.run_pending()
        if number % 3 == 0 and store.flush(60):
            requests = row_counts(store)["requests"]
            os.write(log, f"requests {requests}\nngrams {len(pair.ngrams)}\n".encode())


def main(target: str, drafter: str, storage: Path) -> None:
    torch.set_num_threads(1)
    pair, known = load_pair(target, drafter), {}
    # its texts are written here, before the lives fork
    _ = learner_for(known, pair.drafter.folder, None, plan_of(settings(storage))).rehearsed
    for _ in sys.stdin:  # a line, a life
        pid = os.fork()
        if not pid:
            try:
                live(pair, known, storage)
            except BaseException as error:
                print(f"died by itself: {type(error).__name__}: {error}", flush=True)
            os._exit(1)
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
