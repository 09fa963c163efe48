"""The app in a process of its own, on the double: `python -m tests.zerogpu.app_child [undecorated]`."""

from __future__ import annotations

import sys

from tests.support import spaces_double

sys.modules["spaces"] = spaces_double


def main() -> None:
    if "undecorated" in sys.argv:
        import gradio as gr

        with gr.Blocks() as page:
            gr.Markdown("nothing needs a GPU here")
        page.launch(prevent_thread_lock=True)
        print("launched")
        return
    from omnidemo.__main__ import app

    spaces_double.kept = 2
    spaces_double.forbid(setattr)
    app(["serve"], prog_name="app.py")


if __name__ == "__main__":
    main()
