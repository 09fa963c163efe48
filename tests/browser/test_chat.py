"""The chat in a real browser, over fake services that say what they are told: Markdown, the two views, chats
that the browser keeps, the system prompt, the window."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from omnidemo.models.catalogue import title_of
from tests.browser.visits import WAIT
from tests.support import fakes
from tests.support.fakes import FakeServices, generation
from tests.support.web import faked

pytestmark = pytest.mark.browser
MARKDOWN = """this

# A title
Some **bold**, *slanted* and `code`, [a link](https://example.com/a?b=1), [a trap](javascript:window.hit=1).
A second line.

- one
- two
  1. nested

| left | right |
|:-----|------:|
| a    | 1     |

> quoted

```python
print("<b>")
```

![a picture](https://example.com/c.png) <script>window.hit = 1</script><img src=x onerror="window.hit = 2"> ${window.hit = 3}
"""
NAMED = [
    "h3",
    "strong",
    "em",
    "ul > li",
    "ol > li",
    "th",
    "td",
    "blockquote",
    "figure.code pre",
    "a",
    "img",
    "script",
]
NODES = (
    f"box => Object.fromEntries({json.dumps(NAMED)}.map(name => [name, box.querySelectorAll(name).length]))"
)
STORED = "Object.keys(localStorage).filter(name => /^omnidemo[.](chat|tokens)/.test(name)).sort()"
TURNS = "omni.chat.turns.map(turn => turn.user)"
NAMES = "omni.chats.list().map(one => one.name)"


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServices, str]]:
    with faked(tmp_path_factory.mktemp("fake")) as (services, _, client):
        yield services, str(client.base_url)


@pytest.fixture
def services(served: tuple[FakeServices, str]) -> FakeServices:
    served[0].pace = 0.0
    return served[0]


# of a browser that has chosen to read its answers as text
AS_TEXT = """if (location.protocol === 'http:' && !localStorage.getItem('omnidemo.view'))
    localStorage.setItem('omnidemo.view', JSON.stringify({ view: 'text' }))"""


@contextmanager
def someone(browser: Browser, script: str = "", **options: Any) -> Iterator[BrowserContext]:
    """A browser that was never here; an error of the page's scripts fails the test."""
    with browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options}) as context:
        context.set_default_timeout(WAIT)
        context.add_init_script(script)
        errors: list[str] = []
        context.on("weberror", lambda error: errors.append(str(error.error)))
        yield context
        assert not errors, errors


def come(context: BrowserContext, served: tuple[FakeServices, str]) -> Page:
    page = context.new_page()
    page.goto(served[1])
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
    return page


@pytest.fixture
def page(browser: Browser, served: tuple[FakeServices, str], services: FakeServices) -> Iterator[Page]:
    with someone(browser, AS_TEXT, permissions=["clipboard-read", "clipboard-write"]) as context:
        yield come(context, served)


def ask(page: Page, message: str) -> None:
    page.fill("#omni-message", message)
    page.keyboard.press("Enter")
    page.wait_for_function(
        "message => !omni.chat.busy() && omni.chat.turns.at(-1)?.user === message", arg=message
    )


def test_a_speed_is_said_to_be_measured_or_why_there_is_none(page: Page) -> None:
    ask(page, "hi")
    tell = """found => { const turn = omni.chat.turns.at(-1);
        turn.answer.end.key ||= "k";
        omni.widgets.speeds().update(JSON.stringify({ [turn.answer.end.key]: [found, null] })); }"""
    said, figures = page.locator(".turn .said"), page.locator("#omni-answer .three")
    verdict = page.locator(".turn .verdict")
    for found, words in (
        (None, "measuring the speed…"),
        ({"why": "newer answers came first"}, "no speed: newer"),
    ):
        page.evaluate(tell, found)
        expect(said).to_contain_text(f"({words}")
        expect(figures).to_contain_text(words)
        expect(verdict).to_contain_text("measuring…" if found is None else words)
    page.reload()
    expect(said).to_contain_text("(no speed: newer answers came first)")


