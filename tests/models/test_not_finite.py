"""Numbers that are not finite: an adapter, a drafter or a target that makes them is refused, or drafts
nothing. No answer breaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from omnidemo import load_pair
from omnidemo.decoding.methods import METHODS
from omnidemo.models.adapters import adapter_state
from omnidemo.models.adapters.adapter_state import CONFIG, PREFIX, WEIGHTS, AdapterState, BaseWeights
from omnidemo.models.adapters.peft_zip import import_peft
from omnidemo.models.load import ModelError, load_model
from omnidemo.pair.pair import Pair
from tests.support.models import save

MODULE = "model.layers.0.mlp.down_proj"
DRAFTING = [name for name, method in METHODS.items() if method.drafts]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("models")
    return save(root / "target", "byte-level", ends=False), save(root / "drafter", "byte-level", seed=1)


def adapter(folder: str, value: float, rank: int = 4) -> dict[str, torch.Tensor]:
    rows, columns = BaseWeights(Path(folder))[f"{MODULE}.weight"].shape
    halves = {"lora_A": torch.full((rank, columns), value), "lora_B": torch.full((rows, rank), value)}
    return {f"{PREFIX}{MODULE}.{half}.weight": tensor for half, tensor in halves.items()}


@pytest.mark.parametrize("value", [1e25, 1e10])
def test_an_adapter_whose_product_is_not_finite_is_refused(
    folders: tuple[str, str], tmp_path: Path, value: float
) -> None:
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none"}
    save_file(adapter(folders[1], value), tmp_path / WEIGHTS)
    (tmp_path / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ValueError, match="not finite or too large"):
        import_peft(tmp_path, Path(folders[1]))
    # so is publishing and restoring it, which merge the same way
    with pytest.raises(ValueError, match="not finite or too large"):
        adapter_state.merged_weights(
            BaseWeights(Path(folders[1])), AdapterState(adapter(folders[1], value), config)
        )
    whole = AdapterState({f"{MODULE}.weight": torch.full((32, 48), float("nan"))}, {"peft_type": "FULL"})
    with pytest.raises(ValueError, match="not finite or too large"):
        adapter_state.merged_weights(BaseWeights(Path(folders[1])), whole)


@pytest.fixture(scope="module")
def pair(folders: tuple[str, str]) -> Pair:
    return load_pair(*folders)


@pytest.mark.parametrize(
    ("value", "temperature"), [(float("nan"), 0.0), (float("inf"), 0.7), (3e38, 1.0), (float("nan"), 1.0)]
)
def test_a_drafter_that_is_not_finite_drafts_nothing(pair: Pair, value: float, temperature: float) -> None:
    """Whatever made its weights so: each answer is the target's own, by every method and rule."""
    plain = pair.generate(
        "the small duck", method="autoregressive", temperature=temperature, max_new_tokens=12, seed=3
    )
    try:
        name = "model.norm.weight"
        pair.publish(9, {name: torch.full_like(pair.drafter.runner.weights()[name], value)})
        for method in DRAFTING:
            if METHODS[method].refusal(pair.map):
                continue
            for options in (
                {"top_p": 0.9},
                {"repetition_penalty": 1.1},
                {"draft_policy": "cost"},
                {"draft_policy": "confidence"},
                {},
            ):
                asked = {
                    "temperature": temperature,
                    "max_new_tokens": 12,
                    "seed": 3,
                    "copying": False,
                } | options
                made = pair.generate("the small duck", method=method, **asked)
                assert len(made.token_ids) == 12 and sum(done.proposed for done in made.rounds) == 0, (
                    method,
                    options,
                )
                if temperature == 0.0 and "repetition_penalty" not in options:
                    assert made.token_ids == plain.token_ids
    finally:
        pair.publish(0, {})
        assert sum(done.proposed for done in pair.generate("the small duck", max_new_tokens=12).rounds) > 0


def test_a_drafter_that_is_not_finite_after_some_tokens_ends_drafts_before_them(pair: Pair) -> None:
    """A token whose embedding is no number: what was drafted up to there stays, and the answer is the
    target's."""
    plain = pair.generate("the small duck", method="autoregressive", max_new_tokens=40)
    name = "model.embed_tokens.weight"
    embeddings = pair.drafter.runner.weights()[name].clone()
    embeddings[200:300] = float("nan")
    try:
        pair.publish(9, {name: embeddings})
        for method in DRAFTING:
            if METHODS[method].refusal(pair.map):
                continue
            assert (
                pair.generate("the small duck", method=method, max_new_tokens=40).token_ids == plain.token_ids
            )
            pair.generate("the small duck", method=method, max_new_tokens=40, temperature=1.0, seed=1)
    finally:
        pair.publish(0, {})


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("value", [float("nan"), 3e38])
def test_a_target_that_is_not_finite_is_refused_when_it_is_loaded(
    tmp_path: Path, kind: str, value: float
) -> None:
    folder = Path(save(tmp_path / "target", "byte-level", kind))
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith(("down_proj.weight", "mlp.c_proj.weight")))
    weights[name] = torch.full_like(weights[name], value)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="not finite") as refused:
        load_model(str(folder), device="cpu")
    assert "\n" not in str(refused.value)
