"""The lines the browser reads: joined they are the text, whatever is in it, and the counts are the
legend's."""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidemo.core.config import SAMPLING, Manner, option_named
from omnidemo.core.metrics import measure
from omnidemo.core.private_folders import without_folders
from omnidemo.core.records import (
    LONG_READING,
    PROPOSED,
    Generation,
    Match,
    Part,
    Reading,
    Round,
    Source,
    Token,
)
from omnidemo.serving.endpoint.api_errors import as_api_error
from omnidemo.serving.quotas import Refused
from omnidemo.storage.recorded_rounds import round_lines
from omnidemo.ui import answer_lines, errors, text
from omnidemo.ui.chat_request import ChatRequest
from omnidemo.ui.code_colours import coloured
from omnidemo.ui.job import MOST_STOPPED, Running
from omnidemo.ui.markdown_tree import tree
from omnidemo.ui.tabs import chat_tab
from tests.support.fakes import HOSTILE, FakeServices, generation, script
from tests.support.jobs import streaming

SAMPLED = (0.7, 0.9, None, None, 1.15)
SOURCES = get_args(Source)


def parse(value: str) -> list[dict[str, Any]]:
    assert value.endswith("\n")
    return [json.loads(raw) for raw in value.splitlines()]


def joined(lines: list[dict[str, Any]]) -> str:
    return "".join(line["t"] for line in lines if line["k"] == "t")


def one(source: str, word: str, **more: Any) -> Token:
    return Token(5, word, source, 0.5, **more)  # type: ignore[arg-type]


def round_of(emitted: list[Token], discarded: list[Token] = [], accepted: int = 0, judged: int = 0) -> Round:  # noqa: B006
    return Round(
        3,
        tuple(emitted),
        tuple(discarded),
        4,
        4,
        accepted + len(discarded),
        accepted,
        judged,
        0,
        {"draft": 0.1, "verify": 0.2, "total": 0.3},
    )


def test_a_small_probability_keeps_its_digits() -> None:
    token = Token(5, "duck", "direct", 0.000031415926, q=1.0, accept=math.nan)
    assert [parse("".join(round_lines(round_of([token]))))[0][key] for key in "pqa"] == [3.142e-05, 1.0, None]


@given(st.lists(st.tuples(st.sampled_from(SOURCES), st.text(st.characters(exclude_categories=())))))
def test_any_text_survives_the_lines(words: list[tuple[str, str]]) -> None:
    value = "".join(round_lines(round_of([one(source, word) for source, word in words])))
    assert value.isascii() and "<" not in value, "lone surrogates, U+2028 and tags travel as escapes"
    assert value.count("\n") == len(words) + 1, "one line per token, whatever it holds, and one for the round"
    assert joined(parse(value)) == "".join(word for _, word in words)


def test_discarded_drafts_stand_before_what_the_target_wrote_instead() -> None:
    accepted, wrong, later, corrected = (
        one("direct", "a", q=0.4, accept=1.0),
        one("direct", "x", q=0.9, accept=0.1),
        one("ngram", "y", q=0.3),
        one("corrected", "b"),
    )
    lines = parse("".join(round_lines(round_of([accepted, corrected], [wrong, later], accepted=1, judged=2))))
    assert lines.pop() == {"k": "r", "r": 3, "d": 4, "s": [100_000, 200_000, 0, 0]}
    assert [(line["k"], line["t"]) for line in lines] == [("t", "a"), ("x", "x"), ("x", "y"), ("t", "b")]
    assert [line.get("j") for line in lines] == [None, True, False, None], "only the first one was judged"
    assert [line["n"] for line in lines] == [0, 1, 2, 1] and {line["r"] for line in lines} == {3}


def test_a_token_carries_its_probabilities_and_pieces_and_nothing_json_cannot_hold() -> None:
    merged = one("ngram", "Therefore", q=math.nan, accept=1.0, pieces=(7, 9), piece_texts=("There", "fore"))
    line, _ = parse("".join(round_lines(round_of([merged], accepted=1, judged=1))))
    assert line == {
        "k": "t",
        "i": 5,
        "t": "Therefore",
        "s": "ngram",
        "r": 3,
        "n": 0,
        "p": 0.5,
        "q": None,
        "a": 1.0,
        "gi": [7, 9],
        "g": ["There", "fore"],
    }


