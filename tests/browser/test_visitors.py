"""Two browsers at a public app: neither sees, changes or holds up the other. And a page of another port,
which gets nothing anywhere."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visits import OPERATOR_KEY, WAIT, App, ask, open_tab, visit

pytestmark = pytest.mark.browser


@contextmanager
def stranger(browser: Browser, app: App, width: int) -> Iterator[Page]:
    """A new browser at the app. Whatever it writes to its console as an error fails the test, but for a
    conflict (409): the test's own."""
    with browser.new_context(viewport={"width": width, "height": 860}) as context:
        page = context.new_page()
        page.set_default_timeout(WAIT)
        expect.set_options(timeout=WAIT)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda said: (
                errors.append(said.text) if said.type == "error" and "(Conflict)" not in said.text else None
            ),
        )
        visit(page, app)
        yield page
        assert context.cookies() == []
        assert not errors, errors


def rows(page: Page, count: int) -> int:
    """Lines of the visitor's history, of which so many are waited for."""
    open_tab(page, "History")
    page.get_by_role("button", name="↻ Refresh").click()
    lines = page.locator("#omni-history tbody tr")
    expect(lines).to_have_count(count)
    page.wait_for_timeout(500)  # a line too many could come with what the button asked for
    found = lines.count()
    open_tab(page, "Chat")
    return found


def test_two_visitors_know_nothing_of_each_other(browser: Browser, public: App) -> None:
    others = {name for (name,) in public.query("select id from sessions")}
    with stranger(browser, public, 1440) as first, stranger(browser, public, 390) as second:
        strip = first.locator("#omni-visitor")
        expect(strip).to_contain_text("Your chats are kept for 24 hours, for you alone")
        assert second.evaluate("document.documentElement.scrollWidth") == 390
        # then it learns
        for question in (
            "What is 17 plus 25?",
            "What is 3 plus 4?",
            "What is 8 plus 9?",
            "What is 6 plus 6?",
        ):
            ask(first, question)
        assert ask(second, "Tell me a story about a fox.")
        open_tab(first, "Adaptation")
        expect(first.locator("#omni-trainer .state")).to_contain_text("v1")  # of the first one alone
        open_tab(first, "Chat")
        assert second.evaluate("omni.chat.turns.at(-1).answer.end.version") == 0
        assert (rows(first, 4), rows(second, 1)) == (4, 1)

        secrets = [page.evaluate("omni.visitor.id") for page in (first, second)]
        names = {name for (name,) in public.query("select id from sessions")}
        assert names - others == {page.evaluate("omni.session()") for page in (first, second)}
        everything = public.log.read_bytes() + b"".join(
            path.read_bytes() for path in public.storage.glob("omnidemo.db*")
        )
        assert not any(secret.partition(".")[0].encode() in everything for secret in secrets)

        first.route(
            "**/visitor/forget",
            lambda route: route.fulfill(status=409, json={"said": "An answer is still being written."}),
        )
        for said, turns in (("An answer is still being written.", 4), ("Deleted: 4 requests", 0)):
            strip.get_by_role("button", name="Delete everything that is kept about me").click()
            strip.get_by_role("button", name="Delete", exact=True).click()
            expect(strip).to_contain_text(said)
            assert first.locator(".turn").count() == turns  # the chat stays where the server has refused
            assert first.evaluate("omni.chats.list().length") == (1 if turns else 0)
            first.unroute("**/visitor/forget")
        assert (rows(first, 0), rows(second, 1)) == (0, 1)
        assert not list(
            public.storage.glob(f"adapters/*/*/visitor-{first.evaluate('omni.session().slice(9)')}*")
        )
        ask(second, "What is 5 plus 6?")


def test_the_operator_unlocks_what_concerns_everybody(browser: Browser, public: App) -> None:
    with stranger(browser, public, 1440) as page:
        strip, shared = page.locator("#omni-visitor"), page.locator("#omni-line")
        page.get_by_role("switch", name="Expert").click()  # what concerns everybody is for experts
        expect(shared).to_be_hidden()
        strip.get_by_role("button", name="Operator", exact=True).click()
        for key, said in (
            ("wrong", "That is not the operator's key"),
            (OPERATOR_KEY, "You are the operator"),
        ):
            strip.get_by_label("Operator's key").fill(key)
            strip.get_by_role("button", name="Unlock").click()
            expect(strip.get_by_role("status")).to_contain_text(said)
        expect(shared).to_be_visible()
        assert OPERATOR_KEY not in page.url and OPERATOR_KEY not in page.evaluate(
            "JSON.stringify(localStorage)"
        )
        visit(page, public)  # it was kept in the page's memory only
        expect(shared).to_be_hidden()


ATTACK = """async (app) => {
  const form = new FormData();
  form.append("files", new Blob(["x"]), "x.txt");
  const tries = [
    ["/config", {}], ["/", {}], ["/gradio_api/info", {}],
    ["/visitor", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}],
    ["/gradio_api/queue/join", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}],
    ["/gradio_api/upload", {method: "POST", body: form}],
  ];
  const read = [];
  for (const [path, how] of tries) try { read.push([path, (await fetch(app + path, how)).status]); } catch { }
  // Without CORS a request may still be sent: nothing may come of it.
  for (const [path, how] of tries) try { await fetch(app + path, {...how, mode: "no-cors", headers: {}}); } catch { }
  return read;
}"""

FRAME = """(app) => new Promise((done) => {
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.onload = () => { try { done(frame.contentDocument !== null); } catch { done(false); } };
  frame.src = app;
})"""


def test_a_page_of_another_port_reads_and_changes_nothing(browser: Browser, app: App, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><title>elsewhere</title>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser.new_context() as context:
            page = context.new_page()
            refused: list[int] = []
            page.on(
                "response",
                lambda answer: refused.append(answer.status) if re.match(app.address, answer.url) else None,
            )
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
            found = page.evaluate(ATTACK, app.address)
            assert found == []
            assert refused and set(refused) == {403}
            framed = page.evaluate(FRAME, app.address)
            assert framed is False
    finally:
        server.shutdown()
