"""Our methods beside `transformers`' assisted generation: the same weights, prompts and dtype, interleaved;
and what all of them sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lab.equality.silence import quietly
from lab.races.arms import Answer, Arm, Request
from lab.races.assisted import PEER, PLAIN, TheirArm
from lab.races.contest import BenchRequest, Contest
from lab.races.machine import Peak
from lab.races.speed_report import Row
from omnidemo.core.config import Settings
from omnidemo.decoding.methods import BASELINE
from omnidemo.models.names import known_settings
from omnidemo.serving.measuring.report_tables import Spread, Stage, group_by, recorded

# Kinds of rows: an answer, at temperature 0 or 1; a χ² test of `samples` drawn tokens, behind a beginning of
# the answer.
GREEDY, SAMPLED, LAWS = "greedy", "sampled", ("first token", "second token")
LAW_PROMPTS = 2
TELL_DRAWS = 20  # between two notices of how far a test is
EXPECTED = 5.0  # fewest expected samples of a χ² cell; rarer tokens are pooled into one
HEADINGS = ("decoding", "exact", "acceptance", "tokens/pass", "tokens/s", "× transformers", "× own plain")
COLUMNS = (  # of the CSV
    "kind", "prompt_index", "method", "tokens", "seconds", "tokens_per_second", "speedup", "own_speedup",
    "identical", "target_passes",
    "block_efficiency_tokens_per_pass", "acceptance_rate", "proposed", "accepted", "drafted", "samples",
    "chi_square",
    "degrees_of_freedom", "p_value", "error", "prompt", "answer",
)  # fmt: skip


def price(samples: int, prompts: int, methods: int) -> str:
    """A sentence: what the χ² tests take, with so many methods of ours beside plain decoding."""
    tested, arms = min(LAW_PROMPTS, prompts), len(PEER) + 1 + methods
    return (
        f"The law test draws two tokens {samples:,} times by each of {arms} ways to decode, behind {tested}"
        f" prompt{'s' if tested > 1 else ''}: {samples * arms * tested:,} short answers after the"
        f" {2 * arms * prompts:,} measured ones."
    )


def summary(rows: Sequence[Row]) -> list[list[str]]:
    """A table: method, then the cells under `HEADINGS`; first greedy decoding, then sampling."""
    return [
        [method, *_cells(kind, mine)]
        for kind in (GREEDY, SAMPLED)
        for method, mine in group_by(rows, lambda row: row["method"]).items()
    ]


def compare_with_peer(
    settings: Settings,
    prompts: Sequence[str],
    methods: Sequence[str],
    out: Path,
    samples: int = 0,
    seed: int = 0,
) -> Iterator[Row | Stage]:
    """Answer every prompt by our methods and the peer's, greedily and at temperature 1, and test what they
    sample.

    settings: models, device, threads, longest answer and draft length; the dtype is float32. methods: ours;
    plain decoding always runs. out: a CSV that has each row as soon as it is measured. samples: calls for
    each χ² test (0: none), which go on from the two prompts, and the places in their greedy answers, where
    the target is least certain. ModelError or ValueError before anything is measured.
    """
    settings = known_settings(settings.model_copy(update={"dtype": "float32"}))
    order = BenchRequest(
        [settings.target], {}, {"": prompts}, 0, out, methods=methods, max_new_tokens=settings.max_new_tokens,
        draft_length=settings.draft_length, seed=seed,
    )  # fmt: skip
    contest = PeerContest(settings.target, order, {}, settings)
    tested = min(LAW_PROMPTS, len(prompts)) if samples else 0
    total = 2 * (len(PEER) + 1 + len(contest.methods)) * (len(prompts) + tested)
    with quietly():
        yield from recorded(contest.run_and_test(samples), out, COLUMNS, "rows", total)


class PeerContest(Contest):
    """The peer's ways to generate, and ours with drafts of a fixed length."""

    details = False

    def _arms(self, topic: str) -> list[Arm]:
        ours = [self._our(name, self.drafter) for name in (BASELINE, *self.methods)]
        self.arms: list[Arm] = [*(TheirArm(name, self.peer) for name in PEER), *ours]
        return self.arms

    def _own(self, arm: Arm) -> str:
        return PLAIN if isinstance(arm, TheirArm) else BASELINE

    def _place(self, arm: Arm, topic: str, index: int, temperature: float) -> Row:
        place = super()._place(arm, topic, index, temperature)
        return dict.fromkeys(COLUMNS) | place | {"kind": SAMPLED if temperature else GREEDY}

    def _costs(self, arm: Arm, took: Answer, peak: Peak) -> Row:
        return {"answer": self.target.tokenizer.decode(took.ids)}

    def run_and_test(self, samples: int) -> Iterator[Row | Stage]:
        """The rows of all answers, then those of the χ² tests, and how far each of them is."""
        yield from self.run()
        if samples:
            for index, context in self._unsure():
                law = self.peer.laws(context)[-1]
                for arm in self.arms:
                    yield from self._tests(index, context, arm, samples, law)

    def _unsure(self) -> list[tuple[int, list[int]]]:
        """(prompt's index, its ids and a beginning of its greedy answer) of the few prompts, each at the
        place, where the target is least certain: the first token of an answer is often sure, and any method
        gets such a token right."""
        found = []
        for index, prompt in enumerate(self.order.held_out[""]):
            ids = self.pair.prompt_ids(prompt)
            whole = [
                *ids,
                *self.peer.generate(PLAIN, Request(ids, self.order.max_new_tokens, 0.0, self.order.seed)).ids[
                    :-1
                ],
            ]
            entropies = torch.special.entr(self.peer.laws(whole)[len(ids) - 1 :]).sum(-1)
            found.append((float(entropies.max()), index, whole[: len(ids) + int(entropies.argmax())]))
        return sorted((index, context) for _, index, context in sorted(found, reverse=True)[:LAW_PROMPTS])

    def _tests(
        self, index: int, ids: Sequence[int], arm: Arm, samples: int, law: Tensor
    ) -> Iterator[Row | Stage]:
        """χ² of the first token, and of the second where the first is the likeliest one. Two tokens, so that
        one can be drafted."""
        likeliest = int(law.argmax())
        drawn: tuple[list[int], list[int]] = ([], [])
        rows = [self._place(arm, "", index, 1.0) | {"kind": kind} for kind in LAWS]
        for number in range(samples):
            seed = self.order.seed + 1_000_003 * (index + 1) + number
            answer = self._attempt(arm, Request(ids, 2, 1.0, seed, details=False, reuse=True))
            if isinstance(answer, str):
                yield from (row | {"error": answer} for row in rows)
                return
            drawn[0].append(answer.ids[0])
            if answer.ids[0] == likeliest and len(answer.ids) > 1:
                drawn[1].append(answer.ids[1])
            if (number + 1) % TELL_DRAWS == 0 or number + 1 == samples:
                yield Stage(f"draws, prompt {index}, {arm.name}", number + 1, samples)
        for row, tokens, expected in zip(
            rows, drawn, (law, self.peer.laws([*ids, likeliest])[-1]), strict=True
        ):
            chi, freedom = chi_square(tokens, expected)
            row["samples"] = len(tokens)
            if freedom:
                row |= {"chi_square": chi, "degrees_of_freedom": freedom, "p_value": upper_tail(chi, freedom)}
        yield from rows


