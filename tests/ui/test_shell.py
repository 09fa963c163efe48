"""What a page keeps up to date comes in one event, of which nothing that fails takes the rest along."""

from __future__ import annotations

import gradio as gr
import pytest

from omnidemo.ui.shell import Shell, widget


def test_what_is_kept_comes_in_one_event_and_only_where_it_has_changed(caplog: pytest.LogCaptureFixture) -> None:
    def broken(word: str) -> str:
        raise RuntimeError(f"no {word}")

    with gr.Blocks() as page:
        target, drafter = gr.Dropdown(["a"]), gr.Dropdown(["b"])
        shell = Shell(page, gr.Textbox(), target, drafter, gr.Timer(2.0))
        shell.keep(widget("one"), lambda name: f"{name} is ready", [target], "first")
        shell.keep(widget("two"), broken, [drafter], "second", js="(drafter, seen) => ['swan', seen]")
        poll, _ = shell.keep(widget("three"), lambda: "3", [], "third", draw=lambda value: 2 * value)
        shell.watch()
    (event,) = page.fns.values()
    assert event.api_name == "state" and len(event.inputs) == 5 and len(event.outputs) == 6
    assert "...((drafter, seen) => ['swan', seen])(...values.splice(0, 2))" in event.js
    first = event.fn("a", "", "b", "", "")
    assert first[:2] == ["a is ready", "a is ready"] and first[4:] == ["33", "3"]
    again = event.fn("a", "a is ready", "b", "", "3")
    assert again == [gr.skip()] * 6 and first[2:4] == [gr.skip()] * 2
    assert "second: no b" in caplog.text and poll("") == ("33", "3")
