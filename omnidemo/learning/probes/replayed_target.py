"""A target that is recorded once and replayed: at temperature 0 its text does not depend on the drafter.

A recording is the greedy answer with its trace. A `Replay` serves it by a real pair (engine, methods, n-gram
cache, metrics), where only the target's rows come from the recording: the recorded token has the largest
logit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from omnidemo.core.config import Settings
from omnidemo.core.private_folders import replacing
from omnidemo.core.records import PROPOSED, Generation, Trace
from omnidemo.decoding.backend import Pass
from omnidemo.models import model_files
from omnidemo.models.gguf.header import read_header
from omnidemo.models.load import LanguageModel, open_source
from omnidemo.models.names import gguf_file, resolve
from omnidemo.pair.pair import Pair

SURE = 20.0  # logit of the recorded token, over zeros
ARRAYS = ("drafter_ids", "starts", "lengths", "accepted", "p", "top_ids", "top_p", "first_ids", "first_p")
EDGE = 1 << 20  # bytes at either end of a file that its digest reads: whole Hub models would take minutes


@dataclass(frozen=True, slots=True, eq=False)
class RecordedAnswer:
    """A prompt as the target's ids, the ids of its greedy answer, and the answer's trace without
    acceptances."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    trace: Trace


class TargetRecords:
    """The recordings of one target for one drafter, a file for each prompt, so that an interrupted recording
    can continue."""

    def __init__(self, folder: Path, target: str, drafter: str, settings: Settings) -> None:
        """Loads nothing. ModelError for a missing model."""
        self.target, self.drafter = target, drafter
        self.limits = (settings.max_new_tokens, settings.top_k_traces)
        found = [_digest_of(name, settings) for name in (target, drafter)]
        self.key = hashlib.sha256(repr((found, self.limits)).encode()).hexdigest()[:16]
        self.folder = Path(folder) / self.key
        self._known: dict[str, RecordedAnswer] = {}

    def key_of(self, prompts: Sequence[str]) -> str:
        """The name of the recordings of these prompts; only results of one name can be compared."""
        return hashlib.sha256(repr((self.key, *prompts)).encode()).hexdigest()[:16]

    def path(self, prompt: str) -> Path:
        return self.folder / f"{hashlib.sha256(prompt.encode()).hexdigest()[:24]}.npz"

    def missing(self, prompts: Sequence[str]) -> list[str]:
        """The prompts without a recording, each once."""
        return [prompt for prompt in dict.fromkeys(prompts) if not self.path(prompt).exists()]

    def load(self, prompt: str) -> RecordedAnswer:
        """A recording. FileNotFoundError for a prompt without one."""
        if prompt not in self._known:
            with np.load(self.path(prompt)) as arrays:
                trace = Trace(**{name: arrays[name] for name in ARRAYS if name in arrays})
                self._known[prompt] = RecordedAnswer(
                    tuple(arrays["prompt_ids"].tolist()), tuple(arrays["answer_ids"].tolist()), trace
                )
        return self._known[prompt]

    def save(self, prompt: str, made: RecordedAnswer) -> None:
        ids = {"prompt_ids": np.asarray(made.prompt_ids), "answer_ids": np.asarray(made.answer_ids)}
        with replacing(self.path(prompt)) as partial, partial.open("wb") as file:
            kept = {
                name: getattr(made.trace, name) for name in ARRAYS if getattr(made.trace, name) is not None
            }
            np.savez(file, **ids, **kept)  # type: ignore[arg-type]

    def about(self) -> dict[str, Any]:
        """The target's name, rows, limit and parameters. FileNotFoundError before `note`."""
        facts: dict[str, Any] = json.loads((self.folder / "target.json").read_text())
        return facts

    def note(self, target: LanguageModel) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        facts = {
            "name": target.name,
            "rows": target.runner.rows,
            "limit": target.context,
            "parameters": target.parameters,
        }
        with replacing(self.folder / "target.json") as partial:
            partial.write_text(json.dumps(facts))


def _digest_of(name: str, settings: Settings) -> str:
    where = resolve(name, settings).where
    file = gguf_file(where, hub=settings.trust_hub)
    return (
        digest(model_files.find(where, hub=settings.trust_hub))
        if file is None
        else read_header(file).fingerprint
    )


