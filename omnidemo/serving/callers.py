"""Who calls a service, and whether the app is public."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from omnidemo.config import Settings
from omnidemo.lines.router import DEFAULT
from omnidemo.serving.quotas import NO_ID, Refused
from omnidemo.store.visitors import Caller, Visitors, is_operator, is_public


class Callers:
    """The part of `PublicServices` that identifies the caller. `who()` returns the caller; None: the program itself."""

    def __init__(self, services: Any, who: Callable[[], Caller | None]) -> None:
        self._services, self._who = services, who
        self._proxied = False
        self._shown: tuple[Settings, str, Settings] | None = None
        self.visitors = Visitors(services.settings.storage, lambda own: services.store.common_key(own))

    def calling_as(self, caller: Caller) -> Self:
        """The same services for one given caller, for the endpoint, which identifies callers by keys and not by the page's headers."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__, _who=lambda: caller)
        return view

    @property
    def caller_name(self) -> str:
        """The name of the visitor who calls; "" for a call without one."""
        caller = self._who()
        return caller.name if caller is not None else ""

    @property
    def public(self) -> bool:
        """Whether the app can be reached from elsewhere."""
        own = self._services.settings
        return is_public(own) or (self._proxied and own.public == "auto")

    def seen_through_proxy(self) -> None:
        """Note that a request came through a proxy: with the setting `auto` the app is public from now on."""
        self._proxied = True

    @property
    def settings(self) -> Settings:
        """The settings for the caller: `public` is "true" or "false"."""
        own, stated = self._services.settings, "true" if self.public and not self._operator() else "false"
        if own.public == stated:
            return own
        if self._shown is None or self._shown[0] is not own or self._shown[1] != stated:
            self._shown = own, stated, own.model_copy(update={"public": stated})
        return self._shown[2]

    def fits(self, key: str | None) -> bool:
        """Whether a key is the operator's."""
        return is_operator(self._services.settings, key)

    def refusal(self) -> str:
        """The sentence of a refusal where a call concerns all visitors."""
        how = "enter the operator's key first" if self._services.settings.operator_key else "it is off, for the app has no operator's key"
        return f"This concerns everybody who uses this app: {how}."

    def _operator(self) -> bool:
        caller = self._who()
        return caller is not None and caller.operator

    def _visitor(self) -> Caller | None:
        """The visitor who calls; None for the operator, on this computer alone, and for the program itself."""
        caller = self._who()
        if caller is None or caller.operator or not self.public:
            return None
        if not caller.name:
            raise Refused(NO_ID)
        return caller

    def _own(self, domain: str | None = None) -> str | None:
        """The visitor's own line; None where the caller may use all lines. `Refused` where another one was named."""
        visitor = self._visitor()
        if visitor is None:
            return None
        if domain not in (None, "", DEFAULT, "auto", visitor.own):
            raise Refused(f"The line {str(domain)[:40]} is not yours. {self.refusal()}")
        return visitor.own

    def _require_operator(self) -> None:
        """`Refused` where the caller may not change what concerns all visitors."""
        if self._visitor() is not None:
            raise Refused(self.refusal())
