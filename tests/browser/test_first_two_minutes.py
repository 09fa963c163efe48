"""The first two minutes of a visitor: ten of the page's examples, a topic taught, the ten examples again.

    OMNIDEMO_VISIT=60 python -m pytest tests/browser/test_first_two_minutes.py -s

teaches code, howto and stories for 60 seconds each and prints all figures before and after; without it, one
topic for some seconds.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from lab.bundled import evaluate, write_prompts
from lab.bundled.conversations import LONGEST
from lab.bundled.corpus import mixer
from omnidemo.config import Settings
from omnidemo.models.catalogue import Reading
from omnidemo.serving.pair_loading import build_pair
from tests.browser.visits import App, running, visitor

pytestmark = pytest.mark.browser
LONG = int(os.environ.get("OMNIDEMO_VISIT", "0"))
TOPICS = ("code", "howto", "stories") if LONG else ("stories",)
SECONDS = LONG or 4
CHIPS = 10
PROBES = "select topic, version, tokens * 1.0 / passes, agreement from probes order by topic, version"
FIGURES = ("block_efficiency", "guesses_right", "copied_share", "tokens_per_second")


@pytest.fixture(scope="module")
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """As a visitor finds it: the app for strangers, or, where figures are to be printed, one of its own."""
    if LONG:
        yield from running(App(tmp_path_factory.mktemp("visit"), "app.py", STEPS_PER_UPDATE=12, BATCH_SIZE=8))
    else:
        yield request.getfixturevalue("public")


@pytest.fixture(scope="module")
def plain() -> dict[str, str]:
    """What the target alone says to each example in a fresh chat."""
    settings = Settings(device="cpu")
    model = evaluate.Model(build_pair(settings.target, settings.drafter, settings), Reading(1), LONGEST)
    return {record["prompt"]: model.answer(write_prompts.from_record(record)).text for record in examples()}


def examples() -> list[write_prompts.Record]:
    return write_prompts.read(write_prompts.FOLDER / "examples.jsonl")[:CHIPS]


def press(page: Page, record: write_prompts.Record) -> dict[str, Any]:
    """Press an example of the page; its answer's text and figures, with those that are shown and the sentence
    on guessing."""
    before = page.locator(".turn").count()
    page.locator(".card:visible, .chips:visible .chip").filter(has_text=record["label"]).first.click()
    expect(page.locator(".turn")).to_have_count(before + 1)
    expect(page.locator(".turn").last.locator(".foot .facts")).not_to_be_empty()
    shown = page.locator("#omni-answer .three > div:visible dd").all_inner_texts()
    answer = page.evaluate(
        "(() => { const { text, figures, error } = omni.chat.turns.at(-1).answer; return { text, figures,"
        " error }; })()"
    )
    said = page.locator(".turn").last.locator(".said").inner_text()
    return answer | {"shown": shown, "said": said, "label": record["label"], "domain": record["domain"]}


def ten(page: Page, plain: dict[str, str]) -> list[dict[str, Any]]:
    """The ten examples in one conversation; no answer may be nonsense, none may lack its figures and its
    sentence."""
    answers = []
    for record in examples():
        made = press(page, record)
        assert made["error"] is None
        prompt = record["prompt"]
        assert made["text"] == plain[prompt] or mixer.check(
            write_prompts.from_record(record), made["text"]
        ), (prompt, made["text"])
        assert made["shown"] and "–" not in made["shown"] and made["said"], made
        answers.append(made)
    return answers


def teach(page: Page, topic: str, seconds: float) -> int:
    """Teach a topic in the Chat tab for so long; how many examples it were."""
    teacher = page.locator("#omni-teach")
    teacher.get_by_label("Topic").last.select_option(topic)
    done, left = 0, seconds
    while left > 0:
        teacher.get_by_role("button", name=re.compile("Teach it")).click()
        page.wait_for_timeout(1000 * min(left, 31))
        stop = teacher.get_by_role("button", name=re.compile("Stop"))
        if stop.count() and stop.is_enabled():
            stop.click()
        expect(teacher).to_contain_text("Taught")
        found = re.search(r"Taught (\d+)", teacher.inner_text())
        done += int(found[1]) if found else 0
        left -= 31
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


def test_ten_examples_a_topic_and_the_ten_again(browser: Browser, app: App, plain: dict[str, str]) -> None:
    with visitor(browser, app, viewport={"width": 1440, "height": 900}) as page:
        before = ten(page, plain)
        expect(page.locator(".hint")).to_contain_text("reads")
        taught = {topic: teach(page, topic, SECONDS) for topic in TOPICS}
        assert all(taught.values()), taught
        page.locator("button.fresh").click()  # the same questions after the same ones
        after = ten(page, plain)
        assert [one["text"] for one in before] == [one["text"] for one in after], "guessing changes no text"
        for one in after:  # the sentence is of the figures that stand beside it
            length = one["figures"]["block_efficiency"]
            step = f"{length:.{1 if length >= 10 else 2}f} tokens for one step"
            assert step in one["said"] or one["said"].startswith(("No guess", "Nothing was guessed")), one
        if LONG:
            print(f"\ntaught: {taught}\n\n{table(before, after)}")
            print(
                "\n| topic | version | tokens per step on the probe prompts | agreement |\n|---|---|---|---|"
            )
            steps: dict[str, list[float]] = {}
            for topic, version, found, agreement in probes(app):
                print(f"| {topic} | {version} | {found:.2f} | {agreement or 0:.3f} |")
                steps.setdefault(topic, []).append(found)
            assert all(steps[topic][-1] > steps[topic][0] for topic in TOPICS), (
                "the curve of a topic that was taught goes up"
            )


def probes(app: App) -> list[tuple[Any, ...]]:
    """The curves: they are measured while nobody waits, so they are waited for until nothing new comes."""
    known: list[tuple[Any, ...]] = []
    for _ in range(20):
        time.sleep(5)
        found = app.query(PROBES)
        if found == known and {row[0] for row in found} >= set(TOPICS):
            break
        known = found
    return known
