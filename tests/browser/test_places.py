"""What has an address, and whether everything stands where it can be read, in a real browser over fake
services: links to examples, a refusal that is the page's, questions that Esc answers, replays without half
lines, the Adaptation tab without an empty column."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_chat import ask, come, served, someone
from tests.support.fakes import FakeServices

pytestmark = pytest.mark.browser
Served = tuple[FakeServices, str]
__all__ = ["served"]  # the fixture

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DONE = "!omni.chat.busy() && omni.chat.turns.length === 1"
COUNT = """{ const frame = window.requestAnimationFrame.bind(window); window.frames_asked = 0;
    window.requestAnimationFrame = act => { window.frames_asked += 1; return frame(act); }; }"""
RESTS = """async () => { const before = frames_asked; await new Promise(done => setTimeout(done, 500));
    return frames_asked === before; }"""
OVERLAPS = """() => [...document.querySelectorAll(".slow-row")].filter(row => row.offsetParent).filter(row => {
    const name = row.querySelector("b"), range = document.createRange();
    range.selectNodeContents(name);
    const [one, other] = [range.getBoundingClientRect(), row.querySelector(".fact").getBoundingClientRect()];
    return one.right > other.left && one.bottom > other.top && one.top < other.bottom; }).length"""
# Lines of text that a box shows in part.
CUT = """box => { const inside = box.clientHeight, line = parseFloat(getComputedStyle(box).lineHeight);
    return [inside % line, (box.scrollHeight - inside) % line]; }"""


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    served[0].pace = 0.0
    with someone(browser, viewport={"width": 1440, "height": 900}, reduced_motion="reduce") as context:
        yield come(context, served)


def test_arrow_keys_move_between_tabs(page: Page) -> None:
    page.get_by_role("tab", name="Chat", exact=True).focus()
    for key, name in (
        ("ArrowRight", "Same task"),
        ("End", "History"),
        ("ArrowRight", "Chat"),
        ("ArrowLeft", "History"),
        ("ArrowLeft", "Compare"),
        ("Home", "Chat"),
    ):
        page.keyboard.press(key)
        tab = page.get_by_role("tab", name=name, exact=True)
        expect(tab).to_be_focused()
        expect(tab).to_have_attribute("aria-selected", "true")
    assert page.url.endswith("#chat")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.role") != "tab", "Tab leaves the tabs"
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("tab", name="Chat", exact=True)).to_be_focused()


def test_a_page_at_rest_asks_for_no_frame(browser: Browser, served: Served) -> None:
    """Gradio's sign of a page that is loaded would ask for one after another."""
    with someone(browser, COUNT) as context:
        page = come(context, served)
        page.wait_for_timeout(1000)
        assert page.evaluate("frames_asked") > 0, "frames are not counted"
        assert any(page.evaluate(RESTS) for _ in range(60)), "frames are asked for without an end"


def test_history_has_no_word_of_the_field_before_expert_is_on(page: Page) -> None:
    row = {"id": 1, "created_at": "2026-11-28T10:00:00Z", "kind": "traffic", "prompt": "?", "answer": "!"}
    row |= {"method": "ngram-exact", "target": "t", "target_title": "T", "tokens": 4, "finish_reason": "end"}
    row |= {"drafter": "d", "session": "someone"}
    formed = row | {"id": 2, "tokens": 9, "forced": 4, "changed": 1}
    state = {
        "rows": [formed, row],
        "pairs": [],
        "methods": ["ngram-exact"],
        "sessions": [],
        "store": {"ok": True},
    }
    page.get_by_role("tab", name="History", exact=True).click()
    page.evaluate(
        """state => { const host = document.createElement('div');
        host.className = 'omni-widget'; host.id = 'told'; host.dataset.widget = 'history';
        document.querySelector("#omni-tab-history").append(host);
        omni.widgets.history(host, { trigger() {} }).update(JSON.stringify(state)); }""",
        state,
    )
    heads, method = (
        page.locator("#told thead th").locator("visible=true"),
        page.locator("#told label", has_text="Method"),
    )
    plain = ["", "time", "prompt", "kind", "tokens", "per step", "guesses right", "speed", "target"]
    expect(heads).to_have_text(plain)
    expect(page.locator("#told tbody td").locator("visible=true")).to_have_count(2 * len(plain))
    expect(page.locator("#told td[data-label=tokens]")).to_have_text(["9 · 4 forced", "4"])
    page.locator("#told .open").first.click()
    expect(page.locator("#told .more")).to_contain_text("the form wrote 4 of 9 tokens and changed 1")
    page.locator("#told .open").first.click()
    expect(method).to_be_hidden()
    expect(page.locator("#told tbody .nowrap", has_text="taught").first).to_be_visible()
    page.get_by_role("switch", name="Expert").click()
    expect(heads).to_have_text([*plain[:-1], "tok/s", "agreement", "adapter", "method", "target"])
    expect(method).to_be_visible()


