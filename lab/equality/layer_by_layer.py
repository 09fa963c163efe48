"""The first wrong number: a target's compiled passes, layer by layer and tensor by tensor, against
`transformers` with the weights of the same file.

A compiled pass is one call without intermediate results. So each part is called as a model of no or one
layer, whose embeddings are what that part of `transformers` has read. So an error is named where it arises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from omnidemo.backends import compile_kernels
from omnidemo.backends.arithmetic import integer
from omnidemo.backends.call_layout import SPAN, Model, Scores
from omnidemo.backends.compiled_passes import EMBEDDING, PRODUCTS, CompiledPasses
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.packed_forms import FLOAT32, PackedMatrix
from omnidemo.core.config import Settings
from omnidemo.models import model_files
from omnidemo.models.load import LanguageModel, load_model, open_source
from omnidemo.models.memory_need import check_room, least_need, whole_need
from omnidemo.models.names import resolve
from omnidemo.serving.measuring.report_tables import Stage

Array = NDArray[np.float32]
TOKENS = 24  # of a prompt that are read
BOUND = 1e-4  # share of a tensor's largest number by which another order of sums may move a number
NOWHERE = 16  # rows of an output layer whose logits are not used


@dataclass(frozen=True, slots=True)
class Difference:
    """A `part` of a layer: its numbers differ by up to `most` from the reference's, which are up to
    `largest`."""

    part: str
    most: float
    largest: float

    @property
    def share(self) -> float:
        return self.most / self.largest if self.largest else self.most


@dataclass(slots=True)
class LayerReport:
    """`passes` names the form of the weights. `parts` were compared. `different`: the parts beyond
    the bound, in the order of a pass. `closest`: the part within the bound that differs most."""

    passes: str
    parts: int = 0
    different: list[Difference] = field(default_factory=list)
    closest: Difference | None = None

    def note(self, part: str, got: Any, wanted: Any, bound: float = BOUND) -> None:
        """Compare numbers of one shape; a `bound` of 0 asks for equal ones."""
        apart, self.parts = np.abs(np.asarray(got) - np.asarray(wanted)), self.parts + 1
        # NaN − NaN is no difference either
        most = float(apart.max()) if np.isfinite(apart).all() else float("inf")
        found = Difference(part, most, float(np.abs(wanted).max()))
        if found.share > bound:
            self.different.append(found)
        elif self.closest is None or found.share > self.closest.share:
            self.closest = found

    def lines(self) -> list[str]:
        if not self.different:
            near = self.closest
            most = f", at most {near.share:.1g} of the largest number ({near.part})" if near else ""
            return [f"{self.passes}: {self.parts:,} parts have the reference's numbers{most}."]
        first, others = self.different[0], len(self.different) - 1
        said = f"{self.passes}: the first that differs is {first.part}, by up to {first.most:.3g} of"
        return [f"{said} {first.largest:.3g}; {others:,} of {self.parts - 1:,} others differ."]


def check(settings: Settings, text: str) -> Iterator[Stage | LayerReport]:
    """Compare the settings' target, as the backend reads it, with `transformers` over the first tokens of a
    text; yield a report. Integer products are compared with numpy. Both models are in memory. ValueError or
    ModelError, one sentence, for a target without compiled passes and as `load_model`."""
    at = resolve(settings.target, settings)
    target = load_model(at.where, device=settings.device, packed=settings.packed,
        compact=settings.compact == "auto", **settings.loading)  # fmt: skip
    runner = target.runner
    if not isinstance(runner, FusedLlama) or runner.passes is None:
        raise ValueError(
            f"{target.name} has no compiled passes here; look at the layers of a Llama, Qwen2 or Qwen3 target"
            " with OMNIDEMO_DEVICE=cpu and OMNIDEMO_BACKEND=auto"
        )
    if not compile_kernels.wait():
        raise RuntimeError(f"the passes cannot be compiled: {compile_kernels.failure()}")
    ids = target.tokenizer.encode(text)[: min(TOKENS, target.context)]
    yield from compare(runner, _reference(target, at.where, settings), ids)


def _reference(target: LanguageModel, where: str, settings: Settings) -> Any:
    source = open_source(where, hub=settings.trust_hub, models=settings.models)
    needs, free = (4.0 * source.parameters, source.config, 4), model_files.free_memory("cpu")
    check_room(f"{target.name} in float32", least_need(*needs), whole_need(*needs), free, "cpu", False)
    return source.weights(torch.float32).eval()


def compare(runner: FusedLlama, reference: Any, ids: Sequence[int]) -> Iterator[Stage | LayerReport]:
    """See `check`. `reference`: a model of `transformers` in float32."""
    seen = _Seen.of(reference, ids)
    yield from _Check(CompiledPasses(runner), reference, seen).run(f"{runner.form} weights")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The rows that each module of the reference has read and written, by its name, and the keys and values
    [heads, tokens, D] of each layer."""

    ids: NDArray[np.int64]
    read: dict[str, Array]
    written: dict[str, Array]
    kept: list[tuple[Array, Array]]

    @classmethod
    def of(cls, model: Any, ids: Sequence[int]) -> _Seen:
        read: dict[str, Array] = {}
        written: dict[str, Array] = {}

        def hook(name: str) -> Any:
            def note(module: Any, given: tuple[Any, ...], made: Any) -> None:
                read[name], written[name] = (one[0].numpy() for one in (given[0], made))

            return note

        hooks = [
            one.register_forward_hook(hook(name))
            for name, one in model.named_modules()
            if [*one.parameters(recurse=False)]  # other modules read no rows of numbers
        ]
        try:
            with torch.inference_mode():
                kept = model(torch.tensor([ids]), use_cache=True).past_key_values
        finally:
            for one in hooks:
                one.remove()
        pairs = [(layer.keys[0].numpy(), layer.values[0].numpy()) for layer in kept.layers]
        return cls(np.array(ids, np.int64), read, written, pairs)


