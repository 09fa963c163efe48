"""A pair whose target is served at an address: the local target's ids over HTTP, and one sentence for what
goes wrong there."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnidemo.api import load_pair
from omnidemo.core.config import Settings
from omnidemo.models.load import ModelError
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote import linked_pair, target_link
from omnidemo.pair.remote.linked_pair import LinkedCache, LinkedPair
from omnidemo.pair.remote.target_link import LinkError, is_address
from omnidemo.serving.endpoint import api_routes
from omnidemo.serving.services import Services
from tests.support.cli import Cli
from tests.support.running_app import free_port, running
from tests.support.trained_pair import DRAFTER, TARGET

SUM, STORY = "What is 37 + 25?", "Tell me a story with a duck."
KEY = Settings(api_keys="sesame", training="off")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Services, str]]:
    folder = tmp_path_factory.mktemp("link") / "storage"
    settings = Settings(
        target=TARGET, drafter=DRAFTER, storage=folder, port=free_port(), training="off", api_keys="sesame"
    )
    services = Services(settings)
    try:
        with running(services) as url:
            yield services, url
    finally:
        services.close()


@pytest.fixture(scope="module")
def linked(app: tuple[Services, str]) -> Pair:
    return load_pair(app[1], DRAFTER, settings=KEY)


@pytest.fixture(scope="module")
def local() -> Pair:
    return load_pair(TARGET, DRAFTER, settings=KEY)


def cache_of(pair: Pair) -> LinkedCache:
    cache = pair._conversations._idle[-1].target.cache
    assert isinstance(cache, LinkedCache)
    return cache


@pytest.mark.parametrize(
    "method", ["auto", "token-intersection", "string-exact-match", "copy", "autoregressive"]
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 1.0, "seed": 3},
        {"temperature": 0.8, "seed": 4, "top_k": 20, "repetition_penalty": 1.2},
    ],
    ids=["greedy", "a seed", "filters and a penalty"],
)
def test_it_writes_the_local_targets_ids(
    linked: Pair, local: Pair, method: str, options: dict[str, Any]
) -> None:
    for prompt in (SUM, STORY):
        own = local.generate(prompt, method="autoregressive", max_new_tokens=40, **options)
        made = linked.generate(prompt, method=method, max_new_tokens=40, **options)
        assert made.token_ids == own.token_ids and made.text == own.text
        assert made.finish_reason == own.finish_reason and made.prompt_tokens == own.prompt_tokens
        probs = [[token.p for done in one.rounds for token in done.tokens] for one in (made, own)]
        assert probs[0] == pytest.approx(probs[1], abs=1e-4)
        assert not made.metrics["context_mismatch"]


def test_drafts_are_accepted_and_priced_with_the_delay(linked: Pair) -> None:
    made = linked.generate(STORY, max_new_tokens=60, temperature=0.0)
    assert made.metrics["block_efficiency"] > 1.5 and made.metrics["acceptance_rate"] > 0.2
    assert isinstance(linked, LinkedPair) and linked.conditions.startswith("torch.cpu.float32.")
    assert linked.prices.list.known


def test_what_it_says_of_itself_is_the_local_targets(linked: Pair, local: Pair) -> None:
    assert linked.target.vocabulary == local.target.vocabulary
    assert linked.target.context == local.target.context and linked.target.manner == local.target.manner
    chat = [
        {"role": "user", "content": STORY},
        {"role": "assistant", "content": "Once"},
        {"role": "user", "content": "é <|end|>"},
    ]
    assert linked.prompt_ids(chat) == local.prompt_ids(chat)


def test_a_server_that_restarted_gets_the_text_again(
    app: tuple[Services, str], linked: Pair, local: Pair
) -> None:
    services, _ = app
    pair, rounds = services.pair(TARGET, DRAFTER), linked.stream(STORY, max_new_tokens=40, temperature=0.0)
    ids = [token.id for token in next(rounds).tokens]
    pair._conversations._idle.clear()  # as where other chats need the memory
    ids += [token.id for token in next(rounds).tokens]
    services.drafts._checkers.clear()  # as after a restart
    ids += [token.id for done in rounds for token in done.tokens]
    own = local.generate(STORY, method="autoregressive", max_new_tokens=40, temperature=0.0)
    assert tuple(ids) == own.token_ids


def test_a_long_prompt_goes_in_pieces(linked: Pair, local: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_pair, "MOST_IDS", 7)
    prompt = f"{STORY} " * 4
    own = local.generate(prompt, method="autoregressive", max_new_tokens=12, temperature=0.0)
    assert linked.generate(prompt, max_new_tokens=12, temperature=0.0).token_ids == own.token_ids


def test_the_next_message_of_a_chat_sends_what_is_new(linked: Pair) -> None:
    chat: list[dict[str, str]] = [{"role": "user", "content": "What is 11 + 12? And what is a duck?"}]
    first = linked.generate(chat, max_new_tokens=30, temperature=0.0)
    session = cache_of(linked)._session
    chat += [{"role": "assistant", "content": first.text}, {"role": "user", "content": SUM}]
    linked.generate(chat, max_new_tokens=5, temperature=0.0)
    assert cache_of(linked)._session == session


def test_nothing_of_it_is_kept_or_counted_as_an_answer(app: tuple[Services, str], linked: Pair) -> None:
    services, _ = app
    linked.generate(SUM, max_new_tokens=5)
    assert not services.store.requests(limit=None)
    assert not services.pair(TARGET, DRAFTER).in_flight


def test_a_form_is_refused(linked: Pair) -> None:
    with pytest.raises(ValueError, match="judges without a form; load a target here"):
        linked.generate("Hello", choices=["a", "b"])


@pytest.mark.parametrize("method", ["block-verification", "typical-acceptance", "ngram-merge"])
def test_methods_that_need_distributions_are_refused(linked: Pair, method: str) -> None:
    with pytest.raises(ValueError, match=r"by distributions|cannot be used here"):
        linked.generate(SUM, method=method, max_new_tokens=3)


@pytest.mark.parametrize(
    "address", ["http://", "http://a b", "http://x:99999", "https://me:pw@host", "http://x/?a=1"]
)
def test_a_bad_address_is_one_sentence(address: str) -> None:
    assert is_address(address)
    with pytest.raises((ModelError, LinkError), match=r"is no address|cannot be reached"):
        load_pair(address, DRAFTER, settings=KEY)


def test_nobody_there() -> None:
    with pytest.raises(LinkError, match=r"cannot be reached \(Connection refused\); check the address"):
        load_pair(f"http://127.0.0.1:{free_port()}", DRAFTER, settings=KEY)


@pytest.mark.parametrize(("keys", "said"), [("", "asks for a key"), ("wrong", "refuses this key")])
def test_keys(app: tuple[Services, str], keys: str, said: str) -> None:
    with pytest.raises(LinkError, match=f"{said}; give one"):
        load_pair(app[1], DRAFTER, settings=Settings(api_keys=keys, training="off"))


def test_something_else_there() -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: Any) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(LinkError, match="has no target that checks drafts"):
            load_pair(f"http://127.0.0.1:{server.server_port}", DRAFTER, settings=KEY)
        server.shutdown()


def test_another_vocabulary(app: tuple[Services, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_pair, "digest_of", lambda vocabulary: "another")
    with pytest.raises(ModelError, match="another vocabulary"):
        load_pair(app[1], DRAFTER, settings=KEY)


def test_a_full_server_is_asked_again_and_then_said(
    app: tuple[Services, str], linked: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_link, "PATIENCE", 0.0)
    monkeypatch.setattr(api_routes.AnswerSlots, "take", _full)
    with pytest.raises(LinkError, match="says: 0 requests wait or run already"):
        linked.generate(SUM, max_new_tokens=3, reuse=False)


def _full(self: Any, caller: str) -> None:
    raise api_routes.ApiError(503, "0 requests wait or run already; ask again in a second.")


def test_a_server_that_says_nothing_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_link, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(LinkError, match="did not answer within"):
            load_pair(address, DRAFTER, settings=KEY)


def test_a_lost_link_ends_after_what_was_written(
    app: tuple[Services, str], linked: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, written = linked.stream(STORY, max_new_tokens=40, temperature=0.0, reuse=False), ""
    written += next(rounds).text
    monkeypatch.setattr(target_link, "PATIENCE", 0.0)
    monkeypatch.setattr(linked.target.runner.link._connection, "port", free_port())  # type: ignore[attr-defined]
    linked.target.runner.link._connection.close()  # type: ignore[attr-defined]
    with pytest.raises(LinkError, match="cannot be reached"):
        for done in rounds:
            written += done.text
    assert written and not linked.in_flight


@pytest.mark.parametrize("as_json", [True, False])
def test_generate_prints_what_was_written_before_the_link_was_lost(
    app: tuple[Services, str], local: Pair, cli: Cli, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, check = list[object](), target_link.Link.check

    def breaking(self: target_link.Link, order: Any) -> Any:
        asked.append(order)
        if len(asked) > 2:
            raise LinkError("http://there cannot be reached")
        return check(self, order)

    monkeypatch.setattr(target_link.Link, "check", breaking)
    ways = ["--json"] if as_json else []
    at = ["--target", app[1], "--api-key", "sesame", "--drafter", DRAFTER]
    made = cli("generate", STORY, *at, "--temperature", "0", *ways)
    assert made.code == 1 and made.err.endswith("Error: http://there cannot be reached\n")
    text = json.loads(made.out)["text"] if as_json else made.out.rstrip("\n")
    own = local.generate(STORY, temperature=0.0, max_new_tokens=40).text
    assert text and own.startswith(text)


def test_a_connection_that_broke_is_made_again(linked: Pair) -> None:
    rounds = linked.stream(STORY, max_new_tokens=20, temperature=0.0)
    first = next(rounds)
    linked.target.runner.link._connection.sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
    assert first.tokens and list(rounds)[-1].finish_reason


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ({"ids": []}, 400), ({"ids": [1], "draft": [-1]}, 400), ({"ids": [10**9]}, 400),
     ({"ids": [1], "session": "nobody's"}, 409), ({"ids": [1], "other": 1}, 400),
     ({"ids": [1], "model": "x"}, 404)],
)  # fmt: skip
def test_bad_requests_are_one_sentence(app: tuple[Services, str], body: dict[str, Any], status: int) -> None:
    made = httpx.post(f"{app[1]}/v1/drafts", json=body, headers={"X-API-Key": "sesame"})
    assert made.status_code == status and made.json()["error"]["message"].endswith(".")
    assert httpx.post(f"{app[1]}/v1/drafts", json=body).status_code == 401


def test_what_a_page_or_client_names_is_never_dialled(app: tuple[Services, str], tmp_path: Path) -> None:
    """An address is a target only where whoever runs the program names it."""
    body = {"model": f"{app[1]}@{DRAFTER}", "prompt": "a"}
    made = httpx.post(f"{app[1]}/v1/completions", json=body, headers={"X-API-Key": "sesame"})
    assert made.status_code == 404
    assert app[0].pool.load(app[1], DRAFTER).target == app[1]
    while (state := app[0].pool.state(app[1], DRAFTER)).stage not in ("failed", "ready"):
        pass
    assert state.stage == "failed"
