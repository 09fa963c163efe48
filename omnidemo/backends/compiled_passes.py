"""Passes on a CPU as one compiled function, which several threads share.

At batch 1 a small model spends as long between its products as in them when each step is a call of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.backends import compile_kernels, thread_pool
from omnidemo.backends.call_layout import (
    SPAN,
    Array,
    Cache,
    Choice,
    Marks,
    Model,
    NoiseBlocks,
    RolloutOutput,
    Rule,
    Sampling,
    Scores,
    Side,
    Stop,
    TargetText,
    Workers,
)
from omnidemo.backends.packed_forms import BFLOAT16, FLOAT32, PackedMatrix
from omnidemo.backends.weight_arena import in_bfloat16
from omnidemo.decoding.draft_policy import NEVER
from omnidemo.decoding.randomness import SharedNoise
from omnidemo.decoding.rollout import DRAWS, FEW, ProposalRule, Rollout, RolloutRequest
from omnidemo.decoding.row_ops import BLOCK, RowStats
from omnidemo.decoding.sampling import Logits, SamplingParams, Seen

Form = Literal["packed", "bfloat16", "float32"]
Kept = NDArray[np.float32] | NDArray[np.float16]  # keys and values
# parameters × tokens of a pass that is shared; a smaller one ends before a helper thread has started
WORTH_SHARING = 400_000
# the same for several tasks per thread; in a smaller pass claiming them costs more than it saves
LARGE = 4_000_000
CHUNK = 256  # tokens that are read at once: their activations stay in the caches
EMBEDDING = "model.embed_tokens.weight"
PRODUCTS = (  # of a layer, in the order of a pass
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip
NOTHING = np.zeros(DRAWS)  # in place of uniform numbers that are not needed
# in place of seen tokens, without a penalty
NOBODY = Marks(np.zeros(0, np.bool_), np.zeros(1, np.int64))


class Shaped(Protocol):
    """What compiled passes ask of a model of the Llama shape. `rows` is the width of a row of logits, `width`
    that of the model; `threads` and the tables of rotary numbers may change."""

    heads: int
    kv_heads: int
    head_dim: int
    depth: int
    rows: int
    width: int
    tied: bool
    eps: float
    parameters: int
    threads: int
    rope: tuple[Tensor, Tensor]
    form: Form

    @property
    def named(self) -> Mapping[str, PackedMatrix | NDArray[np.float32]]:
        """The weights by the names of `transformers`."""
        ...

    def extend_rope(self, length: int) -> None:
        """Have rotary tables of so many positions."""
        ...


class CompiledPasses:
    """The forward passes of a `FusedLlama` on a CPU, over the form of its weights: `float32`, the matrices;
    `bfloat16`, copies of them; `packed`, the matrices as their file packs them (see `packed_forms.py`), which
    are multiplied in int8. Called where there is compiled code."""

    def __init__(self, runner: Shaped) -> None:
        self.runner, named = runner, runner.named
        table, self._weights, self.nbytes, self.weights = _table(runner, named)
        self._given = table, *_vectors(runner, named)
        self.width = runner.width
        self._rope: tuple[Any, ...] = (None,)  # the runner's tables, and the same in numpy
        # the newest rule, and its tables in numpy
        self._rule: tuple[ProposalRule, Rule] | None = None
        compile_kernels.prepare()

    @property
    def helpers(self) -> int:
        """Threads that help with a pass, unless it is small."""
        return thread_pool.pick_size(self.runner.threads)

    def forward(
        self, ids: Sequence[int], start: int, buffer: Kept, rows: int, temperature: float | None = None
    ) -> tuple[Array, Array, RowStats | None]:
        """Read `ids` at positions start… into the cache's buffer: the last rows' logits [rows, V], the output
        layer's input [rows, H], and row statistics if `temperature` is given."""
        runner = self.runner
        logits, states = np.empty((rows, runner.rows), np.float32), np.empty((rows, self.width), np.float32)
        numbers = np.empty((rows if temperature is not None else 0, 4), np.float32)
        scores = Scores(logits, states, numbers)
        self.call(
            _kernels().forward,
            len(ids),
            self.model(buffer),
            np.array(ids, np.int64),
            start,
            scores,
            temperature or 1.0,
        )
        return logits, states, RowStats(logits, numbers, temperature) if temperature is not None else None

    def roll_out(
        self,
        start: int,
        buffer: Kept,
        order: RolloutRequest,
        ids: Sequence[int],
        row: Logits | None,
        state: Any,
    ) -> Rollout:
        """See `FusedCache.roll_out`; the cache's `buffer` holds `start` positions."""
        runner, rule = self.runner, order.rule
        stop, total = order.stop_rule or NEVER, order.left + rule.overrun
        draft = room_for(total, runner.rows, self.width)
        rows, states = draft.rows, draft.states
        # a pass of their own is shared by threads
        if len(ids) > FEW:
            found = self.forward(ids, start, buffer, 1)
            row, state = found[0][0], found[1][0]
            start, ids = start + len(ids), ()
        if row is not None:
            rows[0], states[0] = row, state
        side = Side(self.model(buffer), np.array(ids, np.int64), start, marks_of(order.seen))
        choice = choice_of(order.sampling, order.uniforms, order.noise, order.position, 1)
        count, read = self.call(
            _kernels().roll_out, 1, side, self.rule(rule), total, order.left, choice, order.names,
            Stop(stop.cumulative, stop.min_prob, stop.price, stop.segments), draft,
        )  # fmt: skip
        places, drawn, tokens = draft.notes[:, : max(count, read)].tolist()
        probs = draft.probs[:count].tolist()
        rows, states = rows[: read + 1], states[: read + 1]
        return Rollout(
            places[:count],
            drawn[:count],
            probs,
            draft.distributions[:count],
            tokens[:read],
            rows,
            states,
        )

    def call(self, kernel: Callable[..., Any], tokens: int, *given: Any) -> Any:
        """Call a kernel for passes of so many `tokens`, with the `Workers` that make them."""
        tasks = self.tasks(tokens)
        if tasks == 1:
            return kernel(Workers(thread_pool.new_queue(), 1, CHUNK), *given)
        with thread_pool.helping(self.helpers, _kernels().run_worker) as queue:
            return kernel(Workers(queue, tasks, CHUNK), *given)

    def tasks(self, tokens: int) -> int:
        """The number of tasks of a product in a pass of so many tokens: equally many for each thread."""
        work, helpers = self.runner.parameters * tokens, self.helpers
        if not helpers or work < WORTH_SHARING:
            return 1
        return (thread_pool.TASKS if work >= LARGE else 1) * (helpers + 1)

    def model(self, buffer: Kept) -> Model:
        """The model as a kernel's argument, with a cache's `buffer`, which must outlive the call."""
        rope = self._rope
        if rope[0] is not self.runner.rope:  # another thread may do this too
            rope = self._rope = (
                self.runner.rope,
                *(table.numpy().reshape(len(table), -1) for table in self.runner.rope),
            )
        assert buffer.shape[3] % SPAN == 0
        cache = Cache(buffer.ctypes.data, buffer.itemsize, *buffer.shape[2:])
        return Model(cache, *self._given, rope[1], rope[2], self.runner.eps)

    def rule(self, rule: ProposalRule) -> Rule:
        """A proposal rule as a kernel's argument."""
        held = self._rule
        if held is None or rule is not held[0]:  # another thread may do this too
            trie = rule.trie
            held = self._rule = (
                rule,
                Rule(rule.first, rule.inside, rule.alone, trie.keys, trie.info, trie.kin),
            )
        return held[1]