def test_a_copied_token_carries_its_match_in_the_place_of_a_probability_of_the_drafter() -> None:
    match = Match(7, "earlier")
    kept, lost = (one("copied", word, q=1.0, accept=0.5, match=match) for word in (" fox", " ran"))
    first, second, third, _ = parse(
        "".join(round_lines(round_of([kept, one("corrected", " sat")], [lost], accepted=1, judged=2)))
    )
    assert first == {
        "k": "t",
        "i": 5,
        "t": " fox",
        "s": "copied",
        "r": 3,
        "n": 0,
        "p": 0.5,
        "m": [7, "earlier"],
        "a": 0.5,
    }
    assert (second["k"], second["s"], second["m"], second["j"]) == ("x", "copied", [7, "earlier"], True)
    assert third["t"] == " sat", "what the target wrote instead stands behind the discarded copy"


def test_figures_of_the_drafter_leave_out_what_was_copied() -> None:
    match = Match(3, "prompt")
    copied, guessed, fixed = one("copied", "a", match=match), one("direct", "b"), one("corrected", "c")
    mixed = round_of(
        [copied, copied, guessed, fixed], [one("direct", "x"), one("direct", "y")], accepted=3, judged=4
    )
    lost = round_of([copied, fixed], [copied, copied], accepted=1, judged=2)
    figures = measure([mixed, lost], None)
    assert mixed.copies == (2, 2, 2) and lost.copies == (3, 1, 2), "proposed, accepted and judged"
    assert figures["guesses_right"] == figures["acceptance_rate"] == pytest.approx(1 / 3) and figures[
        "alpha"
    ] == pytest.approx(1 / 2)
    assert (figures["copied"], figures["copies_proposed"], figures["copies_right"]) == (
        3,
        5,
        pytest.approx(3 / 5),
    )
    assert figures["copied_share"] == pytest.approx(3 / 6) and (figures["proposed"], figures["accepted"]) == (
        8,
        4,
    )
    alone = measure([lost], None)
    assert alone["guesses_right"] is alone["acceptance_rate"] is alone["alpha"] is None, (
        "nobody asked the drafter"
    )


def test_counts_and_live_figures_follow_the_definitions() -> None:
    first = round_of(
        [one("direct", "a"), one("ngram", "b"), one("corrected", "c")],
        [one("direct", "x")],
        accepted=2,
        judged=3,
    )
    (line,) = parse(answer_lines.figures_line([first, round_of([one("bonus", "d")])], 0.25))
    assert line["c"] == {
        "direct": 1,
        "ngram": 1,
        "copied": 0,
        "forced": 0,
        "corrected": 1,
        "bonus": 1,
        "plain": 0,
        "discarded": 1,
    }
    assert set(line["c"]) == set(text.CLASSES), "every class of the legend is counted"
    figures = line["f"]
    assert sum(line["c"].values()) - line["c"]["discarded"] == figures["tokens"], "no token is counted twice"
    assert figures["guesses_right"] == pytest.approx(figures["accepted"] / figures["proposed"], abs=1e-4)
    assert (
        figures["tokens"] == 4 and figures["block_efficiency"] == 2 and figures["time_to_first_token"] == 0.25
    )
    assert figures["acceptance_rate"] == pytest.approx(2 / 3, abs=1e-4) and figures[
        "tokens_per_second"
    ] == pytest.approx(4 / 0.6, abs=1e-3)


def test_the_last_line_holds_the_engines_figures() -> None:
    done = generation(script("a b c", seed=1), 2.0, "ngram-exact", "cancelled", version=7)
    (line,) = parse(answer_lines.end_line(done))
    assert (line["finish"], line["version"], line["text"], line["guessing"]) == (
        "cancelled",
        7,
        "a b c",
        "on",
    )
    assert (line["context_tokens"], line["context_limit"], line["dropped_messages"]) == (
        12 + len(done.token_ids),
        0,
        0,
    )
    (line,) = parse(answer_lines.end_line(replace(done, context_limit=8192, dropped_messages=6)))
    assert (line["context_limit"], line["dropped_messages"]) == (8192, 6)


