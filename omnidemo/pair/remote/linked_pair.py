"""A pair whose drafter computes here, and whose target is served at an address by `omnidemo serve`. Drafts
are sent as ids; the response has the number of kept ids and the target's own id behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter, time
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from omnidemo.backends.compiled_backend import CompiledBackend, RolledDraws
from omnidemo.core.config import GenerationConfig, Manner
from omnidemo.core.config.refusals import ModelError
from omnidemo.decoding.backend import Acceptance, Draft, Judged, KVCache, Pass, RoundPlan
from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import SharedNoise
from omnidemo.models.answer_forms import FormError
from omnidemo.models.load import LanguageModel
from omnidemo.pair.pair import Pair
from omnidemo.pair.pair_prices import PairPrices
from omnidemo.pair.remote.draft_checks import MOST_IDS, digest_of
from omnidemo.pair.remote.target_link import Link, LinkError
from omnidemo.pair.replay import KnownModel
from omnidemo.vocabulary.vocabulary import read_vocabulary

PINGS = 4  # requests that measure the delay


class LinkedModel(KnownModel):
    """The shape of the target at an address; its caches are sessions there."""

    def __init__(self, link: Link, about: Mapping[str, Any]) -> None:
        super().__init__(int(about["rows"]), int(about["context"]), int(about["parameters"]))
        self.link = link

    def new_cache(self) -> KVCache:
        return LinkedCache(self)


class LinkedCache:
    """A text that the remote target has read, or will read with the next draft. `order`: how the answer is
    written. `said`: the result of the newest draft."""

    def __init__(self, model: LinkedModel) -> None:
        self.max_positions, self.length, self.nbytes = model.max_positions, 0, 0
        self.order: dict[str, Any] = {}
        self.said: dict[str, Any] = {}
        self._link, self._session = model.link, ""
        self._ids: list[int] = []
        self._sent = 0  # leading ids that the target has

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """Send `ids`, of which the last `last` − 1 are a draft; the result is in `said`, and the logits have
        no columns. Ids without a draft are collected until there are MOST_IDS."""
        count = len(ids) - max(last - 1, 0)
        self._ids[self.length :] = ids[:count]
        self.length = len(self._ids)
        if last:
            draft = list(ids[count:])
            self.said = self._ask(draft)
            self._ids += draft[: self.said["accepted"]]
            self.length = self._sent = len(self._ids)
        elif len(self._ids) - self._sent >= MOST_IDS:
            self._ask(None)
        return Pass(np.empty((last, 0), np.float32))

    def trim(self, length: int) -> int:
        self.length = min(self.length, length)
        del self._ids[self.length :]
        self._sent = min(self._sent, self.length)
        return self.length

    def _ask(self, draft: list[int] | None) -> dict[str, Any]:
        """Send the missing ids in pieces, the last with the draft. Where the session was dropped, send all
        ids again, once."""
        again = bool(self._session)
        while True:
            stop = min(len(self._ids), self._sent + MOST_IDS)
            whole = stop == len(self._ids)
            order: dict[str, Any] = {"session": self._session, "at": self._sent}
            order["ids"] = self._ids[self._sent : stop]
            if whole and draft is not None:
                order |= self.order | {"draft": draft}
            made = self._link.check(order)
            if made is None and again:
                self._session, self._sent, again = "", 0, False
                continue
            if made is None:
                raise LinkError(f"{self._link.address} forgets its texts too soon; ask again when it is idle")
            self._session, self._sent = made["session"], stop
            if whole:
                return made


class LinkedRounds(CompiledBackend):
    """Rounds that draft here, and that the remote target judges."""

    def draws(self, context: RoundContext, plan: RoundPlan) -> RolledDraws | None:
        cache, noise = context.target.cache, context.rng
        assert isinstance(cache, LinkedCache)
        seed = noise.seed if isinstance(noise, SharedNoise) else None
        cache.order = {
            "begin": context.prompt, "ends": sorted(context.end_ids),
            "sampling": asdict(context.sampling) | {"seed": seed},
        }  # fmt: skip
        return super().draws(context, plan)

    def judge(self, context: RoundContext, method: Method, draft: Draft, read: Pass) -> Judged | None:
        cache = context.target.cache
        assert isinstance(cache, LinkedCache)
        said, count = cache.said, len(draft.slots)
        rejected = said["token"] is not None and said["accepted"] < count
        return Acceptance(said["accepted"], said["token"], rejected, said["accepts"][:count]), said["probs"]


class LinkedPrices(PairPrices):
    """The cost table of a connection: the server's prices plus the delay. It is not kept."""

    def __init__(self, target: LanguageModel, drafter: LanguageModel, about: Mapping[str, Any]) -> None:
        super().__init__(target, drafter)
        delay = float(about["delay"])
        passes = {int(rows): delay + float(seconds) for rows, seconds in about["passes"].items()}
        step, attention = self.list.step, float(about["attention"])
        self.list.become(CostTable(passes, step, attention, step, "measured", time()))

    def look(self, changed: bool = False) -> None: ...

    def keep(self) -> None: ...