def _kernels() -> Any:
    return compile_kernels.kernels()


def _table(runner: Shaped, named: Mapping[str, Any]) -> tuple[NDArray[np.int64], list[Any], int, int]:
    """(the table of matrices of `Model`, the arrays it points into, the bytes and the weights of the matrices
    that a pass reads completely)."""
    layers = [f"model.layers.{number}.{part}.weight" for number in range(runner.depth) for part in PRODUCTS]
    read = [named[name] for name in (*layers, EMBEDDING if runner.tied else "lm_head.weight")]
    weights = sum(one.rows * one.columns if isinstance(one, PackedMatrix) else one.size for one in read)
    if runner.form == "bfloat16":
        read = in_bfloat16(read)
    kept = [*read, named[EMBEDDING]]  # which is looked up
    rows = [
        (one.form, one.tiles.ctypes.data, one.rows)
        if isinstance(one, PackedMatrix)
        else (FLOAT32 if one.itemsize == 4 else BFLOAT16, one.ctypes.data, len(one))
        for one in kept
    ]  # fmt: skip
    return np.array(rows), kept, sum(one.nbytes for one in read), weights


def _vectors(runner: Shaped, named: Mapping[str, Any]) -> tuple[Array, Array, Array, Array]:
    """`norms`, `last`, `bias` and `of_heads` of `Model`."""
    layers = [f"model.layers.{number}" for number in range(runner.depth)]
    none = np.zeros((runner.heads + 2 * runner.kv_heads) * runner.head_dim, np.float32)

    def array(*names: str) -> Array:
        parts = [[named[f"{layer}.{name}"] for name in names] for layer in layers]
        return np.array([np.concatenate(part) for part in parts])

    norms = array("input_layernorm.weight", "post_attention_layernorm.weight")
    attention = [f"self_attn.{part}" for part in ("q_proj.bias", "k_proj.bias", "v_proj.bias")]
    bias = array(*attention) if f"{layers[0]}.{attention[0]}" in named else np.array([none] * len(layers))
    heads = [f"self_attn.{part}.weight" for part in ("q_norm", "k_norm")]
    of_heads = np.empty((len(layers), 0), np.float32)
    if f"{layers[0]}.{heads[0]}" in named:
        of_heads = np.pad(array(*heads), ((0, 0), (0, 1)), constant_values=runner.eps)
    return norms.reshape(len(layers), 2, -1), named["model.norm.weight"], bias, of_heads


