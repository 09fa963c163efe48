"""The general runner, for any causal language model of `transformers` whose cache can be cropped; and which runner reads a loaded model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner, check_ids, overwrite_named
from omnidemo.decoding.backend import Pass
from omnidemo.decoding.sampling import as_tensor


def context_limit(config: Any) -> int:
    """The model's window; 2,048 where its configuration names none."""
    text = config.get_text_config(decoder=True)
    named = (getattr(text, name, None) for name in ("max_position_embeddings", "n_positions", "max_seq_len"))
    return next((int(limit) for limit in named if limit and limit > 0), 2048)


def check_cache(model_class: Any, config: Any) -> None:
    """Raise ValueError unless models of this class and configuration have a cache that can be rolled back. Needs no weights."""
    if "past_key_values" in inspect.signature(model_class.forward).parameters and DynamicCache(config=config).is_croppable:
        return
    raise ValueError(
        f"{model_class.__name__} has no key-value cache that can be rolled back, as drafting needs (state-space and recurrent models "
        "have none); choose a model with plain attention"
    )


class TransformersRunner:
    """Any causal language model of `transformers` whose cache can be rolled back; ValueError for one whose cannot."""

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.max_positions = context_limit(model.config)
        self.rows = int(model.get_input_embeddings().weight.shape[0])
        self.parameters = int(model.num_parameters())  # as they were before 4-bit weights were packed
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
        """Hook the output layer so that `states` holds its input after each pass; None for a model without an output layer."""
        head = self.model.get_output_embeddings()

        def note(module: Any, inputs: tuple[Any, ...]) -> None:
            self.states = inputs[0] if inputs and isinstance(inputs[0], Tensor) and inputs[0].dim() == 3 else None

        return head.register_forward_pre_hook(note) if head is not None else None

    def fresh(self) -> DynamicCache:
        """An empty key-value cache. Sliding layers keep everything (the mask alone slides), so that any rollback is exact."""
        cache = DynamicCache(config=self.model.config)
        cache.layers = [DynamicLayer() if type(layer) is DynamicSlidingWindowLayer else layer for layer in cache.layers]
        return cache

    def _probe(self) -> None:
        """Read, roll back and read on: a model that ignores its cache, or looks ahead, is found here and not in an answer."""
        cache, fresh = self.new_cache(), self.new_cache()
        # A padding id is read like any other, but some encoders turned decoders count positions without it.
        padding = getattr(self.model.config, "pad_token_id", None)
        ids = [i % self.rows for i in (5, 3 if padding is None or padding < 0 else padding, 7, 2)]
        cache.forward([*ids[:2], 1, 4 % self.rows], 1)
        cache.trim(2)
        pieces, whole = as_tensor(cache.forward(ids[2:], 2).logits), as_tensor(fresh.forward(ids, 2).logits)
        if not bool(torch.isfinite(whole.amax(-1)).all()):
            return  # `load_model` reports this
        # Half precision keeps 2 to 3 decimal digits; a wrong cache is off by more than either bound.
        bound = 1e-3 if self.dtype == torch.float32 else 0.1
        if not torch.allclose(pieces, whole, atol=bound * float(whole.abs().max()), rtol=0):
            raise ValueError(
                f"{type(self.model).__name__} answers differently when it reads in pieces and rolls back, so it cannot verify drafts; "
                "choose a model with plain causal attention"
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
        logits: Tensor = output.logits[0]
        return Pass(logits[len(logits) - last :].float(), None, runner.states[0] if runner.states is not None else None)

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


def make_runner(model: Any, fast: bool, spread: bool = False) -> Runner:
    """The fastest runner that serves a model of `transformers`. fast: whether its passes may be compiled or recorded. spread: the model
    lies on several devices. ValueError for a model that can neither draft nor verify. A forward pass of its own for another family gets its
    branch here."""
    # On a GPU the fused forward pays too, but a model spread over several keeps accelerate's hooks.
    return FusedLlama(model, fast) if not spread and FusedLlama.fits(model.config) else TransformersRunner(model)
