"""The numbers by which a target writes, in a real browser: shown, changed, given back, and gone with another
target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from omnidemo.core.config import SAMPLING
from omnidemo.ui.text import MANNER
from tests.browser.visits import EXPERT, App, ask, visitor
from tests.support.trained_pair import TARGET

pytestmark = pytest.mark.browser
NUMBERS = """() => [...document.querySelectorAll('#omni-advanced .omni-tight input, #omni-advanced .omni-tight textarea')]
    .map(box => +(box.value || box.placeholder))"""
DRAWN = f"() => {list(SAMPLING)}.map(name => omni.chat.turns.at(-1).answer.meta[name])"


@pytest.fixture
def page(browser: Browser, app: App) -> Iterator[Page]:
    with visitor(browser, app, EXPERT, viewport={"width": 1440, "height": 900}) as page:
        yield page


def write(page: Page, name: str, text: str) -> None:
    field = page.locator("#omni-advanced").get_by_label(MANNER[name][0])
    field.fill(text)
    field.press("Tab")


def own_of(page: Page) -> list[float]:
    page.get_by_text("Advanced", exact=True).click()
    page.wait_for_function(f"({NUMBERS})()[1] > 0")
    return list(page.evaluate(NUMBERS))


def test_what_is_changed_of_a_targets_manner_holds_until_it_is_emptied(page: Page) -> None:
    own = own_of(page)
    ask(page, "Say hello.")
    assert page.evaluate(DRAWN) == own
    write(page, "temperature", "0.55")
    write(page, "top_k", "7")
    ask(page, "Say hello.")
    assert page.evaluate(DRAWN) == page.evaluate(NUMBERS) == [0.55, own[1], 7, *own[3:]]
    write(page, "temperature", "")  # an emptied field takes the model's own back
    write(page, "top_k", "")
    ask(page, "Say hello.")
    assert page.evaluate(DRAWN) == page.evaluate(NUMBERS) == own


def test_a_number_that_is_not_possible_is_named_in_the_chat(page: Page) -> None:
    own_of(page)
    write(page, "temperature", "1000")
    page.fill("#omni-message", "Say hello.")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .status.error")).to_contain_text("temperature = '1000' is not possible")


def test_another_target_comes_with_its_own(page: Page) -> None:
    own_of(page)
    write(page, "min_p", "0.3")
    page.get_by_role("button", name="Details").click()
    page.get_by_role("button", name="Other models").click()
    others = page.locator("#omni-models")
    others.get_by_label("Another model").fill(TARGET)
    others.get_by_text("Use as target").click()
    expect(page.locator("#omni-advanced")).to_contain_text("names no numbers of its own")
    page.wait_for_function(f"JSON.stringify(({NUMBERS})()) === '[0,1,0,0,1]'")
