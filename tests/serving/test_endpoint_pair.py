"""The endpoint over the trained pair, asked by OpenAI's own client: it learns, stops, repeats and gives its
slot back."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnidemo.backends import choice
from omnidemo.core.config import Settings
from omnidemo.models.catalogue import ReadingLimits
from omnidemo.serving import chat_service
from omnidemo.serving.services import Services
from omnidemo.storage.visitors import Visitors
from omnidemo.ui.chat_request import ChatRequest
from omnidemo.ui.tabs import chat_tab
from omnidemo.ui.tabs.visitor_panel import public_services
from tests.support.running_app import free_port, running
from tests.support.trained_pair import DRAFTER, TARGET

openai = pytest.importorskip(
    "openai", reason="the endpoint is tested with OpenAI's client; install it by requirements-dev.txt"
)

SUM = [{"role": "user", "content": "What is 37 + 25?"}]
STORY = [{"role": "user", "content": "Tell me a story with a duck."}]
PAIR = (TARGET, DRAFTER)
QUIET = {"omnidemo": {"learn": False}}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Services, Any]]:
    folder = tmp_path_factory.mktemp("endpoint") / "storage"
    settings = Settings(
        target=TARGET, drafter=DRAFTER, storage=folder, port=free_port(), training="off", api_keys="sesame"
    )
    services = Services(settings)
    try:
        with running(services) as url:
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="sesame", max_retries=0, timeout=120)
            client.chat.completions.create(
                model="omnidemo", messages=SUM, extra_body={"omnidemo": {"learn": False, "keep": False}}
            )  # loads
            yield services, client
    finally:
        services.close()


def text(pieces: Any) -> str:
    return "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)


def test_answers_are_the_pairs_own_and_recorded(app: tuple[Services, Any]) -> None:
    services, client = app
    made = client.chat.completions.create(model="omnidemo", messages=SUM, temperature=0)
    pair = services.pair(*PAIR)
    plain = pair.generate(
        SUM, method="autoregressive", max_new_tokens=services.settings.max_new_tokens, learn=False
    )
    assert made.choices[0].message.content == plain.text and made.choices[0].finish_reason == "stop"
    assert made.usage.prompt_tokens == plain.prompt_tokens and made.usage.completion_tokens == len(
        plain.token_ids
    )
    assert (
        text(client.chat.completions.create(model="omnidemo", messages=SUM, temperature=0, stream=True))
        == plain.text
    )
    least = client.chat.completions.create(model="omnidemo", messages=SUM, temperature=1e-8)
    assert least.choices[0].message.content == plain.text
    rows = services.store.requests(limit=None)
    assert [row["kind"] for row in rows] == ["api"] * 3 and rows[0]["prompt"] == SUM[0]["content"]
    assert {row["session"] for row in rows} == {Visitors(services.settings.storage).name_of_key("sesame")}


def test_it_learns_n_grams_unless_it_must_not(app: tuple[Services, Any]) -> None:
    services, client = app
    code = [{"role": "user", "content": "Write a Python function that doubles a number."}]
    grams, rows = len(services.pair(*PAIR).ngrams), len(services.store.requests(limit=None))
    own = {"omnidemo": {"learn": False, "keep": False, "method": "ngram-exact"}}
    client.chat.completions.create(model="omnidemo", messages=code, temperature=0, seed=0, extra_body=own)
    assert len(services.pair(*PAIR).ngrams) == grams and len(services.store.requests(limit=None)) == rows
    client.chat.completions.create(model="omnidemo", messages=code, temperature=0, seed=0)
    assert len(services.pair(*PAIR).ngrams) > grams and len(services.store.requests(limit=None)) == rows + 1


def test_a_seed_repeats_under_the_same_fingerprint(app: tuple[Services, Any]) -> None:
    _, client = app

    def ask(seed: int | None, method: str = "auto", **own: Any) -> tuple[str, str]:
        body = {"omnidemo": {"method": method, **own}}
        made = client.chat.completions.create(
            model="omnidemo", messages=STORY, temperature=1, max_tokens=60, seed=seed, extra_body=body
        )
        return made.choices[0].message.content, made.system_fingerprint

    first, learned, other = ask(1), ask(1), ask(2, learn=False)
    assert first[0] == learned[0] == ask(1, "autoregressive")[0] and first[0] != other[0]
    assert re.fullmatch(r"torch\.cpu\.float32\.[0-9a-f]{12}", first[1])
    assert "ngrams-" in ask(1, "ngram-merge")[1]


@pytest.mark.parametrize("method", ["block-verification", "ngram-merge", "typical-acceptance"])
def test_where_guesses_show_in_the_text_the_fingerprint_names_what_they_came_from(
    app: tuple[Services, Any], method: str
) -> None:
    """The same version number after a reset, and as many n-grams as before, are other ones."""
    services, client = app
    pair = services.pair(*PAIR)

    def ask(**own: Any) -> str:
        body = {"omnidemo": {"method": method, "learn": False, **own}}
        made = client.chat.completions.create(
            model="omnidemo", messages=STORY, temperature=1, max_tokens=6, seed=1, extra_body=body
        )
        found: str = made.system_fingerprint
        return found

    pair.fill_cache()
    seen = [ask()]
    named = r"drafter-[0-9a-f]{8}\.adapter-0\.ngrams-\d+-[0-9a-f]{8}\.\w+"
    assert re.search(rf"\.{method}\.default\.{named}", seen[0])
    assert ask() == seen[0]
    weights = {name: weight.clone() for name, weight in pair.drafter.runner.weights().items()}
    first = next(name for name, weight in weights.items() if weight.dim() == 2)
    for _ in range(2):
        weights[first] = weights[first] + 0.01
        pair.publish(1, weights)
        seen.append(ask())
    pair.publish(0, {})
    assert ask() == seen[0]
    grams = [(gram.target_id, gram.drafter_ids) for gram in pair.ngrams]
    for left_out in (0, 1):
        pair.clear_cache()
        for target_id, drafter_ids in grams[left_out : left_out + len(grams) - 1]:
            pair.ngrams.insert(target_id, drafter_ids)
        seen.append(ask())
    assert len({one.rpartition(".ngrams-")[2].partition("-")[0] for one in seen[-2:]}) == 1, "as many"
    pair.fill_cache()
    seen += [ask(learn=True), ask(learn=True)]  # the second may copy from the first
    assert len(set(seen)) == len(seen)


def test_the_fingerprint_tells_rounded_weights_and_passes_compiled_meanwhile_apart(
    app: tuple[Services, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, client = app
    usual = services.pool.conditions(*PAIR)
    with monkeypatch.context() as patched:
        patched.setattr(services.pool, "settings", services.settings.model_copy(update={"dtype": "bfloat16"}))
        assert services.pool.conditions(*PAIR) == usual.replace("float32", "bfloat16-in-float32")
    with monkeypatch.context() as patched:
        patched.setattr(choice, "arithmetic_of", lambda runner: "int8")
        assert services.pool.conditions(*PAIR) == usual.replace("float32", "int8-in-float32")
    kinds = iter(["torch", "compiled"])
    monkeypatch.setattr(choice, "kind_of", lambda runner: next(kinds))
    made = client.chat.completions.create(
        model="omnidemo", messages=SUM, temperature=0, max_tokens=4, extra_body=QUIET
    )
    assert made.system_fingerprint == f"{usual}-then-{usual.replace('torch', 'compiled')}"


def test_a_text_is_continued_without_a_chat_template(app: tuple[Services, Any]) -> None:
    services, client = app
    pair = services.pair(*PAIR)
    begun = "Once upon a time"
    made = client.completions.create(
        model="omnidemo", prompt=begun, temperature=0, max_tokens=12, extra_body=QUIET
    )
    ids = pair.prompt_ids(begun, raw=True)
    plain = pair.generate(ids, method="autoregressive", max_new_tokens=12, learn=False)
    assert made.choices[0].text == plain.text and made.usage.prompt_tokens == len(ids) < len(
        pair.prompt_ids(begun)
    )


def test_what_does_not_fit_the_window_is_a_wrong_request(app: tuple[Services, Any]) -> None:
    _, client = app
    for ask in (
        lambda: client.chat.completions.create(
            model="omnidemo", messages=[{"role": "user", "content": "duck " * 4000}]
        ),
        lambda: client.completions.create(model="omnidemo", prompt="duck " * 4000),
        lambda: client.chat.completions.create(model="omnidemo", messages=SUM, temperature=-1e-6),
        lambda: client.chat.completions.create(
            model="omnidemo", messages=SUM, extra_body={"omnidemo": {"method": "magic"}}
        ),
        lambda: client.chat.completions.create(model=f"{TARGET}@{DRAFTER}:nowhere", messages=SUM),
    ):
        with pytest.raises((openai.BadRequestError, openai.NotFoundError)) as refused:
            ask()
        assert refused.value.body["message"].endswith(".")  # type: ignore[index]


def test_an_answer_says_what_was_read_of_the_chat(
    app: tuple[Services, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, client = app
    monkeypatch.setattr(chat_service, "reading", lambda name: ReadingLimits(turns=1))
    window = services.pair(*PAIR).target.context
    for chat, dropped in ((SUM, 0), ([*STORY, {"role": "assistant", "content": "Once."}, *SUM], 2)):
        made = client.chat.completions.create(model="omnidemo", messages=chat, extra_body=QUIET)
        own, used = made.model_extra["omnidemo"], made.usage.total_tokens
        assert (own["context_tokens"], own["context_limit"], own["dropped_messages"]) == (
            used,
            window,
            dropped,
        )


def test_page_and_endpoint_write_the_same_text_for_the_same_chat(
    app: tuple[Services, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, client = app
    tokenizer, own = services.pair(*PAIR).target.tokenizer, "Write about a duck."
    monkeypatch.setattr(  # Qwen's, in short: words of its own where nobody writes any
        tokenizer,
        "chat_template",
        "{{ messages[0].content if messages[0].role == 'system' else 'Be short.' }}"
        "{% for one in messages if one.role != 'system' %} {{ one.content }} {% endfor %}",
    )
    monkeypatch.setattr(chat_service, "reading", lambda name: ReadingLimits(system=own))
    front, read = (
        public_services(services),
        {"none": own, "their own": "Rhyme, rhyme, rhyme, rhyme.", "an empty one": "Be short."},
    )
    for way, system in (("none", None), ("their own", "Rhyme, rhyme, rhyme, rhyme."), ("an empty one", "")):
        said = [] if system is None else [{"role": "system", "content": system}]
        made = client.chat.completions.create(
            model="omnidemo", messages=[*said, *STORY], seed=7, temperature=1, max_tokens=24, extra_body=QUIET
        )
        question = ChatRequest.of(
            {
                "message": STORY[0]["content"], "system": system, "learn": False, "keep": False,
                "options": {"seed": "7", "temperature": 1, "max_new_tokens": 24},
            }
        )  # fmt: skip
        *_, last = chat_tab.answer(front, question, threading.Event())
        end = json.loads(last.splitlines()[-1])
        expected = f"{read[way]} {STORY[0]['content']} "
        assert made.usage.prompt_tokens == len(tokenizer(expected, add_special_tokens=False)["input_ids"]), (
            way
        )
        assert end["k"] == "end" and end["text"] == made.choices[0].message.content, way


@pytest.mark.parametrize(
    ("condition", "before"),
    [
        ("messages[0].role == 'system'", {"role": "system", "content": "be short"}),
        (
            "messages|length > 1 and messages[0].role == messages[1].role",
            {"role": "user", "content": "the duck"},
        ),
    ],
    ids=["system", "two users in a row"],
)
def test_what_a_template_refuses_is_a_wrong_request_with_its_reason(
    app: tuple[Services, Any], monkeypatch: pytest.MonkeyPatch, condition: str, before: dict[str, str]
) -> None:
    services, client = app
    tokenizer = services.pair(*PAIR).target.tokenizer
    strict = f"{{% if {condition} %}}{{{{ raise_exception('not in this order') }}}}{{% endif %}}"
    monkeypatch.setattr(tokenizer, "chat_template", strict + tokenizer.chat_template)
    with pytest.raises(openai.BadRequestError, match="refuses these messages: not in this order"):
        client.chat.completions.create(model="omnidemo", messages=[before, *SUM], extra_body=QUIET)


def test_half_a_character_is_a_wrong_request(app: tuple[Services, Any]) -> None:
    _, client = app
    headers = {"Content-Type": "application/json", "X-API-Key": "sesame"}
    for path, body in (
        ("chat/completions", b'{"messages": [{"role": "user", "content": "\\ud800"}]}'),
        ("completions", b'{"prompt": "\\ud800"}'),
    ):
        answer = httpx.post(f"{client.base_url}{path}", content=body, headers=headers, timeout=60)
        assert answer.status_code == 400 and "half a character" in answer.json()["error"]["message"]
    ignored = httpx.post(
        f"{client.base_url}completions",
        content=b'{"prompt": "duck", "\\ud800x": 1}',
        headers=headers,
        timeout=60,
    )
    assert ignored.status_code == 200 and ignored.headers["X-OmniDemo-Ignored"] == "%3Fx"


def test_who_asks_while_the_app_stops_is_told_so(tmp_path: Path) -> None:
    settings = Settings(
        target=TARGET, drafter=DRAFTER, storage=tmp_path / "storage", port=free_port(), training="off"
    )
    services = Services(settings)
    try:
        with running(services) as url:
            asked = {"model": "omnidemo", "messages": SUM, "max_tokens": 4}
            address = f"{url}/v1/chat/completions"
            assert httpx.post(address, json=asked, timeout=120).status_code == 200
            services.end_answers(1.0)
            for body in (asked, {**asked, "stream": True}, {**asked, "model": "bundled/large"}):
                refused = httpx.post(address, json=body, timeout=60)
                assert refused.status_code == 503 and refused.headers["x-should-retry"] == "false"
                assert "The app is being stopped; ask again" in refused.json()["error"]["message"]
            assert services.pool.load("bundled/large", DRAFTER).stage == "failed"
            assert services.pool.load(TARGET, DRAFTER).stage == "ready"
    finally:
        services.close()
