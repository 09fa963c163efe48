"""The table of figures: every figure of an answer that is shown anywhere, once. `metrics.measure` computes
them; page, endpoint, MCP, Compare and CSV files are made from this table (docs/contributing.md, "A figure of
an answer")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`name`: its key in `Generation.metrics`. `help`: what it is, in sentences. `label`: the words after its
    number below an answer; without one the page does not show it. `form`: how the browser prints the number.
    `unit`: the end of its CSV column's name. `shown`: where else it is shown: `endpoint`, `mcp`, `compare`
    (the page's table), `history`. `mcp`: its name there, if another. `csv`: its place among the columns of
    the page's Compare. `report`: the same for the command `compare`; 0: none."""

    name: str
    help: str = ""
    label: str = ""
    form: str = "number"
    unit: str = ""
    shown: str = ""
    mcp: str = ""
    csv: int = 0
    report: int = 0

    @property
    def column(self) -> str:
        return f"{self.name}_{self.unit}" if self.unit else self.name


MAIN_FIGURES = 3  # stand open on the page, whose order this is
FIGURES = (
    Figure(
        "block_efficiency",
        "Block efficiency: tokens written per forward pass of the target. It is 1 without guessing.",
        "tokens per step of the big model",
        unit="tokens_per_round", shown="endpoint mcp compare history", mcp="tokens_per_round",
        csv=6, report=12,
    ),
    Figure(
        "guesses_right",
        "Accepted ÷ proposed tokens of the small model. What stands after a wrong guess was never judged and"
        " counts as not right.",
        "of the small model's guesses right", "percent",
        unit="share", shown="endpoint compare history", csv=3, report=9,
    ),
    Figure(
        "copied_share",
        "Share of the answer's tokens that were copied from text that stood there before, or from known"
        " phrases.",
        "of the answer copied", "percent", shown="endpoint mcp history", csv=8,
    ),
    Figure(
        "tokens_per_second",
        "Target tokens per second, over the whole answer.",
        "tok/s", shown="endpoint mcp compare history", csv=2, report=4,
    ),
    Figure(
        "acceptance_rate",
        "Accepted ÷ proposed of the small model's tokens of each round where it guessed, averaged over those"
        " rounds.",
        "accepted a round", "percent", shown="endpoint mcp", mcp="acceptance", csv=4, report=10,
    ),
    Figure(
        "ngram_hits",
        "Merged n-grams accepted per round, on average.",
        "n-grams/round", unit="per_round", csv=7, report=13,
    ),
    Figure(
        "copies_right",
        "Accepted ÷ proposed of the copied tokens.",
        "of the copies right", "percent", unit="share", shown="endpoint", csv=9,
    ),
    Figure("tokens", "Target tokens in this answer.", "tokens", "count", report=1),
    Figure(
        "draft_length",
        "Drafter tokens per round, rounds without a draft included; the draft policy decides.",
        "guesses a round",
    ),
    Figure(
        "total_variation",
        "Not lossless: mean total variation between the law by which each token was written and the big"
        " model's own.",
        "away from the big model", "share", shown="endpoint mcp compare", csv=13, report=8,
    ),
    Figure(
        "time_to_first_token",
        "Time from the moment its turn came to the first token.",
        "first token", "seconds",
        unit="seconds", shown="endpoint mcp compare", csv=10, report=5,
    ),
    Figure(
        "seconds", "Seconds of decoding: its steps'.", shown="endpoint mcp history", csv=1, report=3
    ),
    Figure(
        "time_per_output_token",
        "Seconds for each token after the first pass.",
        unit="seconds", shown="endpoint mcp compare", csv=11, report=6,
    ),
    Figure(
        "cost_ratio",
        "Seconds of the drafter per drafted token ÷ those of a pass of the target.",
        shown="mcp compare", csv=12, report=7,
    ),
    Figure("alpha", "Accepted ÷ judged tokens of the drafter.", csv=5, report=11),
    Figure("rounds", form="count", shown="endpoint", report=2),
    Figure("drafted", form="count", shown="endpoint", report=16),
    Figure("proposed", form="count", shown="endpoint", report=14),
    Figure("accepted", form="count", shown="endpoint", report=15),
    Figure("copies_proposed", form="count", shown="endpoint"),
    Figure("copied", form="count", shown="endpoint"),
    Figure("copied_earlier", form="count"),
    Figure(
        "forced", "Tokens that the answer's form wrote: it left no other.", form="count",
        shown="endpoint mcp history", csv=19, report=21,
    ),
    Figure(
        "changed", "Tokens where the answer's form ruled out the likeliest one.", form="count",
        shown="endpoint mcp history", csv=20, report=22,
    ),
    Figure("draft_seconds", csv=14, report=17),
    Figure("verify_seconds", csv=15, report=18),
    Figure("settle_seconds", csv=16, report=19),
    Figure("other_seconds", csv=17, report=20),
    Figure("engine_overhead", unit="share", csv=18),
)  # fmt: skip


def figures_of(way: str) -> list[Figure]:
    """The figures shown in a place (`Figure.shown`)."""
    return [figure for figure in FIGURES if way in figure.shown.split()]


def columns(place: str) -> Mapping[str, str]:
    """CSV column → name of its figure, in the order of the file: of `csv` or `report`."""
    kept = [figure for figure in FIGURES if getattr(figure, place)]
    return {figure.column: figure.name for figure in sorted(kept, key=lambda figure: getattr(figure, place))}