class _Check:
    """The parts of compiled passes, called one by one."""

    def __init__(self, passes: CompiledPasses, reference: Any, seen: _Seen) -> None:
        self.passes, self.seen, runner = passes, seen, passes.runner
        self.weights = {
            name: one.detach().numpy() for name, one in reference.named_parameters(remove_duplicate=False)
        }
        self.held, self.integers = runner.named, runner.form == "packed"
        runner.extend_rope(SPAN)
        self.cache = np.zeros((1, 2, runner.kv_heads, SPAN, runner.head_dim), np.float32)
        self.model = passes.model(self.cache)  # of all layers

    def run(self, name: str) -> Iterator[Stage | LayerReport]:
        report, seen, model, depth = LayerReport(name), self.seen, self.model, self.passes.runner.depth
        self._weight(report, EMBEDDING)
        flat = self._without_layers(np.ones(self.passes.width, np.float32), model.matrices[-1])
        _, looked_up = self._call(flat, seen.ids)
        report.note("model.embed_tokens", looked_up, self._normed(seen.written["model.embed_tokens"]))
        for number in range(depth):
            self._layer(report, number)
            yield Stage(f"layers, {name}", number + 1, depth)
        self._weight(report, "model.norm.weight")
        self._products(report, "model.norm", model.last, ["lm_head"], len(PRODUCTS) * depth)
        yield report

    def _layer(self, report: LayerReport, number: int) -> None:
        name, seen, place = f"model.layers.{number}", self.seen, len(PRODUCTS) * number
        for vector in (one for one in self.weights if one.startswith(f"{name}.")):
            if self.weights[vector].ndim == 1:
                self._weight(report, vector)
        products, (before, after) = [f"{name}.{part}" for part in PRODUCTS], self.model.norms[number]
        self._products(report, f"{name}.input_layernorm", before, products[:3], place)
        self._attention(report, number, before=True)
        self._products(report, "", None, products[3:4], place + 3)
        self._attention(report, number, before=False)
        self._products(report, f"{name}.post_attention_layernorm", after, products[4:6], place + 4)
        self._products(report, "", None, products[6:], place + 6)
        last = number + 1 == self.passes.runner.depth
        following = "model.norm" if last else f"model.layers.{number + 1}.input_layernorm"
        if not self.integers:  # integer sums were compared with numpy's
            report.note(f"{name}, output", self._whole(number), self._normed(seen.read[following]))

    def _attention(self, report: LayerReport, number: int, before: bool) -> None:
        """Compare the keys and values of a layer, or its rows behind the output matrix."""
        if self.integers:
            return
        name, count = f"model.layers.{number}", len(self.seen.ids)
        none = np.zeros(self.weights[f"{name}.{PRODUCTS[6]}.weight"].shape, np.float32)
        attended, (keys, values) = self._whole(number, none), self.cache[0]
        if not before:
            middle = self._normed(self.seen.read[f"{name}.post_attention_layernorm"])
            report.note(f"{name}, attention", attended, middle)
            return
        keys = keys.reshape(len(keys), -1, SPAN)[:, :, :count].transpose(0, 2, 1)  # they lie transposed
        report.note(f"{name}, keys", keys, self.seen.kept[number][0])
        report.note(f"{name}, values", values[:, :count], self.seen.kept[number][1])

    def _weight(self, report: LayerReport, name: str) -> None:
        """Compare a weight, which is what it is in its file."""
        held = self.held[name]
        values = held.values() if isinstance(held, PackedMatrix) else held
        report.note(name, values, self.weights[name], 0.0)

    def _products(
        self, report: LayerReport, norm: str, weight: Array | None, names: Sequence[str], place: int
    ) -> None:
        """Compare the products of matrices (the first at `place` of the table) with the rows that the
        reference's modules of these names have read, and the `norm` before them, if any, by its `weight`."""
        x = self.seen.read[norm or names[0]]
        for number, name in enumerate(names):
            tied = name == "lm_head" and self.passes.runner.tied
            matrix = EMBEDDING if tied else f"{name}.weight"
            if not tied:
                self._weight(report, matrix)
            row, last = self.model.matrices[place + number], weight
            model = self._without_layers(np.ones(x.shape[1], np.float32) if last is None else last, row, x)
            got, read = self._call(model, np.arange(len(x)), int(row[2]))
            if norm and not number:
                report.note(norm, read, self.seen.written[norm])
            held = self.held[matrix]
            if self.integers and isinstance(held, PackedMatrix):
                report.note(f"{name}, product", got, integer.multiply(held, read), 0.0)
            else:
                report.note(f"{name}, product", got, read @ self.weights[matrix].T)

    def _whole(self, number: int, down: Array | None = None) -> Array:
        """The normed output of a layer for what the reference's layer has read. `down`: replaces its last
        matrix."""
        x = np.ascontiguousarray(self.seen.read[f"model.layers.{number}.input_layernorm"])
        nowhere = np.zeros((NOWHERE, x.shape[1]), np.float32)
        begin, one = len(PRODUCTS) * number, slice(number, number + 1)
        rows = self.model.matrices[begin : begin + len(PRODUCTS)]
        table = np.concatenate([rows, [_row(nowhere)], [_row(x)]])
        if down is not None:
            table[len(PRODUCTS) - 1] = _row(down)
        model = self.model._replace(
            matrices=table, norms=self.model.norms[one], last=np.ones(x.shape[1], np.float32),
            bias=self.model.bias[one], of_heads=self.model.of_heads[one],
        )  # fmt: skip
        return self._call(model, np.arange(len(x)))[1]

    def _without_layers(self, last: Array, row: NDArray[np.int64], x: Array | None = None) -> Model:
        """A model of no layers: a norm, and the matrix of a table's row as output layer. Its embeddings are
        `x`, or for None that matrix."""
        self._x = None if x is None else np.ascontiguousarray(x)  # to which the table points
        self._nowhere = np.zeros((NOWHERE, len(last)), np.float32)
        ends = [_row(self._nowhere), row] if self._x is None else [row, _row(self._x)]
        none, filler = slice(0, 0), self.model.matrices[: len(PRODUCTS)]  # of which nothing is read
        return self.model._replace(
            matrices=np.concatenate([ends, filler]), norms=self.model.norms[none], last=last,
            bias=self.model.bias[none], of_heads=self.model.of_heads[none],
        )  # fmt: skip

    def _call(self, model: Model, ids: NDArray[np.int64], outputs: int = NOWHERE) -> tuple[Array, Array]:
        """The logits [tokens, outputs] of a pass, and the rows [tokens, H] that its output layer has read."""
        kernels: Any = compile_kernels.kernels()
        logits = np.empty((len(ids), outputs), np.float32)
        states = np.empty((len(ids), len(model.last)), np.float32)
        scores = Scores(logits, states, np.empty((0, 4), np.float32))
        self.passes.call(kernels.forward, len(ids), model, ids, 0, scores, 1.0)
        return logits, states

    def _normed(self, x: Array) -> Array:
        root = np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + self.passes.runner.eps)
        return (x / root).astype(np.float32)


def _row(matrix: Array) -> tuple[int, int, int]:
    """A float32 matrix as a row of the table."""
    return FLOAT32, matrix.ctypes.data, len(matrix)
