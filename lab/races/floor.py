"""The least time that decoding can take: what has to be read and multiplied, over what the machine can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.races.machine import Probe
from omnidemo.backends.compiled_passes import CompiledPasses
from omnidemo.models.load import LanguageModel


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass: `tokens` read behind `start` positions, and logits for `rows` of them."""

    start: int
    tokens: int
    rows: int


@dataclass(frozen=True, slots=True)
class Shape:
    """What a pass of a model costs. Bytes: `weights` without the tables of embeddings, `head` of the output
    layer, `position` of the keys and values of one position. Multiplications: `matrices` and `outputs` for a
    token, `attention` for a token and a position that it looks at."""

    weights: int
    head: int
    position: int
    matrices: int
    outputs: int
    attention: int

    @classmethod
    def of(cls, model: LanguageModel, compact: bool = True) -> Shape:
        """Of a loaded model with attention in every layer. Experts count as if all were read. `compact`: its
        passes may read float32 weights from a form of fewer bytes."""
        runner, config = model.runner, model.config.get_text_config(decoder=True)
        unique = list({one.data_ptr(): one for one in runner.weights().values()}.values())
        # one of them is the output layer
        tables = [one for one in unique if one.dim() == 2 and len(one) == runner.rows]
        others = [one for one in unique if all(one is not table for table in tables)]
        passes = getattr(runner, "passes", None)
        share = 1.0
        if compact and isinstance(passes, CompiledPasses):
            whole = sum(one.numel() for one in others if one.dim() > 1) + (tables[0].numel() if tables else 0)
            share = passes.nbytes / (4 * whole)
        layers, heads = config.num_hidden_layers, config.num_attention_heads
        groups = getattr(config, "num_key_value_heads", None) or heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        return cls(
            weights=round(sum(one.nbytes for one in others) * share),
            head=round(tables[0].nbytes * share) if tables else 0,
            position=2 * layers * groups * dim * runner.dtype.itemsize,
            matrices=sum(one.numel() for one in others if one.dim() > 1),
            outputs=tables[0].numel() if tables else 0,
            attention=2 * layers * heads * dim,
        )

    def bytes_of(self, one: Pass) -> int:
        """Weights once, and keys and values of all positions."""
        return self.weights + self.head * (one.rows > 0) + self.position * (one.start + one.tokens)

    def operations_of(self, one: Pass) -> int:
        """A multiplication and an addition each."""
        seen = one.tokens * one.start + one.tokens * (one.tokens + 1) // 2
        return 2 * (self.matrices * one.tokens + self.outputs * one.rows + self.attention * seen)


def floor(passes: Sequence[tuple[Shape, Pass]], probe: Probe, threads: int) -> tuple[int, int, float]:
    """(bytes, operations, seconds) of passes of one or two models, which alternate: the bandwidth is that of
    a working set that holds all of them. A pass takes at least the longer of its reading and its
    multiplying."""
    largest: dict[Shape, int] = {}
    for shape, one in passes:
        largest[shape] = max(largest.get(shape, 0), shape.bytes_of(one))
    if not largest:
        return 0, 0, 0.0
    bandwidth, rate = probe.bandwidth(sum(largest.values()), threads), probe.rate(threads)
    costs = [(shape.bytes_of(one), shape.operations_of(one)) for shape, one in passes]
    seconds = sum(max(moved / bandwidth, done / rate) for moved, done in costs)
    return sum(moved for moved, _ in costs), sum(done for _, done in costs), seconds
