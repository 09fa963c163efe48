"""The Gradio app: `build_app(services)` and `launch_options(services)`. Gradio is imported in this package
only."""

from __future__ import annotations

from omnidemo.ui.app import build_app, launch_options
from omnidemo.ui.tabs.visitor_panel import public_services

__all__ = ["build_app", "launch_options", "public_services"]
