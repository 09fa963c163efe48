"""The generation of `transformers` itself as arms of a benchmark: plain and assisted, on the same weights,
watched pass by pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer, GenerationConfig

from lab.races.arms import Answer, Arm, Request
from lab.races.floor import Pass
from lab.races.machine import synchronise
from omnidemo.backends.runner import overwrite_named
from omnidemo.decoding.contexts import common_prefix
from omnidemo.models.gguf_model import GgufModel
from omnidemo.models.load import LanguageModel
from omnidemo.models.read_weights import read_model
from omnidemo.pair.pair import Pair

PLAIN = "transformers"
PLAIN_BF16 = "transformers-bfloat16"  # the same model in bfloat16, products and activations too
ASSISTED = "transformers-assisted"
DEFAULTS = "transformers-assisted-defaults"
LOOKUP = "transformers-prompt-lookup"


@dataclass(slots=True)
class PeerPass:
    """A forward pass of the peer: by which model, the positions in its cache before, the ids that it read,
    and when it ran. Where a device works by itself, the seconds are those of the launch."""

    drafter: bool
    start: int
    ids: Tensor  # [1, T]
    began: float
    seconds: float = 0.0


class Peer:
    """`transformers`' generation on the pair's weights, which are loaded again as plain modules."""

    def __init__(self, pair: Pair, draft_length: int) -> None:
        self.draft_length = draft_length
        self.target = _module(pair.target, pair.target.runner.weights())
        ends = list(pair.target.vocabulary.roles.get("end", ())) or None
        self.target.generation_config = GenerationConfig(
            eos_token_id=ends, pad_token_id=ends[0] if ends else 0
        )
        # Sampling across vocabularies rewrites the drafter's head in place and remembers that by the
        # tokenizers: it gets its own.
        weights = pair.drafting_weights()
        self.drafters = {sampled: _module(pair.drafter, weights) for sampled in (False, True)}
        self.tokenizers: dict[str, Any] = {}
        if pair.target.tokenizer.get_vocab() != pair.drafter.tokenizer.get_vocab():
            names = {"tokenizer": pair.target, "assistant_tokenizer": pair.drafter}
            self.tokenizers = {name: _tokenizer(model) for name, model in names.items()}

    def generate(self, method: str, request: Request) -> Answer:
        """Answer a prompt, sampled above temperature 0. Raises what `transformers` raises."""
        device, known, sampled = self.target.device, len(request.ids), request.temperature > 0
        torch.manual_seed(request.seed)
        prompt = torch.tensor([list(request.ids)], device=device)
        options = {
            "do_sample": sampled,
            "max_new_tokens": request.max_new_tokens,
            "attention_mask": torch.ones_like(prompt),
        }
        options |= {"temperature": request.temperature, "top_k": 0, "top_p": 1.0} if sampled else {}
        options |= self._assistance(method, sampled)
        with self._watching(sampled) as passes:
            told: list[float] = []  # when a streamer hears of the prompt, and then of each token
            streamer = SimpleNamespace(put=lambda ids: told.append(perf_counter()), end=lambda: None)
            synchronise(device)
            began = perf_counter()
            written = self.target.generate(prompt, streamer=streamer, **options)[0].tolist()[known:]
            synchronise(device)
            seconds = perf_counter() - began
        judged = [(0, 0) if one.drafter else _judged(known, written, one.start, one.ids) for one in passes]
        return Answer(
            ids=written,
            seconds=seconds,
            first=told[1] - began,
            rounds=[found for one, found in zip(passes, judged, strict=True) if not one.drafter],
            drafted=sum(one.drafter for one in passes),  # each pass writes one token
            # Rows of logits: one for each proposal and one more.
            passes=[
                (int(one.drafter), Pass(one.start, one.ids.shape[1], proposed + 1))
                for one, (proposed, _) in zip(passes, judged, strict=True)
            ],
            split=_split(passes, told[1], began + seconds) if device.type == "cpu" else {},
        )

    def _assistance(self, method: str, sampled: bool) -> dict[str, Any]:
        if method in (PLAIN, PLAIN_BF16):
            return {}
        if method == LOOKUP:
            return {"prompt_lookup_num_tokens": self.draft_length}
        drafter = self.drafters[sampled]
        # its defaults: up to 20 tokens, until one is improbable
        drafter.generation_config = config = GenerationConfig()
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


@dataclass
class TheirArm(Arm):
    """A peer in one of its modes."""

    side = "transformers"
    peer: Peer

    def answer(self, request: Request) -> Answer:
        return self.peer.generate(self.method, request)


def _tokenizer(model: LanguageModel) -> Any:
    return model.tokenizer if model.folder.is_file() else AutoTokenizer.from_pretrained(model.folder)


def _module(model: LanguageModel, weights: Mapping[str, Tensor]) -> Any:
    """The model as `transformers` loads it, with the weights that ours uses now."""
    if model.folder.is_file():
        module = GgufModel(model.folder).weights("cpu", None, model.dtype, None)
        ends = list(model.vocabulary.roles.get("end", ()))
        module.generation_config.eos_token_id, module.generation_config.pad_token_id = (
            ends,
            ends[0] if ends else None,
        )
    else:
        module = read_model(model.folder, dtype=model.dtype, generation_config=None)
    module = module.to(model.device).eval()
    overwrite_named(dict(module.named_parameters(remove_duplicate=False)), weights)
    return module


def _judged(prompt: int, written: Sequence[int], before: int, read: Tensor) -> tuple[int, int]:
    """(proposed, accepted) of a target pass that read ids [1, T] behind `before` positions: the first reads
    the prompt and a proposal, each later one the newest token and a proposal."""
    known = max(before + 1, prompt)
    proposal = read[0, known - before :].tolist()
    return len(proposal), common_prefix(proposal, written[known - prompt :])


def _split(passes: Sequence[PeerPass], first: float, end: float) -> dict[str, float]:
    """Seconds by stage between the first token and the end."""
    draft, verify = (
        sum(one.seconds for one in passes if one.began >= first and one.drafter is which)
        for which in (True, False)
    )
    return {"draft": draft, "verify": verify, "settle": 0.0, "other": end - first - draft - verify}
