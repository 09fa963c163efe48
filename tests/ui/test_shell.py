"""What a page keeps up to date comes in one event, of which nothing that fails takes the rest along."""

from __future__ import annotations

import gradio as gr
import pytest

from omnidemo.ui.shell import Shell, widget


def test_what_is_kept_comes_in_one_event_and_only_where_it_has_changed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(word: str) -> str:
        raise RuntimeError(f"no {word}")

    with gr.Blocks() as page:
        target, drafter = gr.Dropdown(["a"]), gr.Dropdown(["b"])
        shell = Shell(page, target, drafter, widget("pair", events=("news",)), gr.Checkbox())
        shell.keep(widget("one"), lambda name: f"{name} is ready", [target], "first")
        shell.keep(widget("two"), broken, [drafter], "second", js="(drafter) => ['swan']")
        shell.keep(widget("three"), lambda: "3", [], "third", draw=lambda value: 2 * value)
        shell.watch()
    event, news = page.fns.values()
    assert (event.api_name, news.api_name, news.fn) == ("state", "news", event.fn)
    assert len(event.inputs) == 2 and len(event.outputs) == 3
    assert "((drafter) => ['swan'])(...values.splice(0, 1))" in event.js
    assert event.fn(None, "a", "b") == ["a is ready", gr.skip(), "33"]
    assert "second: no b" in caplog.text
    changed = gr.EventData(None, {"changed": ["third"]})
    assert event.fn(changed, "a", "b") == [gr.skip(), gr.skip(), "33"]


def test_news_is_another_text_as_soon_as_something_is_and_nonsense_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = {"a": "ready"}
    with gr.Blocks() as page:
        target, drafter = gr.Dropdown(["a"], label="Target"), gr.Dropdown(["b"])
        shell = Shell(page, target, drafter, widget("pair", events=("news",)), gr.Checkbox())
        shell.keep(widget("one"), lambda name: said[name], [target], "first")
        shell.keep(widget("two"), lambda: "2", [], "second")
    before = shell.news([["a", None], [None]])
    assert before == shell.news([["a"], []]) and {*before} == {"first", "second"}
    said["a"] = "busy"
    now = shell.news([["a"], []])
    assert now["first"] != before["first"] and now["second"] == before["second"]
    assert {*shell.news([["unknown"], []])} == {"second"}
    assert "first: KeyError" in caplog.text  # one that fails takes the others not along
    for asked in (None, "ab", [["a"]], [[], []], ["a", []]):
        with pytest.raises(ValueError, match="another version; reload it"):
            shell.news(asked)
    with pytest.raises(ValueError, match="“Target” is not a text: 3"):
        shell.news([[3], []])
