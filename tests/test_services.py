"""The services over a pair of small models: loading, chats that are recorded and learned from, restarts, backups."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnidemo.config import Settings
from omnidemo.records import Generation, Round
from omnidemo.runtime.services import PairState, Services
from test_pair import save


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("models")
    return save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = Services(Settings(storage=tmp_path / "storage", training="inline", update_interval=2, steps_per_update=2, lora_rank=4))
    yield made
    made.close()


def ready(services: Services, models: tuple[str, str]) -> PairState:
    services.load(*models)
    for _ in range(600):
        state = services.state(*models)
        if state.stage in ("ready", "failed"):
            return state
        time.sleep(0.05)
    raise AssertionError("still loading")


def chat(services: Services, models: tuple[str, str], text: str = "the small duck", **options: object) -> tuple[list[Round], Generation]:
    defaults = {"session": "s", "method": "ngram-exact", "max_new_tokens": 30, "temperature": 0.0}
    messages = [{"role": "user", "content": text}]
    *rounds, last = services.chat(target=models[0], drafter=models[1], messages=messages, **{**defaults, **options})  # type: ignore[arg-type]
    assert isinstance(last, Generation)
    return rounds, last  # type: ignore[return-value]


def test_a_chat_is_recorded_learned_from_and_there_after_a_restart(services: Services, models: tuple[str, str]) -> None:
    assert ready(services, models).stage == "ready"
    for number in range(4):
        rounds, last = chat(services, models, f"duck number {number}")
        assert "".join(r.text for r in rounds) == last.text
    assert services.trainer(*models).version == 2
    pair = services.pair(*models)
    grams = sorted(entry.target_id for entry in pair.ngrams)
    services.close()
    again = Services(services.settings)
    try:
        ready(again, models)
        assert again.trainer(*models).version == 2
        assert sorted(entry.target_id for entry in again.pair(*models).ngrams) == grams and grams
        rows = again.store.requests(session="s")
        assert len(rows) == 4 and rows[0]["prompt"] == "duck number 3"
        assert [row["adapter_version"] for row in again.store.curve(*models)] == [0, 0, 1, 1]
        assert again.store.steps(*models)
        _, last = chat(again, models)
        assert last.adapter_version == 2
    finally:
        again.close()


def test_opting_out_leaves_nothing_behind(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    for _ in range(3):
        chat(services, models, "a secret", session="private", keep=False, learn=False)
    assert services.store.flush()
    assert services.store.requests() == [] and services.trainer(*models).requests_seen == 0 and not len(services.pair(*models).ngrams)


def test_a_broken_database_does_not_reach_the_chat(tmp_path: Path, models: tuple[str, str]) -> None:
    (tmp_path / "storage").write_text("a file where the folder should be")
    services = Services(Settings(storage=tmp_path / "storage", training="off"))
    try:
        assert ready(services, models).stage == "ready"
        _, last = chat(services, models)
        assert len(last.token_ids) == 30 and not services.store.status.ok and services.store.status.message
    finally:
        services.close()


def test_stopping_keeps_the_partial_answer_and_its_record(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    cancel = threading.Event()
    stream = services.chat(
        session="s", target=models[0], drafter=models[1], messages=[{"role": "user", "content": "duck"}], method="autoregressive",
        max_new_tokens=100, temperature=0.0, cancel=cancel,
    )  # fmt: skip
    next(stream)
    cancel.set()
    *_, last = stream
    assert isinstance(last, Generation) and last.finish_reason == "cancelled" and len(last.token_ids) < 100
    assert services.store.flush() and len(services.store.requests()) == 1


def test_a_closed_page_leaves_its_partial_answer_in_the_history(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    messages = [{"role": "user", "content": "duck"}]
    stream = services.chat(
        session="s", target=models[0], drafter=models[1], messages=messages, method="ngram-exact", max_new_tokens=100, temperature=0.0
    )
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert services.store.flush()
    (row,) = services.store.requests()
    assert row["finish_reason"] == "cancelled" and 0 < row["tokens"] < 100


def test_a_long_chat_forgets_its_oldest_turns_and_goes_on(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    messages = [{"role": role, "content": "the small duck swims in the pond " * 3} for _ in range(12) for role in ("user", "assistant")]
    messages.append({"role": "user", "content": "and now?"})
    *_, last = services.chat(
        session="s", target=models[0], drafter=models[1], messages=messages, method="ngram-exact", max_new_tokens=20, temperature=0.0
    )
    assert isinstance(last, Generation) and len(last.token_ids) == 20 and 20 < last.prompt_tokens < 240


def test_comparing_says_what_is_identical(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    names = ["autoregressive", "token-intersection", "ngram-merge", "ngram-exact"]
    prompts = ["a duck", "a pond"]
    done = services.compare(target=models[0], drafter=models[1], prompts=prompts, methods=names, max_new_tokens=20, temperature=0.0)
    rows = list(done)
    assert len(rows) == 8 and all(row.identical for row in rows) and all(row.speedup for row in rows)
    assert rows[0].method == rows[4].method == "autoregressive" and rows[0].speedup == 1.0


def test_a_model_that_is_not_there_says_so_and_can_be_tried_again(services: Services, tmp_path: Path) -> None:
    missing = (str(tmp_path / "nowhere"), "bundled/drafter")
    state = ready(services, missing)
    assert state.stage == "failed" and "nowhere" in (state.error or "")
    with pytest.raises(RuntimeError, match="nowhere"):
        services.pair(*missing)
    assert ready(services, missing).stage == "failed"  # it was tried again, and the app still runs


def test_reset_goes_back_to_the_base_drafter(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    for number in range(2):
        chat(services, models, f"duck {number}")
    assert services.trainer(*models).version == 1
    services.reset(*models)
    _, last = chat(services, models, learn=False)
    assert last.adapter_version == 0 and not len(services.pair(*models).ngrams) and services.store.requests()


def test_a_backup_brings_everything_back_on_an_empty_disk(tmp_path: Path, models: tuple[str, str]) -> None:
    options = {"training": "inline", "update_interval": 1, "steps_per_update": 1, "lora_rank": 4, "backup": str(tmp_path / "data")}
    first = Services(Settings(storage=tmp_path / "one", **options))  # type: ignore[arg-type]
    ready(first, models)
    chat(first, models)
    first.close()
    second = Services(Settings(storage=tmp_path / "two", **options))  # type: ignore[arg-type]
    try:
        ready(second, models)
        assert second.trainer(*models).version == 1 and len(second.store.requests()) == 1
    finally:
        second.close()
