"""A long text in a real browser: how far the model has read it, Stop meanwhile, and Again, which goes on from
there."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.visits import App, ask, visitor

pytestmark = pytest.mark.browser
WORDS = "The lonely fox walked to the old mill, and the miller gave him bread, and they sat by the river."
TEXT = " ".join(f"{number} times. {WORDS}" for number in range(1, 13))


@pytest.fixture
def slow(app: App) -> Iterator[None]:
    """A target that reads a prompt slowly."""
    flag = app.storage / "slow reading"
    flag.touch()
    yield
    flag.unlink()


def numbers(said: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", said)]


def send(page: Page, text: str) -> Locator:
    page.fill("#omni-message", text)
    page.keyboard.press("Enter")
    return page.locator(".turn").last


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
@pytest.mark.usefixtures("slow")
def test_a_long_text_is_read_stopped_and_read_on(browser: Browser, app: App, width: int, scheme: str) -> None:
    size = {"width": width, "height": 844}
    with visitor(browser, app, viewport=size, color_scheme=scheme) as page:
        page.evaluate("omni.chat.now.system = 'Be kind.'")  # which makes no chat of the first text
        turn = send(page, f"{scheme}. {TEXT}")
        reading, status = turn.locator(".reading"), turn.locator(".status")
        expect(reading).to_have_text(re.compile(r"^Reading your text: [\d,]+ of [\d,]+ tokens$"))
        first, total = numbers(reading.inner_text())
        assert 0 < first < total / 2 and total > 200
        began = time.monotonic()
        expect(reading).not_to_contain_text(f": {first} of")
        assert time.monotonic() - began < 1.0, "it says something new at least once a second"
        bar = reading.get_by_role("progressbar")
        expect(bar).to_have_accessible_name("How far your text is read")
        assert 0 < int(bar.get_attribute("aria-valuenow") or 0) < 100
        widths = bar.evaluate("bar => [bar.firstChild.offsetWidth, bar.offsetWidth, bar.offsetHeight]")
        assert 0 < widths[0] < widths[1] <= width and widths[2] > 3
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect(turn.locator(".dots")).to_have_count(0)

        stopped = time.monotonic()
        page.get_by_role("button", name="Stop the answer").click()
        expect(status).to_contain_text("Stopped by you, with")
        assert time.monotonic() - stopped < 1.5
        read, _ = numbers(status.inner_text())
        assert first < read < total and status.inner_text().endswith("tokens read. Again goes on from there.")
        expect(turn.locator(".tok")).to_have_count(0)

        turn.get_by_role("button", name="Again", exact=True).click()
        again = page.locator(".turn").last
        expect(again.locator(".reading")).to_contain_text("that it had read before")
        _, left, kept = numbers(again.locator(".reading").inner_text())
        assert kept >= read and kept + left == total
        expect(again.locator(".tok").first).to_be_attached()
        expect(again.locator(".reading")).to_have_count(0)
        expect(again.locator(".foot .facts")).to_contain_text("tok/s")
        expect(again.locator(".status.error")).to_have_count(0)


def test_a_short_text_is_read_without_a_word(browser: Browser, app: App) -> None:
    with visitor(browser, app) as page:
        page.evaluate(
            """() => { window.seen = 0; new MutationObserver(() => {
                window.seen += document.querySelectorAll(".reading").length;
            }).observe(document.querySelector(".log"), { childList: true, subtree: true }); }"""
        )
        ask(page, TEXT)
        assert page.evaluate("window.seen") == 0
