"""The target's side of a link: it checks drafts of another machine.

A session is a conversation of the pair, which `Conversations` keeps and drops as any other. The client of a
dropped session sends its ids again.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from secrets import token_hex
from typing import Annotated, Any, Literal
from weakref import ref

from pydantic import BaseModel, ConfigDict, Field

from omnidemo.core.config.answer_options import MinP, Penalty, Temperature, TopK, TopP
from omnidemo.core.records import Match
from omnidemo.decoding.backend import Backend, RoundPlan, RoundResult, Slot
from omnidemo.decoding.contexts import common_prefix
from omnidemo.decoding.engine import RoundContext, make_round
from omnidemo.decoding.methods.copy import Copy
from omnidemo.decoding.randomness import randomness_of
from omnidemo.decoding.sampling import RepetitionPenalty, SamplingParams
from omnidemo.decoding.state import DecodingState
from omnidemo.pair.conversation_pool import DOMAIN
from omnidemo.pair.pair import Pair
from omnidemo.vocabulary.vocabulary import Vocabulary

SESSIONS = 64  # that are known; their conversations may be dropped earlier
MOST_IDS, MOST_DRAFT = 512, 64  # ids of one request: of the text, and of the draft
GIVEN = Match(0, "prompt")  # a draft from another machine is judged as a copy: a point mass
GONE = "this session is not here any more; send its whole text again"
Id = Annotated[int, Field(ge=0, lt=2**31)]


class SamplingFields(BaseModel):
    """The fields of `SamplingParams`, and the seed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    temperature: Temperature = 0.0
    top_k: TopK = 0
    top_p: TopP = 1.0
    min_p: MinP = 0.0
    repetition_penalty: Penalty = 1.0
    penalty_scope: Literal["text", "answer"] = "text"
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class Check(BaseModel):
    """A draft to be checked. `ids` follow the first `at` ids of the session's text; `draft` follows these;
    None: the ids are only read. `begin`: how many ids are before the answer. `ends`: ids that end the
    answer."""

    model_config = ConfigDict(extra="forbid")

    model: str = "omnidemo"
    session: Annotated[str, Field(max_length=64)] = ""  # "": a new one
    at: Annotated[int, Field(ge=0)] = 0
    ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS)]
    draft: Annotated[list[Id], Field(max_length=MOST_DRAFT)] | None = None
    begin: Annotated[int, Field(ge=0)] = 0
    ends: Annotated[tuple[Id, ...], Field(max_length=256)] = ()
    sampling: SamplingFields = SamplingFields()


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked draft. `accepted`: how many of its ids are kept. `token`: the target's own id behind them
    (None behind an end). `accepts`: the acceptance probability of each judged id. `probs`: the target's
    probability of each id of the draft and of the last written id, before temperature."""

    session: str
    accepted: int = 0
    token: int | None = None
    accepts: list[float] = field(default_factory=list)
    probs: list[float] = field(default_factory=list)


class SessionGone(ValueError):
    """The session or its text was dropped: the client sends the text again."""


@dataclass(slots=True)
class _Session:
    owner: str
    state: ref[DecodingState]
    ids: list[int]  # the state's list object; another answer in that conversation has another one
    manner: tuple[Any, ...] = ()
    context: RoundContext | None = None  # of `manner`
    backend: Backend | None = None


class DraftChecker:
    """Checks drafts with a pair's target. Thread-safe."""

    def __init__(self, pair: Pair) -> None:
        self._pair, self._method = pair, Copy()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def check(self, asked: Check, owner: str = "") -> Checked:
        """Read the ids, then the draft in one pass. `owner`: the visitor of the session. SessionGone where
        the text before `at` was dropped; ValueError for ids that the target cannot read."""
        target, draft = self._pair.target, asked.draft
        if max([*asked.ids, *(draft or ())]) >= target.runner.rows:
            raise ValueError(f"ids must lie below {target.runner.rows}, the rows of {target.name}")
        length = asked.at + len(asked.ids)
        if length + len(draft or ()) > target.context:
            raise ValueError(f"the text does not fit the window of {target.name}, {target.context} tokens")
        if asked.begin > length:
            raise ValueError(f"the answer cannot begin at {asked.begin}, behind the text of {length} ids")
        with self._pair._lock:
            name, session, state = self._resumed(asked, owner)
        try:
            reads = True
            while reads:  # others get the lock between two pieces
                with self._pair._lock:
                    reads = state.target.read_chunk()
            if draft is None:
                return Checked(name)
            with self._pair._lock:
                made = self._round(session, state, asked, draft)
            written = draft[: made.accepted] + ([] if made.next_token is None else [made.next_token])
            state.target.append(written)
            return Checked(name, made.accepted, made.next_token, made.accept_probs, made.target_probs)
        finally:
            with self._pair._lock:
                self._pair._conversations.give_back(state)

    def _resumed(self, asked: Check, owner: str) -> tuple[str, _Session, DecodingState]:
        """The session with the ids behind its first `at`; its conversation runs until `give_back`."""
        if not asked.session:
            return self._opened(asked, owner)
        session = self._sessions.get(asked.session)
        state = session.state() if session is not None and session.owner == owner else None
        if session is None or state is None or state.target.ids is not session.ids:
            raise SessionGone(GONE)
        if asked.at > len(session.ids) or not self._pair._conversations.resume(state):
            raise SessionGone(GONE)
        self._sessions.move_to_end(asked.session)
        same = common_prefix(session.ids[asked.at :], asked.ids)
        if asked.at + same == len(session.ids):  # the usual round, in constant time
            session.ids.extend(asked.ids[same:])
        else:
            self._begin(session, state, [*session.ids[: asked.at], *asked.ids])
        return asked.session, session, state

    def _opened(self, asked: Check, owner: str) -> tuple[str, _Session, DecodingState]:
        pair, domain = self._pair, owner or DOMAIN
        state = pair._conversations.take(asked.ids, True, domain, pair._line(domain).runner)
        name = token_hex(12)
        session = self._sessions[name] = _Session(owner, ref(state), state.target.ids)
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        self._begin(session, state, asked.ids)
        return name, session, state

    def _begin(self, session: _Session, state: DecodingState, ids: list[int]) -> None:
        state.begin(ids)
        session.ids, session.manner = state.target.ids, ()

    def _round(self, session: _Session, state: DecodingState, asked: Check, draft: list[int]) -> RoundResult:
        pair, manner = self._pair, (asked.sampling, asked.begin, asked.ends)
        if session.context is None or session.manner != manner:
            session.manner, session.context = manner, self._context(state, asked)
            session.backend = pair.make_backend(state.target.cache, state.drafter.cache)
        slots = [Slot(token, (), 1.0, 0, match=GIVEN) for token in draft]
        plan = RoundPlan(0, len(draft) + 1, slots)
        return make_round(session.context, self._method, plan, pair.clock, session.backend)

    def _context(self, state: DecodingState, asked: Check) -> RoundContext:
        pair, given = self._pair, asked.sampling.model_dump()
        random = randomness_of(given.pop("seed"), True, len(pair.map.drafters))
        sampling = SamplingParams(**given)
        begin = (asked.begin, 0) if sampling.penalty_scope == "answer" else (0, 0)
        penalty = RepetitionPenalty(pair.map, begin) if sampling.penalises else None
        return RoundContext(
            state.drafter, pair.map, pair.ngrams, sampling, random, frozenset(asked.ends), penalty,
            prompt=asked.begin, target=state.target,
        )  # fmt: skip


