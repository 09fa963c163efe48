"""The table of options: every option of an answer, once. Its field has name, type, limits and default, its
`Option` the words and the places that show it. Page, command line, endpoint and MCP are made from it
(docs/contributing.md, "An option of an answer")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import randbelow
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from omnidemo.core.config.answer_form import FORMS, check_form, form_of
from omnidemo.core.config.refusals import check_text, refusal

COOLEST = 1e-3  # a lower temperature counts as 0: far below it a division leaves float32


@dataclass(frozen=True, slots=True)
class Option:
    """The words of an option. `help`: a clause without a full stop, for command line and MCP. `label`, `hint`
    and `step`: of its field on the page. `shown`: the places that show it: `command` line, `endpoint` (a
    field of the request), `own` (a field of the request's `omnidemo`), `mcp`, `page`, `history`."""

    help: str = ""
    label: str = ""
    hint: str = ""
    step: float = 1
    shown: str = ""


def _texts(value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        raise ValueError(
            "a list of texts, such as ['###']; a text alone would end an answer at each of its letters"
        )
    return value


def _temperature(value: float) -> float:
    return 0.0 if value < COOLEST else value  # how some programs ask for greedy decoding


# types with limits, which the settings share
Tokens = Annotated[int, Field(ge=1, le=1_000_000)]
Policy = Literal["fixed", "confidence", "chance", "cost", "head"]
# of each draft policy: how far it guesses, in words, and the options whose numbers it goes by
POLICIES: Mapping[Policy, tuple[str, tuple[str, ...]]] = {
    "fixed": ("a fixed number of tokens", ("draft_length",)),
    "confidence": ("as long as the drafter is sure", ("longest_draft", "confidence")),
    "chance": ("as long as it is likely to be right", ("longest_draft",)),
    "cost": ("what pays for itself", ("longest_draft",)),
    "head": ("by the acceptance head", ("longest_draft", "gamma")),
}
DraftLength = Annotated[int, Field(ge=0, le=32)]
LongestDraft = Annotated[int, Field(ge=1, le=32)]
Confidence = Annotated[float, Field(ge=0, le=1)]
Gamma = Annotated[float, Field(gt=0, lt=1)]
Texts = tuple[Annotated[str, AfterValidator(check_text)], ...]
# of a manner; None stands for the target's own
Temperature = Annotated[float, Field(ge=0, le=100), AfterValidator(_temperature)]
TopP = Annotated[float, Field(gt=0, le=1)]
TopK = Annotated[int, Field(ge=0, le=10_000_000)]
MinP = Annotated[float, Field(ge=0, le=1)]
Penalty = Annotated[float, Field(ge=0.01, le=100)]


@dataclass(frozen=True, slots=True)
class Manner:
    """A target's sampling defaults: the values of `SamplingParams` that a request leaves out. By default
    greedy, with every filter off. `penalty_scope` goes with the penalty. `source`: where the numbers come
    from, one sentence."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    penalty_scope: Literal["text", "answer"] = "text"
    source: str = ""

    @property
    def options(self) -> dict[str, float]:
        """The numbers as options of `GenerationConfig`."""
        return {name: getattr(self, name) for name in SAMPLING}


SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")  # the numbers of a manner
GREEDY = Manner()
EVERYWHERE = "command endpoint mcp page history"


class GenerationConfig(BaseModel):
    """How one answer is made, for every way in: API, page, endpoint, MCP and command line.

    method: a name of `omnidemo.decoding.methods.METHODS`, or "auto" for the one that suits the pair.
    temperature: 0 is greedy. It, `top_p`, `top_k`, `min_p` and `repetition_penalty` are those of
    `SamplingParams`. Each that is None comes from the target's `Manner`. penalty_scope: "text" penalises
    tokens of prompt and answer, "answer" those of the answer alone. draft_policy: "fixed" drafts
    `draft_length` drafter tokens in each round, the others up to `longest_draft`: "confidence" while the
    drafter gives its tokens at least `confidence`, "head" while the acceptance head finds a rejection no
    likelier than `gamma`, "chance" while the whole draft is likely enough to be accepted, "cost" while it
    pays, and not at all where plain decoding is faster. domain: the adapter line that drafts, and that the
    answer may teach. seed: fixes the text above temperature 0: the same by every lossless method, draft
    policy and adapter version as by plain decoding, and after any learning, but for near-ties of rounding
    (`SharedNoise` in `decoding/randomness.py`). None: other numbers each time. By lossy methods and
    `block-verification` it repeats a run only while adapter and n-grams stay the same, and not with "cost".
    stop: strings after which the answer ends; they stay in it. learn: whether the answer may feed the n-gram
    cache and the learners. reuse: go on from a conversation that begins like the prompt. copying: whether
    drafts may also be copied, from prompt and answer and, with `learn` or `recall`, from earlier answers of
    the domain (the method "copy" always does). The policy decides for each round; "cost" by chances and
    prices. remember: whether later answers may copy from this one, as they may where `learn` is on too. form:
    what the answer is held to, as JSON text of one entry. Instead of it give one of `schema` (a JSON schema),
    `regex`, `choices` (texts, one of which is the answer), `json_object` (True: any JSON object) or `grammar`
    (GBNF or Lark).

    Numbers are read first and compared then, so "20" is 20 and "1e999" is refused. Make one with `of`, whose
    ValueError is one sentence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    # fmt: off
    method: Annotated[str, Option("Decoding method", shown="command own")] = "ngram-exact"
    max_new_tokens: Annotated[Tokens, Option(
        "Longest answer, in target tokens", "Longest answer", "Longest answer, in target tokens.",
        shown="command page history",
    )] = 128
    temperature: Annotated[Temperature | None, Option(
        "0 is greedy decoding",
        "Temperature", "0 always takes the most probable token; higher is more varied.", 0.05, EVERYWHERE,
    )] = None
    top_p: Annotated[TopP | None, Option(
        "Keep the likeliest tokens of this mass", "Top-p",
        "Only the most probable tokens that together reach this share may be drawn; 1 allows all.",
        0.05, EVERYWHERE,
    )] = None
    top_k: Annotated[TopK | None, Option(
        "Keep so many likeliest tokens; 0 keeps all",
        "Top-k", "Only so many of the most probable tokens may be drawn; 0 allows all.", 1, EVERYWHERE,
    )] = None
    min_p: Annotated[MinP | None, Option(
        "Leave out tokens below this share of the likeliest one", "Min-p",
        "Tokens below this share of the most probable one's chance are left out; 0 allows all.",
        0.01, EVERYWHERE,
    )] = None
    repetition_penalty: Annotated[Penalty | None, Option(
        "Above 1: words of the text so far become less likely", "Repetition penalty",
        "Above 1, tokens of the text so far get less probable; 1 is off.", 0.05, EVERYWHERE,
    )] = None
    penalty_scope: Literal["text", "answer"] | None = None
    draft_policy: Annotated[Policy, Option(
        "Which rule says how far to guess", "How far to guess ahead",
        "A guess costs time. “What pays for itself” makes no guess that costs more than it saves.",
        shown="page history",
    )] = "fixed"
    draft_length: Annotated[DraftLength, Option(
        "Drafter tokens per round", "Draft length",
        "Guesses of the small model in each round of “a fixed number of tokens”; 0 makes none.", 1,
        shown="command page history",
    )] = 4
    longest_draft: Annotated[LongestDraft, Option(
        "Most drafter tokens per round", "Longest draft",
        "Most guesses of the small model in a round of the other rules.", 1, shown="page history",
    )] = 14
    confidence: Annotated[Confidence, Option(shown="history")] = 0.4
    gamma: Annotated[Gamma, Option(shown="history")] = 0.7
    domain: str = Field("default", max_length=1000)
    seed: Annotated[int | None, Field(ge=0, lt=2**63), Option(
        "Repeats a run above temperature 0", "Seed",
        "The same seed gives the same text, with guessing or without, whatever was learned; empty draws a"
        " new one.",
        shown="command page history",
    )] = None
    stop: Annotated[Texts, BeforeValidator(_texts), Option(
        "End after this text; may be given several times", shown="command",
    )] = Field((), max_length=64)
    learn: Annotated[bool, Option(
        label="Learn from this chat",
        hint="The drafter trains on the answers of this chat, while learning is switched on.",
        shown="own page",
    )] = True
    reuse: bool = True
    recall: bool = False
    copying: Annotated[bool, Option(
        "Whether drafts may also be copied from the text", "Copy, too",
        "What stands in the chat or in an earlier answer is proposed again where the text goes on alike.",
        shown="command own mcp page history",
    )] = True
    remember: bool = True
    form: Annotated[str, AfterValidator(check_form)] | None = None
    # fmt: on

    @model_validator(mode="before")
    @classmethod
    def _fold(cls, given: Any) -> Any:
        """Make `form` of the option that stands for it."""
        kinds = [kind for kind in FORMS if isinstance(given, Mapping) and given.get(kind) is not None]
        rest = {key: value for key, value in given.items() if key not in FORMS} if kinds else given
        if kinds:
            if len(kinds) > 1 or rest.get("form") is not None:
                raise ValueError(f"one form of an answer, not {' and '.join([*kinds, 'form'][:2])}")
            rest["form"] = form_of(kinds[0], given[kinds[0]])
        return rest

    @property
    def drafting(self) -> str:
        """Draft policy and its numbers, in a word."""
        numbers = [f"{getattr(self, name):g}" for name in POLICIES[self.draft_policy][1]]
        return "-".join([self.draft_policy, *numbers])

    def seeded(self) -> GenerationConfig:
        """With a new seed where there is none, so that the answer can be repeated; unchanged at temperature
        0, where no number is drawn."""
        return (
            self
            if self.seed is not None or self.temperature == 0.0
            else self.model_copy(update={"seed": randbelow(2**31)})
        )

    @classmethod
    def of(cls, **options: Any) -> GenerationConfig:
        """The configuration with these options. ValueError, one sentence that names the option, for an
        impossible value."""
        try:
            return cls(**options)
        except ValidationError as error:
            raise ValueError(refusal(error)) from None

    def in_manner(self, manner: Manner) -> GenerationConfig:
        """The same with the manner's numbers for those that are None."""
        own = manner.options | {"penalty_scope": manner.penalty_scope}
        return self.model_copy(
            update={name: value for name, value in own.items() if getattr(self, name) is None}
        )


def option_of(field: FieldInfo) -> Option:
    """The words of an option; without words it is not shown."""
    return next((part for part in field.metadata if isinstance(part, Option)), Option())


def option_named(name: str) -> Option:
    return option_of(GenerationConfig.model_fields[name])


def shown_by(way: str, table: type[BaseModel] = GenerationConfig) -> Mapping[str, FieldInfo]:
    """The options shown in a place (`Option.shown`), by name, in the order of the table."""
    fields = table.model_fields.items()
    return {name: field for name, field in fields if way in option_of(field).shown.split()}


def type_of(field: FieldInfo) -> Any:
    """The type of an option with its limits, for another form."""
    return Annotated.__class_getitem__((field.annotation, *field.metadata))  # type: ignore[attr-defined]
