"""The list of other models under *Details*: what is chosen there is loaded, what cannot be found is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.visits import App, ask, visitor
from tests.support.gguf_files import tiny_model, write_gguf

pytestmark = pytest.mark.browser


def test_a_file_is_named_loaded_and_never_shown_by_its_path(
    browser: Browser, app: App, tmp_path: Path
) -> None:
    file = write_gguf(tmp_path / "secret-place.gguf", tiny_model())
    with visitor(browser, app, viewport={"width": 390, "height": 844}) as page:
        page.get_by_role("button", name="Details").click()
        before = page.locator("#omni-target input").input_value()
        page.get_by_role("button", name="Other models").click()
        others = page.locator("#omni-models")
        expect(others.get_by_text("bundled/large", exact=True).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        field, as_target = others.get_by_label("Another model"), others.get_by_text("Use as target")
        field.fill(str(tmp_path / "nothing.gguf"))
        as_target.click()
        expect(others).to_contain_text("is not there; give the path of a .gguf file")
        assert page.locator("#omni-target input").input_value() == before and field.input_value().endswith(
            "nothing.gguf"
        )
        field.fill(str(file))
        as_target.click()
        expect(page.locator("#omni-target input")).to_have_value("Tiny Test · F32 · 1 MB · on this machine")
        # ready, and not as the pair before it was
        expect(page.locator("[data-widget=pair]")).to_contain_text("Big model: Tiny Test")
        ask(page, "hi")
        assert "secret-place" not in page.content()
        others.get_by_text("bundled/large", exact=True).first.click()
        expect(field).to_have_value("bundled/large")
        as_target.click()
        expect(page.locator("#omni-target input")).to_have_value(before)
    targets = [target for (target,) in app.query("select target from pairs")]
    assert len([one for one in targets if one.startswith("gguf/Tiny-Test-F32-")]) == 1 and not [
        one for one in targets if "secret" in one
    ]
