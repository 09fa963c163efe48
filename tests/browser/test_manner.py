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
NUMBERS = "() => [...document.querySelectorAll('[data-widget=manner] input')].map(box => +box.value)"
DRAWN = f"() => {list(SAMPLING)}.map(name => omni.chat.turns.at(-1).answer.meta[name])"


@pytest.fixture
def page(browser: Browser, app: App) -> Iterator[Page]:
    with visitor(browser, app, EXPERT, viewport={"width": 1440, "height": 900}) as page:
        yield page


def write(page: Page, name: str, text: str) -> None:
    field = page.get_by_label(MANNER[name][0], exact=True)
    field.fill(text)
    field.press("Tab")


def test_what_is_changed_of_a_targets_manner_holds_until_it_is_given_back(page: Page) -> None:
    card, back = page.locator("#omni-manner"), page.get_by_role("button", name="The model's own again")
    expect(card.locator("input").first).to_be_enabled()
    own = page.evaluate(NUMBERS)
    expect(back).to_be_hidden()
    ask(page, "Say hello.")
    assert page.evaluate(DRAWN) == own
    write(page, "temperature", "0.55")
    write(page, "top_k", "7")
    expect(card).to_contain_text(f"its own: {own[0]:g}")
    ask(page, "Say hello.")
    changed = [0.55, own[1], 7, *own[3:]]
    assert page.evaluate(DRAWN) == page.evaluate(NUMBERS) == changed
    write(page, "top_k", "")  # an emptied field takes the model's own back
    assert page.evaluate(NUMBERS) == [0.55, *own[1:]]
    back.click()
    expect(back).to_be_hidden()
    ask(page, "Say hello.")
    assert page.evaluate(DRAWN) == page.evaluate(NUMBERS) == own
    page.set_viewport_size({"width": 390, "height": 844})
    sizes = card.locator("input").evaluate_all(
        "boxes => boxes.map(box => [box.offsetHeight, box.getBoundingClientRect().right])"
    )
    assert all(height >= 44 and right <= 390 for height, right in sizes), sizes


def test_a_number_that_is_not_possible_is_named_in_the_chat(page: Page) -> None:
    expect(page.locator("#omni-manner input").first).to_be_enabled()
    write(page, "temperature", "1000")
    page.fill("#omni-message", "Say hello.")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .status.error")).to_contain_text("temperature = 1000 is not possible")


def test_another_target_comes_with_its_own(page: Page) -> None:
    expect(page.locator("#omni-manner input").first).to_be_enabled()
    write(page, "min_p", "0.3")
    page.get_by_role("button", name="Details").click()
    page.get_by_role("button", name="Other models").click()
    others = page.locator("[data-widget=models]")
    others.get_by_label("Another one").fill(TARGET)
    others.locator(".any").get_by_role("button", name="Use as target").click()
    expect(page.locator("#omni-manner")).to_contain_text("names no numbers of its own")
    page.wait_for_function(f"JSON.stringify(({NUMBERS})()) === '[0,1,0,0,1]'")
