"""The first two minutes of a visitor: ten of the page's examples, a topic taught, the ten examples again.

    OMNIDEMO_VISIT=20 python -m pytest tests/browser/test_first_two_minutes.py -s

teaches three topics by 20 prompts each and prints all figures before and after; without it, one topic by
two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from omnidemo.core.config import GREEDY, Settings
from omnidemo.learning.lines.sample_prompts import TOPICS
from omnidemo.models.catalogue import reading
from omnidemo.models.names import drafter_of
from omnidemo.serving.conversation_window import newest
from omnidemo.serving.pair_loading import build_pair
from tests.browser.visits import App, open_tab, running, visitor

pytestmark = pytest.mark.browser
LONG = int(os.environ.get("OMNIDEMO_VISIT", "0"))
TAUGHT = TOPICS[: 3 if LONG else 1]
COUNT = LONG or 2
CHIPS = 10
TARGET = "bundled/large"  # of the apps here
FIGURES = ("block_efficiency", "guesses_right", "copied_share", "tokens_per_second")


@pytest.fixture(scope="module")
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """As a visitor finds it: the app for strangers, or, where figures are to be printed, one of its own."""
    if LONG:
        yield from running(App(tmp_path_factory.mktemp("visit"), "app.py", STEPS_PER_UPDATE=12, BATCH_SIZE=8))
    else:
        yield request.getfixturevalue("public")


@pytest.fixture(scope="module")
def plain() -> Callable[[list[dict[str, str]]], str]:
    """What the target alone writes behind a conversation, of which it reads as much as on the page."""
    settings = Settings(device="cpu")
    pair, most = build_pair(TARGET, drafter_of(TARGET, settings), settings), settings.max_new_tokens

    def write(messages: list[dict[str, str]]) -> str:
        given = newest(pair, messages, reading(TARGET), most).messages
        options = GREEDY.options | {"max_new_tokens": most, "learn": False}
        return pair.generate(given, method="autoregressive", **options).text

    return write


def press(page: Page, label: str) -> dict[str, Any]:
    """Press an example of the page; its question, its answer's text and figures, with those that are shown
    and the sentence on guessing."""
    before = page.locator(".turn").count()
    page.locator(".card:visible, .chips:visible .chip").filter(has_text=label).first.click()
    expect(page.locator(".turn")).to_have_count(before + 1)
    expect(page.locator(".turn").last.locator(".foot .facts")).not_to_be_empty()
    shown = page.locator("#omni-answer .three > div:visible dd").all_inner_texts()
    answer = page.evaluate(
        "(() => { const { user, answer } = omni.chat.turns.at(-1), { text, figures, error } = answer;"
        " return { user, text, figures, error }; })()"
    )
    said = page.locator(".turn").last.locator(".said").text_content()
    return answer | {"shown": shown, "said": said, "label": label}


def ten(page: Page) -> list[dict[str, Any]]:
    """The ten examples in one conversation; none may lack its figures and its sentence."""
    answers = []
    expect(page.locator(".card:visible").nth(CHIPS - 1)).to_be_visible()
    for label in page.locator(".card:visible span").all_inner_texts()[:CHIPS]:
        made = press(page, label)
        assert made["error"] is None
        assert made["shown"] and "–" not in made["shown"] and made["said"], made
        answers.append(made)
    return answers


def teach(page: Page, topic: str, count: int) -> int:
    """Let prompts of a topic be answered in *Same task*; how many it were."""
    open_tab(page, "Same task")
    page.get_by_role("radio", name="Teach it a topic").check()
    page.locator("#omni-task").get_by_label("Topic").last.select_option(topic)
    while (done := int(page.evaluate("omni.task.csv().length"))) < count:
        page.get_by_role("button", name=re.compile("Run ten|The next ten")).click()
        page.wait_for_function("count => omni.task.csv().length >= count", arg=min(count, done + 10))
        stop = page.get_by_role("button", name="■ Stop")
        if stop.is_visible():
            stop.click()
        expect(page.get_by_role("button", name=re.compile("Run ten|The next ten"))).to_be_visible()
    open_tab(page, "Chat")
    return done


def table(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    def cell(one: dict[str, Any], name: str) -> str:
        value = one["figures"].get(name)
        return "–" if value is None else f"{value:.2f}"

    lines = [
        f"| example | {' | '.join(f'{name}, before → after' for name in FIGURES)}|",
        f"|---|{'---|' * len(FIGURES)}",
    ]
    for one, two in zip(before, after, strict=True):
        figures = " | ".join(f"{cell(one, name)} → {cell(two, name)}" for name in FIGURES)
        lines.append(f"| {one['label']} | {figures} |")
    return "\n".join(lines)


def test_ten_examples_a_topic_and_the_ten_again(
    browser: Browser, app: App, plain: Callable[[list[dict[str, str]]], str]
) -> None:
    with visitor(browser, app, viewport={"width": 1440, "height": 900}) as page:
        before = ten(page)
        expect(page.locator("p.hint")).to_contain_text("reads")
        taught = {topic: teach(page, topic, COUNT) for topic in TAUGHT}
        assert all(taught.values()), taught
        page.locator("button.fresh").click()  # the same questions after the same ones
        after = ten(page)
        assert [one["text"] for one in before] == [one["text"] for one in after], "guessing changes no text"
        messages: list[dict[str, str]] = []
        for one in before:
            messages.append({"role": "user", "content": one["user"]})
            assert one["text"] == plain(messages), one["user"]
            messages.append({"role": "assistant", "content": one["text"]})
        for one in after:  # the sentence is of the figures that stand beside it
            length = one["figures"]["block_efficiency"]
            # a browser rounds an exact half up, such as 9.125, and Python to the even digit
            step = f"{length + 1e-9:.{1 if length >= 10 else 2}f} tokens for one step"
            assert step in one["said"] or one["said"].startswith(
                ("No guess", "Nothing was guessed", "Guessing would not")
            ), one
        if LONG:
            print(f"\ntaught: {taught}\n\n{table(before, after)}")