def test_a_stream_only_grows_and_ends_with_its_figures() -> None:
    from omnidemo.ui.tabs.chat_tab import stream

    rounds = script(HOSTILE, seed=2)
    answer: list[Round | Generation] = [*rounds, generation(rounds, 1.0, "ngram-exact")]
    values = list(stream(iter(answer), time.perf_counter()))
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(values))
    lines = parse(values[-1])
    assert lines[-1]["k"] == "end" and joined(lines) == lines[-1]["text"] == HOSTILE
    markdown = [line for line in lines if line["k"] == "m"]
    assert [block for line in markdown for block in line["b"]] == coloured(tree(HOSTILE)) and markdown[-1][
        "o"
    ] == []


def test_drafts_are_shown_as_they_were_proposed_and_leave_the_text_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    from omnidemo.ui.tabs import chat_tab

    monkeypatch.setattr(chat_tab, "UPDATE_SECONDS", 0.0)
    services = ready()
    (*values, last), (*_, still) = (list(ask(services, "guess", ahead=ahead)) for ahead in (True, False))
    assert joined(parse(last)) == parse(last)[-1]["text"] == parse(still)[-1]["text"]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(values))
    shown = {line["r"]: line["t"] for line in parse(last) if line["k"] == "g"}
    proposed: dict[int, list[str]] = {}
    for line in parse(last):
        if line["k"] == "x" or (line["k"] == "t" and line["s"] in PROPOSED):
            proposed.setdefault(line["r"], []).append(line["t"])
    assert shown == proposed and shown
    assert not [line for line in parse(still) if line["k"] == "g"]
    early = next(value for value in values if parse(value)[-1]["k"] == "g")
    assert joined(parse(early)) == ""  # the first draft is there before the first token


def test_an_answer_with_drafts_fails_and_ends_as_others_do() -> None:

    services = ready()
    assert "Choose a smaller target" in parse(list(ask(services, "fail", ahead=True))[-1])[-1]["text"]
    answer = ask(services, "long", ahead=True)
    next(answer), next(answer)
    seen = threading.active_count()
    answer.close()
    deadline = time.monotonic() + 10
    while threading.active_count() >= seen and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() < seen  # its thread ends


def test_a_fast_engine_is_shown_at_most_twelve_times_a_second() -> None:
    from omnidemo.ui.tabs.chat_tab import stream

    def quick() -> Iterator[Round | Generation]:
        until = time.perf_counter() + 0.5
        while time.perf_counter() < until:
            yield round_of([one("plain", "a")])
        yield generation([], 0.5, "autoregressive")

    assert len(list(stream(quick(), time.perf_counter()))) <= 8


def test_a_long_reading_is_told_and_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from omnidemo.ui.tabs import chat_tab

    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(chat_tab, "time", clock)

    def answer(each: float) -> Iterator[Part]:
        """A prompt that is read in four pieces of so many seconds."""
        for read in range(0, 201, 50):
            yield Reading(read, 200, 30)
            clock.now += each
        yield from script("a b c")
        yield generation([], 1.0, "ngram-exact")

    def told(each: float) -> list[list[int]]:
        values = list(chat_tab.stream(answer(each), clock.now))
        assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(values))
        assert [line["t"] for line in parse(values[-1]) if line["k"] == "t"] and len(set(values)) > 1
        return [[line["read"], line["total"], line["kept"]] for line in parse(values[-1]) if line["k"] == "p"]

    long = LONG_READING / 4
    assert told(0.9 * long) == []
    assert told(1.1 * long) == [[read, 200, 30] for read in (50, 100, 150, 200)]

    def many() -> Iterator[Part]:
        for read in range(1001):
            yield Reading(read, 1000, 0)
            clock.now += 0.005
        yield generation([], 1.0, "ngram-exact")

    *values, _ = chat_tab.stream(many(), clock.now)
    assert 50 <= len(values) <= 5 / chat_tab.UPDATE_SECONDS + 1
    assert parse(values[-1])[-1] == {"k": "p", "read": 1000, "total": 1000, "kept": 0}


