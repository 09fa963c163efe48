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
        shell = Shell(page, gr.Textbox(), target, drafter, widget("pair", events=("news",)), gr.Checkbox())
        shell.keep(widget("one"), lambda name: f"{name} is ready", [target], "first")
        shell.keep(widget("two"), broken, [drafter], "second", js="(drafter, seen) => ['swan', seen]")
        poll, _ = shell.keep(widget("three"), lambda: "3", [], "third", draw=lambda value: 2 * value)
        shell.watch()
    event, news = page.fns.values()
    assert (
        (event.api_name, news.api_name, news.fn) == ("state", "news", event.fn)
        and len(event.inputs) == 5
        and len(event.outputs) == 6
    )
    assert "((drafter, seen) => ['swan', seen])(...values.splice(0, 2))" in event.js
    first = event.fn("a", "", "b", "", "")
    assert first[:2] == ["a is ready", "a is ready"] and first[4:] == ["33", "3"]
    again = event.fn("a", "a is ready", "b", "", "3")
    assert again == [gr.skip()] * 6 and first[2:4] == [gr.skip()] * 2
    assert "second: no b" in caplog.text and poll("") == ("33", "3")


def test_news_is_another_text_as_soon_as_something_is_and_nonsense_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = {"a": "ready"}
    with gr.Blocks() as page:
        target, drafter = gr.Dropdown(["a"], label="Target"), gr.Dropdown(["b"])
        shell = Shell(page, gr.Textbox(), target, drafter, widget("pair", events=("news",)), gr.Checkbox())
        shell.keep(widget("one"), lambda name: said[name], [target], "first")
        shell.keep(widget("two"), lambda: "2", [], "second")
    before = shell.news([["a", None], [None]])
    assert before == shell.news([["a"], []]) and len(before) == 16
    said["a"] = "busy"
    assert shell.news([["a"], []]) != before
    shell.news([["unknown"], []])
    assert "first: KeyError" in caplog.text  # one that fails takes the others not along
    for asked in (None, "ab", [["a"]], [[], []], ["a", []]):
        with pytest.raises(ValueError, match="another version; reload it"):
            shell.news(asked)
    with pytest.raises(ValueError, match="“Target” is not a text: 3"):
        shell.news([[3], []])
