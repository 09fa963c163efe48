"""Every setting once: name, type, default, help. Each is read from the environment as `OMNIDEMO_<NAME>`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import randbelow
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

MOST_THREADS = 4 * (os.cpu_count() or 1)  # more than cores only wait for each other

DEFAULT = "auto"  # of target and drafter: what the catalogue has for this machine (`models/names.py`)
# models that ship with the project
EMBEDDED_TARGET, DRAFTER, REAL_DRAFTER = "bundled/large", "bundled/drafter", "bundled/drafter-2"


def check_text(text: str) -> str:
    """The text. ValueError where it holds half of a surrogate pair, as bytes that are no UTF-8 become on a
    command line."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text holds half a character (a lone surrogate) at position {error.start}; remove it"
        ) from None
    return text


class Settings(BaseSettings):
    """Settings of the app and the command line. Unknown `OMNIDEMO_*` names are refused by
    `check_environment`."""

    model_config = SettingsConfigDict(env_prefix="OMNIDEMO_", extra="forbid", allow_inf_nan=False)

    target: str = Field(
        DEFAULT,
        description=(
            "Target model at start: auto, bundled name, Hub id, local folder, or a GGUF file by path or name;"
            " auto is SmolLM2-135M-Instruct where its file is there, else bundled/large."
        ),
    )
    drafter: str = Field(
        DEFAULT,
        description=(
            "Drafter: auto, bundled name, Hub id or folder; auto is bundled/drafter for bundled targets, else"
            " drafter-2."
        ),
    )
    model_folders: str = Field(
        "", description="Folders in which GGUF files are looked for too, with commas between."
    )
    method: str = Field("ngram-exact", description="Decoding method at start.")
    device: str = Field(
        "auto", description="auto, cpu, cuda, cuda:N, mps, or a device map such as `balanced`."
    )
    dtype: str = Field(
        "auto",
        description=(
            "auto, float32, bfloat16 or float16; auto is float32 on a CPU, the model's own elsewhere. On a"
            " CPU the others round the weights; Llama, Qwen2 and Qwen3 shapes compute in float32 where there"
            " is room."
        ),
    )
    backend: Literal["auto", "reference", "cpu", "cuda"] = Field(
        "auto",
        description=(
            "What makes the rounds: reference is plain torch, one pass at a time; cpu is compiled, cuda"
            " recorded code; auto takes what is there."
        ),
    )
    quantization: Literal["", "4bit", "8bit"] = Field(
        "", description="Weights of the target through bitsandbytes; CUDA only, not on ZeroGPU."
    )
    compact: Literal["auto", "drafter", "both", "neither"] = Field(
        "auto",
        description=(
            "Whose CPU passes run over fewer bytes (Llama shapes): the drafter's weights are rounded to"
            " bfloat16, a target's read as its GGUF file packs them, or in bfloat16 where that is exact."
            " auto: the drafter's, and a target's where a probe finds that it decodes faster so."
        ),
    )
    threads: int = Field(
        0,
        ge=0,
        le=MOST_THREADS,
        description=(
            "CPU threads of a forward pass; 0 picks the cores, up to 8, or by the model's size where torch"
            " computes."
        ),
    )
    draft_policy: Literal["fixed", "confidence", "cost", "head"] = Field(
        "cost",
        description=(
            "How long a draft gets: fixed, as long as the drafter is sure, what pays for itself, or by the"
            " acceptance head."
        ),
    )
    draft_length: int = Field(4, ge=0, le=32, description="Drafter tokens per round of the policy `fixed`.")
    longest_draft: int = Field(
        14, ge=1, le=32, description="Most drafter tokens per round of the other policies."
    )
    confidence: float = Field(
        0.4, ge=0, le=1, description="Policy `confidence`: least probability that lets a draft go on."
    )
    gamma: float = Field(
        0.7,
        gt=0,
        lt=1,
        description="Policy `head`: a draft ends when a rejection becomes likelier than this.",
    )
    copying: bool = Field(
        True, description="Whether drafts may also be copied from the chat and from earlier answers."
    )
    copy_mb: int = Field(
        4,
        ge=0,
        le=1024,
        description="Most memory of the earlier answers that a line, or a visitor, copies from.",
    )
    max_new_tokens: int = Field(256, ge=1, le=1_000_000, description="Longest answer, in target tokens.")

    storage: Path = Field(Path("storage"), description="Folder of the database and the adapters.")
    database_url: str = Field(
        "",
        description=(
            "Database: SQLite inside the storage folder, or an URL such as postgresql://user@host/name."
        ),
    )
    backup: str = Field(
        "",
        description=(
            "Folder that receives a copy of the SQLite database and adapters, such as /data on a Space."
        ),
    )
    keep_text: bool = Field(
        True,
        description=(
            "Store prompts and answers in the history; false: figures alone (sessions can opt out of either"
            " by themselves)."
        ),
    )
    adapters_kept: int = Field(
        20, ge=1, le=10_000, description="Adapter versions kept on disk per line; older files are pruned."
    )
    cache_size: int = Field(
        20_000, ge=0, le=10_000_000, description="Most n-grams kept per pair; 0 switches merging off."
    )
    cache_policy: Literal["lfu", "lru"] = Field("lfu", description="Which n-gram leaves a full cache first.")
    conversations_mb: int = Field(
        1024,
        ge=0,
        le=1_048_576,
        description=(
            "Most memory of a pair's idle conversations, up to 8; the newest stays, however long it is."
        ),
    )
    warm_start: bool = Field(
        False,
        description="Fill the n-gram cache with every spellable target token at a load that finds it empty.",
    )

    training: Literal["idle", "concurrent", "inline", "off"] = Field(
        "idle",
        description=(
            "When the drafter learns: while nobody waits, beside the answers, at the end of an answer, never."
        ),
    )
    patience: float = Field(
        20.0,
        ge=0,
        le=1e6,
        description="Training `idle`: seconds that answers without a pause can hold an update up.",
    )
    cost_aware: bool = Field(
        True, description="Learn only while the expected gain in speed pays for the training."
    )
    update_interval: int = Field(4, ge=1, le=1_000_000, description="Requests between two training updates.")
    steps_per_update: int = Field(
        12, ge=1, le=1_000_000, description="Optimiser steps of one update; by default the drafter's."
    )
    batch_size: int = Field(8, ge=1, le=1024, description="Requests in one optimiser step.")
    learning_rate: float = Field(
        5e-4, gt=0, le=1, description="AdamW learning rate; by default the drafter's in the catalogue."
    )
    schedule: Literal["constant", "cosine"] = Field(
        "constant", description="Learning rate over the steps of a line."
    )
    schedule_steps: int = Field(
        600, ge=1, le=100_000_000, description="Steps over which `cosine` falls to a tenth."
    )
    lora_rank: int = Field(128, ge=0, le=1024, description="Rank of the LoRA adapter; 0 trains all weights.")
    divergence: Literal["forward", "reverse", "jsd", "tv", "acceptance", "nll"] = Field(
        "acceptance",
        description=(
            "Loss on each first token: KL divergence, Jensen-Shannon, total variation, −log acceptance or"
            " nll."
        ),
    )
    jsd_beta: float = Field(0.5, gt=0, lt=1, description="β of the Jensen-Shannon divergence.")
    ngram_loss: Literal["nll", "dynamic", "kl"] = Field(
        "nll",
        description=(
            "Loss on n-grams: log-likelihood, weighted by the target's probability, or the approximate KL"
            " (equation 2)."
        ),
    )
    ngram_weight: float = Field(0.2, ge=0, le=1000, description="λ: weight of the n-gram loss.")
    head: Literal["off", "joint", "interleaved"] = Field(
        "interleaved", description="How the acceptance head is trained."
    )
    top_k_traces: int = Field(
        128, ge=1, le=65_536, description="Target probabilities kept per answer position for training."
    )
    buffer_positions: Literal["all", "errors"] = Field(
        "all", description="Learn from every position, or where the drafter was wrong."
    )
    buffer_order: Literal["mixed", "newest", "informative", "uniform"] = Field(
        "mixed",
        description=(
            "Which answers an update draws: half new and half old, the newest, mostly the badly guessed, or"
            " any."
        ),
    )
    buffer_mb: int = Field(64, ge=1, le=65_536, description="Most memory of the replay buffer.")

    domain: str = Field(
        "default", description="Adapter line that answers use and teach; auto chooses one by the prompt."
    )
    lines_in_memory: int = Field(
        4, ge=1, le=32, description="Adapter lines of a pair kept in memory; the others wait on disk."
    )

    measure_speed: bool = Field(
        True, description="While nobody waits, measure how much faster guessing made the newest answer."
    )
    host: str = Field("127.0.0.1", description="Address the app listens on; 0.0.0.0 for every interface.")
    port: int = Field(7860, ge=0, le=65_535, description="Port of the app; 0 picks a free one.")
    share: bool = Field(False, description="Ask Gradio for a public link.")
    auth: str = Field("", description="user:password that the app asks for; empty: none.")
    queue_size: int = Field(
        32,
        ge=1,
        le=10_000,
        description=(
            "Most requests that wait, on the page and at the endpoint each; more get a clear refusal."
        ),
    )
    public: Literal["auto", "true", "false"] = Field(
        "auto",
        description=(
            "Whether strangers may come; auto: on a Space, shared, or reached by another way than this"
            " machine's loopback."
        ),
    )
    allowed_hosts: str = Field(
        "", description="Names beside localhost by which the app may be reached, with commas between."
    )
    operator_key: str = Field(
        "",
        repr=False,
        description="Password for what concerns everybody in a public app; empty: nobody may do it.",
    )
    api_keys: str = Field(
        "",
        repr=False,
        description=(
            "Keys of the endpoint, with commas between; empty: this machine only, and nobody in a public app"
            " or one with a password."
        ),
    )
    upload_mb: int = Field(20, ge=1, description="Largest file that may be uploaded.")
    visitor_requests: int = Field(600, ge=1, description="Public: answers for one visitor in an hour.")
    visitor_tokens: int = Field(150_000, ge=1, description="Public: tokens for one visitor in an hour.")
    visitor_rows: int = Field(
        200, ge=1, description="Public: requests in a visitor's history; older ones are deleted."
    )
    visitor_hours: float = Field(24.0, gt=0, description="Public: hours that a visitor's history is kept.")
    visitor_minutes: float = Field(
        60.0, gt=0, description="Public: minutes unused after which a visitor's adapter and n-grams go."
    )
    visitor_lines: int = Field(
        32,
        ge=1,
        description=(
            "Public: visitors with an adapter of their own; of more, the one unused for longest goes."
        ),
    )
    public_requests: int = Field(
        6000, ge=1, description="Public: answers for all visitors together in an hour."
    )
    public_tokens: int = Field(
        1_500_000, ge=1, description="Public: tokens for all visitors together in an hour."
    )
    public_rows: int = Field(
        5000, ge=1, description="Public: requests in the history of all visitors together."
    )
    trust_hub: bool = Field(
        True, description="Allow downloads from the Hugging Face Hub (safetensors only, no remote code)."
    )

    @field_validator("*", mode="before")
    @classmethod
    def _is_text(cls, value: Any) -> Any:
        return check_text(value) if isinstance(value, str) else value

    @property
    def limits(self) -> dict[str, Any]:
        """What a `Pair` takes of the settings."""
        taken = {"cache_size": self.cache_size, "cache_policy": self.cache_policy, "top_k": self.top_k_traces}
        return taken | {"conversations_mb": self.conversations_mb, "copy_mb": self.copy_mb}


