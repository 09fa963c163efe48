"""Our methods beside `transformers`' assisted generation: the same weights, prompts, dtype and threads, interleaved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omnidemo.bench.assisted import PEER, PLAIN, Peer, TheirArm
from omnidemo.bench.prompt_files import check_prompts
from omnidemo.bench.report_tables import Spread, Stage, recorded
from omnidemo.bench.silence import quietly
from omnidemo.bench.speed.arms import Answer, Arm, OurArm, Request, attempt, in_turn
from omnidemo.config import Settings
from omnidemo.methods import make_method
from omnidemo.pair.pair import Pair
from omnidemo.serving.comparison import BASELINE
from omnidemo.serving.pair_loading import build_measured_pair

GREEDY, SAMPLED, LAWS = "greedy", "sampled", ("first token", "second token")  # kinds of rows
LAW_PROMPTS = 2
EXPECTED = 5.0  # fewest expected samples of a χ² cell; rarer tokens are pooled into one
HEADINGS = ("decoding", "exact", "acceptance", "tokens/pass", "tokens/s", "× transformers", "× own plain")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the CSV. kind "greedy" or "sampled" (temperature 1): one answer; "first token" and "second token": a χ² test of
    `samples` drawn tokens against the target's law, behind a beginning of the answer.

    seconds: the whole call, prompt included. speedup, own_speedup: ratios of tokens/s to `transformers`' plain generation and to
    plain decoding by the same engine, on the same prompt. target_passes: forward passes that wrote tokens. drafted: tokens drawn
    from the drafter. acceptance_rate: as in `metrics.py`. error: why the peer could not answer.
    """

    kind: str
    prompt_index: int
    method: str
    tokens: int = 0
    seconds: float | None = None
    tokens_per_second: float | None = None
    speedup: float | None = None
    own_speedup: float | None = None
    identical: bool | None = None
    target_passes: int | None = None
    block_efficiency_tokens_per_pass: float | None = None
    acceptance_rate: float | None = None
    proposed: int | None = None
    accepted: int | None = None
    drafted: int | None = None
    samples: int | None = None
    chi_square: float | None = None
    degrees_of_freedom: int | None = None
    p_value: float | None = None
    error: str = ""
    prompt: str = ""
    answer: str = ""


def summary(rows: Sequence[Row]) -> list[list[str]]:
    """A table: method, then the cells under `HEADINGS`; first greedy decoding, then sampling."""
    return [
        [method, *_cells(kind, [row for row in rows if row.method == method])]
        for kind in (GREEDY, SAMPLED)
        for method in dict.fromkeys(row.method for row in rows)
    ]


def compare_with_peer(
    target: str,
    drafter: str,
    prompts: Sequence[str],
    *,
    methods: Sequence[str],
    max_new_tokens: int = 128,
    draft_length: int = 4,
    samples: int = 2000,
    seed: int = 0,
    out: Path,
    settings: Settings,
) -> Iterator[Row | Stage]:
    """Answer every prompt by our methods and the peer's, greedily and at temperature 1, and test what they sample.

    methods: ours; plain decoding always runs. samples: calls for each χ² test (0: none), which go on from the two prompts, and the
    places in their greedy answers, where the target is least certain. out: a CSV that
    has each row as soon as it is measured. settings: device and threads; the dtype is float32. ModelError or ValueError before anything
    is measured.
    """
    if not prompts:
        raise ValueError("there is no prompt; give at least one")
    if max_new_tokens < 2 or draft_length < 1 or samples < 0:
        raise ValueError("max_new_tokens must be at least 2, draft_length at least 1 and samples at least 0")
    pair = build_measured_pair(target, drafter, settings.model_copy(update={"dtype": "float32"}))
    ours = [BASELINE, *(name for name in dict.fromkeys(make_method(name, pair.map).name for name in methods) if name != BASELINE)]
    check_prompts(pair, prompts)
    pair.fill_cache()
    with quietly():
        peer = Peer(pair, draft_length)
        arms: list[Arm] = [TheirArm(name, peer) for name in PEER]
        arms += [OurArm(name, pair, draft_length) for name in ours]
        contest = PeerContest(pair, peer, arms, prompts, max_new_tokens, seed)
    tested = min(LAW_PROMPTS, len(prompts)) if samples else 0
    total = 2 * len(arms) * (len(prompts) + tested)
    with quietly():
        yield from recorded(contest.run(samples), out, Row, "rows", total)


