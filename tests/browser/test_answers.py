"""The Adaptation tab is never empty: a recorded run at first, and then each answer, in a real browser over
fake services."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_chat import come, served, someone
from tests.browser.visits import number, open_tab
from tests.support.fakes import FakeServices, curve_rows

pytestmark = pytest.mark.browser
__all__ = ["served"]  # the fixture
Served = tuple[FakeServices, str]
LEAST = 12  # pixels of a chart's letters
SIZES = "texts => texts.map(text => parseFloat(getComputedStyle(text).fontSize))"
WIDTHS = [1440, 390]


@pytest.fixture(params=WIDTHS)
def page(request: pytest.FixtureRequest, browser: Browser, served: Served) -> Iterator[Page]:
    served[0].store.rows = []
    with someone(browser, viewport={"width": request.param, "height": 860}) as context:
        page = come(context, served)
        open_tab(page, "Adaptation")
        yield page
    served[0].store.rows = curve_rows()


def test_a_recording_gives_way_to_the_first_answer(page: Page, served: Served) -> None:
    panel = page.locator("[data-widget=answers]")
    note = panel.get_by_role("note")
    expect(note).to_contain_text("A recording: 10 answers to the task “json” by Qwen2.5-Coder 1.5B Instruct")
    expect(note).to_contain_text("2026")
    expect(panel.locator(".now")).to_contain_text("with nothing learned it would have been")
    expect(panel.locator("g.bar")).to_have_count(10)
    sizes = panel.locator("svg text").evaluate_all(SIZES)
    assert sizes and min(sizes) >= LEAST
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    (first,) = rows = [row | {"domain": "default", "adapter_version": 0} for row in curve_rows(1)]
    served[0].store.rows = rows
    expect(panel.locator("g.bar")).to_have_count(1)
    expect(note).to_have_count(0)
    expect(panel.locator(".now")).to_have_text(
        re.compile(rf"^Answer 1: {number(first['block_efficiency'])} tokens for one step of the big model\. ")
    )
    told = panel.locator("g.bar title").text_content()
    counts = f"0 memory, {first['accepted'] - 20} small model, 20 copied from the chat"
    assert told is not None and f"100 tokens: {counts}" in told
    assert f"{100 * first['alpha']:.0f} % of the small model's judged guesses" in told


def test_versions_are_marks(page: Page, served: Served) -> None:
    panel = page.locator("[data-widget=answers]")
    versions = [0, 0, 1, 1, 2, 1]
    served[0].store.rows = [
        row | {"domain": "default", "adapter_version": version}
        for row, version in zip(curve_rows(6), versions, strict=True)
    ]
    expect(panel.locator("line.published")).to_have_count(3)
    told = panel.locator("line:is(.published, .back) title").evaluate_all(
        "all => all.map(one => one.textContent)"
    )
    assert [re.sub(" of the small model was|Version | here", "", one) for one in told] == [
        "5 published",  # the one that drafts now
        "2 rolled back",
        "2 published",
        "1 published",
    ]
    expect(panel.locator("text.published").first).to_have_text(
        "▲ v5"
    )  # named first where there is little room
    expect(panel).to_contain_text("version rolled back")
