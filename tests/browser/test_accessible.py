"""No finding of axe and no label below 12 px on any tab: wide, on a phone, light, dark, and at 200 %, over fake
services."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.test_chat import ask, come, served, someone
from tests.support.fakes import FakeServices

pytestmark = pytest.mark.browser
__all__ = ["served"]  # the fixture

axe_core_python = pytest.importorskip(
    "axe_core_python", reason="axe-core-python is not installed (it is in requirements-dev.txt)"
)
SCRIPT = (Path(axe_core_python.__path__[0]) / "axe.min.js").read_text(encoding="utf-8")
FOUND = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .map(one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 160) + " " + (node.any[0]?.message ?? "")).join(" | ")}`)"""
# text, and what the styles write before or behind it
SMALL = """() => [...document.querySelectorAll("body *")].filter(node => node.checkVisibility({visibilityProperty: true}))
    .flatMap(node => ["", "::before", "::after"].map(part => {
        const style = getComputedStyle(node, part || null), own = [...node.childNodes].some(one => one.nodeType === 3 && one.data.trim());
        const said = part ? !["none", "normal", '""'].includes(style.content) : own;
        return said && parseFloat(style.fontSize) < 12 ? `${node.tagName}.${node.getAttribute("class")}${part} ${style.fontSize}` : ""; }))
    .filter(Boolean)"""
DIM = """() => [...document.querySelectorAll("[data-widget=chat] button, [role=tabpanel]")].some(node => {
    for (let at = node; at; at = at.parentElement) if (getComputedStyle(at).opacity < 1 && !at.matches(":disabled")) return true; })"""
SIZES = {"wide": (1440, 900), "phone": (390, 844), "at 200 %": (720, 450)}


def settle(page: Page) -> None:
    """Wait until what fades in is there: a tab, and a widget that an event has just ended for."""
    page.wait_for_timeout(300)
    page.wait_for_function(f"!({DIM})()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_and_each_label_can_be_read(
    browser: Browser, served: tuple[FakeServices, str], size: str, scheme: str
) -> None:
    served[0].pace = 0.0
    width, height = SIZES[size]
    with someone(
        browser, viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    ) as context:
        page = come(context, served)
        page.evaluate(SCRIPT)

        def check(where: str) -> None:
            assert page.evaluate(FOUND) == [], where
            assert page.evaluate(SMALL) == [], where

        check("first screen")
        ask(page, "a question, answered in **Markdown** with `code`")
        settle(page)
        check("answer")
        page.get_by_role("button", name="Text", exact=True).click()
        page.get_by_role("switch", name="Expert").click()
        for tab in ("Chat", "Same task", "Adaptation", "Compare", "History"):
            page.get_by_role("tab", name=tab, exact=True).click()
            settle(page)
            check(tab)
