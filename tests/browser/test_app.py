"""The running app in a real browser: chat, traffic, comparison, history, and what a restart brings back."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
WAIT = 120_000  # milliseconds; a busy machine with few cores loads the models and the trainer slowly
HOSTILE = "<script>window.hit = 1</script><img src=x onerror='window.hit = 2'> ${window.hit = 3} {{value}} 😀 What is 17 plus 25?"
SOURCES = {"direct", "ngram", "corrected", "bonus", "plain"}


class App:
    """`python app.py`, or another program with other settings, on a port and a storage folder of its own; `start` again after `stop` goes
    on with the same storage."""

    def __init__(self, storage: Path, program: str = "app.py", **settings: Any) -> None:
        self.storage, self.log = storage, storage / "app.log"
        self.program, self.settings = program, settings
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def start(self) -> None:
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        own = {"PORT": port, "STORAGE": self.storage, "DEVICE": "cpu", "UPDATE_INTERVAL": 4, "STEPS_PER_UPDATE": 2, "BATCH_SIZE": 2}
        own |= self.settings
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OMNIDEMO_")}
        environment = inherited | {f"OMNIDEMO_{name}": str(value) for name, value in own.items()}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([sys.executable, self.program], cwd=ROOT, env=environment, stdout=log, stderr=log)
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
            raise AssertionError(f"the app did not end on {how.name}:\n{self.log.read_text()[-4000:]}") from error

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of the app's database, read beside the app."""
        with closing(sqlite3.connect(f"file:{self.storage / 'omnidemo.db'}?mode=ro", uri=True, timeout=20)) as connection:
            return connection.execute(sql, values).fetchall()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        assert not os.environ.get("CI"), "the browser tests need chromium: apt-get install -y --no-install-recommends chromium"
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS.split())
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    one = App(tmp_path_factory.mktemp("storage"))
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture
def page(browser: Browser, app: App) -> Iterator[Page]:
    """The page of a new visitor, with both models ready. A script error of the page fails the test."""
    with browser.new_context(viewport={"width": 1280, "height": 860}, accept_downloads=True) as context:
        # What only experts see is tested here, too, and the charts stand open.
        context.add_init_script("for (const name of ['expert', 'charts']) localStorage.setItem('omnidemo.' + name, 'true')")
        page = context.new_page()
        page.set_default_timeout(WAIT)
        expect.set_options(timeout=WAIT)
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


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def play(page: Page, topic: str, count: int) -> None:
    """Teach a topic on the Adaptation tab and wait for its end."""
    open_tab(page, "Adaptation")
    player = page.locator("#omni-play")
    player.get_by_label("Topic").last.select_option(topic)
    player.locator("input[type=range]").evaluate(
        "(slider, count) => { slider.value = count; slider.dispatchEvent(new Event('input')); }", count
    )
    player.get_by_role("button", name="Teach it").click()
    expect(player.get_by_text(f"{count} of {count} · done")).to_be_visible()


def wait_for_points(page: Page, count: int) -> None:
    """Wait until the acceptance plot shows `count` requests."""
    page.wait_for_function(
        """count => { const plot = document.querySelector("#omni-adaptation .plot.js-plotly-plot");
                      return plot && Math.max(...plot.data.map(trace => trace.x.length)) === count; }""",
        arg=count,
    )


def download(page: Page, button: str, path: Path) -> pd.DataFrame:
    with page.expect_download() as started:
        page.get_by_role("button", name=button).click()
    started.value.save_as(path)
    return pd.read_csv(path)


def test_a_chat_shows_every_token_and_only_text(page: Page, app: App) -> None:
    tokens = ask(page, HOSTILE)

    prompt, answer, count = app.query("select prompt, answer, tokens from requests where kind = 'chat' order by id desc limit 1")[0]
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
    assert "".join(page.locator(".turn .toks .tok").evaluate_all("spans => spans.map(span => span.textContent)")) == answer


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


def test_traffic_grows_the_plot_and_makes_a_version(page: Page, app: App) -> None:
    (before,) = app.query("select count(*) from requests")[0]
    play(page, "maths", 6)
    wait_for_points(page, before + 6)
    play(page, "maths", 7)
    wait_for_points(page, before + 13)
    expect(page.locator("#omni-versions tbody th").first).to_contain_text("v")
    expect(page.locator("#omni-trainer-adaptation .state")).to_contain_text("v")
    assert app.query("select count(*) from training_steps")[0][0] >= 2
    expect(page.locator("#omni-adaptation section", has_text="Training loss").locator(".plot.js-plotly-plot")).to_be_visible()


def test_settings_are_changed_kept_and_refused_with_a_sentence(page: Page, app: App) -> None:
    open_tab(page, "Adaptation")
    panel, trainer = page.locator("#omni-steer"), page.locator("#omni-trainer-adaptation")
    when = panel.get_by_label("When the drafter learns", exact=True)
    when.select_option("off")
    expect(trainer.locator(".numbers")).to_contain_text("never")
    panel.get_by_text("How to learn").click()
    rate = panel.get_by_label("Learning rate", exact=True)
    rate.fill("-1")
    rate.press("Tab")
    page.wait_for_timeout(3000)  # a refusal stays, whatever the page polls meanwhile
    expect(panel.get_by_role("alert")).to_contain_text("“Learning rate” = -1 is not possible")
    expect(rate).to_have_value("0.0005")
    expect(panel.get_by_label("Steps of the cosine", exact=True)).to_be_hidden()  # it belongs to another choice

    visit(page, app)  # it holds on the server, for everybody
    page.get_by_text("Advanced", exact=True).click()
    page.locator("#omni-ahead").get_by_label("How far to guess ahead", exact=True).select_option("fixed")
    open_tab(page, "Adaptation")
    expect(when).to_have_value("off")
    expect(panel.get_by_label("How far to guess ahead", exact=True)).to_have_value("fixed")
    for name in ("When the drafter learns", "How far to guess ahead"):
        panel.get_by_role("button", name=f"{name}: back to the default").click()
    expect(when).to_have_value("idle")
    expect(trainer.locator(".numbers")).to_contain_text("while nobody waits")


