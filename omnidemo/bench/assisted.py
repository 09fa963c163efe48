"""The generation of transformers itself, plain and assisted, watched pass by pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer, GenerationConfig
from transformers.utils import logging

from omnidemo.backends.runner import overwrite_named
from omnidemo.decoding.contexts import common_prefix
from omnidemo.models.load import LanguageModel
from omnidemo.models.read_weights import read_model
from omnidemo.pair.pair import Pair

PLAIN = "transformers"
ASSISTED = "transformers-assisted"
DEFAULTS = "transformers-assisted-defaults"
LOOKUP = "transformers-prompt-lookup"
PEER = (PLAIN, ASSISTED, DEFAULTS, LOOKUP)


@dataclass(frozen=True, slots=True)
class Answer:
    """ids without the prompt; `rounds`: (proposed, accepted) target tokens of each target pass; drafted: drafter tokens drawn.

    `passes` and `first_seconds` (until the first token was written) are those of `transformers` alone.
    """

    ids: Sequence[int]
    seconds: float
    rounds: Sequence[tuple[int, int]]
    drafted: int
    passes: Sequence[PeerPass] = ()
    first_seconds: float | None = None


@dataclass(slots=True)
class PeerPass:
    """A forward pass of the peer: by which model, the positions in its cache before, how many tokens it read, and when it ran. Where a
    device works by itself, the seconds are those of the launch."""

    drafter: bool
    start: int
    ids: Tensor  # [1, T]
    began: float
    seconds: float = 0.0


class Peer:
    """`transformers`' generation on the pair's weights, which are loaded again as plain modules."""

    def __init__(self, pair: Pair, draft_length: int, target: Any = None, weights: Mapping[str, Tensor] | None = None) -> None:
        """`target`: the module of another peer of the same pair, to be shared. `weights`: the drafter's; default: those that draft now."""
        self.draft_length = draft_length
        self.target = target if target is not None else _module(pair.target, pair.target.runner.weights())
        ends = list(pair.target.vocabulary.roles.get("end", ())) or None
        self.target.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=ends[0] if ends else 0)
        # Sampling across vocabularies rewrites the drafter's head in place and remembers that by the tokenizers: it gets its own.
        weights = pair.drafting_weights() if weights is None else weights
        self.drafters = {sampled: _module(pair.drafter, weights) for sampled in (False, True)}
        self.tokenizers: dict[str, Any] = {}
        if pair.target.tokenizer.get_vocab() != pair.drafter.tokenizer.get_vocab():
            names = {"tokenizer": pair.target, "assistant_tokenizer": pair.drafter}
            self.tokenizers = {name: AutoTokenizer.from_pretrained(model.folder) for name, model in names.items()}

    def generate(self, method: str, ids: Sequence[int], max_new_tokens: int, sampled: bool, temperature: float = 1.0) -> Answer:
        """Answer a prompt; at that temperature where it is sampled. Raises what `transformers` raises."""
        prompt = torch.tensor([list(ids)], device=self.target.device)
        options: dict[str, Any] = {"do_sample": sampled, "max_new_tokens": max_new_tokens, "attention_mask": torch.ones_like(prompt)}
        options |= {"temperature": temperature, "top_k": 0, "top_p": 1.0} if sampled else {}
        options |= self._assistance(method, sampled)
        with self._watching(sampled) as passes:
            first = _FirstToken()
            began = perf_counter()
            written = self.target.generate(prompt, streamer=first, **options)[0].tolist()[len(ids) :]
            seconds = perf_counter() - began
        rounds = [_judged(len(ids), written, one.start, one.ids) for one in passes if not one.drafter]
        drafted = sum(one.drafter for one in passes)  # each pass writes one token
        return Answer(written, seconds, rounds, drafted, passes, first.at - began if first.at else None)

    def laws(self, ids: Sequence[int]) -> Tensor:
        """The target's laws [T, V] of the token after each of these ids, at temperature 1, float64."""
        logits: Tensor = self.target(input_ids=torch.tensor([list(ids)], device=self.target.device)).logits
        return logits[0].double().cpu().softmax(-1)

    def _assistance(self, method: str, sampled: bool) -> dict[str, Any]:
        if method == PLAIN:
            return {}
        if method == LOOKUP:
            return {"prompt_lookup_num_tokens": self.draft_length}
        drafter = self.drafters[sampled]
        drafter.generation_config = config = GenerationConfig()  # its defaults: up to 20 tokens, until one is improbable
        if method == ASSISTED:
            config.num_assistant_tokens, config.num_assistant_tokens_schedule = self.draft_length, "constant"
            config.assistant_confidence_threshold = 0.0
        return {"assistant_model": drafter, **self.tokenizers}

    @contextmanager
    def _watching(self, sampled: bool) -> Iterator[list[PeerPass]]:
        """The passes within the block, as they come."""
        passes: list[PeerPass] = []

        def before(module: Any, args: Any, options: dict[str, Any]) -> None:
            cache = options.get("past_key_values")
            ids: Tensor = options["input_ids"] if "input_ids" in options else args[0]
            start = cache.get_seq_length() if cache is not None else 0
            passes.append(PeerPass(module is not self.target, start, ids, perf_counter()))

        def after(module: Any, args: Any, output: Any) -> None:
            passes[-1].seconds = perf_counter() - passes[-1].began

        modules = (self.target, self.drafters[sampled])
        handles = [module.register_forward_pre_hook(before, with_kwargs=True) for module in modules]
        handles += [module.register_forward_hook(after) for module in modules]
        try:
            yield passes
        finally:
            for handle in handles:
                handle.remove()


class _FirstToken:
    """A streamer that notes when the first token behind the prompt comes."""

    at: float | None = None
    _prompt = True

    def put(self, ids: Tensor) -> None:
        if not self._prompt and self.at is None:
            self.at = perf_counter()
        self._prompt = False

    def end(self) -> None:
        pass


def _module(model: LanguageModel, weights: Mapping[str, Tensor]) -> Any:
    """The model as `transformers` loads it, with the weights that ours uses now."""
    module = read_model(model.folder, dtype=model.dtype)
    module = module.to(model.device).eval()
    overwrite_named(dict(module.named_parameters(remove_duplicate=False)), weights)
    return module


@contextmanager
def quietly() -> Iterator[None]:
    """Silence the warnings of `transformers` about its own settings, and its progress bars."""
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def _judged(prompt: int, written: Sequence[int], before: int, read: Tensor) -> tuple[int, int]:
    """(proposed, accepted) of a target pass that read ids [1, T] behind `before` positions: the first reads the prompt and a
    proposal, each later one the newest token and a proposal."""
    known = max(before + 1, prompt)
    proposal = read[0, known - before :].tolist()
    return len(proposal), common_prefix(proposal, written[known - prompt :])
