"""Engines that read the same tokens: ours, llama.cpp and `transformers`, each in a process of its own
(`engine_process.py`).

What an engine does not need is not imported, so that no library's threads are there beside another's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

OURS, LLAMA_CPP, TRANSFORMERS = "OmniDemo", "llama.cpp", "transformers"
PIECE = 512  # tokens that llama.cpp reads at once, its own default
CONTEXT = 2048  # positions of its context


@dataclass(frozen=True, slots=True)
class Facts:
    """What an engine says of itself once it is loaded. `weights`: their form and bytes in words;
    `vocabulary`: width of a row of logits; `window`: positions; `prompt`: ids of the text that is to be
    answered, by the engine that has the tokenizer."""

    version: str
    weights: str
    vocabulary: int
    window: int
    prompt: Sequence[int] = ()


class Engine(Protocol):
    """Reads ids behind what it has read. `trim(length)` forgets all but the first `length` positions."""

    facts: Facts

    def read(self, ids: Sequence[int], rows: int) -> Any:
        """The last rows' logits [rows, V], as an array of numpy."""
        ...

    def trim(self, length: int) -> None: ...

    def decode(self, ids: Sequence[int], count: int) -> list[int]:
        """The first `count` ids of the greedy answer; fewer where ours ends it."""
        ...


class OurEngine:
    """The pair that the settings name; `decode` is its plain decoding."""

    def __init__(self, target: str, threads: int, settings: str, text: str) -> None:
        from lab.races.machine import commit, synchronise
        from omnidemo.backends import choice
        from omnidemo.core.config import Settings
        from omnidemo.serving.pair_loading import build_measured_pair

        chosen = Settings.model_validate_json(settings)
        self._pair = build_measured_pair(
            target, chosen.drafter, chosen.model_copy(update={"threads": threads})
        )
        self._pair.warm_up()
        model, self._synchronise = self._pair.target, synchronise
        self._cache = model.runner.new_cache()
        # then rows come with what accepting needs of them
        self._temperature = 1.0 if model.device.type == "cpu" else None
        said = choice.described(target=model.runner)
        weights = (
            f"{said['target_form']}, {int(said['target_form_bytes']) / 1e6:.0f} MB"
            if said
            else str(model.dtype).removeprefix("torch.")
        )
        self.facts = Facts(commit(), weights, model.runner.rows, model.context, self._pair.prompt_ids(text))

    def read(self, ids: Sequence[int], rows: int) -> Any:
        logits = self._cache.forward(ids, rows, self._temperature).logits
        self._synchronise(self._pair.target.device)
        return logits

    def trim(self, length: int) -> None:
        self._cache.trim(length)

    def decode(self, ids: Sequence[int], count: int) -> list[int]:
        made = self._pair.generate(
            ids, method="autoregressive", max_new_tokens=count, temperature=0.0, learn=False, reuse=False
        )
        return list(made.token_ids)


class TransformersEngine:
    """The same weights by `transformers`' own forward, a GGUF file's dequantized, in the dtype in which ours
    computes."""

    def __init__(self, target: str, threads: int, settings: str) -> None:
        from importlib.metadata import version

        import torch

        from lab.equality.silence import quietly
        from omnidemo.core.config import Settings
        from omnidemo.models.load import open_source, pick_device, pick_dtype
        from omnidemo.models.names import resolve
        from omnidemo.models.transformers_runner import TransformersRunner

        chosen = Settings.model_validate_json(settings)
        torch.set_num_threads(threads)
        place = pick_device(chosen.device)
        with quietly():
            source = open_source(resolve(target, chosen).where, hub=chosen.trust_hub)
            dtype = pick_dtype(chosen.dtype, place, source.config)
            self._runner = TransformersRunner(source.weights(dtype).to(place))
        self._cache = self._runner.new_cache()
        size = sum({one.data_ptr(): one.nbytes for one in self._runner.weights().values()}.values())
        weights = f"{str(dtype).removeprefix('torch.')}, {size / 1e6:.0f} MB"
        self.facts = Facts(version("transformers"), weights, self._runner.rows, self._runner.max_positions)

    def read(self, ids: Sequence[int], rows: int) -> Any:
        return self._cache.forward(ids, rows).logits

    def trim(self, length: int) -> None:
        self._cache.trim(length)

    def decode(self, ids: Sequence[int], count: int) -> list[int]:
        return greedy(self, ids, count)


class LlamaCppEngine:
    """llama.cpp on a GGUF file, by the functions of its library, with its own defaults for all but the
    threads."""

    def __init__(self, path: str, threads: int) -> None:
        import llama_cpp

        self._library, self._length = llama_cpp, 0
        self._llama = llama_cpp.Llama(
            model_path=path,
            n_ctx=CONTEXT,
            n_batch=PIECE,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )
        self._batch = llama_cpp.llama_batch_init(PIECE, 0, 1)
        weights = f"its file, {Path(path).stat().st_size / 1e6:.0f} MB"
        self.facts = Facts(
            f"llama-cpp-python {llama_cpp.__version__}", weights, self._llama.n_vocab(), CONTEXT
        )

    def read(self, ids: Sequence[int], rows: int) -> Any:
        import numpy as np

        context, batch = self._llama.ctx, self._batch
        for begin in range(0, len(ids), PIECE):
            piece = ids[begin : begin + PIECE]
            batch.n_tokens = len(piece)
            for place, token in enumerate(piece):
                batch.token[place], batch.pos[place] = token, self._length + place
                batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
                batch.logits[place] = begin + place >= len(ids) - rows
            if (status := self._library.llama_decode(context, batch)) != 0:
                raise RuntimeError(
                    f"llama.cpp could not read {len(piece)} tokens behind {self._length} (status {status})"
                )
            self._length += len(piece)
        return np.ctypeslib.as_array(self._library.llama_get_logits(context), (rows, self.facts.vocabulary))

    def trim(self, length: int) -> None:
        if not self._library.llama_memory_seq_rm(
            self._library.llama_get_memory(self._llama.ctx), -1, length, -1
        ):
            raise RuntimeError(f"llama.cpp cannot forget what it read behind {length} tokens of this model")
        self._length = length

    def decode(self, ids: Sequence[int], count: int) -> list[int]:
        return greedy(self, ids, count)


def greedy(engine: Engine, ids: Sequence[int], count: int) -> list[int]:
    """`count` most probable tokens, one pass each, with nothing around the passes."""
    engine.trim(0)
    found: list[int] = []
    read = list(ids)
    while len(found) < count:
        read = [int(engine.read(read, 1)[0].argmax())]
        found += read
    return found


MAKERS: dict[str, Any] = {OURS: OurEngine, LLAMA_CPP: LlamaCppEngine, TRANSFORMERS: TransformersEngine}
