"""Where the app listens, and what a shell says of other machines: a local app needs none of that."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import httpx
import pytest

from omnidemo.core import shell_network
from omnidemo.core.config import ModelError, Settings
from omnidemo.models import model_files
from omnidemo.storage.visitors import is_public
from omnidemo.ui.app import build_app, launch_options
from tests.support.fakes import FakeServices
from tests.support.running_app import free_port


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as found:
            found.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["::1", "[::1]", "::"])
def test_ipv6_works_with_brackets_and_without(tmp_path: Path, host: str) -> None:
    settings = Settings(storage=tmp_path / "storage", port=free_port(), host=host, api_keys="sesame")
    assert settings.host == host.strip("[]") and is_public(settings) == (host == "::")
    services = FakeServices(settings=settings)
    page = build_app(services)
    page.launch(**launch_options(services), prevent_thread_lock=True, quiet=True)
    try:
        with httpx.Client(base_url=f"http://[::1]:{settings.port}", trust_env=False) as client:
            assert client.get("/config").status_code == 200
            assert client.get("/v1/models", headers={"X-API-Key": "sesame"}).json()["data"]
    finally:
        page.close(verbose=False)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:9", "run `pip install socksio`, or unset it"),
        ("https_proxy", "socks4://127.0.0.1:9", "a kind of proxy that is not known here"),
        ("HTTP_PROXY", "http://[::1", "no address of a proxy"),
        ("HTTPS_PROXY", "http://", "no address of a proxy"),
        ("SSL_CERT_FILE", "/nowhere/roots.pem", "which is no file"),
    ],
)
def test_a_download_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    for one in [*os.environ]:
        if one.lower() in shell_network.PROXIES or one in shell_network.CERTIFICATES:
            monkeypatch.delenv(one)
    monkeypatch.setattr(shell_network, "find_spec", lambda package: None)
    assert not shell_network.wrong_variable()
    monkeypatch.setenv(name, value)
    with pytest.raises(ModelError, match=r"some-org/some-model is not on this machine") as refused:
        model_files.find("some-org/some-model")
    assert name in str(refused.value) and said in str(refused.value)
    with shell_network.hidden():
        assert name not in os.environ
    assert os.environ[name] == value


def test_proxies_that_work_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("http://user:pass@proxy:3128", "proxy:3128", "https://proxy", "http://[::1]:9", ""):
        monkeypatch.setenv("HTTPS_PROXY", value)
        assert not [said for said in [shell_network.wrong_variable()] if "HTTPS_PROXY" in said]
