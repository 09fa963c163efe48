"""The measurement of a link: the proxy keeps every byte in order, and both ways write one text."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from lab.overhead import link
from omnidemo.core.config import Settings
from tests.lab.test_endpoint_overhead import served_here
from tests.support.trained_pair import DRAFTER, TARGET


def test_the_proxy_holds_bytes_back_and_keeps_their_order() -> None:
    sent = bytes(range(256)) * 2000
    with socket.create_server(("127.0.0.1", 0)) as there:

        def echo() -> None:
            joined, _ = there.accept()
            with joined:
                while data := joined.recv(4096):
                    joined.sendall(data)

        threading.Thread(target=echo, daemon=True).start()
        with link.delaying(there.getsockname()[1], 0.1, 0.2) as port:
            began = time.monotonic()
            with socket.create_connection(("127.0.0.1", port)) as client:
                threading.Thread(target=client.sendall, args=(sent,), daemon=True).start()
                got = client.recv(1)
                waited = time.monotonic() - began
                while len(got) < len(sent):
                    got += client.recv(65536)
    assert got == sent and waited >= 0.1


def test_both_ways_write_one_text_over_any_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "served", served_here)
    settings = Settings(backend="reference", target=TARGET, drafter=DRAFTER, training="off")
    (one,) = link.run(settings, ["Tell me a story with a duck."], [0.002], 0.0, 12)
    assert (one.answers, one.same) == (1, 1) and one.here > 0 and one.alone > 0
    assert one.per_round >= 1.0 and len(one.cells()) == len(link.HEADINGS)
