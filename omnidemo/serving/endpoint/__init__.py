"""OpenAI's wire format and an MCP server over one `Endpoint`, without the page."""

from __future__ import annotations

from typing import Any

from omnidemo.serving.endpoint.api_errors import error_body
from omnidemo.serving.endpoint.api_routes import PREFIX, Endpoint, routes
from omnidemo.serving.endpoint.mcp_server import PATH, ToolServer, tool_error

__all__ = ["Endpoint", "ToolServer", "asks_for_keys", "is_api", "refusal_body", "routes"]


def is_api(path: str) -> bool:
    return path.startswith(PREFIX)


def asks_for_keys(path: str) -> bool:
    """Whether an address belongs to endpoint or MCP server, which ask for keys instead of a visitor's id."""
    return is_api(path) or path == PATH


def refusal_body(path: str, status: int, sentence: str) -> dict[str, Any] | None:
    """A refusal in the shape that clients of the address read; None for the page's addresses."""
    if is_api(path):
        return error_body(status, sentence)
    return tool_error(sentence) if asks_for_keys(path) else None