def test_a_link_asks_an_example_in_a_chat_of_its_own_and_only_once(page: Page, served: Served) -> None:
    ask(page, "a question of my own")
    expect(page.get_by_role("button", name="Copy a link to this example")).to_have_count(0)
    name = page.evaluate(
        "(prompt => omni.examples.named(prompt))(document.querySelectorAll('.chips .chip')[2].title)"
    )
    page.goto(f"{served[1]}#example-{name}")
    page.wait_for_function(DONE)
    assert page.evaluate("omni.examples.named(omni.chat.turns[0].user)") == name
    assert page.url.endswith("#chat") and page.evaluate("omni.chats.list().length") == 2
    expect(page.get_by_role("button", name="Copy a link to this example")).to_be_visible()
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    page.goto(f"{served[1]}#example-there-is-none")
    expect(page.locator(".chat-note")).to_contain_text("names an example that there is not")


def test_a_newcomer_follows_a_link_to_an_example(browser: Browser, served: Served, page: Page) -> None:
    prompt = page.locator(".card").first.get_attribute("title")
    name = page.evaluate("prompt => omni.examples.named(prompt)", prompt)
    with someone(browser) as context:
        newcomer = context.new_page()
        newcomer.goto(f"{served[1]}#example-{name}")
        newcomer.wait_for_function(f"window.omni?.chat?.parts && {DONE}")
        assert newcomer.evaluate("omni.chat.turns[0].answer.error") is None


def test_a_stored_answer_that_is_not_there_is_said(page: Page, served: Served) -> None:
    page.goto(f"{served[1]}#answer-77")
    expect(page.get_by_text("Answer 77 is not kept here any more, or is not yours to see.")).to_be_visible()
    page.get_by_role("button", name="Answer 77 alone ×").click()
    expect(page.get_by_text("each answer gets a line here")).to_be_visible()
    assert page.url.endswith("#history")


def test_a_refusal_is_the_pages_and_not_the_models(page: Page) -> None:
    page.evaluate(
        """() => { const turn = {run: "x", user: "?", system: "", answer: omni.newAnswer(), state: "done"};
        turn.answer.error = "This is refused."; omni.chat.show([turn]); }"""
    )
    expect(page.get_by_text("This is refused.")).to_be_visible()
    expect(page.locator(".answer .who")).to_be_hidden()