COOLEST = 1e-3  # least temperature but 0: far below it a division leaves float32


def _texts(value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        raise ValueError(
            "a list of texts, such as ['###']; a text alone would end an answer at each of its letters"
        )
    return value


Texts = tuple[Annotated[str, AfterValidator(check_text)], ...]


def _temperature(value: float) -> float:
    if 0 < value < COOLEST:
        raise ValueError(f"0, which is greedy decoding, or {COOLEST:g} and more")
    return value


@dataclass(frozen=True, slots=True)
class Manner:
    """How a model is made to write: what holds of `SamplingParams` where a request says nothing; by default
    greedy, with nothing else on. `penalty_scope` goes with the penalty. `source`: one sentence for people
    that says where the numbers come from."""

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


class GenerationConfig(BaseModel):
    """How one answer is made, for every way in: API, page, endpoint, MCP and command line.

    method: a name of `omnidemo.methods.METHODS`, or "auto" for the one that suits the pair. temperature: 0 is
    greedy. It, `top_p`, `top_k`, `min_p` and `repetition_penalty` are those of `SamplingParams`; each that is
    None is as
        the target's own manner has it. penalty_scope: "text" penalises tokens of prompt and answer, "answer"
        those of the answer alone.
    draft_policy: "fixed" drafts `draft_length` drafter tokens in each round, the others up to
    `longest_draft`: "confidence" while the
        drafter gives its tokens at least `confidence`, "head" while the acceptance head finds a rejection no
        likelier than `gamma`, "cost" while it pays, and not at all where plain decoding is faster.
    domain: the adapter line that drafts, and that the answer may teach. seed: fixes the text above
    temperature 0: the same by every lossless method, draft policy and adapter version as by plain decoding,
    and
        after any learning, but for near-ties of rounding (`SharedNoise` in `decoding/randomness.py`). None:
        numbers that never come again. By lossy methods and `block-verification` it repeats a run only while
        adapter and n-grams stay the same, and not with "cost".
    stop: strings after which the answer ends; they stay in it. learn: whether the answer may feed the n-gram
    cache and the learners. reuse: go on from a conversation that begins like the prompt. copying: whether
    drafts may also be copied, from prompt and answer and, with `learn`, from earlier answers of the domain
    (the method
        "copy" always does). The policy decides for each round; "cost" by measured times.
    remember: whether later answers may copy from this one, as they may where `learn` is on too. probe_every:
    one in so many rounds goes without a draft, in blocks of several (`draft_policy.stretch`); the pace of
        plain rounds is known from them (0: none; "cost" has its own). The probes of `probes/` are something
        else.

    Numbers are read first and compared then, so "20" is 20 and "1e999" is refused. Make one with `of`, whose
    ValueError is one sentence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    method: str = "ngram-exact"
    max_new_tokens: int = Field(128, ge=1, le=1_000_000)
    temperature: Annotated[float, Field(ge=0, le=100), AfterValidator(_temperature)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(ge=0.01, le=100)] | None = None
    penalty_scope: Literal["text", "answer"] | None = None
    draft_policy: Literal["fixed", "confidence", "cost", "head"] = "fixed"
    draft_length: int = Field(4, ge=0, le=32)
    longest_draft: int = Field(14, ge=1, le=32)
    confidence: float = Field(0.4, ge=0, le=1)
    gamma: float = Field(0.7, gt=0, lt=1)
    domain: str = Field("default", max_length=1000)
    seed: int | None = Field(None, ge=0, lt=2**63)
    stop: Annotated[Texts, BeforeValidator(_texts)] = Field((), max_length=64)
    learn: bool = True
    reuse: bool = True
    probe_every: int = Field(0, ge=0, le=1_000_000)
    copying: bool = True
    remember: bool = True

    def seeded(self) -> GenerationConfig:
        """With a new seed where there is none, so that the answer can be repeated; as it is at temperature 0,
        where no number is drawn."""
        return (
            self
            if self.seed is not None or self.temperature == 0.0
            else self.model_copy(update={"seed": randbelow(2**31)})
        )

    @classmethod
    def of(cls, **options: Any) -> GenerationConfig:
        """The configuration with these options. ValueError, one sentence that names the option, for what is
        not possible."""
        try:
            return cls(**options)
        except ValidationError as error:
            raise ValueError(refusal(error)) from None

    def in_manner(self, manner: Manner) -> GenerationConfig:
        """The same with numbers: those that were not given are the manner's."""
        own = manner.options | {"penalty_scope": manner.penalty_scope}
        return self.model_copy(
            update={name: value for name, value in own.items() if getattr(self, name) is None}
        )


def changed(settings: Settings, changes: Mapping[str, Any], names: Sequence[str]) -> Settings:
    """The settings with changes of these names. ValueError, one sentence, for another name or a value that is
    not possible."""
    wrong = sorted(set(changes) - set(names))
    if wrong:
        raise ValueError(
            f"{', '.join(wrong)[:200]} cannot be changed while the app runs; choose from"
            f" {', '.join(sorted(names))}."
        )
    try:
        return Settings.model_validate(settings.model_dump(exclude_unset=True) | dict(changes))
    except ValidationError as error:
        raise ValueError(refusal(error) + ".") from None


def refusal(error: ValidationError, name: str = "") -> str:
    """The first thing that is wrong, as one sentence; `name` is what the option is called where it is not its
    own name."""
    first = error.errors(include_url=False)[0]
    name = name or str(first["loc"][0] if first["loc"] else "the configuration")
    if first["type"] == "extra_forbidden":
        return f"there is no option {name[:40]}"
    said = re.sub(
        "^Value error, (?!the text)",
        "it should be ",
        re.sub("^(Input|String|List|Tuple) ", "it ", first["msg"]),
    )
    shown = repr(first["input"])
    return (
        f"{name} = {shown if len(shown) <= 40 else shown[:37] + '...'} is not possible:"
        f" {said.removeprefix('Value error, ')}"
    )