def digest(folder: Path) -> str:
    """sha256 of names, sizes and both ends of every file in a model's folder that loading reads."""
    found = hashlib.sha256()
    for path in sorted(
        one for one in folder.iterdir() if one.suffix in (".safetensors", ".json", ".model", ".jinja", ".txt")
    ):
        size = path.stat().st_size
        found.update(repr((path.name, size)).encode())
        with path.open("rb") as file:
            found.update(file.read(EDGE))
            if size > EDGE:
                file.seek(max(EDGE, size - EDGE))
                found.update(file.read(EDGE))
    return found.hexdigest()


class ReplayRunner:
    """The runner of a replayed target. `path`: the recorded text (prompt and answer) of the next caches."""

    parameters = 0

    def __init__(self, rows: int, limit: int) -> None:
        self.rows, self.max_positions = rows, limit
        self.device, self.dtype = torch.device("cpu"), torch.float32
        self.path: Sequence[int] = ()

    def new_cache(self) -> ReplayCache:
        return ReplayCache(self.path, self.rows, self.max_positions)

    def spare(self, most: int) -> int:
        return 0

    def copy(self) -> ReplayRunner:
        return ReplayRunner(self.rows, self.max_positions)

    def weights(self) -> dict[str, Tensor]:
        return {}

    def overwrite(self, named: object) -> None:
        raise ValueError("a replayed target has no weights")


class ReplayCache:
    """Behind ids of the recorded path the recorded token is certain; behind others, which greedy judging has
    rejected, all logits are equal."""

    nbytes = 0

    def __init__(self, path: Sequence[int], rows: int, limit: int) -> None:
        self.path, self.rows, self.max_positions = path, rows, limit
        self.length = 0
        self._on_path = 0  # leading ids that are the path's

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """See `KVCache`."""
        for token_id in ids:
            if (
                self._on_path == self.length
                and self.length < len(self.path)
                and self.path[self.length] == token_id
            ):
                self._on_path += 1
            self.length += 1
        logits = torch.zeros(last, self.rows)
        for row, end in enumerate(range(self.length - last + 1, self.length + 1)):
            if end <= self._on_path and end < len(self.path):
                logits[row, self.path[end]] = SURE
        return Pass(logits)

    def trim(self, length: int) -> int:
        self.length = min(self.length, length)
        self._on_path = min(self._on_path, length)
        return self.length


class Replay:
    """A pair whose target is a recording and whose drafter is real. `settings`: for the n-gram cache and the
    longest answer."""

    def __init__(self, records: TargetRecords, drafter: LanguageModel, settings: Settings) -> None:
        about = records.about()
        source = open_source(resolve(records.target, settings).where, hub=settings.trust_hub)
        tokenizer, vocabulary = source.tokenizer()
        self.records, self.settings = records, settings
        self.runner = ReplayRunner(about["rows"], about["limit"])
        target = LanguageModel(
            name=about["name"], tokenizer=tokenizer, vocabulary=vocabulary, runner=self.runner,
            context=about["limit"], parameters=about["parameters"], memory_bytes=0,
            device=self.runner.device, dtype=self.runner.dtype, folder=source.files,
            chat=bool(tokenizer.chat_template),
        )  # fmt: skip
        self.pair = Pair(target, drafter, cache_size=settings.cache_size, cache_policy=settings.cache_policy)

    def answer(
        self, prompt: str, *, domain: str = "default", learn: bool = True, **options: Any
    ) -> tuple[Generation, Trace]:
        """The recorded answer, decoded with drafts, and its trace with the acceptances of this replay. learn:
        whether the n-gram cache may change. options: those of `Pair.stream`. RuntimeError for other ids than
        recorded, which no lossless method at temperature 0 may give."""
        known = self.records.load(prompt)
        self.runner.path = known.prompt_ids + known.answer_ids
        longest = self.settings.max_new_tokens
        made = self.pair.generate(
            known.prompt_ids, max_new_tokens=longest, learn=learn, reuse=False, domain=domain, **options
        )
        if made.token_ids != known.answer_ids:
            raise RuntimeError(
                f"the replayed answer to {prompt[:40]!r}… has other ids than its recording ({made.method})"
            )
        sources = [token.source for done in made.rounds for token in done.tokens]
        accepted, copied = np.isin(sources, PROPOSED), np.isin(sources, "copied")
        return made, replace(known.trace, accepted=accepted, copied=copied, domain=domain)