def test_enter_of_an_input_method_sends_nothing(page: Page) -> None:
    """Safari ends the composition before the key comes, and marks that by its code alone."""
    page.fill("#omni-message", "にほん")
    for key in ("Enter", "Escape"):
        page.locator("#omni-message").dispatch_event("keydown", {"key": key, "keyCode": 229})
    expect(page.locator("#omni-message")).to_have_value("にほん")
    assert page.evaluate("omni.chat.turns.length") == 0
    page.locator("#omni-message").dispatch_event("keydown", {"key": "Enter", "keyCode": 13})
    expect(page.locator(".turn .say")).to_have_text("にほん")


def open_chats(page: Page) -> Any:
    page.get_by_role("button", name="Chats. This one").click()
    drawer = page.get_by_role("dialog", name="Chats")
    expect(drawer).to_be_visible()
    return drawer


def new_chat(page: Page) -> None:
    page.locator(".bar").get_by_role("button", name="New chat", exact=True).click()


# ── Markdown
# ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_markdown_and_its_tokens_are_one_press_away(page: Page) -> None:
    ask(page, MARKDOWN)
    box, tokens = page.locator(".turn .md"), page.locator(".turn .toks")
    found = box.evaluate(NODES)
    assert found == {
        "h3": 1,
        "strong": 1,
        "em": 1,
        "ul > li": 2,
        "ol > li": 1,
        "th": 2,
        "td": 2,
        "blockquote": 1,
    } | {
        "figure.code pre": 2,  # what the fake adds is Python without a fence
        "a": 2,
        "img": 0,
        "script": 0,
    }
    link = box.get_by_role("link", name="a link")
    facts = ["href", "target", "rel"]
    assert link.evaluate("(node, names) => names.map(name => node.getAttribute(name))", facts) == [
        "https://example.com/a?b=1",
        "_blank",
        "noopener noreferrer",
    ]
    assert (
        "<script>window.hit = 1</script>" in box.inner_text()
        and "[a trap](javascript:window.hit=1)" in box.inner_text()
    )
    assert page.evaluate("window.hit") is None
    assert page.locator(".turn .say").first.evaluate("node => node.textContent") == MARKDOWN, (
        "what was typed is shown as it was typed"
    )
    expect(tokens).to_be_hidden()

    code = box.locator("figure.code").first
    assert code.locator("figcaption span").inner_text() == "python"
    code.get_by_role("button", name="Copy this code").click()
    assert page.evaluate("navigator.clipboard.readText()") == 'print("<b>")\n'
    page.locator(".turn .foot").get_by_role("button", name="Copy").click()
    answer = page.evaluate("omni.chat.turns[0].answer.text")
    assert page.evaluate("navigator.clipboard.readText()") == answer

    page.get_by_role("button", name="Tokens", exact=True).click()
    expect(tokens).to_be_visible()
    expect(box).to_be_hidden()
    assert (
        "".join(tokens.locator(".tok").evaluate_all("spans => spans.map(span => span.textContent)")) == answer
    )
    page.reload()
    expect(page.locator(".turn .toks .tok").first).to_be_visible()  # remembered
    page.get_by_role("button", name="Text", exact=True).click()
    expect(box).to_be_visible()
    assert box.evaluate(NODES) == found, "a reload brings it back"
    assert page.evaluate("window.hit") is None


def test_hostile_markdown_harms_nothing(page: Page) -> None:
    for hostile in (
        "> " * 3000,
        "- " * 3000 + "x",
        "[" * 3000,
        "**" * 3000,
        "<b>" * 3000,
        "`" * 3001,
        "|" * 3000,
    ):
        ask(page, f"x\n\n{hostile}\n\nstill here")
        expect(page.locator(".turn").last.locator(".md")).to_contain_text("still here")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_what_is_written_stays_while_the_answer_grows(page: Page, services: FakeServices) -> None:
    services.pace = 0.02
    page.fill("#omni-message", "a long one\n\n**first**\n\n```python\nx = 1\n```\n\n- last")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "document.querySelectorAll('.md > *').length > 1 && document.querySelector('.md strong')"
    )
    page.evaluate(
        "document.querySelector('.md').children[0].mark = document.querySelector('.md strong').mark = true"
    )
    expect(page.locator(".turn.live .md .caret")).to_have_count(1)
    services.pace = 0.0
    page.wait_for_function("!omni.chat.busy()")
    assert page.evaluate(
        "document.querySelector('.md').children[0].mark && document.querySelector('.md strong').mark"
    )
    assert page.locator(".md .caret").count() == 0
    assert page.evaluate("omni.chat.turns[0].answer.read === omni.chat.turns[0].answer.text.length")