def test_an_adapter_goes_out_as_a_zip_and_comes_back(page: Page, tmp_path: Path) -> None:
    play(page, "maths", 8)
    versions = page.locator("#omni-versions")
    newest = versions.locator("tbody th").first
    expect(newest).to_contain_text("v")
    trainer = page.locator("#omni-trainer-adaptation")
    trainer.get_by_role("button", name="Pause").click()  # an update on its way would be a version too many
    expect(trainer.locator(".omni-widget")).to_have_attribute("data-state", "paused")
    before = int(re.findall(r"\d+", newest.inner_text())[0])
    with page.expect_download() as started:
        versions.get_by_role("button", name=re.compile("Export version")).first.click()
    path = tmp_path / started.value.suggested_filename
    started.value.save_as(path)
    assert {"adapter_config.json", "adapter_model.safetensors"} <= {Path(name).name for name in zipfile.ZipFile(path).namelist()}

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
    # A busy machine may add a sentence of its own: that guessing was slower.
    expect(page.locator(".turn").last.locator(".said", has_text="Topic memory poems")).to_be_visible()
    assert page.evaluate("omni.chat.turns.at(-1).answer.end.line") == "poems"
    expect(page.locator("#omni-trainer h3")).to_have_text("In the background · poems")

    picker.click()
    page.get_by_role("option", name="automatic").click()
    ask(page, "Mara has 4 boxes with 6 pens each. How many pens?")
    assert page.evaluate("omni.chat.turns.at(-1).answer.end.why")  # a sentence, whichever line it chose
    expect(page.locator(".turn").last.locator(".said", has_text="Topic")).to_be_visible()

    open_tab(page, "Adaptation")
    page.locator("#omni-lines").get_by_role("radio", name=re.compile("poems")).click()
    expect(page.locator("#omni-versions h3")).to_have_text("Adapter versions · poems")
    expect(page.locator("#omni-trainer-adaptation h3")).to_have_text("In the background · poems")


def test_a_comparison_is_identical_and_its_csv_opens(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Compare")
    page.fill("#omni-compare-prompt textarea", "What is 17 plus 25?")
    page.get_by_label("Speculative (one vocabulary)").check()
    page.click("#omni-compare-run")
    board = page.locator("#omni-compare")
    expect(board.get_by_text("3 of 3 answers · done")).to_be_visible()
    expect(board.locator("[role=alert]")).to_contain_text("speculative was left out: target and drafter have different vocabularies")
    expect(board.locator(".lane .badge.good", has_text="same text")).to_have_count(2)  # all but plain decoding itself
    expect(board.locator(".lane .badge.bad")).to_have_count(0)
    answers = board.locator(".lane .toks").evaluate_all("lanes => lanes.map(lane => lane.textContent)")
    assert len(answers) == 3 and len(set(answers)) == 1 and answers[0].strip()

    frame = download(page, "All rows as CSV", tmp_path / "compare.csv")
    assert sorted(frame["method"]) == ["autoregressive", "fresh", "ngram-exact"]
    assert frame["identical_to_autoregressive"].all()
    assert frame["answer"].tolist() == answers
    assert (frame["tokens_per_second"] > 0).all() and (frame["measured_speedup"] > 0).all()
    plain = frame.set_index("method").loc["autoregressive"]
    assert plain["measured_speedup"] == 1 and plain["block_efficiency_tokens_per_round"] == 1


def test_a_batch_is_compared_from_a_file_and_a_bad_line_is_named(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Compare")
    page.get_by_role("tab", name="Many prompts").click()
    upload, good, bad = page.locator("#omni-compare-file input[type=file]"), tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
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


def test_history_downloads_and_deletes(page: Page, app: App, tmp_path: Path) -> None:
    ask(page, "=1+1 What is 6 plus 3?")
    open_tab(page, "History")
    expect(page.locator("#omni-history tbody tr").first).to_contain_text("=1+1 What is 6 plus 3?")
    frame = download(page, "Requests as CSV", tmp_path / "requests.csv")
    stored = app.query("select id, tokens from requests order by id")
    assert sorted(zip(frame["request_id"], frame["tokens"], strict=True)) == stored
    assert frame["prompt"].str.startswith("'=1+1").sum() == 1  # a spreadsheet shows it, and runs nothing
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


def test_a_restart_keeps_history_ngrams_and_adapter(page: Page, app: App) -> None:
    play(page, "code", 8)
    expect(page.locator("#omni-versions tbody th").first).to_contain_text("v")
    expect(page.locator("#omni-trainer-adaptation .omni-widget")).to_have_attribute("data-state", "idle")
    app.stop()
    kept = [app.query(f"select count(*) from {table}")[0][0] for table in ("requests", "ngrams", "adapter_versions")]
    (live,) = app.query("select max(version) from adapter_versions")[0]
    assert min(kept) > 0

    app.start()
    page.evaluate("localStorage.removeItem('omnidemo.chat')")
    visit(page, app)
    expect(page.locator("#omni-trainer .state")).to_contain_text(f"v{live}")
    ask(page, "What is 8 plus 8?")
    end = page.evaluate("omni.chat.turns.at(-1).answer.end")
    assert end["version"] == live
    assert end["cache"] == kept[1]
    open_tab(page, "History")
    expect(page.locator("#omni-history tbody tr")).to_have_count(min(200, kept[0] + 1))
