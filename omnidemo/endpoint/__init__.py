"""OpenAI's wire format beside the page: `routes(front)`. Knows no page."""

from __future__ import annotations

from omnidemo.endpoint.api_errors import error_body
from omnidemo.endpoint.api_routes import PREFIX, routes

__all__ = ["PREFIX", "error_body", "routes"]
