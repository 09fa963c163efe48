"""A model's own manner: where it is read, what is left out of it, and that it holds wherever a request says
nothing."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import Keys

from omnidemo.core import catalogue_file
from omnidemo.core.catalogue_file import entries
from omnidemo.core.config import GREEDY, SAMPLING, GenerationConfig, Manner
from omnidemo.models import manner
from omnidemo.models.load import ModelError, load_model
from omnidemo.models.manner import SETTINGS_FILE, read_manner
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.remote_pair import RemotePair
from tests.support.gguf_files import tiny_model, write_gguf
from tests.support.models import save

OWN = {
    "do_sample": True,
    "temperature": 0.7,
    "top_p": 0.8,
    "top_k": 20,
    "min_p": 0.05,
    "repetition_penalty": 1.1,
}
ALL = Manner(0.7, 0.8, 20, 0.05, 1.1)


def numbers(found: Manner) -> tuple[float, ...]:
    return tuple(found.options.values())


def of_folder(folder: Path, said: Any) -> Manner:
    (folder / SETTINGS_FILE).write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    return read_manner("a model", folder)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (OWN, ALL),
        ({"do_sample": True}, Manner(1.0, top_k=50)),  # as transformers samples
        ({"do_sample": True, "temperature": 0.6, "top_p": 0.9}, Manner(0.6, 0.9, 50)),
        ({"do_sample": True, "temperature": None, "top_k": 0}, Manner(1.0)),
        ({"do_sample": True, "temperature": 1e-6, "top_k": -1}, GREEDY),
        # transformers penalises greedy text, too
        (OWN | {"do_sample": False}, Manner(repetition_penalty=1.1)),
        ({"temperature": 0.7, "top_p": 0.8}, GREEDY),
        ({"eos_token_id": 4}, GREEDY),
        ({}, GREEDY),
    ],
)
def test_a_folder_is_read_as_transformers_reads_it(
    tmp_path: Path, said: dict[str, Any], expected: Manner
) -> None:
    found = of_folder(tmp_path, said)
    assert numbers(found) == numbers(expected)
    assert (found is GREEDY or SETTINGS_FILE in found.source) and read_manner(
        "a model", tmp_path / "empty"
    ) is GREEDY


def test_a_header_is_read_by_llama_cpps_names(tmp_path: Path) -> None:
    keys = Keys.General
    assert list(manner.IN_HEADER.values()) == [
        keys.SAMPLING_TEMP, keys.SAMPLING_TOP_P, keys.SAMPLING_TOP_K, keys.SAMPLING_MIN_P,
        keys.SAMPLING_PENALTY_REPEAT
    ]  # fmt: skip
    header: dict[str, Any] = {key: OWN[name] for name, key in manner.IN_HEADER.items()}
    found = read_manner("m.gguf", metadata=header | {"general.name": "M", "general.sampling.mirostat": 2})
    assert numbers(found) == numbers(ALL) and "GGUF" in found.source
    assert numbers(read_manner("m.gguf", metadata={keys.SAMPLING_TOP_P: 0.9})) == (
        1.0,
        0.9,
        0,
        0.0,
        1.0,
    ), "it means to sample"
    assert numbers(read_manner("m.gguf", metadata={keys.SAMPLING_PENALTY_REPEAT: 1.2})) == (
        0.0,
        1.0,
        0,
        0.0,
        1.2,
    )
    assert read_manner("m.gguf", metadata={"general.name": "M"}) is GREEDY
    narrow = {key: float(np.float32(value)) for key, value in header.items()}
    assert numbers(read_manner("m.gguf", metadata=narrow)) == numbers(ALL), (
        "a header's four bytes are shown as they were written"
    )
    of_folder(tmp_path, OWN)
    assert numbers(read_manner("m.gguf", tmp_path, header | {keys.SAMPLING_TEMP: 0.1}))[0] == 0.1, (
        "the header comes before the folder"
    )
    assert numbers(read_manner("m.gguf", tmp_path, {})) == numbers(ALL)


def test_the_catalogue_comes_first(tmp_path: Path) -> None:
    of_folder(tmp_path, OWN)
    name = "HuggingFaceTB/SmolLM2-135M-Instruct"
    found = read_manner(name, tmp_path, {"general.sampling.temp": 0.9})
    assert numbers(found) == (0.2, 0.9, 0, 0.0, 1.15) and (
        found.penalty_scope,
        "is ours" in found.source,
    ) == ("answer", True)
    for own in (entry["sampling"] for entry in entries().values() if "sampling" in entry):
        assert (
            set(own) <= {*SAMPLING, "penalty_scope", "from"}
            and own["from"].endswith(".")
            and len(own["from"]) < 130
        )
        GenerationConfig.of(**{key: value for key, value in own.items() if key != "from"})
    assert catalogue_file.CATALOG.name == "catalog.json"


def test_a_gguf_file_brings_its_manner(tmp_path: Path) -> None:
    said = {manner.IN_HEADER[name]: OWN[name] for name in SAMPLING}
    path = write_gguf(tmp_path / "tiny.gguf", tiny_model(), metadata=said | {"general.sampling.temp": "hot"})
    found = load_model(str(path), device="cpu", fast=False).manner
    assert numbers(found) == (1.0, *numbers(ALL)[1:]), "filters without a usable temperature mean to sample"


WRONG = [
    *[
        ("temperature", value)
        for value in ("0.2", float("nan"), float("inf"), -1, 1e9, [], {}, True, 10**400)
    ],
    *[("top_p", value) for value in (0, 1.5, "x", float("nan"))],
    *[("top_k", value) for value in (-2, 2.5, "x", 10**30)],
    *[("min_p", value) for value in (-0.1, 2)],
    *[("repetition_penalty", value) for value in (0, -3, "1.1", 1e300)],
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda one: repr(one)[:20])
def test_what_is_not_possible_is_left_out_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, value: Any
) -> None:
    found = of_folder(tmp_path, OWN | {name: value})
    kept = numbers(of_folder(tmp_path, {key: one for key, one in OWN.items() if key != name}))
    assert numbers(found) == kept
    (said,) = [record.getMessage() for record in caplog.records]
    assert name in said and SETTINGS_FILE in said and "\n" not in said and len(said) < 300
    caplog.clear()
    read_manner("m.gguf", metadata={manner.IN_HEADER[name]: value})
    (said,) = [record.getMessage() for record in caplog.records]
    assert manner.IN_HEADER[name] in said and "m.gguf" in said and len(said) < 300


# What made `transformers` fail as it read the tokenizer or the weights, and was then told of those.
ODD = ['{"max_new_tokens": "x"}', '{"cache_implementation": "x"}', '{"temperature": "hot", "top_p": [1]}',
       '{"num_beams": 3, "num_return_sequences": 9}']  # fmt: skip
NO_SETTINGS = ["[1]", '"x"', "{", "", "\x00", "\ufeff{", '{"eos_token_id": 2', "[" * 100_000]


@pytest.mark.parametrize("said", ODD)
def test_no_odd_value_keeps_a_model_from_loading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    name = save(tmp_path / "model", "byte-level")
    (tmp_path / "model" / SETTINGS_FILE).write_text(said)
    with caplog.at_level(logging.WARNING, "omnidemo"):
        assert load_model(name, device="cpu", fast=False).manner == GREEDY
    assert all(SETTINGS_FILE in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("said", NO_SETTINGS, ids=lambda said: repr(said)[:30])
def test_what_is_no_json_is_refused_because_it_may_name_ends(tmp_path: Path, said: str) -> None:
    name = save(tmp_path / "model", "byte-level")
    (tmp_path / "model" / SETTINGS_FILE).write_text(said, encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"generation_config\.json cannot be read .*; correct it, or take"
    ) as found:
        load_model(name, device="cpu", fast=False)
    assert "\n" not in str(found.value)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A target whose folder names all five numbers."""
    root = tmp_path_factory.mktemp("manner")
    target, drafter = (
        save(root / "target", "byte-level", ends=False),
        save(root / "drafter", "byte-level", seed=1),
    )
    of_folder(root / "target", OWN)
    return Pair(load_model(target, device="cpu", fast=False), load_model(drafter, device="cpu", fast=False))


