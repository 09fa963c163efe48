"""A GGUF file as a model, for `load.py`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config.refusals import explained
from omnidemo.models.gguf.architecture import plan_of
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.identity import known_name
from omnidemo.models.gguf.packing import packed_bytes, packed_weights
from omnidemo.models.gguf.tokenizer import read_tokenizer
from omnidemo.models.gguf.weights import build_config, build_model, build_shape, check_shapes
from omnidemo.models.manner import read_manner
from omnidemo.models.model_files import Progress
from omnidemo.models.read_weights import LOADING
from omnidemo.vocabulary.vocabulary import Vocabulary, read_vocabulary

log = logging.getLogger(__name__)


class GgufModel:
    """See `ModelSource`. ModelError, one sentence, for an unreadable file, before memory is taken for its
    weights."""

    learns = False

    def __init__(self, path: Path) -> None:
        self.files = path
        self._header = read_header(path)
        self._stamps = [_stamp(part) for part in self._header.parts]
        plan = plan_of(self._header)
        self.name = known_name(self._header)
        self.config = build_config(plan)
        check_shapes(self._header, plan, self.config)
        self.parameters = self._header.parameters
        self.packed_bytes = packed_bytes(self._header, plan, self.config)
        self.manner = read_manner(self.name, metadata=self._header.metadata)

    def tokenizer(self) -> tuple[Any, Vocabulary]:
        tokenizer, ends = read_tokenizer(self._header.metadata, self.files.parent)
        return tokenizer, read_vocabulary(tokenizer, ends, by_name=False)

    def weights(self, dtype: torch.dtype) -> Any:
        """The weights as plain numbers: exact in float32, rounded in any other dtype."""
        if dtype != torch.float32:
            log.warning(
                "%s is rounded to %s here, so what it writes may differ from what its file says",
                self.name,
                dtype,
            )
        self._check_unchanged()
        with LOADING:
            return build_model(self._header, self.config, dtype)

    def packed(self, report: Progress = lambda stage, share: None) -> FusedLlama:
        """A runner of the packed weights, straight from the file. Its passes need compiled code."""
        self._check_unchanged()
        with LOADING:
            shape = build_shape(self._header, self.config)
        weights = packed_weights(self._header, self.config, lambda share: report("weights", share))
        return FusedLlama(shape, packed=weights)

    def _check_unchanged(self) -> None:
        """ModelError where the file has changed since its header was read."""
        gone = f"the weights of {self.files.name} cannot be read"
        with explained(gone, "see whether the file is still there, and load the model again"):
            if [_stamp(part) for part in self._header.parts] != self._stamps:
                raise ValueError("it is another file than when the model was loaded")


def _stamp(path: Path) -> tuple[int, ...]:
    """Facts that change with a file."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