def test_an_answer_without_its_markdown_is_shown_as_plain_text(page: Page) -> None:
    """As one of a connection that broke, or of a version before."""
    ask(page, "hello")
    page.evaluate("""() => { const { answer, parts } = omni.chat.turns[0];
        Object.assign(answer, { blocks: [], open: [["p", ["one"]]], read: 3, text: "one two\\n**three**" });
        parts.text.replaceChildren(); parts.text.settled = 0; omni.chat.drawText(omni.chat.turns[0]); }""")
    assert page.locator(".turn .md").evaluate("node => node.textContent") == "one two\n**three**"
    assert page.locator(".turn .md p").count() == 1


# ── chats that the browser keeps
# ────────────────────────────────────────────────────────────────────────────────


def test_chats_are_begun_named_switched_renamed_deleted_and_brought_back(page: Page) -> None:
    ask(page, "What is a fox?")
    ask(page, "And an owl?")
    new_chat(page)
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#omni-message")).to_be_focused()
    ask(page, "How high is a house?")
    drawer = open_chats(page)
    assert drawer.locator(".open b").all_inner_texts() == ["How high is a house?", "What is a fox?"]
    expect(drawer.locator("[aria-current=true]")).to_be_focused()
    drawer.get_by_role("button", name="What is a fox? 2 answers").click()
    expect(drawer).to_be_hidden()
    assert page.evaluate(TURNS) == ["What is a fox?", "And an owl?"]

    drawer = open_chats(page)
    drawer.get_by_role("button", name="Rename “What is a fox?”").click()
    page.keyboard.type("Animals")
    page.keyboard.press("Enter")
    expect(drawer.locator("[aria-current=true] b")).to_have_text("Animals")
    page.keyboard.press("Escape")
    ask(page, "And a cat?")  # the name that was given stays
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    expect(page.locator(".bar .chats")).to_contain_text("Animals")
    coloured = (
        "omni.chat.turns.every(turn => turn.answer.tokens.some(one => one.s !== 'plain') &&"
        " turn.answer.rounds.length)"
    )
    assert page.evaluate(coloured), "with its colours"

    drawer = open_chats(page)
    drawer.get_by_role("button", name="Delete “Animals”").click()
    expect(drawer.locator(".open")).to_have_count(1)
    expect(page.locator(".turn")).to_have_count(0)
    assert not any(
        "Animals" in page.evaluate(f"localStorage.getItem({json.dumps(name)})")
        for name in page.evaluate(STORED)
    )
    drawer.get_by_role("button", name="Undo").click()
    expect(drawer.locator(".open")).to_have_count(2)
    assert page.evaluate(TURNS) == ["What is a fox?", "And an owl?", "And a cat?"]
    drawer.get_by_role("button", name="Delete all").click()
    assert page.evaluate(STORED) == []
    drawer.get_by_role("button", name="Undo").click()
    assert sorted(page.evaluate(NAMES)) == ["Animals", "How high is a house?"]


def test_the_list_works_by_keyboard_alone(page: Page) -> None:
    ask(page, "one")
    new_chat(page)
    ask(page, "two")
    page.locator(".bar .chats").focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="Chats")
    expect(drawer.locator("[aria-current=true]")).to_be_focused()
    for _ in range(3):  # past rename and delete of this one
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(drawer).to_be_hidden()
    assert page.evaluate(TURNS) == ["one"]
    page.locator(".bar .chats").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page.locator(".bar .chats")).to_be_focused()