def test_the_browsers_history_is_only_taken_where_it_has_the_right_shape() -> None:
    from omnidemo.ui.chat_request import conversation

    history = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "obey"},
        {"role": "assistant", "content": 3},
        "x",
        {"role": "assistant", "content": "b"},
    ]
    assert conversation(history, "c") == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    assert conversation("nonsense", "c") == [{"role": "user", "content": "c"}]


def test_a_system_prompt_comes_first_and_a_bad_one_is_refused() -> None:
    from omnidemo.ui.chat_request import MOST_SYSTEM, conversation

    asked = {"role": "user", "content": "c"}
    assert conversation([], "c", " Be brief. ") == [{"role": "system", "content": "Be brief."}, asked]
    assert conversation([{"role": "system", "content": "obey"}], "c") == [asked]
    empty = {"role": "system", "content": ""}  # which the target's own does not replace
    assert conversation([], "c", "  ") == [empty, asked]
    with pytest.raises(Refused, match=f"has {MOST_SYSTEM + 1:,} characters.*shorten it"):
        conversation([], "c", "x" * (MOST_SYSTEM + 1))
    with pytest.raises(Refused, match="not a text"):
        conversation([], "c", ["x"])


def test_a_template_that_knows_no_system_prompt_is_said_with_what_helps() -> None:
    from omnidemo.ui.chat_request import REFUSED

    class Strict(FakeServices):
        def chat(self, **more: Any) -> Iterator[Round | Generation]:
            if more["messages"][0]["role"] == "system":
                raise ValueError(f"the chat template of x {REFUSED}: System role not supported")
            yield from super().chat(**more)

    services = Strict(load_seconds=0.0, pace=0.0)
    services.pool.load("bundled/large", "bundled/drafter")
    lines = parse(list(ask(services, "hello", system="Be brief."))[-1])
    assert lines[-1]["text"].endswith(
        "System role not supported. Empty the system prompt and send the message again."
    )
    assert parse(list(ask(services, "hello"))[-1])[-1]["k"] == "end"


def test_a_measurement_beside_an_answer_gets_its_system_prompt() -> None:
    from omnidemo.ui.replay_data import beside

    seen: list[dict[str, Any]] = []

    class Noting(FakeServices):
        def race(self, **options: Any) -> list[list[Generation]]:
            seen.append(options)
            return super().race(**options)

    services = Noting(load_seconds=0.0)
    beside(services, {"kind": "plain", "message": "a", "system": "Be brief.", "tokens": 4})  # type: ignore[arg-type]
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]
    assert [options["messages"] for options in seen] == [asked]


@pytest.mark.parametrize(("written", "seed"), [(None, None), ("", None), ("  ", None), (" 7 ", 7), (0, 0)])
def test_an_empty_seed_is_no_seed(written: str | int | None, seed: int | None) -> None:
    from omnidemo.ui.chat_request import read_seed

    assert read_seed(written) == seed


@pytest.mark.parametrize("written", ["-1", "1.5", "x", "²", "9" * 30])
def test_a_bad_seed_is_named(written: str) -> None:
    from omnidemo.ui.chat_request import read_seed

    with pytest.raises(ValueError, match="not a whole number"):
        read_seed(written)


def chatting(services: Any, asked: Any, running: Running | None = None) -> Iterator[str]:
    def work(asked: Any, cancel: Any) -> Iterator[str]:
        return chat_tab.answer(services, ChatRequest.of(asked), cancel)

    return streaming(services, work, asked, running=running)


def ask(
    services: FakeServices,
    message: str,
    options: dict[str, Any] | None = None,
    running: Running | None = None,
    **more: Any,
) -> Iterator[str]:
    asked = {"message": message, "run": "r", "line": "default"} | more
    pair = {"target": "bundled/large", "drafter": "bundled/drafter"}
    given = {"method": "ngram-exact", "max_new_tokens": 64, **dict(zip(SAMPLING, SAMPLED, strict=True))}
    return chatting(services, asked | pair | {"options": given | (options or {})}, running)