def choice_of(
    sampling: SamplingParams,
    uniforms: NDArray[np.float64] | None,
    noise: SharedNoise | None,
    position: int,
    rows: int,
) -> Choice:
    """How tokens are chosen, as a kernel's argument: noise from a position of the answer on, for `rows`
    positions at once."""
    if noise is None:
        shared = NoiseBlocks(np.empty((0, 0), np.uint32), np.empty((0, 0), np.int64), np.empty(2, np.int64))
    else:
        blocks = -(-noise.tokens // BLOCK)
        shared = NoiseBlocks(
            np.empty((rows, blocks * BLOCK), np.uint32),
            np.full((rows, blocks), -1),
            np.array([noise.seed, position]),
        )
    return Choice(Sampling(*sampling.numbers), uniforms if uniforms is not None else NOTHING, shared)


def text_of(seen: Seen | None, ends: NDArray[np.int64]) -> TargetText:
    """Seen tokens and end ids, as a kernel's argument."""
    return TargetText(marks_of(seen), ends)


def marks_of(seen: Seen | None) -> Marks:
    return Marks(*seen.arrays) if seen is not None else NOBODY


def room_for(total: int, vocabulary: int, width: int) -> RolloutOutput:
    """The output of a draft of `total` tokens."""
    draws = min(DRAWS, 3 * total)  # more than one per drafter token where walks are discarded
    return RolloutOutput(
        np.empty((total + 1, vocabulary), np.float32), np.empty((total + 1, width), np.float32),
        np.empty((3, max(draws, total + 1)), np.int64), np.empty(draws),
        np.empty((draws, vocabulary), np.float32),
    )  # fmt: skip
