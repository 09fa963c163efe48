"""Every runner reads pieces as it reads a whole, forgets exactly, and takes new weights in place."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.cache_utils import DynamicCache

from lab.equality.tiny import ARCHITECTURES
from omnidemo.backends import compile_kernels, compiled_passes, fused_llama
from omnidemo.backends.compiled_passes import Form
from omnidemo.backends.fused_llama import FusedLlama, form_of
from omnidemo.models.transformers_runner import TransformersRunner, check_cache
from tests.support.runners import LEAN, VOCABULARY, close, make, reference, some_ids

WINDOWS = ("max_position_embeddings", "n_positions", "max_seq_len")


def of_two_bytes(model: Any) -> Any:
    """The model with weights that bfloat16 can hold; its rotary frequencies stay."""
    for weight in model.parameters():
        weight.data.copy_(weight.data.bfloat16())
    return model


CASES = [(shape, "transformers") for shape in ARCHITECTURES] + [(shape, "lean") for shape in LEAN]


@pytest.fixture(params=CASES, ids=[f"{shape}-{kind}" for shape, kind in CASES], scope="module")
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    shape, kind = request.param
    model = make(shape)
    return model, FusedLlama(model) if kind == "lean" else TransformersRunner(model)


def test_pieces_equal_one_pass(pair: tuple[Any, Any]) -> None:
    model, runner = pair
    ids = some_ids(60)
    wanted = reference(model, ids)
    cache = runner.new_cache()
    start = 0
    for size in (1, 5, 17, 2, 20, 1, 7, 7):
        rows = cache.forward(ids[start : start + size], size).logits
        assert rows.dtype == np.float32
        assert close(rows, wanted[start : start + size])
        start += size
        assert cache.length == start


def test_rollback_equals_a_fresh_read(pair: tuple[Any, Any]) -> None:
    model, runner = pair
    ids = some_ids(50)
    cache = runner.new_cache()
    cache.forward(ids, 0)
    # Deeper than the sliding window of 12, twice in a row, then to the very start.
    for keep, seed in ((47, 1), (30, 2), (9, 3), (9, 4), (0, 5)):
        cache.trim(keep)
        assert cache.length == keep
        new = some_ids(20, seed)
        ids = ids[:keep] + new
        first, rest = cache.forward(new[:4], 4).logits, cache.forward(new[4:], 16).logits
        assert close(np.concatenate([first, rest]), reference(model, ids)[keep:])


def test_rows(pair: tuple[Any, Any]) -> None:
    model, runner = pair
    ids = some_ids(9)
    wanted = reference(model, ids)
    assert runner.rows == VOCABULARY == wanted.shape[1]
    for rows in (0, 1, 3, 9):
        got = runner.new_cache().forward(ids, rows).logits
        assert got.shape == (rows, VOCABULARY)
        assert rows == 0 or close(got, wanted[-rows:])


def test_caches_are_independent(pair: tuple[Any, Any]) -> None:
    model, runner = pair
    left, right = some_ids(20, 1), some_ids(30, 2)
    one, two = runner.new_cache(), runner.new_cache()
    one.forward(left[:10], 0)
    two.forward(right[:25], 0)
    two.trim(20)
    assert close(one.forward(left[10:], 10).logits, reference(model, left)[10:])
    assert close(two.forward(right[20:], 10).logits, reference(model, right)[20:])


def test_refuses_what_cannot_be_read(pair: tuple[Any, Any]) -> None:
    _, runner = pair
    cache = runner.new_cache()
    with pytest.raises(ValueError, match="at least one"):
        cache.forward([], 0)
    with pytest.raises(ValueError, match="another model"):
        cache.forward([VOCABULARY], 1)
    with pytest.raises(ValueError, match="window"):
        cache.forward([1] * (runner.max_positions + 1), 1)
    assert cache.length == 0


@pytest.mark.parametrize("kind", ["transformers", "lean"])
@pytest.mark.parametrize("shape", ["llama grouped, wide heads", "qwen2", "qwen3"])
def test_overwrite_equals_a_reloaded_model(shape: str, kind: str) -> None:
    model = make(shape)
    runner = FusedLlama(model) if kind == "lean" else TransformersRunner(model)
    addresses = {name: weight.data_ptr() for name, weight in runner.weights().items()}
    other = make(shape)
    names = {
        f"model.layers.1.{part}.weight"
        for part in ("self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj")
    }
    names |= {
        "model.embed_tokens.weight",
        "model.layers.0.input_layernorm.weight",
        "model.norm.weight",
        "model.layers.0.self_attn.v_proj.weight",
    }
    names |= {f"model.layers.1.self_attn.{part}_norm.weight" for part in "qk" if shape == "qwen3"}
    with torch.no_grad():
        changed = {
            name: weight + torch.randn_like(weight) * 0.1
            for name, weight in other.named_parameters()
            if name in names
        }
    assert set(changed) == names
    _, unexpected = other.load_state_dict(changed, strict=False)
    assert not unexpected
    ids = some_ids(12)
    before = runner.new_cache().forward(ids, 5).logits
    runner.overwrite(changed)
    after = runner.new_cache().forward(ids, 5).logits
    assert not close(after, before, 1e-2)
    assert close(after, reference(other, ids)[-5:])
    assert {name: weight.data_ptr() for name, weight in runner.weights().items()} == addresses  # in place
    for name, value in changed.items():
        assert torch.equal(runner.weights()[name], value)


@pytest.mark.parametrize("kind", ["transformers", "lean"])
def test_overwrite_is_all_or_nothing(kind: str) -> None:
    model = make("llama")
    runner = FusedLlama(model) if kind == "lean" else TransformersRunner(model)
    before = {name: weight.clone() for name, weight in runner.weights().items()}
    good = {"model.norm.weight": torch.zeros(32)}
    with pytest.raises(ValueError, match="no weight 'lm_head\\.scale'"):
        runner.overwrite({**good, "lm_head.scale": torch.zeros(1)})
    with pytest.raises(ValueError, match="another base"):
        runner.overwrite({**good, "model.embed_tokens.weight": torch.zeros(2, 2)})
    assert all(torch.equal(weight, before[name]) for name, weight in runner.weights().items())


@pytest.mark.parametrize("shape", LEAN)
@pytest.mark.parametrize("ready", [True, False])
def test_weights_of_two_bytes_say_what_those_of_four_say(
    shape: str, ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ready:
        monkeypatch.setattr(compile_kernels, "_ready", None)
    model, ids = of_two_bytes(make(shape)), some_ids(60)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    runner = FusedLlama(model, form="bfloat16")
    wanted = reference(model, ids)
    cache = runner.new_cache()
    at = 0
    for size in (1, 2, 3, 4, 5, 6, 7, 8, 9, 15):  # every size of block, alone and together
        read = cache.forward(ids[at : at + size], size)
        assert close(read.logits, wanted[at : at + size])
        at += size
        assert read.hidden is not None and len(read.hidden) == size
    assert len(cache.runner.new_cache().forward(ids[:7], 0).logits) == 0
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())


@pytest.mark.parametrize("two_bytes", [False, True])
@pytest.mark.parametrize("shape", LEAN)
def test_shared_passes_are_those_of_one_thread(
    shape: str, two_bytes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_passes, "WORTH_SHARING", 0)
    monkeypatch.setattr(compiled_passes, "CHUNK", 17)  # so that a prompt is read in several
    form: Form = "bfloat16" if two_bytes else "float32"
    runner, ids = FusedLlama(of_two_bytes(make(shape)), form=form), some_ids(40)

    def read(threads: int) -> list[np.ndarray]:
        runner.threads = threads
        cache = runner.new_cache()
        found = [
            cache.forward(ids[at : at + size], size).logits
            for at, size in ((0, 12), (12, 1), (13, 2), (15, 5), (20, 9), (29, 11))
        ]
        return [*found, *(runner.new_cache().forward(ids, rows).logits for rows in (1, 25, 40))]

    wanted = read(1)
    assert runner.passes is not None and runner.passes.helpers == 0
    for threads in (2, 4):
        for pause in (0.0, 0.0, 0.05):  # after a pause the helpers sleep
            time.sleep(pause)
            found = read(threads)
            assert runner.passes.helpers == threads - 1
            assert all(close(one, other) for one, other in zip(found, wanted, strict=True))


def test_answers_that_are_given_at_once_share_no_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_passes, "WORTH_SHARING", 0)
    runner, ids = FusedLlama(make("llama")), some_ids(200)
    runner.threads = 3

    def read(start: int) -> np.ndarray:
        cache = runner.new_cache()
        for at in range(start, start + 60, 3):
            logits = cache.forward(ids[at : at + 3], 3).logits
        return logits

    wanted = [read(start) for start in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert all(close(one, other) for one, other in zip(pool.map(read, range(8)), wanted, strict=True))


def test_rounding_follows_new_weights_and_copies() -> None:
    ids = some_ids(12)
    exact = FusedLlama(make("llama")).new_cache().forward(ids, 5).logits
    runner = FusedLlama(make("llama"), form="bfloat16")
    rounded = runner.new_cache().forward(ids, 5).logits
    assert close(rounded, exact, 0.1) and not close(rounded, exact, 1e-4)
    copy = runner.copy()
    assert close(copy.new_cache().forward(ids, 5).logits, rounded)
    other = make("llama")
    new = {"model.layers.1.mlp.up_proj.weight": other.model.layers[1].mlp.up_proj.weight.detach() + 0.3}
    copy.overwrite(new)
    assert copy.form == "bfloat16"
    after = copy.new_cache().forward(ids, 5).logits
    assert not close(after, rounded, 1e-2)
    other.load_state_dict(
        {**{name: weight.bfloat16().float() for name, weight in make("llama").named_parameters()}},
        strict=False,
    )
    other.load_state_dict({name: weight.bfloat16().float() for name, weight in new.items()}, strict=False)
    assert close(after, reference(other, ids)[-5:], 0.02)  # embeddings and norms are not rounded
    assert close(runner.new_cache().forward(ids, 5).logits, rounded)


def test_the_form_is_that_of_fewest_bytes_which_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    exact, plain = of_two_bytes(make("llama")), make("llama")
    assert [form_of(exact, False), form_of(plain, False), form_of(plain, True)] == [
        "bfloat16", "float32", "bfloat16",
    ]  # fmt: skip
    half = make("llama").to(torch.bfloat16)
    assert form_of(half, True) == "float32" and FusedLlama(half).passes is None
    monkeypatch.setattr(fused_llama, "free_memory", lambda: 1000)
    assert form_of(plain, True) == "float32"


def test_a_runner_by_torch_reads_the_same_weights() -> None:
    runner, ids = FusedLlama(make("qwen2"), form="bfloat16"), some_ids(30)
    other = runner.by_torch()
    assert other.passes is None and runner.passes is not None
    assert close(other.new_cache().forward(ids, 5).logits, runner.new_cache().forward(ids, 5).logits)
    assert all(one is runner.whole.named[name] for name, one in other.weights().items())


@pytest.mark.parametrize("shape", LEAN)
def test_lean_in_bfloat16(shape: str) -> None:
    model = make(shape).to(torch.bfloat16)
    ids = some_ids(40)
    wanted = reference(model, ids)
    cache = FusedLlama(model).new_cache()
    parts = ((0, 25), (25, 30), (30, 31), (31, 40))
    rows = np.concatenate([cache.forward(ids[low:high], high - low).logits for low, high in parts])
    assert close(rows, wanted, 0.05)


def test_lean_holds_the_weights_once() -> None:
    model = make("qwen2")
    runner = FusedLlama(model)
    fused = runner.whole.layers[0].qkv.weight
    assert (
        model.model.layers[0].self_attn.k_proj.weight.untyped_storage().data_ptr()
        == fused.untyped_storage().data_ptr()
    )
    assert runner.parameters == sum(parameter.numel() for parameter in make("qwen2").parameters())


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "gelu"},
        {"attention_bias": True},
        {"mlp_bias": True},
        {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}},
    ],
)
def test_lean_knows_what_it_does_not_fit(changes: dict[str, Any]) -> None:
    model = make("llama", **changes)
    assert not FusedLlama.fits(model.config)
    with pytest.raises(ValueError, match="general runner"):
        FusedLlama(model)
    ids = some_ids(10)  # and the general one takes them
    assert close(TransformersRunner(model).new_cache().forward(ids, 3).logits, reference(model, ids)[-3:])


def test_lean_refuses_sliding_windows_and_other_families() -> None:
    sliding = make("qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=1)
    assert not FusedLlama.fits(sliding.config)
    assert not FusedLlama.fits(
        make("qwen3", use_sliding_window=True, sliding_window=8, max_window_layers=1).config
    )
    assert not FusedLlama.fits(make("qwen3", attention_bias=True).config)
    assert not FusedLlama.fits(make("qwen3-moe").config)
    assert all(FusedLlama.fits(make(shape).config) for shape in LEAN)


@pytest.mark.parametrize("ready", [True, False])
def test_lean_takes_rotary_frequencies_from_the_model(ready: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever builds a model may give them: some files hold a factor for each frequency."""
    if not ready:
        monkeypatch.setattr(compile_kernels, "_ready", None)
    model, ids = make("llama"), some_ids(40)
    before = reference(model, ids)
    model.model.rotary_emb.inv_freq.mul_(torch.tensor([1.0, 0.7, 0.3, 0.1]))
    model.model.rotary_emb.attention_scaling = 1.2
    wanted = reference(model, ids)
    assert not close(wanted, before, 1e-2)
    for runner in (FusedLlama(model), FusedLlama(model).copy()):
        assert close(runner.new_cache().forward(ids, 40).logits, wanted)


