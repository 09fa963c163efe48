"""Reading tokens with a model: what a runner is, and the general one over `transformers`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from omnidemo.core.contexts import Cache


class Runner(Protocol):
    """A loaded model that reads token ids. One runner serves many caches (conversations) at once."""

    rows: int  # width of a row of logits; may exceed the tokenizer's vocabulary
    limit: int  # positions the model can hold
    parameters: int
    device: torch.device
    dtype: torch.dtype

    def new_cache(self) -> Cache:
        """An empty cache of its own."""
        ...

    def weights(self) -> dict[str, Tensor]:
        """The live weights by the names `transformers` gives them; they change with `overwrite`, so copy what must stay."""
        ...

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        """Copy new values into weights, in place, given by the same names. Caches filled before are stale afterwards.
        ValueError for an unknown name or another shape; then nothing was changed."""
        ...


def check_ids(ids: Sequence[int], length: int, limit: int, rows: int) -> None:
    """Raise ValueError for ids that a model with `limit` positions and `rows` embeddings cannot read after `length` others."""
    if not ids:
        raise ValueError("nothing to read: give at least one token id")
    if length + len(ids) > limit:
        raise ValueError(f"the context is full: {length} + {len(ids)} tokens exceed the model's window of {limit}; start a new chat")
    if min(ids) < 0 or max(ids) >= rows:
        raise ValueError(
            f"token ids {min(ids)} to {max(ids)} do not fit the model's {rows} embeddings; the tokenizer belongs to another model"
        )


def overwrite_named(weights: Mapping[str, Tensor], named: Mapping[str, Tensor]) -> None:
    """Copy `named` into `weights`, all or nothing. ValueError as in `Runner.overwrite`."""
    for name, value in named.items():
        if name not in weights:
            raise ValueError(f"the model has no weight {name!r}; the adapter belongs to another base model")
        if weights[name].shape != value.shape:
            raise ValueError(
                f"{name} is {list(weights[name].shape)} in the model, not {list(value.shape)}: the adapter belongs to another base"
            )
    with torch.no_grad():
        for name, value in named.items():
            weights[name].copy_(value)


def context_limit(config: Any) -> int:
    """The model's window; 2,048 where its configuration names none."""
    text = config.get_text_config(decoder=True)
    return int(getattr(text, "max_position_embeddings", None) or getattr(text, "n_positions", None) or 2048)


class TransformersRunner:
    """Any causal language model of `transformers` whose cache can be rolled back; ValueError for one whose cannot."""

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.limit = context_limit(model.config)
        self.rows = int(model.get_input_embeddings().weight.shape[0])
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.device, self.dtype = model.device, model.dtype
        accepts = inspect.signature(model.forward).parameters
        self.keeps_rows = "logits_to_keep" in accepts
        if "past_key_values" not in accepts or not isinstance(cache := self.fresh(), DynamicCache) or not cache.is_croppable:
            raise ValueError(_not_croppable(model))
        self._probe()

    def new_cache(self) -> TransformersCache:
        return TransformersCache(self)

    def weights(self) -> dict[str, Tensor]:
        return {name: weight.detach() for name, weight in self.model.named_parameters(remove_duplicate=False)}

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        overwrite_named(self.weights(), named)

    def fresh(self) -> DynamicCache:
        """An empty key-value cache. Sliding layers keep everything (the mask alone slides), so that any rollback is exact."""
        cache = DynamicCache(config=self.model.config)
        cache.layers = [DynamicLayer() if type(layer) is DynamicSlidingWindowLayer else layer for layer in cache.layers]
        return cache

    def _probe(self) -> None:
        """Read, roll back and read on: a model that ignores its cache, or looks ahead, is found here and not in an answer."""
        cache, fresh = self.new_cache(), self.new_cache()
        ids = [i % self.rows for i in (5, 3, 7, 2)]
        cache.extend([*ids[:2], 1, 4 % self.rows], 1)
        cache.rollback(2)
        pieces, whole = cache.extend(ids[2:], 2), fresh.extend(ids, 2)
        # Half precision keeps 2 to 3 decimal digits; a wrong cache is off by more than either bound.
        bound = 1e-3 if self.dtype == torch.float32 else 0.1
        if not torch.allclose(pieces, whole, atol=bound * float(whole.abs().max()), rtol=0):
            raise ValueError(
                f"{type(self.model).__name__} answers differently when it reads in pieces and rolls back, so it cannot verify drafts; "
                "choose a model with plain causal attention"
            )


def _not_croppable(model: Any) -> str:
    return (
        f"{type(model).__name__} keeps a state that cannot be rolled back, as drafting needs (state-space and recurrent models do); "
        "choose a model with plain attention"
    )


class TransformersCache:
    """One context of a `TransformersRunner`."""

    def __init__(self, runner: TransformersRunner) -> None:
        self.runner, self.limit = runner, runner.limit
        self.length = 0
        self._past = runner.fresh()

    @torch.inference_mode()
    def extend(self, ids: Sequence[int], rows: int) -> Tensor:
        """Read `ids` and return the float32 logits [rows, V] after each of the last `rows` of them."""
        runner = self.runner
        check_ids(ids, self.length, self.limit, runner.rows)
        tokens = torch.tensor([ids], device=runner.device)
        options = {"logits_to_keep": max(rows, 1)} if runner.keeps_rows else {}  # 0 would mean all of them
        try:
            output = runner.model(input_ids=tokens, past_key_values=self._past, use_cache=True, **options)
        except BaseException:
            self.length, self._past = 0, runner.fresh()  # some layers may have read the tokens and some not
            raise
        self.length += len(ids)
        logits: Tensor = output.logits[0]
        return logits[len(logits) - rows :].float()

    def rollback(self, length: int) -> None:
        """Forget all positions from `length` on."""
        if length < self.length:
            if length == 0:
                self._past = self.runner.fresh()
            else:
                self._past.crop(length - self.length)  # a negative number: how many positions go
            self.length = length
