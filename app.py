"""`python app.py` is `python -m omnidemo serve` with settings from the environment (`OMNIDEMO_*`)."""

from __future__ import annotations

if __name__ == "__main__":
    from omnidemo.core.processes import end_by_signal

    end_by_signal()
    from omnidemo.__main__ import app

    app(["serve"], prog_name="app.py")
