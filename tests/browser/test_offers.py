"""What each round chose from, below an answer and in slow motion, of a live answer and of a stored one."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.visits import App, ask, number, open_tab, visit, visitor

pytestmark = pytest.mark.browser
OFFERS = "omni.roundsOf(omni.chat.turns.at(-1).answer).map(round => round.offers)"
NAMES = {
    "plain": "no guess",
    "drafter": "small model",
    "copy": "copied",
    "fused": "copied, then the small model",
}


def table(fold: Locator) -> list[list[str]]:
    cells = [one.locator("th, td").all_inner_texts() for one in fold.locator("tbody tr").all()]
    return [[" ".join(text.split()) for text in row] for row in cells]


def told(window: Locator, page: Page, count: int) -> list[list[list[str]]]:
    """The table of each round."""
    page.keyboard.press("Home")
    found = []
    for which in range(1, count + 1):
        page.keyboard.press("ArrowDown")
        expect(window.locator(".round-of")).to_have_text(f"round {which} of {count}")
        found.append(table(window.locator(".offers")))
    return found


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


def looked_at(page: Page, tokens: list[int]) -> list[tuple[str, list[list[str]]]]:
    """The sentence and the table below the newest answer, of each of its tokens with these numbers."""
    turn, found = page.locator(".turn").last, []
    for place in tokens:
        turn.locator(f".toks [data-i='{place}']").click()
        page.keyboard.press("Escape")  # the tooltip lies over what is below
        fold = turn.locator(".offers")
        if fold.get_attribute("open") is None:
            fold.get_by_text("What this step chose from").click()
        expect(fold.locator("p")).to_be_visible()
        found.append((fold.locator("p").inner_text(), table(fold)))
    return found


FIRSTS = """omni.chat.turns.at(-1).answer.tokens.flatMap((one, place) =>
    one.k === "t" && one.n === 0 && one.t.trim() ? [[one.r, place]] : [])"""


def test_a_token_that_is_looked_at_says_what_its_step_chose_from(browser: Browser, app: App) -> None:
    with visitor(browser, app, viewport=ViewportSize(width=390, height=844)) as page:
        ask(page, "Tell me a story about a lonely fox and a lonely fox.")
        expect(page.locator(".turn .offers")).to_have_count(0)
        offers = page.evaluate(OFFERS)
        firsts = page.evaluate(FIRSTS)[:12]
        live = looked_at(page, [place for _, place in firsts])
        for (round_, _), (said, rows) in zip(firsts, live, strict=True):
            expected = offers[round_]
            assert [row[0].removesuffix(" ✓ taken") for row in rows] == [NAMES[one[0]] for one in expected]
            (taken,) = (one for one in expected if one[5])
            assert said.startswith(f"Step {round_ + 1}: ")
            if not taken[1]:
                assert "The big model wrote alone" in said
            else:
                assert re.search(rf"took {taken[1]} tokens? ", said)
                assert f"{number(taken[2])} tokens expected for the price of {number(taken[3])} steps" in said
        shown = page.locator(".turn .offers table").bounding_box()
        assert shown is not None and shown["x"] >= 0 and shown["x"] + shown["width"] <= 390
        assert page.evaluate("document.documentElement.scrollWidth") == 390

        visit(page, app)  # what the browser has kept
        assert looked_at(page, [place for _, place in firsts]) == live
