"""Drafters on recorded answers, each alone and beside the first: `python -m lab ceilings`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lab.drafters.ceilings import Prices, times
from lab.drafters.corpus import few, read_answers, vocabulary_of
from lab.drafters.guesses import Guesses, guess, load_drafter
from lab.drafters.score import agreement_table, change_table, speed_table
from lab.drafters.spelling import Spelling
from omnidemo.backends.batched_writer import WrittenAnswer
from omnidemo.vocabulary.vocabulary import Vocabulary


def score_all(
    drafters: Sequence[str], targets: Mapping[str, str], shards: Path, prompts: Path, most: int,
    costs: Mapping[int, float], steps: Sequence[float], report: Callable[[str], None],
) -> None:  # fmt: skip
    """Report tables of at most so many answers of each set and manner. `costs`: ms of a target's pass by its
    rows; `steps`: ms of a step of each drafter."""
    for name, place in targets.items():
        vocabulary, first = vocabulary_of(place), dict[str, tuple[Guesses, float]]()
        answers = list(few(read_answers(shards, name, place, prompts), most))
        for drafter, step in zip(drafters, steps, strict=True):
            prices, ends = Prices(costs, step), vocabulary.roles["end"]
            found = guesses_of(drafter, vocabulary, answers)
            report(f"\n{drafter} for {name}\n\n{agreement_table(found)}")
            for drawn, manner in ((False, "greedy"), (True, "drawn")):
                table = speed_table(found, prices, ends, drawn)
                report(f"\n{manner}: tokens a round, × plain\n\n{table}")
            spent = times(found, prices, ends)
            timed = {one.answer.order: (one, ms) for one, ms in zip(found, spent, strict=True)}
            if not first:
                first = timed
                continue
            both = [(first[order], timed[order]) for order in first if order in timed]
            changes = change_table(
                [(one, other) for (one, _), (other, _) in both],
                [(before, after) for (_, before), (_, after) in both],
            )
            report(f"\n{drafter} beside {drafters[0]} for {name}: changes ± standard errors\n\n{changes}")


def guesses_of(drafter: str, target: Vocabulary, answers: Sequence[WrittenAnswer]) -> list[Guesses]:
    """Of a drafter along a target's answers; without those that it cannot spell."""
    model = load_drafter(drafter)
    spelling = Spelling(target, vocabulary_of(drafter))
    made = (guess(model, answer, spelling) for answer in answers)
    return [one for one in made if one is not None]