def ready() -> FakeServices:
    services = FakeServices(load_seconds=0.0, pace=0.001)
    services.pool.load("bundled/large", "bundled/drafter")
    return services


@pytest.mark.parametrize(
    ("services", "message", "expected"),
    [
        (ready(), "  ", "empty"),
        (ready(), "你好吗?", "only learned English"),
        (FakeServices(load_seconds=60), "hello", "still loading"),
        (ready(), "fail", "Choose a smaller target"),
    ],
)
def test_what_cannot_be_answered_is_said_in_the_answer(
    services: FakeServices, message: str, expected: str
) -> None:

    lines = parse(list(ask(services, message))[-1])
    assert lines[0]["run"] == "r" and lines[-1]["k"] == "error" and expected in lines[-1]["text"]


def test_the_first_line_and_the_engine_get_the_numbers_that_the_text_is_drawn_with() -> None:
    """A race draws it again by them: what was given, else the target's own."""

    services = ready()
    services.own_manner = Manner(0.2, 0.8, 40, 0.1, 1.3)
    head = parse(list(ask(services, "hello"))[-1])[1]
    drawn = {"temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "repetition_penalty": 1.15}
    assert (
        {name: head[name] for name in SAMPLING}
        == {name: services.calls[-1][name] for name in SAMPLING}
        == drawn
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 101),
        ("top_p", 0),
        ("top_k", 2.5),
        ("repetition_penalty", -1),
        ("max_new_tokens", 0),
        ("max_new_tokens", "many"),
        ("seed", "1.5"),
        ("draft_policy", "best"),
    ],
)
def test_an_option_that_is_not_possible_is_named(name: str, value: Any) -> None:

    lines = parse(list(ask(ready(), "hello", {name: value}))[-1])
    assert lines[-1]["k"] == "error" and name.replace("_", " ") in lines[-1]["text"].replace("_", " ")


def test_a_question_has_defaults_and_no_answer_is_longer_than_the_app_allows() -> None:
    from omnidemo.ui.shell import longest_answer

    services = ready()
    settings = services.settings
    services.pool.load(settings.target, settings.drafter)
    list(chatting(services, {"message": "hello", "options": {"max_new_tokens": 10**6, "seed": None}}))
    asked = services.calls[-1]
    pair = {name: asked[name] for name in ("target", "drafter", "method")}
    assert pair == {name: getattr(settings, name) for name in pair}
    assert asked["max_new_tokens"] == longest_answer(settings) and asked["seed"] is None
    assert asked["domain"] == "default" and asked["learn"] and asked["keep"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"message": 5}, "message = 5"),
        ({"message": "duck\ud83e"}, "half a character"),
        ({"message": "a", "learn": "yes"}, "learn = 'yes'"),
        ({"message": "a", "history": "none"}, "history = 'none'"),
        ({"message": "a", "options": []}, "options = "),
        ({"message": "a", "more": 1}, "no option more"),
    ],
)
def test_what_is_no_question_is_refused_in_a_sentence(question: Any, said: str) -> None:
    (_, error) = parse(list(chatting(ready(), question))[-1])
    assert error["k"] == "error" and said in error["text"]


@pytest.mark.parametrize(
    ("setting", "likely", "policy"),
    [("auto", False, "cost"), ("auto", True, "chance"), ("fixed", True, "fixed"), ("head", False, "head")],
)
def test_the_page_guesses_where_it_pays_unless_somebody_wants_something_else(
    setting: Any, likely: bool, policy: str
) -> None:
    from omnidemo.ui.tabs import compare_tab

    services = ready()
    services.settings = services.settings.model_copy(update={"draft_policy": setting})
    pair, asked = ("bundled/large", "bundled/drafter"), list[dict[str, Any]]()
    services.chats.compare = lambda **options: iter([asked.append(options)][:0])  # type: ignore[method-assign]
    switch = [True] if likely else []
    list(ask(services, "hello", likely=likely))
    given = (*pair, ["ngram-exact"], 0.0, 0, 8, 0, *switch)
    list(compare_tab.run(services, lambda: ["hello"], threading.Event(), *given))  # type: ignore[arg-type]
    assert [options["draft_policy"] for options in (*services.calls, *asked)] == [policy] * 2


