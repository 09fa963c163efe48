"""An app of its own for tests in a real browser, and what all of them do with its page."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Page, expect

ROOT = Path(__file__).parents[2]
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)
OPERATOR_KEY = "sesame"
EXPERT = "localStorage.setItem('omnidemo.expert', 'true')"  # all is shown
# What the page's modules export stands on `omni` for the tests, which look inside: `omni.chat`. Then `inside`
# is true.
INSIDE = """{ let page;
    Object.defineProperty(window, "omni", { get: () => page, set: made => { page = made; made.then(async () => {
        const parts = [...document.querySelectorAll("link[rel=modulepreload]")];
        Object.assign(made, ...(await Promise.all(parts.map(part => import(part.href)))));
        globalThis.inside = true; }); } }); }"""
WAIT = 120_000  # milliseconds; a busy machine with few cores loads the models and the trainer slowly


def awaits_modules(page: Page) -> None:
    """Have the page, whenever it is loaded, wait until the tests can look inside; a page that is none of ours
    never lets them."""

    def waiting(load: Callable[..., Any]) -> Callable[..., Any]:
        def loaded(*args: Any, **options: Any) -> Any:
            made = load(*args, **options)
            if page.locator("gradio-app").count():
                with suppress(Error):
                    page.wait_for_function("globalThis.inside", timeout=20_000)
            return made

        return loaded

    page.goto, page.reload = waiting(page.goto), waiting(page.reload)  # type: ignore[method-assign]


def number(value: float) -> str:
    """As the page writes it: JavaScript rounds a tie up (13.25 is 13.3), Python to the even digit."""
    step = "1" if value >= 100 else "0.1" if value >= 10 else "0.01"
    return str(Decimal(float(value)).quantize(Decimal(step), ROUND_HALF_UP))


class App:
    """`app_of_tests.py`, or `app.py` itself, with other settings on a port and a storage folder of its own;
    `start` again after `stop` goes on with the same storage."""

    def __init__(
        self, storage: Path, program: str = "tests/browser/app_of_tests.py", **settings: Any
    ) -> None:
        self.storage, self.log = storage, storage / "app.log"
        self.program, self.settings = program, settings
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def start(self) -> None:
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        own = {
            "PORT": port,
            "STORAGE": self.storage,
            "DEVICE": "cpu",
            "UPDATE_INTERVAL": 4,
            "STEPS_PER_UPDATE": 2,
            "BATCH_SIZE": 2,
        }
        own |= self.settings
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OMNIDEMO_")}
        environment = inherited | {
            f"OMNIDEMO_{name}": str(value) for name, value in ({"TARGET": "bundled/large"} | own).items()
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, self.program], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
        self.address = f"http://127.0.0.1:{port}"
        end = time.monotonic() + WAIT / 1000
        while time.monotonic() < end and self.process.poll() is None:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"the app did not start:\n{self.log.read_text()[-4000:]}")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the app; what does not end within 20 seconds is killed and fails the test."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.wait(5)
            raise AssertionError(
                f"the app did not end on {how.name}:\n{self.log.read_text()[-4000:]}"
            ) from error

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of the app's database, read beside the app."""
        with closing(
            sqlite3.connect(f"file:{self.storage / 'omnidemo.db'}?mode=ro", uri=True, timeout=20)
        ) as connection:
            return connection.execute(sql, values).fetchall()


def running(app: App) -> Iterator[App]:
    try:
        app.start()
        yield app
    finally:
        app.stop()


@contextmanager
def visitor(browser: Browser, app: App, script: str = "", **options: Any) -> Iterator[Page]:
    """The page of somebody who comes for the first time, with both models ready; the script runs before those
    of the page. An error of the page's scripts fails the test."""
    with browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options}) as context:
        context.set_default_timeout(WAIT)
        context.add_init_script(script)
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        visit(page, app)
        yield page
        assert not errors, errors


def visit(page: Page, app: App) -> None:
    page.goto(app.address)
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()


def ask(page: Page, message: str) -> list[dict[str, str]]:
    """Send a message; the tokens of its finished answer as the page shows them: text, source, colour."""
    before = page.locator(".turn").count()
    page.fill("#omni-message", message)
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(before + 1)
    turn = page.locator(".turn").last
    expect(turn.locator(".foot .facts")).not_to_be_empty()
    expect(turn.locator(".status.error")).to_have_count(0)
    return turn.locator(".toks .tok").evaluate_all(
        """spans => spans.map(span => ({text: span.textContent, source: span.className.match(/s-(\\w+)/)[1],
                                        colour: getComputedStyle(span).backgroundColor}))"""
    )


def show_tokens(page: Page) -> None:
    """Answers as coloured tokens, not as text."""
    page.get_by_role("button", name="Tokens", exact=True).click()


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def guess_four(page: Page) -> None:
    """Have the page guess four tokens in each round, on any machine."""
    switch = page.get_by_role("switch", name="Expert")
    hidden = switch.get_attribute("aria-checked") != "true"
    if hidden:
        switch.click()
    page.get_by_text("Advanced", exact=True).click()
    page.get_by_label("How far to guess ahead").click()
    page.get_by_role("option", name="a fixed number of tokens").click()
    if hidden:
        switch.click()