# --- figures ------------------------------------------------------------------------------------------------


def chi_square(tokens: Sequence[int], law: Tensor) -> tuple[float, int]:
    """(χ², degrees of freedom) of drawn ids against their law [V]; (0, 0) where too few were drawn to tell
    any two tokens apart."""
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
    return float(
        torch.special.gammaincc(
            torch.tensor(freedom / 2, dtype=torch.float64), torch.tensor(chi / 2, dtype=torch.float64)
        )
    )


def _cells(kind: str, rows: Sequence[Row]) -> list[str]:
    mine = [row for row in rows if row["kind"] == kind]
    failed = next((row["error"] for row in mine if row["error"]), "")
    exact = f"{sum(row['identical'] or False for row in mine)}/{len(mine)}" if kind == GREEDY else _fits(rows)
    names = ("acceptance_rate", "tokens_per_pass", "tokens_per_second", "speedup", "own_speedup")
    return [
        kind,
        f"failed: {failed[:60]}" if failed else exact,
        *(str(Spread.of(row[name] for row in mine)) for name in names),
    ]


def _fits(rows: Sequence[Row]) -> str:
    """Both tests over all their prompts: χ² and degrees of freedom added up."""
    tested = pd.DataFrame(rows, columns=COLUMNS).dropna(subset="degrees_of_freedom")
    sums = tested.groupby("kind")[["chi_square", "degrees_of_freedom", "samples"]].sum()
    parts = [
        f"{kind}: χ² {chi:.0f}/{freedom:.0f}, p {upper_tail(chi, freedom):.2g}, n {count:,.0f}"
        for kind, chi, freedom, count in sums.itertuples()
    ]
    return "\n".join(parts) or "–"