class LinkedPair(Pair):
    """Drafts here and asks the target at an address. Only n-grams and the memory learn, because the
    target's distributions are not sent."""

    def __init__(
        self, target: LanguageModel, drafter: LanguageModel, about: Mapping[str, Any], **limits: Any
    ) -> None:
        super().__init__(target, drafter, **limits)
        self.prices = LinkedPrices(target, drafter, about)
        self.conditions = str(about["conditions"])  # of the remote target; see `choice.conditions_of`
        self.make_backend = lambda target, drafter: LinkedRounds()
        made = self._method

        def judged_there(name: str) -> Method:
            method = made(name)
            if not (method.lossless and method.coupled):
                raise ValueError(
                    f"{method.name} judges by distributions, which a target at an address does not send;"
                    " choose another method, or auto"
                )
            return method

        self._method = judged_there

    def constraint(self, asked: GenerationConfig) -> None:
        if asked.form is not None:
            raise FormError(
                "a target at an address judges without a form; load a target here for answers of a given form"
            )


def linked_target(address: str, key: str = "") -> tuple[LanguageModel, dict[str, Any]]:
    """The target at an address, and its description with the `delay` of a request in seconds. ModelError or
    LinkError, one sentence, where there is none, or its vocabulary cannot be read."""
    link = Link(address, key)
    about, times = link.get(), list[float]()
    for _ in range(PINGS):
        began = perf_counter()
        about = link.get()
        times.append(perf_counter() - began)
    given = link.get("/tokenizer")
    try:
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_str(given["tokenizer"]), clean_up_tokenization_spaces=False,
            **given["special"],
        )  # fmt: skip
        tokenizer.chat_template = given["template"]
        roles = {role: tuple(ids) for role, ids in given["roles"].items()}
        vocabulary = replace(read_vocabulary(tokenizer), roles=roles, control=given["control"])
        vocabulary = vocabulary.within(int(about["rows"]))
        runner, manner = LinkedModel(link, about), Manner(**about["manner"])
    except Exception as error:  # `tokenizers` raises plain exceptions
        raise ModelError(f"{address} sends a tokenizer that cannot be read ({str(error)[:160]})") from error
    if digest_of(vocabulary) != about["vocabulary"]:
        raise ModelError(
            f"{address} has another vocabulary than its tokenizer gives here; run one version of OmniDemo on"
            " both sides"
        )
    model = LanguageModel(
        name=str(about["target"]), tokenizer=tokenizer, vocabulary=vocabulary, runner=runner,
        context=runner.max_positions, parameters=runner.parameters, memory_bytes=0, device=runner.device,
        dtype=runner.dtype, folder=Path(), chat=bool(tokenizer.chat_template), learns=False, manner=manner,
    )  # fmt: skip
    return model, about | {"delay": min(times)}
