"""What the page says of an answer in a real browser: copied tokens of a pasted text, one sentence that agrees
with the counts, and how fast it was, which comes later and is the same figure everywhere."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visits import App, ask, open_tab, show_tokens, visitor

pytestmark = pytest.mark.browser
RATIO = r"""(span) => {
  const part = (x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
  const light = (colour) => colour.match(/[\d.]+/g).slice(0, 3).reduce((sum, x, i) => sum + [0.2126, 0.7152, 0.0722][i] * part(+x), 0);
  const { color, backgroundColor } = getComputedStyle(span), [low, high] = [light(color), light(backgroundColor)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}"""
COUNTS = (
    "[...document.querySelectorAll('.legend button:has(b)')].map(one => [one.className.slice(2),"
    " one.querySelector('b').textContent])"
)
ENOUGH = 4.5  # of contrast
LAST = "omni.chat.turns.at(-1).answer"
SPOKEN = f"omni.howFast({LAST}.speed, {LAST}.figures.block_efficiency)"
# a function of which all but a name is to stay
PASTED = """Rename the variable `x` to `total` in this function. Write the whole function.

def add_up(numbers):
    x = 0
    for number in numbers:
        if number > 0:
            x = x + number
    print("the sum is", x)
    return x"""


def counts(page: Page) -> dict[str, int]:
    return {name: int(text) for name, text in page.evaluate(COUNTS)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_pasted_text_is_copied_in_a_colour_that_can_be_read(
    browser: Browser, app: App, scheme: str
) -> None:
    with visitor(browser, app) as page:
        ask(page, PASTED)  # whatever this answer copies, the next one has it to copy from
    with visitor(browser, app, color_scheme=scheme) as page:
        tokens = ask(page, PASTED)
        show_tokens(page)
        copied = page.locator(".turn").last.locator(".tok.s-copied")
        shown = counts(page)
        assert shown["copied"] == copied.count() == sum(token["source"] == "copied" for token in tokens) > 0
        assert copied.first.evaluate(RATIO) > ENOUGH
        copied.last.click()
        told = re.compile(
            r"matches \d+ tokens? of (your message|the chat so far|this answer|an earlier answer)"
        )
        expect(page.locator("#omni-tip")).to_contain_text(told)
        said = page.locator(".turn").last.locator(".said")
        own = shown["direct"] + shown["ngram"]
        figures = page.evaluate(f"{LAST}.figures")
        made = int(figures["proposed"] - figures["copies_proposed"])
        copies = int(figures["copies_proposed"])
        assert figures["proposed"] == own + shown["copied"] + shown["discarded"], "one account"
        if copies > 1 and shown["copied"] < copies:
            expect(said).to_contain_text(f"f {copies} token")
        if made > 1 and 0 < own < made:
            expect(said).to_contain_text(f"{own} of the small model’s {made} guesses")
        if made + copies > 1 and shown["discarded"]:
            expect(said).to_contain_text(re.compile(rf"{shown['discarded']} w(as|ere) thrown away"))
        page.get_by_role("button", name=re.compile("^copied")).click()
        assert copied.first.evaluate("span => getComputedStyle(span).opacity") == "1", (
            "the others fade, these do not"
        )


def test_a_switch_shows_guesses_that_do_not_pay(browser: Browser, app: App) -> None:
    """It is of this page alone."""

    def policy() -> str:
        ((settings,),) = app.query("select settings from requests order by id desc limit 1")
        return str(json.loads(settings)["draft_policy"])

    with visitor(browser, app, "localStorage.setItem('omnidemo.expert', 'true')") as page:
        switch = page.get_by_label("Show every likely guess")
        ask(page, "Who are you?")
        assert policy() == "cost"
        expect(page.locator("#omni-likely")).to_contain_text(
            "an answer may take longer than without guessing"
        )
        switch.check()
        ask(page, "Who are you?")
        assert policy() == "chance"


def test_an_answer_without_a_guess_says_why_and_nothing_else(browser: Browser, app: App) -> None:
    """Of one record: no other sentence speaks of guesses."""
    with visitor(browser, app, "localStorage.setItem('omnidemo.expert', 'true')") as page:
        page.get_by_label("Method", exact=True).click()
        page.get_by_role("option", name="Without guessing").click()
        ask(page, "Who are you?")
        expect(page.locator(".turn .said")).to_have_text(
            "Nothing was guessed: the method chosen never guesses."
        )
        expect(page.locator("#omni-answer .three > div:visible")).to_have_text(
            ["1.00tokens per step of the big model"]
        )


def test_the_speed_is_measured_while_nobody_waits_and_is_one_figure(browser: Browser, app: App) -> None:
    with visitor(browser, app) as page:
        ask(page, PASTED)
        page.wait_for_function(f"{LAST}.speed?.speedup")
        speed = page.evaluate(f"{LAST}.speed")
        assert speed["high"] <= page.evaluate(f"{LAST}.figures.block_efficiency")
        assert 0 < speed["low"] <= speed["speedup"] <= speed["high"] and 0 < speed["tokens"] <= page.evaluate(
            f"{LAST}.figures.tokens"
        )
        key = page.evaluate(f"{LAST}.end.key")
        for _ in range(50):
            rows = app.query("select speedup, speedup_low, speedup_high from requests where key = ?", key)
            if rows[0][0] is not None:
                break
            page.wait_for_timeout(100)
        assert rows[0] == pytest.approx((speed["speedup"], speed["low"], speed["high"]), abs=1e-3)
        pace = page.evaluate(SPOKEN)
        if pace is not None:  # else the machine was too busy to tell
            words = f"{pace['value']} {pace['words']}".strip()
            expect(page.locator(".turn .said")).to_contain_text(words)
            expect(page.locator("#omni-answer .three")).to_contain_text(pace["words"])
            page.get_by_role("button", name="Race").click()
            page.locator(".omni-replay").get_by_role("button", name="To the end (End)").click()
            expect(page.locator(".race-figure")).to_contain_text(pace["words"])
            expect(page.locator(".race-figure b")).to_have_text(pace["value"])
            page.keyboard.press("Escape")
        page.reload()
        page.wait_for_function(f"window.omni?.chat?.turns.length && {LAST}.speed")
        assert page.evaluate(f"{LAST}.speed.speedup") == speed["speedup"], "it is kept with the chat"
        open_tab(page, "History")
        expect(page.locator("#omni-history td[data-label=speed]").first).not_to_be_empty()


def test_measure_again_is_a_new_measurement_and_one_figure_again(browser: Browser, app: App) -> None:
    with visitor(browser, app) as page:
        ask(page, PASTED)
        page.wait_for_function(f"{LAST}.speed")
        page.evaluate(f"window.first = {LAST}.speed")
        page.get_by_role("button", name="Race").click()
        window = page.locator(".omni-replay")
        again = window.get_by_role("button", name="Measure again")
        again.click()
        page.wait_for_function(f"{LAST}.speed !== window.first")
        expect(window.locator(".race-lane")).to_have_count(2)
        speed = page.evaluate(f"{LAST}.speed")
        pace = page.evaluate(SPOKEN)
        window.get_by_role("button", name="To the end (End)").click()
        figure, said = window.locator(".race-figure"), page.locator(".turn .said")
        if pace is None:
            expect(figure).to_contain_text("The runs differ too much to tell")
            expect(said).not_to_contain_text("as fast as")
        else:
            expect(figure).to_contain_text(pace["words"])
            expect(said).to_contain_text(f"{pace['value']} {pace['words']}")
            expect(page.locator("#omni-answer .three")).to_contain_text(pace["words"])
        key = page.evaluate(f"{LAST}.end.key")
        sql = "select speedup, speedup_low, speedup_high from requests where key = ?"
        wanted = pytest.approx((speed["speedup"], speed["low"], speed["high"]), abs=1e-3)
        for _ in range(50):
            if app.query(sql, key)[0] == wanted:
                break
            page.wait_for_timeout(100)
        assert app.query(sql, key)[0] == wanted, "History and its CSV have the newest measurement"
        page.reload()
        page.wait_for_function(f"window.omni?.chat?.turns.length && {LAST}.speed")
        assert page.evaluate(f"{LAST}.speed.speedup") == speed["speedup"], "and so has the chat"


def test_slow_motion_draws_what_was_measured_without_guessing_or_nothing(browser: Browser, app: App) -> None:
    """At 2 × the big model alone would have written half of it by the end; the pace of the answer's own plain
    rounds is no measurement."""
    with visitor(browser, app) as page:
        ask(page, "Who are you?")
        row = page.locator(".slow-row.plain")
        for speed, seen in (
            ("null", False),
            ("{ speedup: 1.3, low: 0.9, high: 1.9 }", False),  # its runs differ too much
            ("{ speedup: 2, low: 1.9, high: 2.1 }", True),
        ):
            page.evaluate(f"{LAST}.speed = {speed};")
            page.get_by_role("button", name="Slow motion").click()
            page.locator(".omni-replay").get_by_role("button", name="To the end (End)").click()
            expect(row).to_be_visible() if seen else expect(row).to_be_hidden()
            if seen:
                count = page.evaluate(f"{LAST}.tokens.filter(line => line.k === 't').length")
                expect(row.locator(".fact")).to_contain_text(
                    re.compile(rf"^{count // 2} tokens? in the same time, {count} with guessing")
                )
            page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("speed", "said", "won"),
    [
        (
            (1.3, 0.9, 1.9),
            "The runs differ too much to tell: 0.90–1.90 × the speed without guessing",
            "same",
        ),
        ((0.5, 0.31, 0.95), "0.50 ×the speed without guessing (0.31–0.95)", "slower"),
        ((2.2, 1.3, 2.9), "2.2 ×the speed without guessing (1.3–2.9)", "faster"),
    ],
)
def test_a_race_has_a_winner_where_every_pass_had_the_same(
    browser: Browser, app: App, speed: tuple[float, float, float], said: str, won: str
) -> None:
    """However much they differ; what the sentence below the answer leaves out, the race does not claim by a
    run of its own."""
    with visitor(browser, app) as page:
        ask(page, "Who are you?")
        page.evaluate(
            f"""([speedup, low, high]) => {{ const rounds = omni.roundsOf({LAST});
                {LAST}.speed = {{ speedup, low, high, tokens: 9 }};
                {LAST}.figures.block_efficiency = 3;
                omni.replay.drafts = () => true;
                omni.replay.plain = async () => ({{ rounds, guessed: {{ rounds }} }}); }}""",
            list(speed),
        )
        page.get_by_role("button", name="Race").click()
        page.locator(".omni-replay").get_by_role("button", name="To the end (End)").click()
        figure = page.locator(".race-figure")
        expect(figure).to_have_text(said)
        expect(figure).to_have_class(f"race-figure {won}")


@pytest.mark.parametrize(
    ("speedup", "said", "badge"),
    [
        (
            [2.19, 0.40, 2.31],
            "its runs differ too much to tell: 0.40–2.31 × the speed without guessing",
            False,
        ),
        (
            [5.23, 1.62, 5.65],
            "5.2 × the speed without guessing (1.6–5.7)",
            False,
        ),
        ([1.4, 1.3, 1.5], "1.4 × the speed without guessing (1.3–1.5)", True),
        ([1.0, 0.9, 1.1], "1.00 × the speed without guessing (0.90–1.10)", True),
    ],
)
def test_what_compare_says_of_runs(
    browser: Browser, app: App, speedup: list[float], said: str, badge: bool
) -> None:
    """A lane that is told to be the best of its comparison."""
    lane = {
        "method": "ngram-exact",
        "drafted": 9,
        "speedup": speedup,
        "best": True,
        "lines": "",
        "seconds": 1.0,
        "tokens": 9,
    }
    methods = [{"name": "ngram-exact", "title": "Guessing", "colour": "red", "lossless": True}]
    state = {
        "state": "running",
        "prompts": 1,
        "runs": 3,
        "done": 0,
        "total": 3,
        "methods": methods,
        "lanes": [lane],
    }
    draw = """state => { const host = document.createElement('div'); document.body.append(host);
        omni.widgets.compare(host, { trigger() {} }); omni.compare.show(state);
        return [host.querySelector('.verdict').innerText, host.querySelector('.lane').innerText]; }"""
    alone = "Guesses of the small model would not have been faster here, so the big model wrote alone."
    with visitor(browser, app) as page:
        found, whole = page.evaluate(draw, state)
        lane |= {"drafted": 0, "copies_proposed": 9, "guessing": "alone"}
        paused, told = page.evaluate(draw, state)
    assert found.startswith(said) and ("the fastest" in found) == badge, found
    assert paused == found and alone in told and alone not in whole and "null" not in whole


@pytest.mark.parametrize(
    ("line", "version", "said"),
    [
        (
            "default",
            0,
            "is the fresh one, for it has learned nothing here; it learns from what is asked and taught here,"
            " but for topics with a small model of their own.",
        ),
        ("poetry", 3, "is the one of the topic “poetry”, and learns from that alone."),
    ],
)
def test_compare_says_in_plain_words_what_todays_small_model_learns_from(
    browser: Browser, app: App, line: str, version: int, said: str
) -> None:
    note = """([line, version]) => { const host = document.createElement('div'); document.body.append(host);
        const methods = [{ name: "fresh", title: "Fresh", colour: "red", lossless: true }];
        omni.widgets.compare(host, { trigger() {} });
        omni.compare.show({ state: "running", prompts: 2, done: 0, total: 2, methods, line,
                             lanes: [{ method: "ngram-exact", version }] });
        return [...host.querySelectorAll('p.small')].map(node => node.textContent).join(" "); }"""
    with visitor(browser, app) as page:
        found = page.evaluate(note, [line, version])
    assert f"Today’s small model {said}" in found and "memory" not in found and "default" not in found
    assert ("is the fresh one" in found) == (version == 0) and found.count("Today’s small model") == 1


def test_no_lane_ties_with_one_whose_runs_differ_too_much(browser: Browser, app: App) -> None:
    """A tie is said of every lane of it, or of none."""
    drawn = """paces => { const host = document.createElement('div'), names = paces.map((_, i) => `lane ${i}`); document.body.append(host);
        const lanes = paces.map((speedup, i) => ({ method: names[i], drafted: 9, speedup, best: true, lines: "", seconds: 1, tokens: 9 })),
            methods = names.map(name => ({ name, title: name, colour: "red", lossless: true }));
        omni.widgets.compare(host, { trigger() {} });
        omni.compare.show({ state: "running", prompts: 1, runs: 3, done: 0, total: 6, methods, lanes });
        return [...host.querySelectorAll('.verdict')].map(node => node.innerText.includes('tie of 2')); }"""
    steady, wild = [2.0, 1.8, 2.1], [1.6, 0.9, 2.0]
    faster = [1.9, 1.2, 2.0]  # in every run, by nobody knows how much
    with visitor(browser, app) as page:
        assert page.evaluate(drawn, [steady, steady]) == [True, True]
        assert page.evaluate(drawn, [steady, wild]) == [False, False]
        assert page.evaluate(drawn, [steady, faster]) == [False, False]


def made(rounds: int, right: int, speedup: float, **figures: float) -> dict[str, object]:
    """An answer of so many rounds, each of four guesses, some right, and a token of the big model. Half of it
    was measured."""
    each = [("t", "direct")] * right + [("t", "corrected")] + [("x", "direct")] * (4 - right)
    tokens = [
        {"k": kind, "r": at, "n": 0, "t": "x", "s": source} for at in range(rounds) for kind, source in each
    ]
    count = rounds * (right + 1)
    found = {
        "tokens": count,
        "rounds": rounds,
        "block_efficiency": right + 1,
        "proposed": 4 * rounds,
        "accepted": right * rounds,
    }
    speed = {"speedup": speedup, "low": speedup, "high": speedup, "tokens": count // 2}
    return {"tokens": tokens, "figures": found | figures, "speed": speed, "end": {}}


def test_the_first_colours_are_explained_where_they_stand(browser: Browser, app: App) -> None:
    with visitor(browser, app) as page:
        key = page.locator(".empty-state .colour-key")
        expect(key).to_be_visible()
        shown = page.locator(".demo .tok").evaluate_all(
            "spans => [...new Set(spans.map(span => span.className.match(/s-\\w+/)[0]))].sort()"
        )
        named = key.locator("span").evaluate_all("spans => spans.map(span => span.className).sort()")
        assert named == shown
        expect(key).to_have_text("guessed rightseveral guesses, one wordcopiedcorrected")


def test_a_question_asked_again_runs_beside_its_first_answer(browser: Browser, app: App) -> None:
    with visitor(browser, app) as page:
        ask(page, "Tell me a story about a heron and a lamp.")
        first = page.evaluate(f"{LAST}.text")
        steps = page.evaluate(f"{LAST}.rounds.length")
        seed = page.evaluate(f"{LAST}.end.seed")
        page.get_by_role("button", name="Ask it again").click()
        said = page.locator(".turn .again")
        expect(said).to_contain_text(f"Asked again: {steps} steps then, ")
        assert page.evaluate(f"{LAST}.text") == first and page.evaluate(f"{LAST}.end.seed") == seed
        assert page.evaluate(f"{LAST}.rounds.length") < steps, "memory has the whole answer"
        expect(said).to_contain_text("now: it remembered what it had written")
        expect(page.locator(".turn .again-bar i")).to_have_count(2)
        expect(page.get_by_role("button", name="Ask it again")).to_have_count(0)
        page.get_by_role("button", name="Version 2 of 2").click()
        expect(page.locator(".turn .again")).to_have_count(0)  # the first answer
