"""The experiments as data: an experiment is a list of arms, an arm a stream of requests and the ways to
decode them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

LineLayout = Literal["one", "target", "domain", "router"]
STEPS = (0.0, 0.5, 1.0)  # of a phase: where held-out prompts are read
STILL = 1e-12  # a learning rate that leaves the drafter as it is, so that only the head learns
GAMMAS = (0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to decode. Readings with the same cache settings share an n-gram cache, which grows with the
    traffic.

    `cache_share`: most entries, as a fraction of those that the whole traffic would leave (None: no limit).
    """

    name: str = ""
    method: str = "ngram-exact"
    draft_length: int = 4
    policy: str = "fixed"
    threshold: float | None = None  # γ of the policy `head`, the confidence of `confidence`
    cache_share: float | None = None
    cache_policy: Literal["lfu", "lru"] = "lfu"

    @property
    def cache(self) -> tuple[float | None, str]:
        return self.cache_share, self.cache_policy


@dataclass(frozen=True, slots=True)
class Phase:
    """So many requests to one target. The fraction of each source goes linearly from `mix` to `until` (None:
    it stays)."""

    target: str
    mix: Mapping[str, float]
    requests: int
    until: Mapping[str, float] | None = None

    def shares(self, place: float) -> dict[str, float]:
        """The fractions at `place`, from 0 (beginning) to 1 (end)."""
        end = self.until or self.mix
        return {
            name: (1 - place) * self.mix.get(name, 0.0) + place * end.get(name, 0.0)
            for name in {**self.mix, **end}
        }


@dataclass(frozen=True, slots=True)
class Arm:
    """One drafter that learns. `settings` are changes to the defaults; `offline`: from the whole traffic at
    once, in `offline_epochs` passes; `first_labels`: today's labels, of first tokens, not the paper's.

    `lines`: one adapter for everything, one per target, one per domain by hand, or one per domain that a
    classifier chooses.
    """

    name: str
    phases: tuple[Phase, ...]
    readings: tuple[Reading, ...] = (Reading(),)
    settings: Mapping[str, Any] = field(default_factory=dict)
    train: bool = True
    offline: bool = False
    first_labels: bool = False
    lines: LineLayout = "one"
    only_ngrams: bool = False  # L_NG alone
    watched: int = 1  # so many readings are read at every checkpoint, the others only at the end

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(phase.target for phase in self.phases))

    @property
    def sources(self) -> list[str]:
        return list(
            dict.fromkeys(name for phase in self.phases for name in {**phase.mix, **(phase.until or {})})
        )

    @property
    def requests(self) -> int:
        return sum(phase.requests for phase in self.phases)


@dataclass(frozen=True, slots=True)
class Event:
    """A request of a stream: the `count`-th, from 0."""

    count: int
    target: str
    source: str
    prompt: str


def stream(arm: Arm, prompts: Mapping[str, Sequence[str]], seed: int) -> Iterator[Event]:
    """The requests of an arm. A source's prompts come in a seeded order, each again only after all others;
    the order does not depend on the arm, so that arms of a seed can be paired."""
    left: dict[str, list[str]] = {}
    shufflers = {name: random.Random(f"{seed} {name}") for name in arm.sources}
    chooser = random.Random(seed)
    count = 0
    for phase in arm.phases:
        for place in range(phase.requests):
            shares = phase.shares(place / max(1, phase.requests - 1))
            source = chooser.choices(list(shares), list(shares.values()))[0]
            if not left.get(source):
                left[source] = list(prompts[source])
                shufflers[source].shuffle(left[source])
            yield Event(count, phase.target, source, left[source].pop())
            count += 1


def checkpoints(arm: Arm) -> list[int]:
    """Numbers of answered requests after which the held-out prompts are read."""
    found, before = set[int](), 0
    if not arm.train:
        return [0, arm.requests]
    for phase in arm.phases:
        found |= {before + round(step * phase.requests) for step in STEPS}
        before += phase.requests
    return sorted(found)


# The experiments. Each takes the targets and sources of the command line (the first one or more are used) and
# requests per phase. ----

Plan = Callable[[Sequence[str], Sequence[str], int], list[Arm]]
DIRECT, MERGED = Reading("direct map", "token-intersection"), Reading("n-grams")


def methods(targets: Sequence[str], sources: Sequence[str], requests: int) -> list[Arm]:
    phases = (Phase(targets[0], {sources[0]: 1.0}, requests),)
    return [
        Arm("fresh", phases, (DIRECT, MERGED), train=False),
        Arm("L_DM", phases, (DIRECT, MERGED), {"ngram_weight": 0.0}, watched=2),
        Arm("L_DM + λ L_NG", phases, (MERGED,)),
        Arm("L_DM + λ L_NG, full", phases, (MERGED,), {"lora_rank": 0}),
        Arm("offline", phases, (MERGED,), offline=True),
    ]


def losses(targets: Sequence[str], sources: Sequence[str], requests: int) -> list[Arm]:
    phases = (Phase(targets[0], {sources[0]: 1.0}, requests),)
    pairs = [("nll", "nll"), ("forward", "nll"), ("forward", "dynamic"), ("forward", "kl")]
    pairs += [("reverse", "nll"), ("reverse", "kl"), ("jsd", "nll"), ("tv", "nll"), ("acceptance", "nll")]
    arms = [Arm("L_NG nll alone", phases, only_ngrams=True, settings={"ngram_weight": 1.0})]
    for direct, ngram in pairs:
        arms.append(
            Arm(
                f"L_DM {direct} + λ L_NG {ngram}",
                phases,
                settings={"divergence": direct, "ngram_loss": ngram},
            )
        )
    today = Arm("today's labels, L_DM acceptance + λ L_NG nll", phases, first_labels=True)
    return [*arms, replace(today, settings={"divergence": "acceptance"})]


