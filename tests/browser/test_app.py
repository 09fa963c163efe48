"""The running app in a real browser: chat, traffic, comparison, history, and what a restart brings back."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from omnidemo.core.answer_figures import FIGURES
from tests.browser.visits import EXPERT, WAIT, App, ask, guess_four, open_tab, visitor

pytestmark = pytest.mark.browser
HOSTILE = (
    "<script>window.hit = 1</script><img src=x onerror='window.hit = 2'> ${window.hit = 3} {{value}} 😀 What"
    " is 17 plus 25?"
)
LAST = "omni.chat.turns.at(-1).answer"
SOURCES = {"direct", "ngram", "copied", "corrected", "bonus", "plain"}


@pytest.fixture
def page(browser: Browser, app: App) -> Iterator[Page]:
    with visitor(browser, app, EXPERT) as page:
        yield page


def play(page: Page, topic: str, count: int) -> None:
    """Let prompts of a topic be answered in *Same task*, and look at the Adaptation tab."""
    open_tab(page, "Same task")
    page.get_by_role("radio", name="Teach it a topic").check()
    page.locator("#omni-task").get_by_label("Topic").last.select_option(topic)
    before = page.evaluate("omni.task.csv().length")
    page.get_by_role("button", name=re.compile("Run ten|The next ten")).click()
    page.wait_for_function("count => omni.task.csv().length >= count", arg=before + count - 1)
    page.get_by_role("button", name="■ Stop").click()
    expect(page.get_by_role("button", name=re.compile("Run ten|The next ten"))).to_be_visible()
    open_tab(page, "Adaptation")


def download(page: Page, button: str, path: Path) -> pd.DataFrame:
    with page.expect_download() as started:
        page.get_by_role("button", name=button).click()
    started.value.save_as(path)
    return pd.read_csv(path)


def test_a_chat_shows_every_token_and_only_text(page: Page, app: App) -> None:
    tokens = ask(page, HOSTILE)

    prompt, answer, count = app.query(
        "select prompt, answer, tokens from requests where kind = 'chat' order by id desc limit 1"
    )[0]
    assert prompt == HOSTILE
    assert answer.strip()
    assert "".join(token["text"] for token in tokens) == answer
    assert len(tokens) == count
    assert {token["source"] for token in tokens} <= SOURCES
    colours = {token["source"]: token["colour"] for token in tokens if token["source"] != "plain"}
    assert len(set(colours.values())) == len(colours) and "rgba(0, 0, 0, 0)" not in colours.values()

    legend = {name: int(page.locator(f".legend .s-{name} b").inner_text()) for name in SOURCES}
    assert legend == {name: sum(token["source"] == name for token in tokens) for name in SOURCES}

    assert page.locator(".turn .say").last.evaluate("node => node.textContent") == HOSTILE
    assert page.locator(".turn script, .turn img").count() == 0
    assert page.evaluate("window.hit") is None

    page.reload()  # a reload keeps the chat
    expect(page.locator(".turn")).to_have_count(1)
    assert (
        "".join(page.locator(".turn .toks .tok").evaluate_all("spans => spans.map(span => span.textContent)"))
        == answer
    )


def test_a_second_turn_goes_on_and_stop_ends_an_answer(page: Page, app: App) -> None:
    ask(page, "Tell me a story about a fox.")
    page.fill("#omni-message", "Tell me a long story about an owl and a storm.")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
    turn = page.locator(".turn").last
    expect(turn.locator(".status")).to_have_text("Stopped by you.")
    shown = "".join(turn.locator(".toks .tok").evaluate_all("spans => spans.map(span => span.textContent)"))
    end = page.evaluate("omni.chat.turns.at(-1).answer.end")
    assert end is None or (end["finish"] == "cancelled" and end["text"] == shown)
    assert len(ask(page, "What is 3 plus 4?")) > 0


def test_a_topic_that_is_taught_grows_the_curve_and_makes_a_version(page: Page, app: App) -> None:
    play(page, "maths", 5)
    (before,) = app.query("select count(*) from requests where domain = 'default'")[0]
    points = page.locator("#omni-answers circle.steps")
    expect(points).to_have_count(min(100, before))
    play(page, "maths", 5)
    (after,) = app.query("select count(*) from requests where domain = 'default'")[0]
    assert after > before
    expect(points).to_have_count(min(100, after))
    expect(page.locator("#omni-versions tbody th").first).to_contain_text("v")
    expect(page.locator("#omni-trainer .state")).to_contain_text("v")
    assert app.query("select count(*) from training_steps")[0][0] >= 2


def test_how_far_to_guess_ahead_is_chosen_for_an_answer(page: Page) -> None:
    guess_four(page)
    ask(page, "What is 4 plus 5?")
    assert page.evaluate(f"Math.max(...{LAST}.rounds.map(round => (round.o ?? []).length))") == 0
    assert page.evaluate(f"{LAST}.tokens.some(line => line.k === 'x' || line.s === 'direct')")


def test_an_adapter_goes_out_as_a_zip_and_comes_back(page: Page, tmp_path: Path) -> None:
    play(page, "maths", 5)
    versions = page.locator("#omni-versions")
    newest = versions.locator("tbody th").first
    expect(newest).to_contain_text("v")
    trainer = page.locator("#omni-trainer")
    trainer.get_by_role("button", name="Pause").click()  # an update on its way would be a version too many
    expect(trainer.locator(".omni-widget")).to_have_attribute("data-state", "paused")
    before = int(re.findall(r"\d+", newest.inner_text())[0])
    with page.expect_download() as started:
        versions.get_by_role("button", name=re.compile("Export version")).first.click()
    path = tmp_path / started.value.suggested_filename
    started.value.save_as(path)
    assert {"adapter_config.json", "adapter_model.safetensors"} <= {
        Path(name).name for name in zipfile.ZipFile(path).namelist()
    }

    upload = page.locator("input[type=file][accept='.zip']")
    upload.set_input_files(path)
    expect(newest).to_contain_text(f"v{before + 1}")
    expect(newest).to_contain_text("live")
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"not a zip")
    upload.set_input_files(bad)
    expect(page.locator("#omni-adaptation").get_by_role("alert")).to_contain_text("zip")
    trainer.get_by_role("button", name="Resume").click()


def test_a_topic_line_is_chosen_and_shown(page: Page) -> None:
    picker = page.locator("#omni-line input")
    picker.fill("poems")
    picker.press("Enter")
    ask(page, "Tell me a story about a lantern.")
    expect(page.locator(".turn").last.locator(".facts")).to_contain_text("topic memory poems")
    assert page.evaluate("omni.chat.turns.at(-1).answer.end.line") == "poems"

    picker.click()
    page.get_by_role("option", name="automatic").click()
    expect(picker).to_have_value("automatic")
    ask(page, "Write a Python function that returns the sum of a list.")
    assert page.evaluate("omni.chat.turns.at(-1).answer.end.why")
    assert page.evaluate("omni.chat.turns.at(-1).answer.end.topic") == "code"  # where the router is sure
    expect(page.locator(".turn").last.locator(".facts")).to_contain_text("topic: code")

    open_tab(page, "Adaptation")
    page.get_by_label("Topic memory to look at").click()
    page.get_by_role("option", name="poems").click()
    expect(page.locator("#omni-versions h3")).to_have_text("Adapter versions · poems")
    expect(page.locator("#omni-trainer h3").first).to_have_text("In the background · poems")


def test_a_comparison_is_identical_and_its_csv_opens(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Compare")
    page.fill("#omni-compare-prompt textarea", "What is 17 plus 25?")
    page.get_by_label("Speculative (one vocabulary)").check()
    page.click("#omni-compare-run")
    board = page.locator("#omni-compare")
    expect(board.get_by_text("9 of 9 answers · 3 runs of each · done")).to_be_visible()
    expect(board.locator("[role=alert]")).to_contain_text(
        "speculative was left out: target and drafter have different vocabularies"
    )
    # all but plain decoding itself
    expect(board.locator(".lane .badge.good", has_text="same text")).to_have_count(2)
    expect(board.locator(".lane .badge.bad")).to_have_count(0)
    answers = board.locator(".lane .toks").evaluate_all("lanes => lanes.map(lane => lane.textContent)")
    assert len(answers) == 3 and len(set(answers)) == 1 and answers[0].strip()

    frame = download(page, "All rows as CSV", tmp_path / "compare.csv")
    assert sorted(frame["method"]) == [
        name for name in ("autoregressive", "fresh", "ngram-exact") for _ in range(3)
    ]
    assert frame.groupby("repetition")["method"].nunique().tolist() == [3, 3, 3], "the runs are interleaved"
    assert frame["repetition"].is_monotonic_increasing and {"guesses_right_share", "copied_share"} <= set(
        frame
    )
    assert frame["identical_to_autoregressive"].all()
    assert set(frame["answer"]) == set(answers)
    assert (frame["tokens_per_second"] > 0).all() and (frame["measured_speedup"] > 0).all()
    plain = frame[frame["method"] == "autoregressive"]
    assert (plain["measured_speedup"] == 1).all() and (plain["block_efficiency_tokens_per_round"] == 1).all()
    middle = frame[frame["method"] == "ngram-exact"]["tokens_per_second"].median()
    row = page.evaluate(
        "omni.compare.last.table.find(row => row.method === 'ngram-exact').tokens_per_second[0]"
    )
    assert row == pytest.approx(middle, abs=1e-3), "what is shown agrees with the CSV"


def test_the_last_comparison_is_there_after_a_reload_until_it_is_cleared(page: Page) -> None:
    shown = """() => [".lanes", "tbody", ".ruler"].map(
        part => document.querySelector(`#omni-compare ${part}`)?.textContent)"""
    board, empty = page.locator("#omni-compare"), page.get_by_text("Nothing is compared")
    open_tab(page, "Compare")
    page.fill("#omni-compare-prompt textarea", "What is 8 plus 5?")
    page.click("#omni-compare-run")
    expect(board.get_by_text("9 of 9 answers · 3 runs of each · done")).to_be_visible()
    before = page.evaluate(shown)
    page.reload()
    kept = re.compile(
        r"^Kept from .+, with .*: “What is 8 plus 5\?” · 9 of 9 answers · 3 runs of each · done$"
    )
    expect(board.locator(".progress [role=status]")).to_have_text(kept)
    page.wait_for_function("shown => document.querySelector('#omni-compare .axis span')")
    assert page.evaluate(shown) == before and all(before)
    expect(empty).to_be_hidden()
    answer = board.locator(".lane details").last
    answer.locator("summary").click()
    assert answer.locator(".tok").count() > 0
    with page.expect_download() as started:
        page.get_by_role("button", name="All rows as CSV").click()
    assert started.value.suggested_filename == "omnidemo-compare.csv"

    # What is too long is kept without its answers, and what is too long even so is not.
    page.evaluate(
        "omni.compare.last.lanes[0].lines += ' '.repeat(400_000); omni.compare.keep(omni.compare.last)"
    )
    page.reload()
    expect(board.locator(".lane .verdict")).to_have_count(3)
    expect(board.locator(".lane details")).to_have_count(0)
    board.get_by_role("button", name="Clear").click()
    expect(empty).to_be_visible()
    page.reload()
    expect(empty).to_be_visible()
    page.evaluate("omni.compare.keep({ lanes: [], prompt: 'x'.repeat(400_000), state: 'done', methods: [] })")
    assert page.evaluate("omni.load('compared', null)") is None


def test_a_batch_is_compared_from_a_file_and_a_bad_line_is_named(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Compare")
    page.get_by_role("tab", name="Many prompts").click()
    upload, good, bad = (
        page.locator("#omni-compare-file input[type=file]"),
        tmp_path / "good.jsonl",
        tmp_path / "bad.jsonl",
    )
    tmp_path.joinpath("refused.png").write_bytes(b"no text")
    page.get_by_label("A file").check()
    expect(page.locator("#omni-compare-mode").get_by_label("Topic", exact=True)).to_be_hidden()
    upload.set_input_files(tmp_path.joinpath("refused.png"))  # which the page refuses: no topic in its place
    for _ in range(2):  # said each time
        page.click("#omni-compare-batch")
        page.wait_for_function("omni.compare.last.state === 'error' && !omni.compare.busy")
        expect(page.locator("#omni-compare [role=alert]")).to_contain_text(
            "There is no file: none was chosen"
        )
        page.wait_for_timeout(500)  # that the stream has ended is known a little later
        expect(page.locator("#omni-compare [role=alert]")).to_contain_text(
            "There is no file: none was chosen"
        )
    bad.write_text('{"prompt": "What is 1 plus 1?"}\nnot json\n')
    upload.set_input_files(bad)
    expect(page.locator("#omni-compare-file")).to_contain_text(re.compile(r"bad\s*\.jsonl"))
    page.click("#omni-compare-batch")
    expect(page.locator("#omni-compare [role=alert]")).to_contain_text("line 2: this is not JSON")

    page.locator("#omni-compare-file").get_by_role("button", name="Clear").click()
    good.write_text('{"prompt": "What is 1 plus 1?"}\n{"prompt": "What is 5 plus 8?"}\n')
    upload.set_input_files(good)
    expect(page.locator("#omni-compare-file")).to_contain_text(re.compile(r"good\s*\.jsonl"))
    page.click("#omni-compare-batch")
    expect(page.locator("#omni-compare").get_by_text("6 of 6 answers · 2 prompts · done")).to_be_visible()
    expect(page.locator("#omni-compare tbody tr").first).to_contain_text("2 of 2")
    frame = download(page, "All rows as CSV", tmp_path / "batch.csv")
    assert frame.groupby("method")["prompt_index"].apply(sorted).tolist() == [[0, 1]] * 3


def test_a_link_shows_one_stored_answer_and_prompts_are_in_sight(page: Page, app: App) -> None:
    ask(page, "What is 9 plus 2?")
    page.wait_for_function("omni.historyTab && !omni.chat.busy()")
    open_tab(page, "History")
    row = page.locator("#omni-history tbody tr").first
    expect(row).to_contain_text("What is 9 plus 2?")
    edges = (
        "cell => [cell.getBoundingClientRect(), cell.closest('.rolls').getBoundingClientRect()].map(box =>"
        " box.right)"
    )
    right, end = row.locator("td.prompt").evaluate(edges)
    assert right <= end and row.locator("td.prompt").evaluate("cell => cell.offsetWidth") >= 200
    newest = app.query("select max(id) from requests")[0][0]
    page.goto(f"{app.address}#answer-{newest}")
    page.reload()
    expect(page.locator("#omni-history tr.more .say").first).to_have_text("What is 9 plus 2?")
    expect(page.locator("#omni-history tbody tr")).to_have_count(2)  # the answer, and all that is known of it
    expect(page.get_by_role("button", name="Copy a link to this answer")).to_be_visible()


def test_history_downloads_and_deletes(page: Page, app: App, tmp_path: Path) -> None:
    ask(page, "=1+1 What is 6 plus 3?")
    open_tab(page, "History")
    expect(page.locator("#omni-history tbody tr").first).to_contain_text("=1+1 What is 6 plus 3?")
    frame = download(page, "Requests as CSV", tmp_path / "requests.csv")
    stored = app.query("select id, tokens from requests order by id")
    assert sorted(zip(frame["request_id"], frame["tokens"], strict=True)) == stored
    assert frame["prompt"].str.startswith("'=1+1").sum() == 1  # a spreadsheet shows it, and runs nothing
    kept, figures = frame.set_index("request_id").loc[stored[-1][0]], page.evaluate(f"{LAST}.figures")
    for figure in FIGURES:
        if (shown := figures.get(figure.name)) is None:
            assert pd.isna(kept[figure.column]), figure.name
        else:
            assert kept[figure.column] == pytest.approx(shown, abs=1e-4), figure.name
    rounds = download(page, "Rounds as CSV", tmp_path / "rounds.csv")
    emitted = rounds.groupby("request_id")["emitted"].sum()
    assert emitted.loc[stored[-1][0]] == stored[-1][1]

    newest = stored[-1][0]
    page.get_by_label(f"Select request {newest}", exact=True).check()
    page.get_by_role("button", name="Delete 1 selected request").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("1 request deleted.")).to_be_visible()
    assert app.query("select id from requests order by id") == [(one,) for one, _ in stored[:-1]]
    assert app.query("select count(*) from rounds where request_id = ?", newest) == [(0,)]


def test_a_restart_keeps_all_and_enter_before_the_models_are_ready_sends_when_they_are(
    browser: Browser, page: Page, app: App
) -> None:
    play(page, "maths", 5)
    expect(page.locator("#omni-versions tbody th").first).to_contain_text("v")
    expect(page.locator("#omni-trainer .omni-widget")).to_have_attribute("data-state", "idle")
    open_tab(page, "Chat")
    try:
        app.stop()
        expect(page.locator("[data-widget=pair] .words")).to_contain_text("The server does not answer")
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
        kept = [
            app.query(f"select count(*) from {table}")[0][0]
            for table in ("requests", "ngrams", "adapter_versions")
        ]
        (live,) = app.query("select max(version) from adapter_versions where domain = 'default'")[0]
        assert min(kept) > 0
    finally:
        app.start()

    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        context.set_default_timeout(WAIT)
        newcomer = context.new_page()
        newcomer.goto(app.address)
        newcomer.fill("#omni-message", "What is 3 plus 4?")
        newcomer.keyboard.press("Enter")
        expect(newcomer.locator("p.hint")).to_contain_text("as soon as the models are ready")
        words = newcomer.locator("[data-widget=pair] .words")
        assert "downloading" not in words.inner_text()
        expect(newcomer.locator(".turn .foot .facts")).not_to_be_empty()
        assert newcomer.evaluate("omni.chat.turns.map(turn => turn.user)") == ["What is 3 plus 4?"]
        expect(newcomer.locator("#omni-message")).to_have_value("")
        expect(words).to_have_text(
            re.compile(r"Ready\. Small model: \d\.\d\sM parameters\. Big model: .+, \d+\.\d\sM")
        )

        end = newcomer.evaluate("omni.chat.turns.at(-1).answer.end")
        assert end["version"] == live
        assert end["cache"] == kept[1]
        open_tab(newcomer, "History")
        expect(newcomer.locator("#omni-history tbody tr")).to_have_count(min(200, kept[0] + 1))