@dataclass(frozen=True, slots=True)
class PeerContest:
    """The arms on the prompts, the peer's plain generation first."""

    pair: Pair
    peer: Peer
    arms: Sequence[Arm]
    prompts: Sequence[str]
    max_new_tokens: int
    seed: int

    def run(self, samples: int) -> Iterator[Row]:
        ids = [self.pair.prompt_ids(prompt) for prompt in self.prompts]
        for temperature in (0.0, 1.0):
            for arm in self.arms:  # warm-up, untimed
                attempt(arm, Request(ids[0], min(8, self.max_new_tokens), temperature, self.seed, details=False))
            for index in range(len(ids)):
                request = Request(ids[index], self.max_new_tokens, temperature, self.seed + index, details=False)
                made = {arm.name: attempt(arm, request) for arm in in_turn(self.arms, index)}
                yield from (self._row(index, arm, made, SAMPLED if temperature else GREEDY) for arm in self.arms)
        if samples:
            for index, context in self._unsure(ids):
                law = self.peer.laws(context)[-1]
                for arm in self.arms:
                    yield from self._tests(index, context, arm, samples, law)

    def _unsure(self, prompts: Sequence[Sequence[int]]) -> list[tuple[int, list[int]]]:
        """(prompt's index, its ids and a beginning of its greedy answer) of the few prompts, each at the place, where the target
        is least certain: the first token of an answer is often sure, and any method gets such a token right."""
        found = []
        for index, ids in enumerate(prompts):
            whole = [*ids, *self.peer.generate(PLAIN, Request(ids, self.max_new_tokens, 0.0, self.seed)).ids[:-1]]
            entropies = torch.special.entr(self.peer.laws(whole)[len(ids) - 1 :]).sum(-1)
            found.append((float(entropies.max()), index, whole[: len(ids) + int(entropies.argmax())]))
        return sorted((index, context) for _, index, context in sorted(found, reverse=True)[:LAW_PROMPTS])

    def _row(self, index: int, arm: Arm, made: Mapping[str, Answer | str], kind: str) -> Row:
        answer, plain = made[arm.name], made[PLAIN]
        if isinstance(answer, str):
            return Row(kind, index, arm.method, error=answer, prompt=self.prompts[index])
        own = plain if isinstance(arm, TheirArm) else made[BASELINE]
        return Row(
            kind, index, arm.method,
            **answer.columns(plain, own, greedy=kind == GREEDY),
            target_passes=len(answer.rounds),
            block_efficiency_tokens_per_pass=answer.block_efficiency,
            proposed=sum(proposed for proposed, _ in answer.rounds),
            accepted=sum(accepted for _, accepted in answer.rounds),
            drafted=answer.drafted,
            prompt=self.prompts[index],
            answer=self.pair.target.tokenizer.decode(answer.ids),
        )  # fmt: skip

    def _tests(self, index: int, ids: Sequence[int], arm: Arm, samples: int, law: Tensor) -> list[Row]:
        """χ² of the first token, and of the second where the first is the likeliest one. Two tokens, so that one can be drafted."""
        likeliest = int(law.argmax())
        drawn: tuple[list[int], list[int]] = ([], [])
        for number in range(samples):
            seed = self.seed + 1_000_003 * (index + 1) + number
            answer = attempt(arm, Request(ids, 2, 1.0, seed, details=False, reuse=True))
            if isinstance(answer, str):
                return [Row(kind, index, arm.method, error=answer, prompt=self.prompts[index]) for kind in LAWS]
            drawn[0].append(answer.ids[0])
            if answer.ids[0] == likeliest and len(answer.ids) > 1:
                drawn[1].append(answer.ids[1])
        rows = []
        for kind, tokens, expected in zip(LAWS, drawn, (law, self.peer.laws([*ids, likeliest])[-1]), strict=True):
            chi, freedom = chi_square(tokens, expected)
            known: dict[str, Any] = {}
            if freedom:
                known = {"chi_square": chi, "degrees_of_freedom": freedom, "p_value": upper_tail(chi, freedom)}
            rows.append(Row(kind, index, arm.method, samples=len(tokens), prompt=self.prompts[index], **known))
        return rows


# --- figures -------------------------------------------------------------------------------------------------------------


def chi_square(tokens: Sequence[int], law: Tensor) -> tuple[float, int]:
    """(χ², degrees of freedom) of drawn ids against their law [V]; (0, 0) where too few were drawn to tell any two tokens apart."""
    counts = torch.bincount(torch.tensor(tokens, dtype=torch.long), minlength=len(law)).double()
    expected = law.double() * len(tokens)
    common = expected >= EXPECTED
    cells = torch.stack([counts, expected])[:, common]
    others = torch.stack([counts[~common].sum(), expected[~common].sum()])
    if others[1] >= EXPECTED:
        cells = torch.cat([cells, others[:, None]], 1)
    elif cells.shape[1]:
        cells[:, cells[1].argmin()] += others  # no cell may be too small, and no token may be left out
    if cells.shape[1] < 2:
        return 0.0, 0
    return float(((cells[0] - cells[1]) ** 2 / cells[1]).sum()), cells.shape[1] - 1


def upper_tail(chi: float, freedom: int) -> float:
    """The probability of a χ² at least this large."""
    return float(torch.special.gammaincc(torch.tensor(freedom / 2, dtype=torch.float64), torch.tensor(chi / 2, dtype=torch.float64)))


def _cells(kind: str, rows: Sequence[Row]) -> list[str]:
    mine = [row for row in rows if row.kind == kind]
    failed = next((row.error for row in mine if row.error), "")
    exact = f"{sum(row.identical or False for row in mine)}/{len(mine)}" if kind == GREEDY else _fits(rows)
    acceptance, efficiency, rate, speedup, own = (
        str(Spread.of(getattr(row, name) for row in mine))
        for name in ("acceptance_rate", "block_efficiency_tokens_per_pass", "tokens_per_second", "speedup", "own_speedup")
    )
    return [kind, f"failed: {failed[:60]}" if failed else exact, acceptance, efficiency, rate, speedup, own]


def _fits(rows: Iterable[Row]) -> str:
    """Both tests over all their prompts: χ² and degrees of freedom added up."""
    tested = sorted((row for row in rows if row.degrees_of_freedom), key=lambda row: row.kind)
    parts = []
    for kind, group in groupby(tested, key=lambda row: row.kind):
        together = list(group)
        chi, freedom = sum(row.chi_square or 0 for row in together), sum(row.degrees_of_freedom or 0 for row in together)
        count = sum(row.samples or 0 for row in together)
        parts.append(f"{kind}: χ² {chi:.0f}/{freedom}, p {upper_tail(chi, freedom):.2g}, n {count:,}")
    return "\n".join(parts) or "–"
