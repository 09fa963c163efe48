"""Bytes and halves of characters that are no text, by files, arguments and environment: one sentence that
says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidemo.cli import common
from omnidemo.core.config import GenerationConfig, Settings, check_text
from omnidemo.serving.measuring import prompt_files
from omnidemo.serving.measuring.prompt_files import read_prompts
from tests.support.cli import Cli, refused

GOOD = b'{"prompt": "the duck"}\n'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            GOOD + b'{"prompt": "a \\ud800 duck"}\n',
            "line 2: the text holds half a character (a lone surrogate) at position 2",
        ),
        (GOOD + b'"\\udc00"\n', "line 2: the text holds half a character"),
        (GOOD + b'{"prompt": "caf\xc3', "is not UTF-8 text"),
        (b"\xff\xfe" + '{"prompt": "the duck"}'.encode("utf-16-le"), "is not UTF-8 text"),
        (
            GOOD + b'{"prompt": "the \x00 duck"}\n',
            "line 2: this is not JSON (Invalid control character at column 17)",
        ),
        (GOOD + b'"' + b"duck " * 30 + b'"\n', "line 2: this line has more than 100 characters"),
    ],
    ids=["half a pair", "other half", "half UTF-8", "UTF-16", "NUL", "long line"],
)
def test_a_file_says_which_line_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, said: str
) -> None:
    monkeypatch.setattr(prompt_files, "LONGEST", 100)
    file = tmp_path / "prompts.jsonl"
    file.write_bytes(data)
    with pytest.raises(ValueError) as error:
        read_prompts(file)
    assert said in str(error.value) and str(error.value).startswith(str(file))


def test_a_file_is_read_as_far_as_its_prompts_are_wanted(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_bytes(GOOD + b'{"prompt": "a \\u0000 and \\ud83e\\udd86"}\r\n\r\n"\\ud800"\n')
    assert read_prompts(file, 2) == ["the duck", "a \x00 and \N{DUCK}"]
    with pytest.raises(ValueError, match="line 4: the text holds half"):
        read_prompts(file)


@pytest.mark.parametrize("name", ["TARGET", "STORAGE", "API_KEYS", "DATABASE_URL"])
def test_a_setting_is_text(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"OMNIDEMO_{name}", "duck\udcff")  # as the byte 0xff comes from the environment
    with pytest.raises(ValueError) as error:
        common.read_settings()
    said = common.sentence(error.value)
    assert f"OMNIDEMO_{name}" in said and "half a character (a lone surrogate) at position 4" in said
    said.encode()


def test_an_argument_is_text(cli: Cli) -> None:
    for arguments in (["--stop", "\udcff"], ["--target", "\udcff"], ["--method", "\udcff"]):
        refused(cli("generate", "the duck", *arguments), "half a character")


def test_a_name_of_any_length_is_refused_in_a_short_sentence(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a" * 100_000, "bundled/" + "a" * 100_000, "/" + "a/" * 50_000):
        refused(found := cli("generate", "the duck", "--target", name), "check the")
        assert len(found.err) < 300
    monkeypatch.setenv("OMNIDEMO_TARGET", "\udcff" + "a" * 100_000)
    refused(found := cli("generate", "the duck"), "OMNIDEMO_TARGET", "the text holds half a character")
    assert len(found.err) < 400 and "Value error" not in found.err


def test_stop_strings_are_text() -> None:
    with pytest.raises(ValueError, match=r"stop = .* is not possible: the text holds half a character"):
        GenerationConfig.of(stop=["###", "\ud800"])
    with pytest.raises(ValueError, match="is not possible: it should have at most 64 items"):
        GenerationConfig.of(stop=["#"] * 65)
    assert (
        GenerationConfig.of(stop=["###", "\x00"]).stop == ("###", "\x00") and check_text("\x00🦆") == "\x00🦆"
    )


def test_a_line_end_of_windows_is_no_part_of_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TARGET": "bundled/large", "PORT": "7999", "TRAINING": "off"}.items():
        monkeypatch.setenv(f"OMNIDEMO_{name}", f"{value}\r")
    settings = Settings()
    assert (settings.target, settings.port, settings.training) == ("bundled/large", 7999, "off")