def test_two_tabs_keep_what_either_wrote(
    browser: Browser, served: tuple[FakeServices, str], services: FakeServices
) -> None:
    with someone(browser) as context:
        first = come(context, served)
        ask(first, "one")
        second = come(context, served)
        assert second.evaluate(TURNS) == ["one"]
        ask(second, "two")
        expect(first.locator(".turn")).to_have_count(2)  # a tab that rests follows
        new_chat(second)
        ask(second, "three")
        ask(first, "four")
        assert first.evaluate(NAMES) == ["one", "three"]
        assert first.evaluate(TURNS) == ["one", "two", "four"] and second.evaluate(TURNS) == ["three"]
        for page, turns in ((first, 3), (second, 1)):
            page.reload()
            expect(page.locator(".turn")).to_have_count(turns)  # each its own

        open_chats(second).get_by_role("button", name="one 3 answers").click()
        services.pace = 0.05
        second.fill("#omni-message", "a long five")
        second.keyboard.press("Enter")
        expect(second.locator(".turn.live")).to_have_count(1)
        first.fill("#omni-message", "six")  # in the same chat, while the other answer is written
        first.keyboard.press("Enter")
        expect(first.locator(".turn.live")).to_have_count(1)
        services.pace = 0.0
        for page in (first, second):
            page.wait_for_function("!omni.chat.busy()")
        said = (
            "[...document.querySelectorAll('.chat-note')].some(node => node.textContent.startsWith('Another"
            " tab went on'))"
        )
        until = time.monotonic() + 10
        while not any(told := [page.evaluate(said) for page in (first, second)]) and time.monotonic() < until:
            first.wait_for_timeout(100)  # whichever was done last
        assert sum(told) == 1
        kept = second.evaluate(
            "omni.chats.list().map(one => omni.chats.turns(one.id).map(turn => turn.user)).sort()"
        )
        assert kept == [["one", "two", "four", "a long five"], ["one", "two", "four", "six"], ["three"]]

        first.evaluate("omni.chat.forget()")
        expect(second.locator(".turn")).to_have_count(0)  # what is deleted in one tab is not kept in another
        assert first.evaluate(STORED) == second.evaluate(STORED) == []


def test_where_there_is_no_more_room_the_oldest_goes_and_that_is_said(page: Page) -> None:
    fill = """([name, size, colours]) => omni.chats.write({ id: name, name, system: "" },
        [{ run: name, user: name, text: "x".repeat(size), lines: "y".repeat(colours) }]).dropped"""
    assert page.evaluate(fill, ["first", 1_500_000, 10]) == []
    page.wait_for_timeout(5)
    assert page.evaluate(fill, ["second", 1_000_000, 1_500_000]) == []  # colours go before any text
    assert (
        page.evaluate("omni.chats.turns('first')[0].lines") == ""
        and page.evaluate("omni.chats.turns('second')[0].lines.length") == 0
    )
    page.wait_for_timeout(5)
    assert page.evaluate(fill, ["third", 1_099_000, 10]) == []
    ask(page, "fourth")
    expect(page.locator(".chat-note")).to_have_text(
        "There was no more room, so the oldest chat was dropped: “first”."
    )
    assert page.evaluate(NAMES) == ["fourth", "third", "second"]
    assert page.evaluate("omni.chats.size() <= omni.chats.room")


def test_a_full_or_forbidden_storage_stops_no_chat(
    browser: Browser, served: tuple[FakeServices, str], services: FakeServices
) -> None:
    with someone(browser, "Storage.prototype.setItem = () => { throw new Error('full'); }") as context:
        page = come(context, served)
        ask(page, "hello")
        expect(page.locator(".chat-note")).to_contain_text("no room for this chat")
        page.get_by_role("button", name="Text", exact=True).click()
        expect(page.locator(".turn .md")).to_contain_text("You said: hello")


