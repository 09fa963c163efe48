"""llama.cpp through its Python package, an optional arm of the benchmark: it reads the target's GGUF file.

Imports of `llama_cpp` stay inside functions: it is not among the requirements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import torch

from lab.races.arms import Answer, Arm, Request
from lab.races.floor import Pass
from omnidemo.models.load import LanguageModel

LLAMA, LLAMA_LOOKUP = "llama.cpp", "llama.cpp-prompt-lookup"
FLOAT32 = 0  # ggml's name of the type


def refusal(model: LanguageModel) -> str:
    """Why llama.cpp does not answer beside a target; "" where it does."""
    if find_spec("llama_cpp") is None:
        return "not installed; `pip install llama-cpp-python` adds it to the comparison"
    if not model.folder.is_file():
        return f"it reads GGUF files, and {model.name} is none"
    if model.device.type != "cpu" or model.dtype != torch.float32:
        return (
            f"compared in float32 on a CPU only, and {model.name} runs in {str(model.dtype)[6:]} on"
            f" {model.device}"
        )
    return ""


@dataclass
class LlamaArm(Arm):
    """Plain generation by llama.cpp, or with its prompt lookup. Takes as many threads as torch has. It tells
    no stages."""

    side = LLAMA
    llama: Any
    end_ids: frozenset[int]
    read: list[tuple[int, int]] = field(default_factory=list)  # (positions before, tokens) of each pass

    def __post_init__(self) -> None:
        evaluate: Callable[[Sequence[int]], None] = self.llama.eval

        def noting(tokens: Sequence[int]) -> None:
            self.read.append((self.llama.n_tokens, len(tokens)))
            evaluate(tokens)

        self.llama.eval = noting

    def answer(self, request: Request) -> Answer:
        llama, ids = self.llama, list[int]()
        self.read.clear()
        # one number for decoding, one for reading prompts
        llama._ctx.set_n_threads(*[torch.get_num_threads()] * 2)
        llama.set_seed(request.seed)
        first = 0.0
        began = perf_counter()
        llama.reset()  # every prompt is read afresh
        for token in llama.generate(
            list(request.ids), top_k=0, top_p=1.0, min_p=0.0, temp=request.temperature
        ):
            first = first or perf_counter() - began
            ids.append(int(token))
            if ids[-1] in self.end_ids or len(ids) == request.max_new_tokens:
                break
        seconds = perf_counter() - began
        return Answer(
            ids=ids,
            seconds=seconds,
            first=first,
            rounds=[(0, 0)] * len(self.read),  # what it accepts of a proposal is not known
            drafted=sum(count - 1 for _, count in self.read[1:]),
            passes=[(0, Pass(start, count, count if start else 1)) for start, count in self.read],
        )


def arms(model: LanguageModel, positions: int, draft_length: int) -> list[LlamaArm]:
    """The arms of a target that is not refused. positions: the longest prompt with its answer. draft_length:
    of prompt lookup, as for the peer's."""
    import llama_cpp
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    end_ids = frozenset(model.vocabulary.roles.get("end", ()))
    options: dict[str, Any] = {
        "n_ctx": positions + draft_length + 1,
        "type_k": FLOAT32,
        "type_v": FLOAT32,
        "verbose": False,
    }
    lookup = LlamaPromptLookupDecoding(num_pred_tokens=draft_length)
    return [
        LlamaArm(name, llama_cpp.Llama(str(model.folder), draft_model=draft, **options), end_ids)
        for name, draft in ((LLAMA, None), (LLAMA_LOOKUP, lookup))
    ]


def about() -> str:
    """Which llama.cpp answers."""
    return f"llama-cpp-python {version('llama-cpp-python')}, the file's weights, float32 keys and values"
