"""Answers the inputs of one task, one after another, and drafts each answer again with less learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnidemo.core.config import GREEDY, GenerationConfig
from omnidemo.core.records import Generation, Prompt
from omnidemo.core.tasks import Task
from omnidemo.core.tasks import task as named_task
from omnidemo.pair.answer_plan import Beginning
from omnidemo.pair.replay import Replay, SameAnswer

if TYPE_CHECKING:
    from omnidemo.pair.pair import Pair

# CSV column → attribute of `Repeated`, or of its `same`
COLUMNS = {
    "number": "number", "tokens_per_round": "tokens_per_round", "tokens": "tokens",
    "copied_tokens": "copied", "copied_earlier_tokens": "copied_earlier", "guessed_tokens": "guessed",
    "forced_tokens": "forced", "own_tokens": "own", "alpha": "acceptance",
    "seconds": "seconds", "adapter_version": "adapter_version", "memory_tokens": "memory_tokens",
    "as_it_was_tokens_per_round": "as_it_was", "empty_memory_tokens_per_round": "empty_memory",
    "fresh_drafter_tokens_per_round": "fresh_drafter", "nothing_learned_tokens_per_round": "nothing_learned",
    "finish_reason": "finish_reason", "valid_json": "valid", "input": "input", "answer": "answer",
}  # fmt: skip
SAME = tuple(SameAnswer.__slots__)


@dataclass(frozen=True, slots=True)
class Repeated:
    """An answer of a repeated task. `number`: its place in the task's order, from 1. `memory_tokens`: target
    tokens of the earlier answers that it could copy from, with the ends of their prompts; None where another
    process answers. `same`: see `Replay.same_answer`, None included. `valid`: see `Task.valid`."""

    number: int
    input: str
    generation: Generation
    memory_tokens: int | None
    same: SameAnswer | None
    valid: bool | None = None

    @property
    def tokens_per_round(self) -> float:
        """Target tokens per pass of the target."""
        return len(self.generation.token_ids) / len(self.generation.rounds)

    @property
    def tokens(self) -> int:
        """All tokens: `copied` + `guessed` + `forced` + `own`."""
        return len(self.generation.token_ids)

    @property
    def copied(self) -> int:
        return self._count("copied")

    @property
    def copied_earlier(self) -> int:
        """The copied tokens from earlier answers; the others are from prompt and answer."""
        return int(self.generation.metrics.get("copied_earlier") or 0)

    @property
    def guessed(self) -> int:
        """Tokens that the drafter guessed, by one or several drafter tokens."""
        return self._count("direct", "ngram")

    @property
    def forced(self) -> int:
        """Tokens that the answer's form left no choice about."""
        return self._count("forced")

    @property
    def own(self) -> int:
        """Tokens that the target wrote itself."""
        return self.tokens - self.copied - self.guessed - self.forced

    @property
    def acceptance(self) -> float | None:
        """Accepted ÷ judged tokens of the drafter; None without a judged one."""
        return self.generation.metrics["alpha"]

    @property
    def seconds(self) -> float:
        """Of all rounds, without the target's reading of the prompt."""
        return self.generation.metrics["seconds"] or 0.0

    @property
    def adapter_version(self) -> int:
        return self.generation.adapter_version

    @property
    def finish_reason(self) -> str:
        return self.generation.finish_reason

    @property
    def answer(self) -> str:
        return self.generation.text

    @property
    def row(self) -> dict[str, Any]:
        """The values under COLUMNS."""
        return {
            column: getattr(self.same if name in SAME else self, name, None)
            for column, name in COLUMNS.items()
        }

    def _count(self, *sources: str) -> int:
        return sum(token.source in sources for done in self.generation.rounds for token in done.tokens)


def options_of(task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the answers to a task: greedy without a penalty, the policy "chance", a line of the
    task's name; given `options` replace these."""
    return {
        **GREEDY.options, "max_new_tokens": task.max_new_tokens, "draft_policy": "chance",
        "domain": task.name, **options,
    }  # fmt: skip


def prompt_of(pair: Pair, task: Task, given: str) -> Prompt:
    """The prompt of an input."""
    return task.messages(given) if pair.target.chat else task.prompt(given)


class Watched:
    """An answer that is about to begin, and will be replayed. Takes about a millisecond."""

    def __init__(self, pair: Pair, asked: GenerationConfig, prompt: Prompt) -> None:
        self._pair, self._asked, self._prompt = pair, asked, pair.prompt_ids(prompt)
        self._beginning = Beginning.of(pair, asked.domain)

    def repeated(self, task: Task, number: int, given: str, made: Generation) -> Repeated:
        """The record of the finished answer, with its replays."""
        same = Replay(self._pair, self._beginning, self._prompt, self._asked, made).same_answer()
        memory = self._beginning.memory_tokens if self._pair.here else None
        return Repeated(number, given, made, memory, same, task.valid(made.text))


def repeat(
    pair: Pair, task: Task | str, count: int = 10, *, first: int = 0, order: int = 0,
    cancelled: Callable[[], bool] = lambda: False, **options: Any,
) -> Iterator[Repeated]:  # fmt: skip
    """As `Pair.repeat`."""
    task = named_task(task) if isinstance(task, str) else task
    asked = pair.asked(**options_of(task, options)).seeded()
    inputs = task.inputs(count, order, first)
    prompts = [pair.prompt_ids(prompt_of(pair, task, given)) for given in inputs]
    for number, (given, prompt) in enumerate(zip(inputs, prompts, strict=True), first + 1):
        watched = Watched(pair, asked, prompt)
        made = pair.generate(prompt, cancelled=cancelled, **dict(asked))
        if made.finish_reason == "cancelled":
            return
        yield watched.repeated(task, number, given, made)