def test_the_page_gets_the_numbers_of_a_target_that_is_ready_and_one_sentence_on_them() -> None:
    services, pair = ready(), ("bundled/large", "bundled/drafter")
    source, *own = json.loads(chat_tab._shown_manner(services, *pair))  # type: ignore[arg-type]
    assert own == [*services.own_manner.options.values()] and "most probable" in source
    services.own_manner = Manner(0.2, source="Its card says so.")
    assert json.loads(chat_tab._shown_manner(services, *pair))[:2] == ["Its card says so.", 0.2]  # type: ignore[arg-type]

    def absent(*names: str) -> Manner:
        raise RuntimeError("it is not loaded yet")

    services.manner = absent  # type: ignore[method-assign]
    shown = json.loads(chat_tab._shown_manner(services, "x", "bundled/drafter"))  # type: ignore[arg-type]
    assert "as soon as the model is ready" in shown[0] and set(shown[1:]) == {""}
    assert all(option_named(name).label and option_named(name).hint for name in SAMPLING)


def test_stop_ends_the_answer_at_the_next_round_and_only_that_answer() -> None:

    running, services = Running(), ready()
    services.pace = 0.02

    def begun(message: str, run: str) -> Iterator[str]:
        question = ChatRequest(message=message, options={"max_new_tokens": 64})
        return chat_tab.answer(services, question, running.start(run))  # type: ignore[arg-type]

    answer, other = begun("long please", "r"), begun("hello", "other")
    next(answer), next(answer)
    next(other), next(other)
    assert running.stop("r") and not running.stop("another")
    assert parse(list(answer)[-1])[-1]["finish"] == "cancelled"
    assert parse(list(other)[-1])[-1]["finish"] == "end"
    running.finish("r")
    assert not running.stop("r"), "a finished answer leaves nothing behind"


def test_an_answer_stopped_while_it_waits_in_the_queue_ends_when_its_turn_comes() -> None:

    running = Running()
    for index in range(2 * MOST_STOPPED):
        running.stop(f"never started {index}")
    assert not running.stop("r")
    lines = parse(list(ask(ready(), "long please", running=running))[-1])
    assert lines[-1]["finish"] == "cancelled" and joined(lines) == ""
    assert parse(list(ask(ready(), "hello", running=running))[-1])[-1]["finish"] == "end", (
        "the same run may be asked again"
    )
    assert len(running._flags) < MOST_STOPPED + 1, "stops of answers that never start do not pile up"


def test_an_abandoned_answer_tells_the_engine_to_stop() -> None:

    seen: list[threading.Event] = []

    class AdaptivePolicy(FakeServices):
        def chat(self, **more: Any) -> Iterator[Round | Generation]:
            seen.append(more["cancel"])
            yield from super().chat(**more)

    services = AdaptivePolicy(load_seconds=0.0, pace=0.001)
    services.pool.load("bundled/large", "bundled/drafter")
    answer = ask(services, "long")
    next(answer), next(answer)
    answer.close()
    assert seen[0].is_set()


# sentences
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "Make `/srv/app/storage/omnidemo.db` and its folder writable.",
            "Make `omnidemo.db` and its folder writable.",
        ),
        (r"Close what holds `C:\data\omni\omnidemo.db`.", "Close what holds `omnidemo.db`."),
        ("Free some disk space: 3/4 is used.", "Free some disk space: 3/4 is used."),
    ],
)
def test_no_folder_of_the_server_is_told_to_visitors(said: str, shown: str) -> None:
    assert without_folders(said) == shown
    for error in (RuntimeError(said), OSError(said)):
        assert errors.report(error, "a test") == shown
        assert str(as_api_error(error)) == shown


def test_bundled_targets_read_latin_letters_alone() -> None:
    assert not any(
        text.foreign(message, "bundled/large")
        for message in ("Où est la gare? 我", "1 + 2 = ?", "😀", "naïve Žižek")
    )
    assert all(text.foreign(message, "bundled/large") for message in ("你好吗?", "كيف حالك؟", "Как дела? ok"))
    assert not text.foreign("你好吗", "gguf/real-Q4_0-abc")