def rank(targets: Sequence[str], sources: Sequence[str], requests: int) -> list[Arm]:
    phases = (Phase(targets[0], {sources[0]: 1.0}, requests),)
    arms = [Arm(f"rank {size}", phases, settings={"lora_rank": size}) for size in (2, 4, 8, 16, 32, 64, 128)]
    return [*arms, Arm("full", phases, settings={"lora_rank": 0})]


def draft_length(targets: Sequence[str], sources: Sequence[str], requests: int) -> list[Arm]:
    phases = (Phase(targets[0], {sources[0]: 1.0}, requests),)
    four, fixed = Reading("k = 4"), tuple(Reading(f"k = {k}", draft_length=k) for k in (1, 2, 3, 5, 6, 7, 8))
    sure = tuple(Reading(f"confidence {c}", policy="confidence", threshold=c) for c in (0.2, 0.4, 0.6, 0.8))
    head = tuple(Reading(f"head γ {gamma}", policy="head", threshold=gamma) for gamma in GAMMAS)
    still = {"learning_rate": STILL, "head": "interleaved"}
    return [
        Arm("fresh", phases, (four,), {"head": "off"}, train=False),
        Arm("adapt only", phases, (four, *head), still),
        Arm("distil only", phases, (four, *fixed, *sure), {"head": "off"}),
        Arm("joint", phases, (four, *head), {"head": "joint"}),
        Arm("interleaved", phases, (four, *head), {"head": "interleaved"}),
    ]


def cache(targets: Sequence[str], sources: Sequence[str], requests: int) -> list[Arm]:
    phases = (Phase(targets[0], {sources[0]: 1.0}, requests),)
    policies: tuple[Literal["lru"], Literal["lfu"]] = ("lru", "lfu")
    small = [
        Reading(f"{name} {policy}", cache_share=share, cache_policy=policy)
        for name, share in (("¼", 0.25), ("½", 0.5))
        for policy in policies
    ]
    return [Arm("L_DM + λ L_NG", phases, (Reading("none", cache_share=0.0), *small, Reading("full")))]


def topic_shift(targets: Sequence[str], sources: Sequence[str], requests: int) -> list[Arm]:
    first, second = _several(sources, 2, "topics", "--domain")
    readings = (Reading("n-grams"), Reading("no cache", cache_share=0.0))
    before, after = Phase(targets[0], {first: 1.0}, requests), Phase(targets[0], {second: 1.0}, requests)
    between = Phase(targets[0], {first: 1.0}, requests, {second: 1.0})
    return [
        Arm("abrupt", (before, after), readings, watched=2),
        Arm("gradual", (before, between, after), readings, watched=2),
        Arm(f"{second} alone", (after,), readings, watched=2),
    ]


def target_shift(targets: Sequence[str], sources: Sequence[str], requests: int) -> list[Arm]:
    first, second = _several(targets, 2, "targets", "--target")
    phases = tuple(Phase(target, {sources[0]: 1.0}, requests) for target in (first, second, first))
    return [Arm("one line", phases), Arm("a line per target", phases, lines="target")]


def routing(targets: Sequence[str], sources: Sequence[str], requests: int) -> list[Arm]:
    three = _several(sources, 3, "topics", "--domain")
    phases = (Phase(targets[0], dict.fromkeys(three, 1 / 3), 3 * requests),)
    kinds: list[tuple[str, LineLayout]] = [
        ("one adapter", "one"),
        ("routed by a classifier", "router"),
        ("routed by hand", "domain"),
    ]
    return [Arm(name, phases, lines=lines) for name, lines in kinds]


@dataclass(frozen=True, slots=True)
class Experiment:
    """`question`: what it asks, in one line; `paper`: where the figures to compare with are."""

    plan: Plan
    question: str
    paper: str
    share: float = 1.0  # of --requests in one phase, for experiments with several


EXPERIMENTS = {
    "methods": Experiment(
        methods, "What do n-gram merging, distillation and the n-gram loss add?", "OmniDraft, tables 1 and 5"
    ),
    "losses": Experiment(losses, "Which loss teaches the drafter fastest?", "OmniDraft, table 6"),
    "rank": Experiment(rank, "How much rank does the adapter need?", "OmniDraft, table 12"),
    "draft-length": Experiment(
        draft_length, "How long should a draft be, and does the head know?", "OmniDraft, table 2"
    ),
    "cache": Experiment(
        cache,
        "How large must the n-gram cache be, and what should leave it?",
        "OmniDraft, table 14, figure 9",
    ),
    "topic-shift": Experiment(
        topic_shift, "How fast does it recover from a topic shift?", "OmniDraft, figure 5; OSD, A.6, A.8"
    ),
    "target-shift": Experiment(
        target_shift, "Does it realign when the target changes?", "OmniDraft, figure 6", 0.5
    ),
    "routing": Experiment(
        routing, "Is an adapter for each topic better than one for all?", "OSD, figure 6", 0.5
    ),
}


def _several(given: Sequence[str], count: int, what: str, option: str) -> list[str]:
    if len(given) < count:
        raise ValueError(f"this experiment needs {count} {what}; give {option} {count} times")
    return list(given[:count])
