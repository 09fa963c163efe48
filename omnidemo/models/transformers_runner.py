"""The general runner, for any causal language model of `transformers` whose cache can be cropped; and the
choice of a runner."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import (
    DummyLayer,
    DynamicCache,
    DynamicIndexedLayer,
    DynamicLayer,
    DynamicSlidingWindowLayer,
)

from omnidemo.backends.fused_llama import FusedLlama, form_of
from omnidemo.backends.runner import Runner, check_ids, overwrite_named
from omnidemo.decoding.backend import Pass

# layers of a cache that forget a rolled-back token completely; a family's own layers may keep sums of tokens
EXACT_LAYERS = (DynamicLayer, DynamicSlidingWindowLayer, DynamicIndexedLayer, DummyLayer)
# names of lengths in a configuration at which a model may begin to compute otherwise
BOUNDARY = re.compile(r"window|chunk|block_size|compress|local_att|topk|original_max")
PROBED = 4  # tokens before and after a boundary that a probe reads in pieces
# most parameters × tokens of the probes at load
MOST_PROBED = {"cpu": 1.5e11, "cuda": 1e13}


def context_limit(config: Any) -> int:
    """The model's window; 2,048 where its configuration names none. With longrope it ends where the rotary
    frequencies change: keys read with the first frequencies do not fit the others."""
    text = config.get_text_config(decoder=True)
    named = (getattr(text, name, None) for name in ("max_position_embeddings", "n_positions", "max_seq_len"))
    return min([next((int(limit) for limit in named if limit and limit > 0), 2048), *_longrope_limits(text)])


def _longrope_limits(config: Any) -> Iterator[int]:
    ropes = getattr(config, "rope_parameters", None) or {}
    for rope in (ropes, *ropes.values()):  # one for all layers, or one for each kind of layers
        first = (
            rope.get("original_max_position_embeddings")
            if isinstance(rope, Mapping) and rope.get("rope_type") == "longrope"
            else None
        )
        if isinstance(first, int) and first > 0:
            yield first


def check_cache(model_class: Any, config: Any) -> None:
    """ValueError unless models of this class and configuration have a cache that can be rolled back. Needs no
    weights."""
    cache = DynamicCache(config=config)
    if "past_key_values" not in inspect.signature(model_class.forward).parameters or not cache.is_croppable:
        raise ValueError(
            f"{model_class.__name__} has no key-value cache that can be rolled back, as drafting needs"
            " (state-space and recurrent models have none); choose a model with plain attention"
        )
    if other := next(
        (type(layer).__name__ for layer in cache.layers if type(layer) not in EXACT_LAYERS), None
    ):
        raise ValueError(
            f"{model_class.__name__} keeps its context in a form of its own ({other}), which cannot be rolled"
            " back token by token, as drafting needs; choose a model with plain attention"
        )


def boundaries(config: Any) -> list[int]:
    """Lengths within the window at which, by its configuration, a model may begin to compute otherwise; the
    shortest first."""
    limit = context_limit(config)
    found: set[Any] = set()
    for name, value in config.get_text_config(decoder=True).to_dict().items():
        if BOUNDARY.search(name) and not name.endswith("pattern"):
            found.update(
                value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
            )
    return sorted(length for length in found if type(length) is int and PROBED < length <= limit - PROBED)


def check_boundaries(runner: TransformersRunner) -> None:
    """ValueError where a model has other logits around some boundary when tokens are read in pieces and
    rolled back than when all are read at once. Boundaries that take more than a few seconds are skipped."""
    most = MOST_PROBED.get(runner.device.type, 0.0) / max(runner.parameters, 1)
    for length in boundaries(runner.model.config):
        most -= 2 * length
        if most < 0:
            return
        ids = [(5 + 7 * place) % runner.rows for place in range(length + PROBED)]
        runner.check_rollback(ids, length - PROBED)


def token_rows(model: Any) -> int:
    """Ids that a model both reads and writes; some models have more input rows than output rows."""
    read = int(model.get_input_embeddings().weight.shape[0])
    return min(read, getattr(model.get_output_embeddings(), "out_features", read))


class TransformersRunner:
    """Any causal language model of `transformers` whose cache can be rolled back; ValueError for another."""

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.max_positions = context_limit(model.config)
        self.rows = token_rows(model)
        self.parameters = int(model.num_parameters())
        self.device, self.dtype = model.device, model.dtype
        check_cache(type(model), model.config)
        self.states: Tensor | None = None  # what the output layer read in the newest pass [1, rows, H]
        self._watch = self._watch_head()
        self.keeps_rows = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._probe()

    def new_cache(self) -> TransformersCache:
        return TransformersCache(self)

    def spare(self, most: int) -> int:
        """See `Runner`: a cache's tensors are freed with it."""
        return 0

    def copy(self) -> TransformersRunner:
        if self._watch is not None:
            self._watch.remove()  # a copied hook would still write to this runner
        try:
            return TransformersRunner(deepcopy(self.model))
        finally:
            self._watch = self._watch_head()

    def weights(self) -> dict[str, Tensor]:
        return {name: weight.detach() for name, weight in self.model.named_parameters(remove_duplicate=False)}

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        overwrite_named(self.weights(), named)

    def _watch_head(self) -> Any:
        """Hook the output layer so that `states` holds its input after each pass; None without an output
        layer."""
        head = self.model.get_output_embeddings()

        def note(module: Any, inputs: tuple[Any, ...]) -> None:
            self.states = (
                inputs[0] if inputs and isinstance(inputs[0], Tensor) and inputs[0].dim() == 3 else None
            )

        return head.register_forward_pre_hook(note) if head is not None else None

    def fresh(self) -> DynamicCache:
        """An empty key-value cache. Sliding layers keep everything (only the mask slides), so that any
        rollback is exact."""
        cache = DynamicCache(config=self.model.config)
        cache.layers = [
            DynamicLayer() if type(layer) is DynamicSlidingWindowLayer else layer for layer in cache.layers
        ]
        return cache

    def _probe(self) -> None:
        """Read, roll back and read on: finds a model that ignores its cache, or attends to later tokens, at
        load."""
        # A padding id is read like any other, but some encoders turned decoders count positions without it.
        padding = getattr(self.model.config, "pad_token_id", None)
        self.check_rollback(
            [i % self.rows for i in (5, 3 if padding is None or padding < 0 else padding, 7, 2)], 2
        )

    def check_rollback(self, ids: Sequence[int], kept: int) -> None:
        """ValueError unless the last tokens have the same logits when all are read at once, and when they are
        read one by one after the first `kept` and after other tokens that were rolled back."""
        cache, last = self.new_cache(), len(ids) - kept
        try:
            if kept:
                cache.forward(ids[:kept], 1)
            cache.forward([(token + 1) % self.rows for token in ids[kept:]], 1)
            cache.trim(kept)
            pieces = np.concatenate([cache.forward([token], 1).logits for token in ids[kept:]])
            whole = self.new_cache().forward(ids, last).logits
        except RuntimeError as error:
            if "memory" in str(error):
                raise
            why = f"reading {len(ids)} tokens in pieces fails ({str(error)[:120]})"
            raise ValueError(f"{why}; choose a model with plain causal attention") from error
        if not np.isfinite(whole.max(-1)).all():
            return  # `load_model` reports this
        # Half precision keeps 2 to 3 decimal digits; a wrong cache is off by more than either bound.
        bound = 1e-3 if self.dtype == torch.float32 else 0.1
        if not np.allclose(pieces, whole, atol=bound * float(np.abs(whole).max()), rtol=0):
            raise ValueError(
                f"{type(self.model).__name__} answers differently when it reads {len(ids)} tokens in pieces"
                " and rolls back, so it cannot verify drafts; choose a model with plain causal attention"
            )


