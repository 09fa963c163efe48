"""Start the app: settings → services → pages → server. `python app.py`, or `python -m omnidemo serve`."""

from __future__ import annotations

import os
import signal
import sys


def serve(**overrides: object) -> None:
    """Run until interrupted. `overrides` are settings that win over the environment."""
    # Before Gradio is imported: it reads this once.
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    from omnidemo.config import Settings
    from omnidemo.runtime.services import Services
    from omnidemo.ui import build_app, launch_options

    # A container is stopped with SIGTERM: what waits is written then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    settings = Settings(**overrides)  # type: ignore[arg-type]
    services = Services(settings)
    try:
        build_app(services).launch(**launch_options(services), quiet=False)
    finally:
        services.close()


if __name__ == "__main__":
    try:
        serve()
    except KeyboardInterrupt:
        sys.exit(130)
