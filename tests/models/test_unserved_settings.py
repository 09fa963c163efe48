"""Settings for generating that are not computed here: refused by name where `transformers` writes other ids
by them, and no hindrance where they ask for nothing."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from omnidemo import load_pair
from omnidemo.models.load import ModelError, load_model
from omnidemo.models.manner import SETTINGS_FILE
from tests.support.models import save

TEXT, LIMIT = "the other ducks", 12


def ids_by_transformers(folder: Path, prompt: list[int], **options: Any) -> list[int]:
    """Of a model as it was saved, its settings included."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.manual_seed(0)
    found: list[int] = model.generate(torch.tensor([prompt]), max_new_tokens=LIMIT, **options)[0].tolist()
    return found[len(prompt) :]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save(tmp_path_factory.mktemp("settings") / "model", "byte-level", ends=False))


@pytest.fixture(scope="module")
def plain(folder: Path) -> tuple[list[int], list[int]]:
    """The prompt's ids, and those that follow."""
    pair = load_pair(str(folder), str(folder), backend="reference")
    made = pair.generate(TEXT, max_new_tokens=LIMIT, method="autoregressive")
    return pair.prompt_ids(TEXT), list(made.token_ids)


def say(folder: Path, said: dict[str, Any], file: str = SETTINGS_FILE) -> None:
    (folder / file).write_text(json.dumps(said))


def of_field(field: str, ids: list[int]) -> Any:
    """A value by which another text than `ids` is written."""
    return {
        "suppress_tokens": [ids[3]], "begin_suppress_tokens": [ids[0]], "bad_words_ids": [[ids[2], ids[3]]],
        "sequence_bias": [[[ids[1]], -50.0]], "forced_eos_token_id": ids[0], "no_repeat_ngram_size": 1,
        "encoder_repetition_penalty": 1e6, "min_length": 40,
        "min_new_tokens": 11, "exponential_decay_length_penalty": [1, 50.0],
        "watermarking_config": {"greenlist_ratio": 0.25, "bias": 20.0},
    }[field]  # fmt: skip


FIELDS = [
    "suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "sequence_bias", "forced_eos_token_id",
    "no_repeat_ngram_size", "encoder_repetition_penalty",
    "exponential_decay_length_penalty", "min_length", "min_new_tokens", "watermarking_config",
]  # fmt: skip


@pytest.mark.parametrize("file", [SETTINGS_FILE, "config.json"])
@pytest.mark.parametrize("field", FIELDS)
def test_what_changes_the_text_is_refused_by_name(
    folder: Path, plain: tuple[list[int], list[int]], field: str, file: str, tmp_path: Path
) -> None:
    prompt, ids = plain
    for path in folder.iterdir():
        if path.name != SETTINGS_FILE:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    # an end within the answer, upon which lengths act
    ends = {"eos_token_id": ids[5]} if field.startswith(("min_", "exponential")) else {}
    said = json.loads((folder / file).read_text()) | ends
    say(tmp_path, said, file)
    without = ids_by_transformers(tmp_path, prompt)
    say(tmp_path, said | {field: of_field(field, ids)}, file)
    assert ids_by_transformers(tmp_path, prompt) != without == ids[: len(without)]
    with pytest.raises(ModelError) as caught:
        load_model(str(tmp_path), device="cpu", fast=False)
    assert f"asks for {field} " in str(caught.value) and file in str(caught.value)
    assert load_model(str(tmp_path), device="cpu", fast=False, writes=False).parameters, (
        "a drafter may have it"
    )


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"forced_bos_token_id": 0}, "forced_bos_token_id 0"),  # an id, not nothing
        ({"encoder_no_repeat_ngram_size": 2}, "encoder_no_repeat_ngram_size 2"),
        ({"guidance_scale": 1.5}, "guidance_scale 1.5"),
        ({"stop_strings": ["duck"]}, "stop_strings ['duck']"),
        ({"do_sample": True, "typical_p": 0.9}, "typical_p 0.9"),
        ({"do_sample": True, "epsilon_cutoff": 1e-3}, "epsilon_cutoff 0.001"),
        ({"suppress_tokens": "none"}, "suppress_tokens 'none'"),
        ({"watermarking_config": 3}, "watermarking_config 3"),
    ],
)
def test_others_are_refused_too(tmp_path: Path, said: dict[str, Any], named: str) -> None:
    name = save(tmp_path / "model", "byte-level")
    say(tmp_path / "model", said)
    with pytest.raises(ModelError, match="which is not offered here") as caught:
        load_model(name, device="cpu", fast=False)
    assert named in str(caught.value) and "\n" not in str(caught.value)


NOTHING = {
    "suppress_tokens": [], "begin_suppress_tokens": None, "no_repeat_ngram_size": 0, "min_length": 0,
    "encoder_repetition_penalty": 1.0, "guidance_scale": 1, "num_beams": 1, "typical_p": 0.5,
    "eta_cutoff": 0.1,
    "max_length": 2048, "renormalize_logits": True, "use_cache": False,
}  # fmt: skip


def test_what_asks_for_nothing_hinders_nobody(
    tmp_path: Path, plain: tuple[list[int], list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    name = save(tmp_path / "model", "byte-level", ends=False)
    say(tmp_path / "model", NOTHING)
    assert ids_by_transformers(tmp_path / "model", plain[0]) == plain[1]
    with caplog.at_level(logging.WARNING, "omnidemo"):
        assert load_pair(name, name, backend="reference").generate(TEXT, max_new_tokens=LIMIT).token_ids == (
            *plain[1],
        )
    assert not [record for record in caplog.records if record.name.startswith("omnidemo")]


def test_another_search_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    name = save(tmp_path / "model", "byte-level")
    say(tmp_path / "model", {"num_beams": 4})
    with caplog.at_level(logging.WARNING, "omnidemo"):
        load_model(name, device="cpu", fast=False)
    assert [record.getMessage() for record in caplog.records] == [
        f"{name} asks for num_beams 4 in {SETTINGS_FILE}; here it writes one token after another"
    ]
