"""What each round chose from, as slow motion shows it of a live answer and of a stored one."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.visits import App, ask, open_tab, visitor

pytestmark = pytest.mark.browser
OFFERS = "omni.replay.rounds(omni.chat.turns.at(-1).answer).map(round => round.offers)"
NAMES = {
    "plain": "no guess",
    "drafter": "small model",
    "copy": "copied",
    "fused": "copied, then the small model",
}


def told(window: Locator, page: Page, count: int) -> list[list[list[str]]]:
    """The table of each round."""
    page.keyboard.press("Home")
    found = []
    for number in range(1, count + 1):
        page.keyboard.press("ArrowDown")
        expect(window.locator(".round-of")).to_have_text(f"round {number} of {count}")
        rows = window.locator(".offers tbody tr")
        cells = [one.locator("th, td").all_inner_texts() for one in rows.all()]
        found.append([[" ".join(text.split()) for text in row] for row in cells])
    return found


def number(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def test_each_round_says_what_it_chose_from_also_in_the_history(browser: Browser, app: App) -> None:
    with visitor(browser, app, viewport=ViewportSize(width=390, height=844)) as page:
        ask(page, "Tell me a story about a lonely fox and a lonely fox.")
        offers = page.evaluate(OFFERS)
        page.locator(".turn").last.get_by_role("button", name="Slow motion").click()
        window = page.get_by_role("dialog", name="Slow motion")
        fold = window.get_by_text("What this step chose from")
        expect(window.locator(".offers table")).to_be_hidden()
        fold.focus()
        page.keyboard.press("Space")  # it opens, and nothing is paused
        expect(window.locator(".offers table")).to_be_visible()
        shown = told(window, page, len(offers))
        for rows, expected in zip(shown, offers, strict=True):
            assert [row[0] for row in rows] == [
                NAMES[one[0]] + (" ✓ taken" if one[5] else "") for one in expected
            ]
            assert sum(one[5] for one in expected) == 1 and expected[0][0] == "plain"
            for row, (_, length, tokens, price, chance, _) in zip(rows, expected, strict=True):
                chances = number(chance) if length else "–"
                assert row[1:5] == [str(length), chances, number(tokens), number(price)]
        assert len({one[0] for each in offers for one in each}) > 1
        table = window.locator(".offers table").bounding_box()
        assert table is not None and table["x"] >= 0 and table["x"] + table["width"] <= 390
        page.keyboard.press("Escape")

        open_tab(page, "History")
        page.locator("#omni-history tbody .open").first.click()
        page.locator("#omni-history").get_by_role("button", name="Slow motion").click()
        expect(window.get_by_role("button", name="Pause (space)")).to_be_visible()
        window.get_by_text("What this step chose from").click()
        assert told(window, page, len(offers)) == shown, "stored with the rounds"