def test_escape_leaves_the_question_of_a_reset(page: Page) -> None:
    page.get_by_role("tab", name="Adaptation", exact=True).click()
    trainer = page.locator("#omni-trainer")
    trainer.get_by_role("button", name="Reset").click()
    expect(trainer.get_by_role("button", name="Yes, reset")).to_be_visible()
    expect(trainer.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(trainer.get_by_role("button", name="Yes, reset")).to_be_hidden()
    expect(trainer.get_by_role("button", name="Reset")).to_be_focused()


def test_details_that_open_where_no_model_is_loaded_go_again(page: Page, served: Served) -> None:
    details = page.locator("#omni-details")
    expect(details).to_be_hidden()
    served[0].started.clear()
    expect(details).to_be_visible()
    page.get_by_role("button", name="Load", exact=True).click()
    expect(details).to_be_hidden()


WIDE, ZOOMED = (
    {"viewport": {"width": width, "height": height}} for width, height in ((1440, 900), (720, 450))
)


@pytest.mark.parametrize("size", [WIDE, PHONE, ZOOMED], ids=["wide", "phone", "at 200 %"])
def test_replays_show_whole_lines_and_labels_beside_each_other(
    browser: Browser, served: Served, size: dict[str, object]
) -> None:
    served[0].pace = 0.0
    with someone(browser, reduced_motion="reduce", **size) as context:
        page = come(context, served)
        ask(page, "what is this? " * 20)
        page.get_by_role("button", name="Slow motion").click()
        page.keyboard.press("End")
        facts = (
            "facts => facts.forEach(fact => { fact.textContent = '123 tokens in the same time, 234 with"
            " guessing'; })"
        )
        page.locator(".slow-row .fact").evaluate_all(facts)
        assert page.evaluate(OVERLAPS) == 0
        boxes = [page.locator(".replay-text").evaluate(CUT)]
        dialog = page.get_by_role("dialog")
        for name in ("Race",):
            dialog.get_by_role("button", name=name, exact=True).click()
            expect(page.locator(".race-lane")).to_have_count(2)
            expect(page.locator(".colour-key span")).not_to_have_count(0)  # the colours are explained
            page.keyboard.press("End")
            boxes += [box.evaluate(CUT) for box in page.locator(".replay-text").all()]
            if size is ZOOMED:
                for box in page.locator(".replay-text").all():
                    expect(box).to_be_in_viewport(ratio=1)
        assert boxes == [[0, 0]] * 3
        if size is WIDE:
            # all of it is in sight
            assert page.locator(".replay-body").evaluate("body => body.scrollHeight - body.clientHeight") == 0


def test_neither_column_of_the_adaptation_tab_is_left_empty(browser: Browser, served: Served) -> None:
    with someone(browser, viewport={"width": 1440, "height": 900}) as context:
        page = come(context, served)
        page.get_by_role("switch", name="Expert").click()
        page.get_by_role("tab", name="Adaptation", exact=True).click()
        expect(page.locator("[data-widget=answers] svg").first).to_be_visible()
        left, rail = (
            page.locator(f"#omni-adaptation-row > :nth-child({place})").evaluate(
                "column => Math.max(...[...column.querySelectorAll('*')].map(node =>"
                " node.getBoundingClientRect().bottom))"
            )
            for place in (1, 2)
        )
        assert left > 0.75 * rail
        assert page.locator("#omni-adaptation-row > :first-child [data-widget=versions]").count() == 1


def test_on_a_phone_the_colours_are_explained_in_sight(browser: Browser, served: Served) -> None:
    """Not behind the composer, which stays at the lower edge."""
    with someone(browser, **PHONE) as context:
        page = come(context, served)
        ask(page, "what is this? " * 20)
        page.get_by_role("button", name="Tokens", exact=True).click()
        first = page.locator(".legend button").first
        expect(first).to_be_in_viewport()
        assert first.evaluate(
            """button => { const { x, y, width, height } = button.getBoundingClientRect();
                return button.contains(document.elementFromPoint(x + width / 2, y + height / 2)); }"""
        )


def test_the_buttons_above_the_answers_stand_in_one_row(browser: Browser, served: Served) -> None:
    """With all of Expert's, and the name of a chat that began with a long question."""
    with someone(browser, viewport={"width": 1280, "height": 860}) as context:
        page = come(context, served)
        ask(page, "what is this? " * 20)
        page.evaluate("omni.setExpert(true)")
        buttons = page.locator("[data-widget=chat] .bar button:visible")
        tops = buttons.evaluate_all("all => all.map(one => one.getBoundingClientRect().y)")
        assert len(tops) > 6 and max(tops) - min(tops) < 10, tops


@pytest.mark.parametrize("name", ["Compare", "Adaptation"])
def test_an_address_holds_where_the_first_press_is_lost(browser: Browser, served: Served, name: str) -> None:
    """As while the app starts and nobody hears the tabs yet."""
    deaf = """let left = 3; document.addEventListener("click", event => {
        if (event.target.closest?.("[role=tab]") && left-- > 0) event.stopImmediatePropagation(); }, true);"""
    with someone(browser, deaf) as context:
        page = context.new_page()
        page.goto(f"{served[1]}#{name.lower()}")
        expect(page.get_by_role("tab", name=name, exact=True)).to_have_attribute("aria-selected", "true")


def test_a_replay_takes_as_long_as_its_pace_says(browser: Browser, served: Served) -> None:
    """By a clock of the test's own: not shorter by what a frame came late."""
    with someone(browser, viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.clock.install(time=0)
        page.goto(served[1])
        page.wait_for_function("Boolean(window.omni?.replay?.start)")
        page.clock.pause_at(3600)  # seconds; until then it ran with the machine's, which may be busy
        page.evaluate(
            """() => { const turn = {run: "x", user: "?", system: "", answer: omni.newAnswer(), state: "done"};
            omni.replay.views.still = () => omni.replay.start({draw: () => "", stops: [], total: 400000, timed: true, usual: 20});
            omni.replay.open("slow", turn); omni.replay.views.still(); }"""
        )
        play = page.locator(".replay-keys .play")
        page.clock.run_for(7900)
        assert play.get_attribute("title") == "Pause (space)"
        page.clock.run_for(200)
        assert play.get_attribute("title") == "Play again (space)"


@pytest.mark.parametrize(
    ("seconds", "speedup"), [(0.28, [1.4, 1.3, 1.5]), (0.31, None), (4.9, None), (0.099, None)]
)
def test_compares_clock_can_be_read_on_a_phone(
    browser: Browser, served: Served, seconds: float, speedup: list[float] | None
) -> None:
    """No label of a tick runs into the next, and the foot speaks of brackets where there are some."""
    lane = {"method": "ngram-exact", "drafted": 9, "speedup": speedup or [1.0, 0.5, 2.0], "lines": ""}
    state = {
        "state": "running",
        "prompts": 1,
        "runs": 3,
        "done": 0,
        "total": 3,
        "methods": [{"name": "ngram-exact", "title": "Guessing", "colour": "red", "lossless": True}],
        "lanes": [lane | {"seconds": seconds, "tokens": 9}],
    }
    draw = """state => { const host = document.createElement('div');
        host.className = 'omni-widget'; host.dataset.widget = 'compare'; host.style.width = '330px'; document.body.append(host);
        omni.widgets.compare(host, { trigger() {} }); omni.compare.show(state);
        const labels = [...host.querySelectorAll('.axis span')].map(one => one.getBoundingClientRect());
        return [labels.map(one => one.left), labels.map(one => one.right), host.innerText]; }"""
    with someone(browser, **PHONE) as context:
        left, right, text = come(context, served).evaluate(draw, state)
    assert len(left) > 1 and all(one + 8 <= other for one, other in zip(right[:-1], left[1:], strict=True))
    assert ("in brackets" in text) == (speedup is not None)