@pytest.mark.parametrize(
    "kind",
    ["Mamba", "Mamba2", "FalconMamba", "RecurrentGemma", "Jamba", "Rwkv", "Qwen3Next", "OpenAIGPT", "XLNet"],
)
def test_models_without_a_cache_to_roll_back_are_refused(kind: str) -> None:
    config = getattr(transformers, f"{kind}Config")()
    # by class and configuration, without weights
    with pytest.raises(ValueError, match="no key-value cache that can be rolled back"):
        check_cache(transformers.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)], config)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("Bert", {"is_decoder": False}),  # looks ahead
        ("Roberta", {"is_decoder": True, "pad_token_id": 1}),  # counts positions without the padding id
    ],
)
def test_models_that_answer_differently_in_pieces_are_refused(kind: str, options: dict[str, Any]) -> None:
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = getattr(transformers, f"{kind}Config")(vocab_size=VOCABULARY, **size, **options)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    with pytest.raises(ValueError, match="in pieces"):
        TransformersRunner(model)


def test_a_failed_pass_leaves_an_empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make("gpt2")
    runner = TransformersRunner(model)
    cache = runner.new_cache()
    cache.forward(some_ids(5), 0)
    update = DynamicCache.update

    def fail_in_second_layer(self: Any, keys: Any, values: Any, layer: int, *rest: Any, **more: Any) -> Any:
        if layer == 1:
            raise MemoryError
        return update(self, keys, values, layer, *rest, **more)

    monkeypatch.setattr(DynamicCache, "update", fail_in_second_layer)
    with pytest.raises(MemoryError):
        cache.forward([1, 2], 1)
    monkeypatch.undo()
    assert cache.length == 0
    ids = some_ids(8)
    assert close(cache.forward(ids, 8).logits, reference(model, ids))


