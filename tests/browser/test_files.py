"""Text files of a message, in a real browser over fake services: chosen, pasted and taken away, sent in a
block with their name, and refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_chat import come, served, someone
from tests.support.fakes import FakeServices

pytestmark = pytest.mark.browser
Served = tuple[FakeServices, str]
__all__ = ["served"]  # the fixture

PASTE = """text => { const data = new DataTransfer(); data.setData("text/plain", text);
    const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
    document.getElementById("omni-message").dispatchEvent(event); }"""
NAMES = ".files .file b"


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    served[0].pace = 0.0
    with someone(browser, reduced_motion="reduce") as context:
        yield come(context, served)


def choose(page: Page, *files: tuple[str, bytes]) -> None:
    page.get_by_label("Text files", exact=True).set_input_files(
        [{"name": name, "mimeType": "application/octet-stream", "buffer": content} for name, content in files]
    )


def sent(page: Page) -> str:
    page.wait_for_function("!omni.chat.busy() && omni.chat.turns.length")
    return str(page.evaluate("omni.chat.turns.at(-1).user"))


def test_a_file_goes_with_the_message_in_a_block_with_its_name(page: Page) -> None:
    choose(
        page,
        ("add.py", b"def add(a, b):\r\n    return a + b\r\n"),
        ("notes.md", "\ufeffUse ```three``` ticks: é".encode()),
    )
    expect(page.locator(NAMES)).to_have_text(["add.py", "notes.md"])
    page.fill("#omni-message", "What is this?")
    page.keyboard.press("Enter")
    code = "add.py\n```python\ndef add(a, b):\n    return a + b\n```"
    notes = "notes.md\n````markdown\nUse ```three``` ticks: é\n````"
    assert sent(page) == f"What is this?\n\n{code}\n\n{notes}"
    expect(page.locator(NAMES)).to_have_count(0)
    expect(page.locator("#omni-message")).to_have_value("")


def test_half_a_character_is_sent_as_what_is_shown_for_it(page: Page) -> None:
    """The server refuses a text with a lone surrogate; the page said that the connection was lost."""
    page.evaluate(
        """() => { const box = document.getElementById("omni-message"); box.value = "a \\ud83d duck \\ud83e\\udd86";
            box.dispatchEvent(new Event("input", {bubbles: true})); }"""
    )
    page.focus("#omni-message")
    page.keyboard.press("Enter")
    assert sent(page) == "a \ufffd duck \U0001f986"
    expect(page.locator(".turn .status.error")).to_have_count(0)


def test_a_file_alone_is_a_message_and_one_taken_away_is_not_sent(page: Page) -> None:
    choose(page, ("one.txt", b"first"), ("two.csv", b"a,b\n1,2\n"))
    page.get_by_role("button", name="Take one.txt away").click()
    expect(page.locator(NAMES)).to_have_text(["two.csv"])
    page.get_by_role("button", name="Send", exact=True).click()
    assert sent(page) == "two.csv\n```csv\na,b\n1,2\n```"


def test_a_long_paste_becomes_a_file_and_a_short_one_does_not(page: Page) -> None:
    page.evaluate(PASTE, "a short one")
    expect(page.locator(NAMES)).to_have_count(0)
    page.evaluate(PASTE, "word " * 900)
    page.evaluate(PASTE, "other " * 900)
    expect(page.locator(NAMES)).to_have_text(["pasted.txt", "pasted-2.txt"])
    expect(page.locator(".chat-note")).to_have_text("What was pasted is long, so it goes along as a file.")


def test_what_cannot_be_sent_is_refused_in_one_sentence(page: Page) -> None:
    note = page.locator(".chat-note")
    choose(page, ("photo.png", b"\x89PNG\r\n\x1a\n\x00"))
    expect(note).to_have_text("“photo.png” is not a text file; only texts can be sent.")
    choose(page, ("big.log", b"x" * 600_000))
    expect(note).to_have_text(
        "“big.log” has 600 kB, and the files of a message may have 500 kB together; send a part of it."
    )
    choose(page, ("empty.txt", b" \n"))
    expect(note).to_have_text("“empty.txt” is empty.")
    expect(page.locator(NAMES)).to_have_count(0)
    page.locator(".bar").get_by_role("button", name="New chat", exact=True).click()
    choose(page, ("kept.txt", "ü".encode("utf-16")))
    page.get_by_role("button", name="Send", exact=True).click()
    assert sent(page) == "kept.txt\n```\nü\n```"
