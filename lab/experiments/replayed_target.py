"""A target that is recorded once and replayed: at temperature 0 its text does not depend on the drafter.

A recording is the greedy answer with its trace. A `Replay` decodes it again by a real pair (engine, methods,
n-gram cache, metrics) that judges drafts by the recorded ids (`pair/replay.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from omnidemo.core.config import Settings
from omnidemo.core.private_folders import replacing
from omnidemo.core.records import PROPOSED, Generation, Trace
from omnidemo.models import model_files
from omnidemo.models.gguf.header import read_header
from omnidemo.models.load import LanguageModel, open_source
from omnidemo.models.names import gguf_file, resolve
from omnidemo.pair.pair import Pair
from omnidemo.pair.replay import KnownAnswer, KnownModel

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
        limits = (settings.max_new_tokens, settings.top_k_traces)
        found = [_digest_of(name, settings) for name in (target, drafter)]
        self.key = hashlib.sha256(repr((found, limits)).encode()).hexdigest()[:16]
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
    if file is not None:
        return read_header(file).fingerprint
    return digest(model_files.find(where, hub=settings.trust_hub))


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


class Replay:
    """A pair whose target is a recording and whose drafter is real. `settings`: for the n-gram cache and the
    longest answer."""

    def __init__(self, records: TargetRecords, drafter: LanguageModel, settings: Settings) -> None:
        about = records.about()
        source = open_source(resolve(records.target, settings).where, hub=settings.trust_hub)
        tokenizer, vocabulary = source.tokenizer()
        self.records, self.settings = records, settings
        runner = KnownModel(about["rows"], about["limit"])
        target = LanguageModel(
            name=about["name"], tokenizer=tokenizer, vocabulary=vocabulary, runner=runner,
            context=about["limit"], parameters=about["parameters"], memory_bytes=0,
            device=runner.device, dtype=runner.dtype, folder=source.files,
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
        judge = KnownAnswer(len(known.prompt_ids), known.answer_ids)
        self.pair.make_backend = lambda target, drafter: judge
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