@pytest.mark.parametrize("shape", [s for s, (_, options) in ARCHITECTURES.items() if {*options} & {*WINDOWS}])
def test_the_whole_window_can_be_read(shape: str) -> None:
    # Learned positions end where the window does; an offset (as OPT's) or a window read from another setting
    # shows here.
    model = make(shape, **{name: 40 for name in WINDOWS if name in ARCHITECTURES[shape][1]})
    runner = TransformersRunner(model)
    ids = some_ids(40)
    cache = runner.new_cache()
    assert cache.max_positions == 40
    assert close(
        np.concatenate([cache.forward(ids[:33], 33).logits, cache.forward(ids[33:], 7).logits]),
        reference(model, ids),
    )


def test_a_cache_shows_what_its_output_layer_read(pair: tuple[Any, Any]) -> None:
    model, runner = pair
    head = model.get_output_embeddings()
    for one in (runner, runner.copy()):
        cache = one.new_cache()
        for ids, rows in ((some_ids(40), 3), (some_ids(1, seed=1), 1), (some_ids(5, seed=2), 5)):
            found = cache.forward(ids, rows)
            logits, states = found.logits, torch.as_tensor(found.hidden)
            assert len(states) == rows
            with torch.no_grad():
                read = head(states.to(head.weight.dtype)).float().numpy()
            # Some models scale or cap the layer's output afterwards; its order stays.
            assert close(read, logits) or np.array_equal(read.argmax(-1), logits.argmax(-1))


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_a_product_has_as_many_tasks_for_each_thread(helpers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With three tasks for two threads one of them would wait for a third of the time."""
    passes = FusedLlama(make(LEAN[0])).passes
    assert passes is not None
    monkeypatch.setattr("omnidemo.backends.thread_pool.pick_size", lambda threads: helpers)
    for tokens in (1, 10**3, 10**6):
        assert passes.tasks(tokens) % (helpers + 1) == 0 or passes.tasks(tokens) == 1
    assert passes.tasks(10**6) == (2 * (helpers + 1) if helpers else 1)
