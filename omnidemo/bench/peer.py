"""Our methods beside `transformers`' assisted generation: the same weights, prompts, dtype and threads, interleaved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from statistics import fmean
from time import perf_counter

import torch
from torch import Tensor

from omnidemo.bench.assisted import PEER, PLAIN, Answer, Peer, quietly
from omnidemo.bench.compare_methods import Spread, check_prompts, sheet
from omnidemo.config import Settings
from omnidemo.methods import make_method
from omnidemo.pair.pair import Pair
from omnidemo.serving.comparison import BASELINE
from omnidemo.serving.pair_loading import build_measured_pair

GREEDY, SAMPLED, LAWS = "greedy", "sampled", ("first token", "second token")  # kinds of rows
LAW_PROMPTS = 2
EXPECTED = 5.0  # fewest expected samples of a χ² cell; rarer tokens are pooled into one
HEADINGS = ("decoding", "exact", "acceptance", "tokens/pass", "tokens/s", "× transformers", "× own plain")

Progress = Callable[[int, int], None]  # (done, of)


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


@dataclass(frozen=True, slots=True)
class PeerReport:
    rows: Sequence[Row]

    def lines(self) -> list[list[str]]:
        """The summary as text: method, then the cells under `HEADINGS`; first greedy decoding, then sampling."""
        return [
            [method, *_cells(kind, [row for row in self.rows if row.method == method])]
            for kind in (GREEDY, SAMPLED)
            for method in dict.fromkeys(row.method for row in self.rows)
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
    adapted: Mapping[str, Tensor] | None = None,
    progress: Progress = lambda done, of: None,
    out: Path | None = None,
    settings: Settings | None = None,
) -> PeerReport:
    """Answer every prompt by our methods and the peer's, greedily and at temperature 1, and test what they sample.

    methods: ours; plain decoding always runs. samples: calls for each χ² test (0: none), which go on from the two prompts, and the
    places in their greedy answers, where the target is least certain. adapted: drafter weights by name, for our drafter and the
    peer's. out: a CSV that has each row as soon as it is measured. settings: device and threads; the dtype is float32. ModelError
    or ValueError before anything is measured.
    """
    if not prompts:
        raise ValueError("there is no prompt; give at least one")
    if max_new_tokens < 2 or draft_length < 1 or samples < 0:
        raise ValueError("max_new_tokens must be at least 2, draft_length at least 1 and samples at least 0")
    pair = build_measured_pair(target, drafter, (settings or Settings()).model_copy(update={"dtype": "float32"}))
    ours = [BASELINE, *(name for name in dict.fromkeys(make_method(name, pair.map).name for name in methods) if name != BASELINE)]
    check_prompts(pair, prompts)
    pair.fill_cache()
    if adapted:
        pair.publish(1, adapted)
        pair.warm_up()  # swaps them in
    with quietly():
        contest = Contest(pair, Peer(pair, draft_length), ours, prompts, max_new_tokens, draft_length, seed)
    rows: list[Row] = []
    total = len(prompts) * 2 * len(contest.methods) + bool(samples) * min(LAW_PROMPTS, len(prompts)) * 2 * len(contest.methods)
    with quietly(), torch.inference_mode(), sheet(out, [f.name for f in fields(Row)]) if out else nullcontext() as written:
        for row in contest.run(samples):
            rows.append(row)
            if written:
                written.write(asdict(row))
            progress(len(rows), total)
    return PeerReport(rows)


@dataclass(frozen=True, slots=True)
class Contest:
    pair: Pair
    peer: Peer
    ours: Sequence[str]
    prompts: Sequence[str]
    max_new_tokens: int
    draft_length: int
    seed: int

    @property
    def methods(self) -> list[str]:
        return [*PEER, *self.ours]

    def run(self, samples: int) -> Iterator[Row]:
        ids = [self.pair.prompt_ids(prompt) for prompt in self.prompts]
        for sampled in (False, True):
            for method in self.methods:  # warm-up, untimed
                self._attempt(method, ids[0], min(8, self.max_new_tokens), sampled, self.seed)
            for index in range(len(ids)):
                yield from self._answers(index, ids[index], sampled)
        if samples:
            for index, context in self._unsure(ids):
                law = self.peer.laws(context)[-1]
                for method in self.methods:
                    yield from self._tests(index, context, method, samples, law)

    def _unsure(self, prompts: Sequence[Sequence[int]]) -> list[tuple[int, list[int]]]:
        """(prompt's index, its ids and a beginning of its greedy answer) of the few prompts, each at the place, where the target
        is least certain: the first token of an answer is often sure, and any method gets such a token right."""
        found = []
        for index, ids in enumerate(prompts):
            whole = [*ids, *self.peer.generate(PLAIN, ids, self.max_new_tokens, False).ids[:-1]]
            entropies = torch.special.entr(self.peer.laws(whole)[len(ids) - 1 :]).sum(-1)
            found.append((float(entropies.max()), index, whole[: len(ids) + int(entropies.argmax())]))
        return sorted((index, context) for _, index, context in sorted(found, reverse=True)[:LAW_PROMPTS])

    def _answers(self, index: int, ids: Sequence[int], sampled: bool) -> list[Row]:
        """One prompt by every method; who begins changes from prompt to prompt."""
        shift = index % len(self.methods)
        order = self.methods[shift:] + self.methods[:shift]
        made = {method: self._attempt(method, ids, self.max_new_tokens, sampled, self.seed + index) for method in order}
        return [self._row(index, method, made, sampled) for method in self.methods]

    def _attempt(self, method: str, ids: Sequence[int], count: int, sampled: bool, seed: int, reuse: bool = False) -> Answer | str:
        """The answer, or in one line why the peer has none."""
        if method in PEER:
            torch.manual_seed(seed)
            try:
                return self.peer.generate(method, ids, count, sampled)
            except Exception as error:  # its limits are part of the comparison
                return " ".join(f"{type(error).__name__}: {error}".split())
        began = perf_counter()
        made = self.pair.generate(
            ids, method=method, max_new_tokens=count, temperature=float(sampled), draft_length=self.draft_length, seed=seed,
            learn=False, reuse=reuse,
        )  # fmt: skip
        seconds = perf_counter() - began
        rounds = [(one.proposed, one.accepted) for one in made.rounds]
        return Answer(made.token_ids, seconds, rounds, sum(one.drafted for one in made.rounds))

    def _row(self, index: int, method: str, made: Mapping[str, Answer | str], sampled: bool) -> Row:
        answer, kind = made[method], SAMPLED if sampled else GREEDY
        if isinstance(answer, str):
            return Row(kind, index, method, error=answer, prompt=self.prompts[index])
        plain = made[PLAIN]
        rates = [accepted / proposed for proposed, accepted in answer.rounds if proposed]
        return Row(
            kind, index, method,
            tokens=len(answer.ids),
            seconds=answer.seconds,
            tokens_per_second=len(answer.ids) / answer.seconds,
            speedup=_ratio(answer, plain),
            own_speedup=_ratio(answer, plain if method in PEER else made[BASELINE]),
            identical=None if sampled or isinstance(plain, str) else list(answer.ids) == list(plain.ids),
            target_passes=len(answer.rounds),
            block_efficiency_tokens_per_pass=len(answer.ids) / len(answer.rounds),
            acceptance_rate=fmean(rates) if rates else None,
            proposed=sum(proposed for proposed, _ in answer.rounds),
            accepted=sum(accepted for _, accepted in answer.rounds),
            drafted=answer.drafted,
            prompt=self.prompts[index],
            answer=self.pair.target.tokenizer.decode(answer.ids),
        )  # fmt: skip

    def _tests(self, index: int, ids: Sequence[int], method: str, samples: int, law: Tensor) -> list[Row]:
        """χ² of the first token, and of the second where the first is the likeliest one. Two tokens, so that one can be drafted."""
        likeliest = int(law.argmax())
        drawn: tuple[list[int], list[int]] = ([], [])
        for number in range(samples):
            answer = self._attempt(method, ids, 2, True, self.seed + 1_000_003 * (index + 1) + number, reuse=True)
            if isinstance(answer, str):
                return [Row(kind, index, method, error=answer, prompt=self.prompts[index]) for kind in LAWS]
            drawn[0].append(answer.ids[0])
            if answer.ids[0] == likeliest and len(answer.ids) > 1:
                drawn[1].append(answer.ids[1])
        laws = (law, self.peer.laws([*ids, likeliest])[-1])
        rows = []
        for kind, tokens, expected in zip(LAWS, drawn, laws, strict=True):
            chi, freedom = chi_square(tokens, expected)
            known = {"chi_square": chi, "degrees_of_freedom": freedom, "p_value": upper_tail(chi, freedom)} if freedom else {}
            rows.append(Row(kind, index, method, samples=len(tokens), prompt=self.prompts[index], **known))  # type: ignore[arg-type]
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


def _ratio(answer: Answer, other: Answer | str) -> float | None:
    return None if isinstance(other, str) else len(answer.ids) / answer.seconds / (len(other.ids) / other.seconds)


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
