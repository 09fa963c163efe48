"""A job of the page, as Gradio runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import gradio as gr

from omnidemo.serving.waiting_line import WaitingLine
from omnidemo.ui.job import Running, Work, stream_of


def streaming(
    services: Any,
    work: Work,
    asked: Any,
    *values: Any,
    running: Running | None = None,
    line: WaitingLine | None = None,
) -> Iterator[str]:
    """What a job streams. `asked`: what the page triggers its event with."""
    event = gr.EventData(None, {"asked": asked})
    stream: Any = stream_of(services, work, running or Running(), line=line)(event, *values)
    with asyncio.Runner() as runner:
        try:
            while True:
                yield runner.run(anext(stream))
        except StopAsyncIteration:
            return
        finally:
            runner.run(stream.aclose())
