"""What goes to the browser beside the page: widget values, plotly's script, files made when a button is
pressed."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import gradio as gr

from omnidemo.core import private_folders
from omnidemo.ui.errors import asked_of, report
from omnidemo.ui.figures.layout import PLOTLY_JS
from omnidemo.ui.shell import PRIVATE, QUIET, script

KEEP_SECONDS = 600  # Gradio copies a file into its own cache when it is handed over; ours may go soon


def for_browser(value: Any) -> str:
    """A widget's value as JSON; `<` is spelled out, so that no text of a model ever looks like markup on the
    way."""
    return json.dumps(value, default=str).replace("<", "\\u003c")


def fields(value: Any, what: str) -> Mapping[str, Any]:
    """The fields of an object that the page sent, {} for none; ValueError for a list, which Gradio's JSON
    also accepts."""
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(
            f"The {what} are not names with values. Reload the page; a program finds the types under"
            " /gradio_api/info."
        )
    return value or {}


def serve_plotly() -> str:
    """Let the app serve plotly.min.js from the installed package; its address below the app's root."""
    gr.set_static_paths([PLOTLY_JS])
    return f"gradio_api/file={PLOTLY_JS.resolve().as_posix()}"


def private_folder(name: str) -> Path:
    """A folder of this process: "downloads", in which files for download are made, or "gradio", of Gradio's
    copies and of uploads, for its default one is readable for other users and stays after a kill."""
    folder = private_folders.temporary_folder() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def forget_files(own: str) -> None:
    """Remove exported files, because what they hold has just been deleted: the CSV files and adapters of a
    visitor, who is named as in `temporary`; for "" all CSV files."""
    for folder in (private_folder("downloads"), private_folder("gradio")):
        for file in folder.rglob(f"*{own.strip('~')}*" if own else "*.csv"):
            with suppress(OSError):
                file.unlink()


def temporary(name: str, own: str = "") -> Path:
    """A path for a file of that name in a fresh temporary folder; older ones are removed on the way. own: the
    visitor whose file it is (`PublicServices.own`); the name says so, for of Gradio's copy nothing else
    does."""
    if own:
        name = f"{Path(name).stem}-{own.strip('~')}{Path(name).suffix}"
    root = private_folder("downloads")
    for folder in root.iterdir():
        with suppress(OSError):  # another process was quicker
            if time.time() - folder.stat().st_mtime > KEEP_SECONDS:
                shutil.rmtree(folder)
    return Path(tempfile.mkdtemp(dir=root)) / name


def download(event: Any, name: str, make: Callable[..., Path], inputs: Sequence[Any] = ()) -> None:
    """Make `event` of a widget download the file that `make(asked, *inputs)` returns; an error says its
    sentence.

    Gradio's own button downloads the file it held *before* the press, so a hidden one receives the new file
    and is pressed by the page.
    """
    carrier = gr.DownloadButton(visible="hidden", elem_id=f"omni-file-{name}")

    def prepare(event: gr.EventData, *values: Any) -> Any:
        try:
            return str(make(asked_of(event), *values))
        except (RuntimeError, ValueError, OSError) as refused:
            gr.Info(report(refused, "a download"))
            return None  # also takes an older file away from the hidden button

    press = script(f"() => {{ page.pressDownload({json.dumps(f'omni-file-{name}')}); return []; }}")
    done = event(prepare, inputs, carrier, api_name=f"prepare_{name}", **QUIET)
    done.success(None, None, None, js=press, **PRIVATE)
