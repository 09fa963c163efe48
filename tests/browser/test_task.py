"""One task again and again in a real browser: rows that are drawn while they are written, Stop and go on, the
CSV, and others who ask meanwhile."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.visits import App, ask, number, open_tab, visit, visitor

pytestmark = pytest.mark.browser
PHONE = ViewportSize(width=390, height=844)
INPUTS = "\n".join(f"What is {number} plus {number + 3}?" for number in (12, 23, 34))


def begin(page: Page) -> None:
    open_tab(page, "Same task")
    page.get_by_role("radio", name="Your own").check()
    page.get_by_label("Inputs", exact=True).fill(INPUTS)


def rows(page: Page) -> list[str]:
    return page.locator(".task-rows .facts").all_inner_texts()


def test_a_schema_is_checked_while_it_is_typed(browser: Browser, app: App) -> None:
    with visitor(browser, app) as page:
        begin(page)
        schema = page.get_by_label("JSON schema that each answer obeys")
        said = page.locator(".own .alert")
        for text, why in (
            ('{"type": "duck"', "The schema should be"),
            ('{"type": "duck"}', "The schema of the answer cannot be used (Invalid type: duck); change it."),
        ):
            schema.fill(text)
            expect(said).to_contain_text(why)
        schema.fill('{"type": "null"}')
        page.wait_for_timeout(1_500)  # until it is checked
        expect(said).to_be_hidden()


def test_three_answers_with_a_stop_between_and_somebody_who_asks(
    browser: Browser, app: App, tmp_path: Path
) -> None:
    with visitor(browser, app) as page, visitor(browser, app) as other:
        begin(page)
        page.get_by_role("button", name="Run ten").click()
        expect(page.locator(".task-rows > li").first).to_contain_text("What is 12 plus 15?")
        page.get_by_role("button", name="■ Stop").click()
        going_on = page.get_by_role("button", name="The next ten").or_(
            page.get_by_role("button", name="Run ten")
        )
        expect(going_on).to_be_visible()
        done = page.evaluate("omni.task.csv().length")
        assert done < 3 and not page.evaluate("omni.task.busy")

        going_on.click()  # from where it was stopped
        assert ask(other, "What is 3 plus 4?"), "nobody waits for all of them"
        expect(page.get_by_role("alert").filter(has_text="All your inputs are answered")).to_be_visible()
        expect(page.locator(".task-rows > li")).to_have_count(3)

        with page.expect_download() as started:
            page.get_by_role("button", name="Rows as CSV").click()
        started.value.save_as(tmp_path / "rows.csv")
        table = pd.read_csv(tmp_path / "rows.csv")
        assert list(table["number"]) == [1, 2, 3] and list(table["input"]) == INPUTS.split("\n")
        for text, row in zip(rows(page), table.to_dict("records"), strict=True):
            counts = f"{row['copied_tokens']} copied · {row['guessed_tokens']} guessed · {row['own_tokens']} by the big model"
            assert counts in text and f"{number(row['tokens_per_round'])} tokens a step" in text
            assert f"nothing learned {number(row['nothing_learned_tokens_per_round'])}" in text
        written = page.locator(".task-rows .toks.line").evaluate_all("all => all.map(one => one.textContent)")
        assert written == list(table["answer"].fillna("")), "the spans, joined, are the answers"
        told = page.locator(".task-answers > div > .colour-key span:not(.swatch)").all_inner_texts()
        assert {"corrected"} < set(told), "a key of the colours stands below the rows"
        pace = table["tokens"].sum() / (table["tokens"] / table["tokens_per_round"]).sum()
        expect(page.locator(".task-headline")).to_contain_text(f"3 answers: {number(pace)} tokens a step. ")
        newest = table.iloc[-1]
        for what in ("empty_memory", "fresh_drafter"):
            said = f"({number(newest[f'{what}_tokens_per_round'])} without)"
            expect(page.locator(".task-side")).to_contain_text(said)
        drawn = page.locator(".task-side .plot").evaluate(
            "box => Object.fromEntries(box.data.filter(one => one.hovertemplate).map(one => [one.meta.column, one.y]))"
        )
        assert drawn == {column: list(table[column]) for column in drawn} and len(drawn) == 3

        page.locator(".task-rows summary").last.click()
        expect(page.get_by_role("group", name="Answer 3;")).to_be_visible()
        assert (
            len(app.query("select 1 from requests where domain = 'own' and finish_reason != 'cancelled'"))
            == 3
        )

        asked = len(app.query("select 1 from requests"))
        page.get_by_role("button", name="Race it against what it was").click()
        window = page.get_by_role("dialog", name="Then and now")
        expect(window.locator(".race-lane")).to_have_count(2)
        page.keyboard.press("End")
        expect(window.locator(".race-figure")).to_contain_text(
            re.compile(r"[\d.]+ → [\d.]+\s*tokens a step then and now; [\d.]+ × as fast")
        )
        lanes = window.locator(".race-lane .replay-text").evaluate_all(
            "all => all.map(one => one.textContent)"
        )
        assert lanes[0] == lanes[1] and lanes[0]
        assert len(app.query("select 1 from requests")) == asked, "nothing of it is stored"
        page.keyboard.press("Escape")

        page.reload()
        visit(page, app)
        open_tab(page, "Same task")
        expect(page.locator(".task-rows > li")).to_have_count(3)
        assert page.locator(".task-rows .toks.line .tok").count(), "colours and all"

        page.get_by_role("button", name="Forget and begin again").click()
        page.get_by_role("button", name="Forget it").click()
        expect(page.get_by_role("button", name="Run ten")).to_be_visible()
        expect(page.locator(".task-rows > li")).to_have_count(0)
        expect(page.locator(".task-answers .colour-key")).to_have_count(0)
        assert not page.evaluate("omni.task.csv().length") and page.evaluate("omni.task.asked().first") == 0


def test_two_visitors_play_a_task_and_neither_has_the_others_memory(browser: Browser, public: App) -> None:
    with visitor(browser, public) as one, visitor(browser, public, viewport=PHONE) as other:
        for page in (one, other):
            begin(page)
            expect(page.locator(".whose")).to_contain_text("The memory is yours alone")
        one.get_by_role("button", name="Run ten").click()
        other.get_by_role("button", name="Run ten").click()
        for page in (one, other):
            expect(page.get_by_role("alert").filter(has_text="All your inputs")).to_be_visible()
        mine, theirs = (page.evaluate("omni.task.csv()") for page in (one, other))
        memory = [[row["memory_tokens"] for row in rows] for rows in (mine, theirs)]
        assert memory[0] == memory[1] and memory[0][0] == 0 < memory[0][1], "as if each were alone"
        assert [row["answer"] for row in mine] == [row["answer"] for row in theirs]
        assert [row["copied_earlier_tokens"] for row in mine] == [
            row["copied_earlier_tokens"] for row in theirs
        ]
        assert other.evaluate("document.documentElement.scrollWidth") == PHONE["width"]

        one.get_by_role("button", name="Forget and begin again").click()
        one.get_by_role("button", name="Forget it").click()
        expect(one.locator(".task-rows > li")).to_have_count(0)
        visit(other, public)  # a reload: the rows are this browser's, and the memory the visitor's
        open_tab(other, "Same task")
        expect(other.locator(".task-rows > li")).to_have_count(3)
        other.get_by_role("button", name="Clear the rows").click()
        other.get_by_role("button", name="Run ten").click()
        expect(other.get_by_role("alert").filter(has_text="All your inputs")).to_be_visible()
        again = other.evaluate("omni.task.csv()")
        assert again[0]["memory_tokens"] > memory[1][-1], "the other one's was not forgotten"
