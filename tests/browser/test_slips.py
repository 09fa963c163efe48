"""What a visitor meets in the first minute, and what a slip must not cost, in a real browser over fake
services: one sentence at first, addresses, focus, a second click on *Send*, former answers, the switches of
privacy, type that can be read on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_chat import ask, come, served, someone
from tests.browser.visits import show_tokens
from tests.support.fakes import FakeServices

pytestmark = pytest.mark.browser
Served = tuple[FakeServices, str]
__all__ = ["served"]  # the fixture

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SMALL = """() => { const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode, parent = node.parentElement;
        if (!node.textContent.trim() || !parent.checkVisibility({visibilityProperty: true}) || parent.closest(".wrap.hide")) continue;
        const size = parseFloat(getComputedStyle(parent).fontSize);
        if (size < 14) found.push([parent.tagName, parent.className.baseVal ?? parent.className, size, node.textContent.slice(0, 30)]);
    }
    return found; }"""
FOCUSED = "() => document.activeElement.id || document.activeElement.className"


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    served[0].pace = 0.0
    with someone(browser, reduced_motion="reduce") as context:
        yield come(context, served)


def test_the_first_screen_has_one_sentence_and_the_box_is_where_typing_goes(page: Page) -> None:
    assert page.evaluate(FOCUSED) == "omni-message"
    assert page.locator(".empty-state > :is(h2, p:not([aria-hidden]))").all_inner_texts() == [
        page.evaluate("omni.labels.subtitle")
    ]
    for hidden in (".legend", "#omni-answer", "#omni-privacy"):
        expect(page.locator(hidden)).to_be_hidden()
    page.locator(".card").first.click()
    page.wait_for_function("!omni.chat.busy() && omni.chat.turns.length === 1")
    expect(page.locator("#omni-answer")).to_be_visible()
    assert page.evaluate(FOCUSED) == "omni-message"


def test_the_legend_stands_where_there_are_colours_to_explain(page: Page) -> None:
    legend = page.locator(".legend")
    ask(page, "what is this?")
    assert page.evaluate("omni.chat.turns[0].answer.counts.direct") > 0
    expect(legend).to_be_visible()  # colours come first
    page.get_by_role("button", name="Text", exact=True).click()
    expect(legend).to_be_hidden()
    show_tokens(page)
    expect(legend).to_be_visible()
    legend.locator(".s-direct").click()
    expect(page.locator(".log")).to_have_attribute("data-only", "direct")
    # An answer of which nothing was guessed has no colours.
    page.evaluate(
        "Object.assign(omni.chat.turns[0].answer, { counts: { plain: 7, discarded: 0 } }); omni.chat.notify()"
    )
    expect(legend).to_be_hidden()


def test_steps_and_tokens_are_counted_beside_the_text_while_it_is_written(page: Page, served: Served) -> None:
    served[0].pace = 0.1
    page.fill("#omni-message", "what is this?")
    page.keyboard.press("Enter")
    counter = page.locator(".turn.live .counter")
    expect(counter).to_have_text(re.compile(r"^[1-9]\d* tokens? in [1-9]\d* steps?$"))
    served[0].pace = 0.0
    page.wait_for_function("!omni.chat.busy()")
    rounds, tokens = page.evaluate(
        "[omni.chat.turns[0].answer.rounds.length, omni.chat.turns[0].answer.figures.tokens]"
    )
    assert rounds < tokens
    expect(page.locator(".turn .counter")).to_have_text(f"{tokens} tokens in {rounds} steps")


def test_one_key_leads_past_everything_to_the_box(page: Page) -> None:
    skip = page.get_by_role("link", name="Skip to the message box")
    stops = (
        "[...document.querySelectorAll('a[href], button, input, select, textarea,"
        ' [tabindex="0"]\')].filter(node => node.offsetParent)'
    )
    assert page.evaluate(f"{stops}[0].className") == "skip"
    skip.focus()
    box = skip.bounding_box()
    assert box is not None and box["y"] >= 0  # it is seen while it has the focus
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "omni-message"


def test_tabs_have_addresses(page: Page) -> None:
    def chosen() -> str:
        return page.locator("#omni-tabs [role=tab][aria-selected=true]").first.inner_text()

    page.get_by_role("tab", name="Compare", exact=True).click()
    page.get_by_role("tab", name="History", exact=True).click()
    assert page.url.endswith("#history")
    page.go_back()
    page.wait_for_function("document.querySelector('#omni-tab-compare-button').ariaSelected === 'true'")
    assert page.url.endswith("#compare")
    page.reload()
    page.wait_for_function("document.querySelector('#omni-tab-compare-button')?.ariaSelected === 'true'")
    assert chosen() == "Compare"
    page.go_back()
    page.wait_for_function("document.querySelector('#omni-tab-chat-button').ariaSelected === 'true'")


def test_a_double_click_on_send_stops_nothing(page: Page, served: Served) -> None:
    served[0].pace = 0.05
    page.fill("#omni-message", "one two three four five six seven")
    page.locator(".send").dblclick(delay=10)
    page.wait_for_function("omni.chat.turns.length === 1 && !omni.chat.busy()")
    assert page.evaluate("omni.chat.turns[0].answer.end.finish") == "end"
    served[0].pace = 1.0  # so that it does not end before somebody can stop it
    page.fill("#omni-message", "again, and stopped")
    page.locator(".send").click()
    page.wait_for_timeout(500)
    page.locator(".stop").click()
    page.wait_for_function("!omni.chat.busy()")
    assert page.evaluate("omni.chat.turns[1].answer.end?.finish ?? 'cancelled'") == "cancelled"


def test_an_answer_that_was_asked_anew_can_be_brought_back(page: Page) -> None:
    ask(page, "first question")
    page.get_by_role("button", name="Edit", exact=True).click()
    ask(page, "second question")
    page.get_by_role("button", name="Again", exact=True).click()
    page.wait_for_function(
        "!omni.chat.busy() && omni.chat.turns.length === 1 && omni.chat.turns[0].versions.length === 3"
    )
    former = page.locator(".former")
    seen = []
    for _ in range(3):
        seen.append((former.inner_text(), page.evaluate("omni.chat.turns[0].user")))
        former.click()
    second = [("Version 3 of 3", "second question"), ("Version 2 of 3", "second question")]
    assert seen == [*second, ("Version 1 of 3", "first question")]
    assert former.inner_text() == "Version 3 of 3"
    # what is shown is kept
    assert page.evaluate("omni.chats.turns(omni.chat.now.id).map(turn => turn.user)") == ["second question"]


def test_former_answers_are_there_after_a_reload_and_are_bounded(page: Page) -> None:
    former, turn = page.locator(".former"), "omni.chat.turns[0]"
    ask(page, "question 1")
    page.get_by_role("button", name="Edit", exact=True).click()
    ask(page, "question 2")
    former.click()
    colours = f"{turn}.versions.map(({{answer}}) => answer.tokens.filter(({{k}}) => k === 't').length)"
    before = page.evaluate(colours)
    assert len(before) == 2 and all(before)
    page.reload()
    expect(former).to_have_text("Version 1 of 2")  # the one that was shown
    expect(page.locator(".say")).to_have_text("question 1")
    assert page.evaluate(colours) == before
    former.click()
    expect(former).to_have_text("Version 2 of 2")
    expect(page.locator(".say")).to_have_text("question 2")
    for number in range(3, 12):
        page.get_by_role("button", name="Edit", exact=True).click()
        ask(page, f"question {number}")
    expect(former).to_have_text("Version 11 of 11")
    page.reload()
    expect(former).to_have_text("Version 9 of 9")  # the newest eight, and this one
    former.click()
    expect(page.locator(".say")).to_have_text("question 10")
    assert page.evaluate("omni.chats.list().map(({answers}) => answers)") == [1]
    ask(page, "another question")
    page.reload()
    expect(page.locator(".turn")).to_have_count(2)
    expect(former).to_have_count(0)
    assert "question 9" not in page.evaluate("JSON.stringify(localStorage)"), (
        "what is out of reach is not kept"
    )


def test_what_becomes_of_a_chat_is_changed_where_it_is_said(page: Page) -> None:
    change = page.locator("#omni-notice").get_by_role("button", name="Change")
    change.click()
    for name in ("Learn from this chat", "Store this chat"):
        expect(page.get_by_label(name)).to_be_visible()
    expect(page.get_by_role("switch", name="Expert")).to_have_attribute("aria-checked", "false")
    change.click()
    expect(page.locator("#omni-privacy")).to_be_hidden()


def test_a_long_question_is_folded(page: Page) -> None:
    ask(page, "word " * 400)
    said = page.locator(".turn .say")
    folded = said.bounding_box()
    page.get_by_role("button", name="Show all of it").click()
    whole = said.bounding_box()
    assert folded is not None and whole is not None and folded["height"] < 220 < whole["height"]


def test_a_pointer_at_rest_points_at_nothing(page: Page) -> None:
    ask(page, "some words to point at")
    page.get_by_role("button", name="Tokens", exact=True).click()
    token = page.locator(".turn .toks .tok").nth(3)
    box = token.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.get_by_role("button", name="Text", exact=True).click()
    page.mouse.move(x, y)
    # the tokens come to lie under it
    page.evaluate("document.querySelector('.segments button:nth-child(2)').click()")
    page.wait_for_timeout(400)
    expect(page.locator(".omni-tip")).to_be_hidden()
    page.mouse.move(x + 1, y)
    expect(page.locator(".omni-tip")).to_be_visible()


def test_at_a_zoom_of_200_percent_a_round_is_seen_without_scrolling(browser: Browser, served: Served) -> None:
    served[0].pace = 0.0
    small = {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}
    with someone(browser, **small, reduced_motion="reduce") as context:
        page = come(context, served)
        ask(page, "what is this?")
        page.locator(".replay-button.slow").click()
        for _ in range(4):
            page.keyboard.press("ArrowDown")
        below = page.locator(".replay-controls").bounding_box()
        for part in (".replay-text", ".slow-head .caption", ".slow-row.draft"):
            box = page.locator(f".replay-body {part}").bounding_box()
            assert box is not None and below is not None and box["y"] + box["height"] <= below["y"] + 1, part
        assert page.evaluate("document.documentElement.scrollWidth") <= 640


def test_slow_motion_has_the_colours_of_the_text(page: Page) -> None:
    """What the big model wrote itself, at a wrong guess or behind the last right one, has one colour
    throughout."""
    ask(page, "what is this?")
    page.locator(".replay-button.slow").click()
    page.keyboard.press("Home")
    seen = set()
    for _ in range(page.evaluate("omni.roundsOf(omni.chat.turns[0].answer).length")):
        page.keyboard.press("ArrowDown")
        pair = page.evaluate(
            """() => [document.querySelector('.slow-row.keep .chip-token:is(.own, .next)'),
                      [...document.querySelectorAll('.replay-text .tok.fresh:is(.s-corrected, .s-bonus)')].at(-1)]
                     .map(node => node && getComputedStyle(node).backgroundColor)"""
        )
        if all(pair):
            assert pair[0] == pair[1], pair
            seen.add(pair[0])
    assert seen


def test_nothing_is_too_small_to_read_on_a_phone(browser: Browser, served: Served) -> None:
    served[0].pace = 0.0
    with someone(browser, **PHONE, reduced_motion="reduce") as context:
        page = come(context, served)
        assert page.evaluate(SMALL) == []
        page.locator(".card").last.click()
        page.wait_for_function("!omni.chat.busy() && omni.chat.turns.length === 1")
        top = page.locator("[data-widget=chat]").bounding_box()
        assert top is not None and top["y"] >= -1, "the answer to an example low in the list is in sight"
        assert page.evaluate(SMALL) == []
        page.locator(".replay-button.slow").click()
        page.keyboard.press("End")
        assert page.evaluate(SMALL) == []
        page.keyboard.press("Escape")
        for tab in ("Adaptation", "Compare", "History"):
            page.get_by_role("tab", name=tab, exact=True).click()
            page.wait_for_timeout(600)
            assert page.evaluate(SMALL) == [], tab
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab


def test_at_200_percent_half_the_height_is_the_answers(browser: Browser, served: Served) -> None:
    served[0].pace = 0.0
    with someone(browser, viewport={"width": 640, "height": 430}) as context:
        page = come(context, served)
        ask(page, "Tell me a story about a lonely fox.")
        chat = page.locator('[data-widget="chat"]')
        chat.evaluate("chat => chat.scrollIntoView()")
        seen = chat.evaluate(
            """chat => {
              const log = chat.querySelector(".scroll").getBoundingClientRect();
              const composer = chat.querySelector(".composer").getBoundingClientRect();
              return Math.min(log.bottom, composer.top, innerHeight) - Math.max(log.top, 0);
            }"""
        )
        assert seen >= 215