def described(pair: Pair, conditions: str) -> dict[str, Any]:
    """The target for a client: shape, default sampling (`Manner`), digest of the vocabulary, prices of
    passes, and conditions."""
    target, prices = pair.target, pair.prices.list
    return {
        "target": target.name, "context": target.context, "rows": target.runner.rows,
        "parameters": target.parameters, "manner": asdict(target.manner), "conditions": conditions,
        "vocabulary": digest_of(target.vocabulary), "attention": prices.attention,
        "passes": {str(rows): seconds for rows, seconds in prices.passes.items()},
    }  # fmt: skip


def spelled_out(pair: Pair) -> dict[str, Any]:
    """The target's tokenizer as JSON: its `tokenizers` form, names of special tokens, ids by role and by name
    of a control token, and the chat template."""
    tokenizer, vocabulary = pair.target.tokenizer, pair.target.vocabulary
    special = {name: _plain(value) for name, value in tokenizer.special_tokens_map.items()}
    return {
        "tokenizer": tokenizer.backend_tokenizer.to_str(), "special": special, "roles": vocabulary.roles,
        "control": vocabulary.control, "template": tokenizer.chat_template,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    return [*map(str, value)] if isinstance(value, list | tuple) else str(value)


def digest_of(vocabulary: Vocabulary) -> str:
    """A hash of a vocabulary: the bytes of every token, and the ids that end an answer."""
    found = hashlib.sha256(json.dumps([*vocabulary.roles.get("end", ())]).encode())
    for token in vocabulary.tokens:
        found.update(b"-" if token is None else len(token).to_bytes(4, "big") + token)
    return found.hexdigest()[:16]
