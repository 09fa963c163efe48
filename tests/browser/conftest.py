"""One browser and two apps for all tests here: starting an app and loading its page for the first time takes
as long as several tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser.visits import FLAGS, INSIDE, OPERATOR_KEY, WAIT, App, awaits_modules, running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        assert not os.environ.get("CI"), (
            "the browser tests need chromium: apt-get install -y --no-install-recommends chromium"
        )
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    expect.set_options(timeout=WAIT)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS.split())
        new_context = chromium.new_context

        def looked_into(**options: Any) -> BrowserContext:
            context = new_context(**options)
            context.add_init_script(INSIDE)
            context.on("page", awaits_modules)
            return context

        chromium.new_context = looked_into  # type: ignore[method-assign]
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Somebody's own app, which learns after every fourth answer. What the tests before left in it is its
    past: its requests, a version."""
    yield from running(App(tmp_path_factory.mktemp("own")))


@pytest.fixture(scope="package")
def public(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app for strangers, as it learns where nobody set anything. Every visitor comes to the fresh
    drafter."""
    settings = {"PUBLIC": "true", "OPERATOR_KEY": OPERATOR_KEY, "STEPS_PER_UPDATE": 12, "BATCH_SIZE": 8}
    yield from running(App(tmp_path_factory.mktemp("public"), **settings))
