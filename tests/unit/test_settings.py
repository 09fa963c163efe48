"""Settings from the environment: what others put there, and what is empty."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from omnidemo.cli.common import check_environment, read_settings, sentence
from omnidemo.core.config import Settings


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith("OMNIDEMO_"):
            monkeypatch.delenv(name)


# what a pod gets beside Services named omnidemo and omnidemo-web
OF_A_SERVICE = {
    "OMNIDEMO_SERVICE_HOST": "10.96.0.12",
    "OMNIDEMO_SERVICE_PORT": "80",
    "OMNIDEMO_SERVICE_PORT_HTTP": "80",
    "OMNIDEMO_PORT": "tcp://10.96.0.12:80",
    "OMNIDEMO_PORT_80_TCP": "tcp://10.96.0.12:80",
    "OMNIDEMO_PORT_80_TCP_PROTO": "tcp",
    "OMNIDEMO_PORT_80_TCP_PORT": "80",
    "OMNIDEMO_PORT_80_TCP_ADDR": "10.96.0.12",
    "OMNIDEMO_WEB_SERVICE_HOST": "10.96.0.13",
    "OMNIDEMO_WEB_PORT": "udp://10.96.0.13:53",
    "OMNIDEMO_WEB_PORT_53_UDP": "udp://10.96.0.13:53",
}


def test_variables_that_kubernetes_makes_are_passed_over_with_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = Settings()
    for name, value in OF_A_SERVICE.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        assert read_settings() == plain == Settings()
    [line] = caplog.messages
    assert "Kubernetes" in line and all(name in line for name in OF_A_SERVICE)
    monkeypatch.setenv("OMNIDEMO_PORT", "7999")  # a pod's own variable replaces the Service's
    assert read_settings().port == 7999 and "OMNIDEMO_PORT," not in caplog.messages[-1]


@pytest.mark.parametrize(("name", "value"), [("PORT", "duck://1"), ("PORTT", "80"), ("SERVICE", "80")])
def test_what_kubernetes_does_not_make_is_refused_as_before(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"OMNIDEMO_{name}", value)
    with pytest.raises(ValueError):
        read_settings()


@pytest.mark.parametrize("empty", ["", " ", "\r", "\r\n"])
def test_every_empty_variable_counts_as_not_given(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    plain = Settings()
    for name in [*Settings.model_fields, "misspelt"]:
        monkeypatch.setenv(f"OMNIDEMO_{name.upper()}", empty)
    check_environment()
    found = Settings()
    assert found == plain and found.storage == Path("storage")
    assert not found.model_fields_set  # some defaults depend on what was given


def test_a_backup_in_the_storage_folder_is_refused_through_links_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = tmp_path / "data"
    (storage / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(storage)
    monkeypatch.setenv("OMNIDEMO_STORAGE", str(storage))
    for copy in ("data", "link", "data/../data", "link/below", "data/not there yet"):
        with pytest.raises(ValueError, match="name a folder outside it") as refused:
            Settings(backup=str(tmp_path / copy))
        assert "OMNIDEMO_BACKUP" in sentence(refused.value)
    for copy in (".", "datas", "copies"):
        assert Settings(backup=str(tmp_path / copy)).backup == str(tmp_path / copy)
