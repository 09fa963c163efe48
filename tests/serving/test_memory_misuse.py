"""What memory must not do: propose a visitor another one's text, get lost on a full disk, or take in what was
not written for its models."""

from __future__ import annotations

import errno
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from omnidemo.core.config import Settings
from omnidemo.core.records import Generation, Round
from omnidemo.pair.pair import Pair
from omnidemo.serving.services import Services
from omnidemo.storage.visitors import OWN
from tests.serving.test_visitors import App, public_settings
from tests.support.chats import chat, ready
from tests.support.running_app import free_port, running
from tests.support.trained_pair import DRAFTER, TARGET

# By chances, which make no answer's drafts depend on the machine
CHANCE: dict[str, Any] = {"draft_policy": "chance", "max_new_tokens": 30}


def remembered(rounds: Sequence[Round]) -> int:
    """Tokens of some rounds that were proposed from earlier answers."""
    tokens = [token for done in rounds for token in (*done.tokens, *done.discarded)]
    return sum(token.match is not None and token.match.origin == "earlier" for token in tokens)


def ngrams_alone(pair: Pair, domain: str) -> None:
    """Leave what followed short contexts, and drop the answers themselves."""
    with pair._lock:
        text, known = pair.copies.of(domain), pair.copies.known(domain)
        assert text is not None and known is not None and known.contexts
        text.clear()


@pytest.mark.parametrize("alone", [False, True], ids=["all of memory", "n-grams alone"])
def test_a_visitor_drafts_nothing_from_anothers_text(
    alone: bool, models: tuple[str, str], tmp_path: Path, quick_loads: None
) -> None:
    """The second asks what the first was told: its memory would match from the first token on."""
    app = App(public_settings(models, tmp_path / "storage"))
    try:
        pair = app.services.pair(*app.pair)
        told = app.ask("a", **CHANCE)
        if alone:
            ngrams_alone(pair, OWN + "a")
        assert remembered(app.ask("a", **CHANCE).rounds) > 0, "whoever was told drafts from it"
        asked = app.ask("b", **CHANCE)
        assert asked.token_ids == told.token_ids and remembered(asked.rounds) == 0
        assert remembered(app.ask("b", **CHANCE).rounds) > 0, "from its own answer"
        app.front.forget("b")
        assert remembered(app.ask("b", **CHANCE).rounds) == 0, "what is forgotten proposes nothing"
        assert remembered(app.ask("a", **CHANCE).rounds) > 0
    finally:
        app.services.close()


@pytest.mark.parametrize("alone", [False, True], ids=["all of memory", "n-grams alone"])
def test_nor_does_a_key_of_the_endpoint(alone: bool, tmp_path: Path) -> None:
    openai = pytest.importorskip("openai", reason="asked by OpenAI's client; see requirements-dev.txt")
    settings = Settings(
        target=TARGET, drafter=DRAFTER, storage=tmp_path / "storage", port=free_port(), training="off",
        public="true", allowed_hosts="duck.example", api_keys="sesame, plum", draft_policy="chance",
    )  # fmt: skip
    services, rounds = Services(settings), list[Round]()

    def ask(key: str) -> tuple[str, int]:
        rounds.clear()
        client = openai.OpenAI(
            base_url=f"http://127.0.0.1:{settings.port}/v1", api_key=key, max_retries=0, timeout=120
        )
        made = client.chat.completions.create(
            model="omnidemo", messages=[{"role": "user", "content": "Tell me a story with a duck."}],
            temperature=0, max_tokens=30,
        )  # fmt: skip
        return made.choices[0].message.content, remembered(rounds)

    try:
        ready(services, (TARGET, DRAFTER))
        pair = services.pair(TARGET, DRAFTER)
        pair.round_listeners.append(rounds.append)
        with running(services):
            told, found = ask("sesame")
            assert not found
            (line,) = (domain for domain in pair.copies._known if pair.copies._known[domain].contexts)
            assert line.startswith(OWN)
            if alone:
                ngrams_alone(pair, line)
            assert ask("sesame")[1] > 0 and ask("plum") == (told, 0)
            assert ask("plum")[1] > 0
    finally:
        services.close()


@pytest.fixture
def services(tmp_path: Path, quick_loads: None) -> Iterator[Services]:
    made = Services(Settings(storage=tmp_path / "storage", training="off"))
    yield made
    made.close()


def again(services: Services, models: tuple[str, str], prompt: str) -> tuple[Generation, int]:
    """An answer, and how many tokens it proposed from earlier ones."""
    rounds, made = chat(services, models, prompt, **CHANCE)
    return made, remembered([one for one in rounds if isinstance(one, Round)])


def test_a_full_disk_takes_nothing_from_memory(services: Services, models: tuple[str, str]) -> None:
    """Answers go on and draft from those that cannot be written; these are there after a restart."""
    ready(services, models)
    again(services, models, "duck 0")
    services.store.flush()
    full = True

    def refuse(connection: Any) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")

    event.listen(services.store._engine, "begin", refuse)
    told, _ = again(services, models, "duck 1")
    asked, found = again(services, models, "duck 1")
    assert asked.token_ids == told.token_ids and found > 0
    status = services.store.status
    assert status.pending >= 2 and "No space left on device" in status.message
    assert status.message.endswith("Free some disk space.") and "\n" not in status.message
    full = False
    assert services.store.flush()
    prompts = [row["prompt"] for row in services.store.requests(limit=None)]
    assert sorted(prompts) == ["duck 0", "duck 1", "duck 1"]
    services.close()
    later = Services(services.settings)
    try:
        ready(later, models)
        made, found = again(later, models, "duck 1")
        assert made.token_ids == told.token_ids and found > 0
    finally:
        later.close()


def test_memory_is_made_of_the_answers_of_its_models_and_has_no_file(
    services: Services, models: tuple[str, str]
) -> None:
    """So there is no file of another model or of a newer release that it could take in; a newer release's
    database is refused as a whole, in `store/test_store.py`."""
    ready(services, models)
    before = {path.name for path in services.settings.storage.rglob("*")}
    again(services, models, "duck 1")
    services.store.flush()
    after = {path.name for path in services.settings.storage.rglob("*")}
    assert not {name for name in after - before if not name.startswith("omnidemo.db")}
    assert [*services.store.copied_from(*models, "default", 1000)]
    assert not [*services.store.copied_from("another target", models[1], "default", 1000)]
    assert not [*services.store.copied_from(*models, OWN + "somebody", 1000)]


def test_a_spoiled_answer_in_the_database_stops_nobody(
    services: Services, models: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    ready(services, models)
    told, _ = again(services, models, "duck 1")
    services.store.flush()
    services.close()
    with closing(sqlite3.connect(services.settings.storage / "omnidemo.db")) as database, database:
        database.execute("update requests set answer = cast(x'ff80fe' as text)")
    later = Services(services.settings)
    try:
        ready(later, models)
        made, found = again(later, models, "duck 1")
        assert made.token_ids == told.token_ids and found == 0
        assert "Could not decode" in caplog.text, "one line of the log says so"
        assert again(later, models, "duck 1")[1] > 0, "memory begins anew"
    finally:
        later.close()
        for _ in range(100):
            if not any(thread.name == "stored answers" for thread in threading.enumerate()):
                break
            time.sleep(0.02)
