"""A tiny random drafter, traces that follow a rule, and stand-ins for what surrounds a distiller."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from omnidemo.core.records import Trace, TrainStep
from omnidemo.learning.distill.train_step import Batches, Trained
from omnidemo.learning.distill.worker import TrainingPlan, Worker
from omnidemo.models.adapters import adapter_state, version_folders
from omnidemo.models.adapters.adapter_state import AdapterState, OptimiserState

VOCAB = 40
LAYER = "model.layers.0.self_attn.q_proj"


def save_drafter(path: Path) -> Path:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(path)
    words = Tokenizer(WordLevel({f"<{number}>": number for number in range(VOCAB)}, unk_token="<7>"))
    words.pre_tokenizer = WhitespaceSplit()
    names = {"bos_token": "<1>", "eos_token": "<2>", "unk_token": "<7>"}
    PreTrainedTokenizerFast(tokenizer_object=words, **names).save_pretrained(path)
    return path


def make_trace(seed: int, length: int = 20, accepted: float = 0.5, temperature: float = 0.0) -> Trace:
    """The ids follow a simple rule that can be learnt; every fourth position is a 2-gram. `accepted`: the
    fraction of accepted proposals."""
    random = np.random.default_rng(seed)
    ids = (np.arange(length) * 3 + random.integers(VOCAB)) % VOCAB
    starts, lengths, at = [], [], 4
    while at + 2 <= length:
        starts.append(at)
        lengths.append(2 if len(starts) % 4 == 0 else 1)
        at += lengths[-1]
    top_ids = np.stack([np.roll(np.arange(VOCAB), -int(ids[start]))[:8] for start in starts])
    top_p = np.tile(
        np.array([0.7, 0.1, 0.05, 0.05, 0.02, 0.02, 0.02, 0.02], dtype=np.float32), (len(starts), 1)
    )
    top_p[np.array(lengths) == 2] *= 0.2  # the n-gram itself has most of the mass there
    n = len(starts)
    hit = np.arange(n) < round(accepted * n)
    return Trace(
        ids,
        np.array(starts),
        np.array(lengths),
        hit,
        np.full(n, 0.7, np.float32),
        top_ids,
        top_p,
        temperature,
    )


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def cpu_ticks(pid: int | None) -> int:
    """Hundredths of a second that a process has computed, on Linux; 0 elsewhere, and of one that is gone."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0
    fields = stat.read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def computing(pid: int | None) -> None:
    """Wait until a process has computed for a while from now on."""
    before = cpu_ticks(pid)
    if sys.platform == "linux":
        until(lambda: cpu_ticks(pid) > before + 10)
    else:
        time.sleep(0.3)


def noise(seed: int, rank: int = 4, size: float = 1.0) -> AdapterState:
    """A LoRA adapter of random numbers on one layer."""
    generator = torch.Generator().manual_seed(seed)
    parts = {
        "lora_A": torch.randn(rank, 16, generator=generator),
        "lora_B": torch.randn(16, rank, generator=generator) * size,
    }
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": 2 * rank,
        "bias": "none",
        "target_modules": [LAYER],
    }
    return AdapterState(
        {f"{adapter_state.PREFIX}{LAYER}.{part}.weight": tensor for part, tensor in parts.items()}, config
    )


class Owner:
    """Plays the pair: takes what is published, and is busy when told to."""

    def __init__(self) -> None:
        self.published: list[tuple[int, dict[str, Tensor]]] = []
        self.heads: list[dict[str, Tensor]] = []
        self.on_disk: list[bool] = []
        self.line: Path | None = None
        self.in_flight = False

    def publish(self, version: int, weights: Mapping[str, Tensor], head: Mapping[str, Tensor]) -> None:
        self.published.append((version, dict(weights)))
        self.heads.append(dict(head))
        self.on_disk.append(
            version == 0
            or (self.line is not None and version_folders.version_folder(self.line, version).is_dir())
        )

    def busy(self) -> bool:
        return self.in_flight


class FakeStore:
    """Notes every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*values: Any) -> None:
            self.calls.append((name, *values))

        return call

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]


class FakeWorker(Worker):
    """Plays the training process: an update takes `seconds` of running time and changes the acceptance by
    `gain`."""

    def __init__(self, seconds: float = 0.0, gain: float = 0.0) -> None:
        super().__init__()
        self.seconds, self.gain = seconds, gain
        self.acceptance: dict[int, float] = {}
        self.kept: list[AdapterState] = []  # so that no id is used twice
        self.moves: list[tuple[float, bool]] = []
        self.plans: list[TrainingPlan] = []
        self._running = threading.Event()
        self._running.set()

    def train(
        self, folder: Path, adapter: AdapterState | None, optimiser: OptimiserState | None, batches: Batches,
        plan: TrainingPlan,
        head_batches: Batches = (),
    ) -> Trained:  # fmt: skip
        left = self.seconds
        while left > 0:
            self._running.wait()
            time.sleep(0.005)
            left -= 0.005
        self.plans.append(plan)
        step = (optimiser.step if optimiser else 0) + 1
        made = noise(step, size=0.01)
        self.kept.append(made)
        self.acceptance[id(made)] = self.of(adapter) + self.gain
        return (
            made,
            OptimiserState(step, {}),
            [TrainStep(step, 1.0, 1.0, 0.0, 1.0, plan.learning_rate, self.seconds)],
        )

    def evaluate(
        self, folder: Path, states: Sequence[AdapterState | None], traces: Sequence[Trace], plan: TrainingPlan
    ) -> list[np.ndarray]:
        """Every position is accepted with the probability of its state, the same noise for all."""
        random = np.random.default_rng(len(self.kept)).uniform(
            -0.2, 0.2, size=sum(len(trace.p) for trace in traces)
        )
        own = np.random.default_rng(7).normal(0, 0.02, size=random.size)
        own -= own.mean()
        return [self.of(state) + random + own * index for index, state in enumerate(states)]

    def of(self, state: AdapterState | None) -> float:
        if state is None:
            return 0.5
        return self.acceptance.get(id(state), 0.5)

    def pause(self) -> None:
        self.moves.append((time.monotonic(), True))
        self._running.clear()

    def resume(self) -> None:
        self.moves.append((time.monotonic(), False))
        self._running.set()

    def stood(self) -> float:
        """Seconds that it was paused in all."""
        return sum(end[0] - start[0] for start, end in zip(self.moves[::2], self.moves[1::2], strict=True))

    def close(self) -> None:
        self._running.set()
