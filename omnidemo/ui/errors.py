"""Errors: one sentence on the page, one row in the log."""

from __future__ import annotations

import logging
import math
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction
from pathlib import Path
from typing import Any

import gradio as gr

from omnidemo.core.private_folders import without_folders

log = logging.getLogger(__name__)
PROSE = re.compile(r"[a-z]+ [a-z]")  # such as Python's libraries write them
EXPECTED = (ValueError, RuntimeError, OSError)  # that this project raises with a sentence for people
HERE = Path(__file__).parents[1]


def report(error: BaseException, doing: str) -> str:
    """The sentence for the page; the log gets one row, which for a fault of this project names file and row
    of the code."""
    said = " ".join(str(getattr(error, "message", error)).split())
    if (
        isinstance(error, (*EXPECTED, gr.Error))
        and not isinstance(error, (RecursionError, NotImplementedError))
        and said
    ):
        log.warning("%s: %s", doing, said[:300])
        # the log has the folders
        said = said if isinstance(error, (ValueError, gr.Error)) else without_folders(said)
        # but a model's name, or a setting's, begins as it is written
        return said[0].upper() + said[1:] if PROSE.match(said) else said
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if HERE in Path(frame.filename).parents
    ]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside of this project"
    log.error("%s: %s: %s (%s)", doing, type(error).__name__, said[:200], place)
    log.debug("where it came from", exc_info=error)
    return f"Something went wrong inside ({type(error).__name__} at {place}). Try again, or report it."


def sentence(said: str) -> str:
    """What an error says, which may begin and end as a part of a sentence does, as a whole one."""
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def brought(event: gr.EventData, name: str) -> Any:
    """What the page triggered an event with under a name; None where it brought nothing, as a program's."""
    try:
        return getattr(event, name, None)
    except TypeError:  # it brought something else than names and values
        return None


def asked_of(event: gr.EventData) -> Mapping[str, Any]:
    """The object that the page triggered an event with; {} for what is none."""
    found = brought(event, "asked")
    return found if isinstance(found, Mapping) else {}


def check(blocks: Iterable[Any], values: Iterable[Any]) -> None:
    """ValueError, one sentence, for a value that its component cannot have."""
    for block, value in zip(blocks, values, strict=False):
        if wrong := _wrong(block, value):
            name = getattr(block, "label", None) or "a value"
            shown = repr(value)
            raise ValueError(f"“{name}” {wrong}: {shown if len(shown) <= 40 else shown[:37] + '...'}")


def _wrong(block: Any, value: Any) -> str:
    """The fault of a value for a component, as the end of a sentence; empty where there is none."""
    if value is None:
        return "is empty" if isinstance(block, gr.Slider) else ""
    if isinstance(block, gr.JSON):
        return "" if isinstance(value, (dict, list)) else "is neither an object nor a list"
    if isinstance(block, (gr.Slider, gr.Number)):
        number = (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and abs(value) < 2**63
        )
        return "" if number else "is not a finite number"
    if isinstance(block, gr.Checkbox):
        return "" if isinstance(value, bool) else "is neither true nor false"
    if not isinstance(block, (gr.Textbox, gr.Dropdown)):
        return ""
    texts = value if isinstance(value, list) and getattr(block, "multiselect", False) else [value]
    if not all(isinstance(text, str) for text in texts):
        return "is not a text"
    return (
        ""
        if all(text.isascii() or text.encode(errors="ignore").decode() == text for text in texts)
        else "holds half a character"
    )


class AppBlocks(gr.Blocks):
    """Blocks that turn into one sentence what Gradio itself refuses: an event that programs cannot call, one
    with fewer values than it takes, or without the data of its press. Gradio writes a traceback for each to
    the log, so anybody could fill it."""

    async def process_api(self, block_fn: Any, *given: Any, **options: Any) -> dict[str, Any]:
        known = self.fns.get(block_fn) if isinstance(block_fn, int) else block_fn
        try:
            if known is not None and known.fn is None:
                raise ValueError("This event runs in the browser alone; there is nothing to call.")
            return await super().process_api(block_fn, *given, **options)
        except gr.Error:
            raise
        except Exception as error:
            raise gr.Error(report(error, str(known and known.api_name)), print_exception=False) from error


def in_one_sentence(page: gr.Blocks) -> None:
    """Let the page's events check the types of their values (an error names the field's label) and turn every
    error into one sentence. Jobs do it themselves. Gradio reads only the values that name files: what else a
    component refuses comes with a traceback."""
    for event in page.fns.values():
        act = event.fn
        event.preprocess = any(isinstance(block, (gr.File, gr.UploadButton)) for block in event.inputs)
        if act is not None and not isasyncgenfunction(act):
            event.fn = _explained(act, str(event.api_name or "an event"), event.inputs)


def _explained(act: Callable[..., Any], name: str, inputs: Sequence[Any]) -> Callable[..., Any]:
    @contextmanager
    def told(given: Sequence[Any]) -> Iterator[None]:
        try:
            check(inputs, given[len(given) - len(inputs) :])  # what Gradio adds stands before them
            yield
        except Exception as error:  # any error; Gradio would write its whole traceback to the log
            duration = getattr(error, "duration", 10)
            raise gr.Error(report(error, name), print_exception=False, duration=duration) from error

    @wraps(act)
    async def waited(*given: Any) -> Any:
        with told(given):
            return await act(*given)

    @wraps(act)
    def called(*given: Any) -> Any:
        with told(given):
            return act(*given)

    return waited if iscoroutinefunction(act) else called