def test_the_manner_holds_where_a_request_says_nothing(pair: Pair) -> None:
    asked: dict[str, Any] = {"seed": 3, "max_new_tokens": 24, "learn": False, "reuse": False}
    assert numbers(pair.target.manner) == numbers(ALL)
    own = pair.generate("the small duck", **asked).token_ids
    assert own == pair.generate("the small duck", **asked, **ALL.options).token_ids
    assert own == pair.generate("the small duck", **asked, **dict.fromkeys(SAMPLING)).token_ids
    greedy = pair.generate("the small duck", **asked, **GREEDY.options).token_ids
    assert (
        greedy != own
        and greedy == pair.generate("the small duck", **asked | {"seed": 4}, **GREEDY.options).token_ids
    )


@pytest.mark.parametrize("name", SAMPLING)
def test_a_given_number_always_wins(pair: Pair, name: str) -> None:
    off = GREEDY.options[name]
    for ask in (pair.asked, lambda **given: RemotePair.asked(pair, **given)):  # type: ignore[arg-type]
        asked = ask(**{name: off})
        assert {one: getattr(asked, one) for one in SAMPLING} == ALL.options | {name: off}


def test_what_an_answer_leaves_behind_has_the_numbers(pair: Pair) -> None:
    traces: list[Any] = []
    pair.learners.append(traces.append)
    pair.generate("the small duck", max_new_tokens=8)
    pair.learners.clear()
    assert [trace.temperature for trace in traces] == [0.7]
