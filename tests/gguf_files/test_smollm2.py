"""The default target as a visitor gets it: SmolLM2-135M-Instruct from its GGUF file. Skipped where the file
is not on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from omnidemo.core.config import Settings
from omnidemo.decoding.methods import METHODS
from omnidemo.models.gguf import sources
from omnidemo.models.gguf.architecture import plan_of
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.weights import build_config, build_model
from omnidemo.models.names import known_settings, resolve
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import build_pair

pytestmark = pytest.mark.smollm2
NAME = "gguf/SmolLM2-135M-Instruct-Q4_1-f469ec9e"
PROMPT = "Write a Python function that adds the numbers 12 and 345."
ANSWER = 8


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    yield build_pair("smollm2", "bundled/drafter", Settings(device="cpu"))


def test_auto_means_it_where_no_better_one_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    here, settings = sources.catalogued, Settings(target="auto")
    monkeypatch.setattr(
        sources, "catalogued", lambda one, folders: here(one, folders) if one.known == NAME else None
    )
    assert resolve("auto", settings).name == NAME == known_settings(settings).target
    assert resolve("smollm2", settings) == resolve("auto", settings)
    monkeypatch.setattr(sources, "catalogued", lambda one, folders: None)
    assert known_settings(settings).target == "bundled/large"


def test_greedy_ids_of_every_lossless_method_are_those_of_transformers(
    pair: Pair, smollm2_file: Path
) -> None:
    header = read_header(smollm2_file)
    model: Any = build_model(header, build_config(plan_of(header)), torch.float32)
    ids = pair.prompt_ids(PROMPT)
    greedy = {
        "temperature": 0.0,
        "top_p": 1.0,
        "repetition_penalty": 1.0,
        "max_new_tokens": ANSWER,
        "learn": False,
    }
    served = [
        name for name, method in METHODS.items() if method.lossless and method.refusal(pair.map) is None
    ]
    assert len(served) >= 4
    answers = {name: list(pair.generate(PROMPT, method=name, **greedy).token_ids) for name in served}
    written = answers["autoregressive"]
    assert len(written) == ANSWER and all(one == written for one in answers.values()), answers
    with torch.inference_mode():  # one pass says what greedy decoding would have written at each place
        rows = model(torch.tensor([ids + written[:-1]])).logits[0, len(ids) - 1 :]
    assert rows.argmax(-1).tolist() == written


def test_a_copy_elsewhere_is_the_same_model(tmp_path: Path, smollm2_file: Path) -> None:
    moved = tmp_path / "renamed.gguf"
    moved.symlink_to(smollm2_file)
    assert resolve(str(moved), Settings()).name == NAME