class TransformersCache:
    """One context of a `TransformersRunner`."""

    def __init__(self, runner: TransformersRunner) -> None:
        self.runner, self.max_positions = runner, runner.max_positions
        self.length = 0
        self._past = runner.fresh()

    @property
    def nbytes(self) -> int:
        """See `KVCache`."""
        held = (getattr(layer, name, None) for layer in self._past.layers for name in ("keys", "values"))
        return sum(one.untyped_storage().nbytes() for one in held if isinstance(one, Tensor))

    @torch.inference_mode()
    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """See `KVCache`; no statistics."""
        runner = self.runner
        check_ids(ids, self.length, self.max_positions, runner.rows)
        tokens = torch.tensor([ids], device=runner.device)
        options = {"logits_to_keep": max(last, 1)} if runner.keeps_rows else {}  # 0 would mean all of them
        try:
            output = runner.model(input_ids=tokens, past_key_values=self._past, use_cache=True, **options)
        except BaseException:
            self.length, self._past = 0, runner.fresh()  # some layers may have read the tokens and some not
            raise
        self.length += len(ids)
        logits: Tensor = output.logits[0, :, : runner.rows]
        states = None if runner.states is None else runner.states[0].float().cpu().numpy()
        return Pass(logits[len(logits) - last :].float().cpu().numpy(), None, states)

    @torch.inference_mode()
    def trim(self, length: int) -> int:
        """See `KVCache`."""
        if length < self.length:
            if length == 0:
                self._past = self.runner.fresh()
            else:
                self._past.crop(length - self.length)  # a negative number: how many positions go
            self.length = length
        return self.length


def make_runner(model: Any, fast: bool, compact: bool = False, rounding: bool = False) -> Runner:
    """The fastest runner for a model of `transformers`. fast: passes may be compiled or recorded. compact:
    they read two-byte copies of the weights, where these are exact or `rounding` is allowed. ValueError for a
    model that can neither draft nor verify. A runner for another family gets its branch here."""
    if FusedLlama.fits(model.config):
        return FusedLlama(model, fast, form_of(model, rounding) if compact else "float32")
    runner = TransformersRunner(model)
    check_boundaries(runner)
    return runner