def test_a_chat_goes_out_as_markdown_and_as_json(page: Page, tmp_path: Path) -> None:
    page.get_by_role("button", name="System prompt").click()
    page.fill("#omni-system-text", "Be brief.")
    ask(page, "What is a fox?")
    saved = {}
    for kind in ("Markdown", "JSON"):
        drawer = page.get_by_role("dialog", name="Chats")
        if not drawer.is_visible():
            open_chats(page)
        with page.expect_download() as started:
            drawer.get_by_role("button", name=f"Save this chat as {kind}").click()
        saved[kind] = started.value
    assert saved["Markdown"].suggested_filename == "What-is-a-fox.md"
    text = Path(saved["Markdown"].path()).read_text(encoding="utf-8")
    answer = page.evaluate("omni.chat.turns[0].answer.text")
    assert (
        text == "# What is a fox?\n\n## System\n\nBe brief.\n\n## You\n\nWhat is a fox?\n\n##"
        f" Model\n\n{answer.strip()}\n"
    )
    made = json.loads(Path(saved["JSON"].path()).read_text(encoding="utf-8"))
    assert made["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is a fox?"},
        {"role": "assistant", "content": answer},
    ]
    assert made["answers"][0]["finish"] == "end" and made["answers"][0]["figures"]["tokens"] > 0


def test_an_edit_replaces_the_turn_when_it_is_sent_and_escape_leaves_it(page: Page) -> None:
    ask(page, "one")
    page.fill("#omni-message", "a draft")
    page.locator(".turn").get_by_role("button", name="Edit").click()
    expect(page.locator("#omni-message")).to_have_value("one")
    expect(page.locator(".turn.edited")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("#omni-message")).to_have_value("a draft")
    expect(page.locator(".turn.edited")).to_have_count(0)
    page.locator(".turn").get_by_role("button", name="Edit").click()
    ask(page, "two")
    assert page.evaluate(TURNS) == ["two"]
    expect(page.locator("#omni-message")).to_have_value("a draft")


# ── system prompt and window
# ────────────────────────────────────────────────────────────────────────────────────


