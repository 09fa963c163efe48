"""Pairs of models, each loaded twice: on the reference, and on the fast backend that its rounds have to be
told apart from by nothing.

The tests of this folder use `load_pair`, `Pair` and `Generation` alone, so they hold of any engine behind
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from omnidemo import load_pair
from omnidemo.backends import compile_kernels
from tests.support.tokenizer_families import FAMILIES
from tests.support.trained_pair import DRAFTER, TARGET

pytest.register_assert_rewrite("tests.contract.sides")

from tests.contract.sides import Sides  # noqa: E402

FAST = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
WINDOW = 128  # of the small models


def save(folder: Path, family: str, seed: int, noise: float = 0.0) -> str:
    """A small random model that never ends by itself. `noise`: how far its output layer is from that of the
    same seed."""
    tokenizer = FAMILIES[family]()
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer) + 3, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=WINDOW, initializer_range=0.3, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.lm_head.weight.data += noise * torch.randn_like(model.lm_head.weight)
    model.lm_head.weight.data[tokenizer.eos_token_id] = 0.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def twins(folder: Path) -> tuple[str, str]:
    """One vocabulary, and nearly the same weights: much is accepted."""
    return save(folder / "target", "byte-level", 0), save(folder / "drafter", "byte-level", 0, noise=0.05)


def strangers(folder: Path) -> tuple[str, str]:
    """Two vocabularies and two models: hardly anything is accepted, and the drafter's context is spelled anew
    all the time."""
    return save(folder / "target", "byte-level", 1), save(folder / "drafter", "sentence-piece", 2)


PAIRS: dict[str, Callable[[Path], tuple[str, str]]] = {
    "trained": lambda folder: (TARGET, DRAFTER),
    "twins": twins,
    "strangers": strangers,
}


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], Sides]]:
    models = cache(lambda name: PAIRS[name](tmp_path_factory.mktemp(name)))

    full: dict[tuple[str, str], set[int]] = {}

    @cache
    def loaded(name: str, backend: str) -> Sides:
        given: dict[str, Any] = {"device": backend, "dtype": "float32"}
        reference, fast = (load_pair(*models(name), backend=one, **given) for one in ("reference", "auto"))
        assert backend != "cpu" or compile_kernels.wait()
        full[name, backend] = {pair.fill_cache() for pair in (reference, fast)}
        return Sides(reference, fast)

    def fresh(name: str, backend: str) -> Sides:
        sides = loaded(name, backend)
        for pair in sides.both:
            pair.drop_domain("default")
            if {len(pair.ngrams)} != full[name, backend]:  # a test has changed it; to fill it takes a while
                pair.clear_cache()
                pair.fill_cache()
        return sides

    yield fresh
    loaded.cache_clear()


@pytest.fixture(params=FAST)
def backend(request: pytest.FixtureRequest) -> str:
    """Each fast backend that this machine has."""
    return str(request.param)


@pytest.fixture
def pairs(load: Callable[[str, str], Sides], backend: str) -> Callable[[str], Sides]:
    """A pair of models by name, with n-grams for all tokens that have some, and nothing published."""
    return lambda name: load(name, backend)


@pytest.fixture(params=PAIRS)
def sides(request: pytest.FixtureRequest, pairs: Callable[[str], Sides]) -> Sides:
    """Each pair of models in turn."""
    return pairs(request.param)


@pytest.fixture
def trained(pairs: Callable[[str], Sides]) -> Sides:
    return pairs("trained")