def test_a_system_prompt_reaches_the_model_and_its_race_and_belongs_to_its_chat(
    page: Page, services: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced: list[list[Mapping[str, str]]] = []
    race = services.race

    def noted(**options: Any) -> Any:
        raced.append(options["messages"])
        return race(**options)

    monkeypatch.setattr(services, "race", noted)
    button = page.get_by_role("button", name="System prompt")
    button.click()
    expect(page.locator("#omni-system-text")).to_be_focused()
    page.keyboard.type("Answer like a pirate.")
    page.keyboard.press("Escape")
    expect(page.locator("#omni-system")).to_be_hidden()
    ask(page, "hello")
    system = {"role": "system", "content": "Answer like a pirate."}
    assert services.calls[-1]["messages"] == [system, {"role": "user", "content": "hello"}]
    page.evaluate("window.held = omni.replay.plain(omni.chat.turns[0])")  # else it may be collected
    assert raced and all(messages == services.calls[-1]["messages"] for messages in raced)

    page.reload()
    ask(page, "again")
    assert services.calls[-1]["messages"][0] == system and len(services.calls[-1]["messages"]) == 4
    new_chat(page)
    ask(page, "other")
    assert services.calls[-1]["messages"] == [
        {"role": "system", "content": ""},  # which counts as written
        {"role": "user", "content": "other"},
    ]
    open_chats(page).get_by_role("button", name="hello 2 answers").click()
    expect(page.get_by_role("button", name="System prompt, written")).to_be_visible()
    page.evaluate("omni.chat.now.system = 'x'.repeat(8001)")
    ask(page, "too long")
    expect(page.locator(".turn").last.locator(".status.error")).to_contain_text(
        "The system prompt has 8,001 characters"
    )


def test_the_window_is_shown_and_what_is_not_read_any_more(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(page, "one")
    expect(page.locator(".window")).to_be_hidden()  # nothing is known of it
    size = {"limit": 8192, "used": 1234, "dropped": 0}

    def measured(*given: Any) -> Any:
        made = generation(*given)
        taken = size["used"] - len(made.token_ids)
        return replace(
            made, prompt_tokens=taken, context_limit=size["limit"], dropped_messages=size["dropped"]
        )

    monkeypatch.setattr(fakes, "generation", measured)
    ask(page, "two")
    expect(page.locator(".window")).to_have_text("1,234 of 8,192 tokens")
    expect(page.get_by_role("progressbar", name="How full the model's window is")).to_have_attribute(
        "aria-valuenow", "15"
    )
    size |= {"used": 8000, "dropped": 2}
    ask(page, "three")
    expect(page.locator(".window.full")).to_have_text("8,000 of 8,192 tokens")
    line = page.locator(".unread")
    page.evaluate("omni.chat.reads = ''; omni.chat.drawContext()")  # of a model that reads as much as fits
    expect(line).to_have_text("The oldest 2 messages no longer fit and are not read any more.")
    for _ in range(2):
        page.reload()
        # by a small one that reads the newest alone
        expect(line).to_have_text("The oldest 2 messages are not read any more.")
        assert line.evaluate("node => [...node.parentNode.children].indexOf(node)") == 1, (
            "below the first turn"
        )


# ── another model
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("comes", [True, False])
def test_what_is_there_answers_until_another_model_is_ready(
    comes: bool, page: Page, services: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(page, "before")
    first = services.calls[-1]["target"]
    services.started = {pair: 0.0 for pair in services.started if pair[0] == first}  # long ago
    monkeypatch.setattr(services, "load_seconds", 8.0)
    page.get_by_role("button", name="Details").click()
    page.locator("#omni-target input").click()
    other = next(
        card for card in fakes.CARDS if (card.availability == "too big") != comes and card.name != first
    )
    page.get_by_role("option", name=other.title).first.click()
    hint, send = page.locator(".composer .hint"), page.get_by_role("button", name="Send", exact=True)
    expect(hint).to_have_text(f"Meanwhile {title_of(first)} answers.")
    ask(page, "meanwhile")
    assert services.calls[-1]["target"] == first
    if comes:
        expect(hint).not_to_contain_text("Meanwhile")
        ask(page, "after")
        assert services.calls[-1]["target"] == other.name
    else:
        expect(hint).to_contain_text("is too big. Choose another target")
        expect(hint).to_contain_text(f"Meanwhile {title_of(first)} answers.")
        expect(send).to_be_enabled()
        ask(page, "instead")
        assert services.calls[-1]["target"] == first


# ── looks
# ───────────────────────────────────────────────────────────────────────────────────────────────────────

FINGERS = """root => [...document.querySelectorAll(root)].flatMap(box => [...box.querySelectorAll("button, input, textarea")])
    .filter(node => node.offsetParent && Math.min(node.offsetHeight, node.offsetWidth) < 44 && !node.closest(".told, .md"))
    .map(node => node.outerHTML.slice(0, 120))"""
LETTERS = """root => [...document.querySelectorAll(root)].flatMap(box => [...box.querySelectorAll("*")])
    .filter(node => node.offsetParent && [...node.childNodes].some(one => one.nodeType === 3 && one.data.trim()))
    .filter(node => parseFloat(getComputedStyle(node).fontSize) < 13.45).map(node => node.outerHTML.slice(0, 120))"""


def test_a_phone_shows_all_of_it(
    browser: Browser, served: tuple[FakeServices, str], services: FakeServices
) -> None:
    with someone(browser, AS_TEXT, viewport={"width": 390, "height": 844}, has_touch=True) as context:
        page = come(context, served)
        ask(page, MARKDOWN)
        page.get_by_role("button", name="System prompt").click()
        page.fill("#omni-system-text", "Be brief.")
        for root in (".bar", ".system-prompt"):
            assert page.evaluate(FINGERS, root) == []
        for root in (".bar", ".system-prompt", ".md"):
            assert page.evaluate(LETTERS, root) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        drawer = open_chats(page)
        drawer.get_by_role("button", name="Rename “this”").click()
        assert page.evaluate(FINGERS, ".chats-drawer") == [] == page.evaluate(LETTERS, ".chats-drawer")
        box = drawer.bounding_box()
        assert box and (box["x"], box["width"]) == (0, 390)
