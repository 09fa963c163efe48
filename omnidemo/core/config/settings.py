"""Every setting once: name, type, default, help. Each is read from the environment as `OMNIDEMO_<NAME>`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import SettingsConfigDict

from omnidemo.core.config.answer_options import (
    POLICIES,
    SAMPLING,
    Confidence,
    DraftLength,
    Gamma,
    GenerationConfig,
    LongestDraft,
    Policy,
    Tokens,
)
from omnidemo.core.config.learning_settings import LearningSettings
from omnidemo.core.config.refusals import check_text, refusal

Arithmetic = Literal["float32", "int8"]
ARITHMETIC: Arithmetic = "int8"  # of packed weights on a CPU, where nobody asks for another
MOST_THREADS = 4 * (os.cpu_count() or 1)

DEFAULT = "auto"  # of target and drafter: what the catalogue has for this machine (`models/names.py`)
# models that ship with the project
EMBEDDED_TARGET, DRAFTER, REAL_DRAFTER = "bundled/large", "bundled/drafter", "bundled/drafter-4"


# What Kubernetes sets in every pod beside a Service called omnidemo, or omnidemo-something.
OF_A_SERVICE = re.compile(
    r"OMNIDEMO_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?)", re.I
)


def of_kubernetes(name: str, value: str) -> bool:
    """Whether an environment variable describes a Service of Kubernetes: it is no setting of ours."""
    address = name.upper().endswith("_PORT") and re.match(r"(tcp|udp|sctp)://", value)
    return bool(address or OF_A_SERVICE.fullmatch(name))


USUAL = GenerationConfig.model_fields  # of an answer, whose defaults are those of the app


class Settings(LearningSettings):
    """Settings of the app and the command line. An empty variable counts as not given. `check_environment`
    refuses unknown `OMNIDEMO_*` names."""

    model_config = SettingsConfigDict(env_prefix="OMNIDEMO_", extra="forbid", allow_inf_nan=False)

    # fmt: off
    target: str = Field(DEFAULT, description=
        "Target at start: a model's name (docs/models.md); auto is the first of Qwen2.5-Coder-1.5B-Instruct,"
        " SmolLM2-135M-Instruct and bundled/large that is there and fits the memory.")
    drafter: str = Field(DEFAULT, description=
        "Drafter: a model's name; auto is bundled/drafter for bundled targets, else drafter-4.")
    model_folders: str = Field("", description=
        "More folders with GGUF files, separated by commas.")
    models: str = Field("", description=
        "Folder of fetched models; empty: omnidemo/models in the user's cache folder.")
    method: str = Field("ngram-exact", description="Decoding method at start.")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:N or mps.")
    dtype: str = Field("auto", description=
        "auto, float32, bfloat16 or float16; auto is float32 on a CPU, the model's own elsewhere. On a CPU"
        " the others round the weights, and Llama, Qwen2 and Qwen3 shapes still compute in float32 if there"
        " is room.")
    backend: Literal["auto", "reference"] = Field("auto", description=
        "reference is plain torch, one pass at a time; auto is compiled code on a CPU and CUDA graphs on a"
        " GPU, for models that have them.")
    compact: Literal["auto", "neither"] = Field("auto", description=
        "auto: CPU passes of Llama shapes read a drafter's weights rounded to bfloat16, a target's as its"
        " GGUF file packs them, else in bfloat16 if that is exact; neither: float32.")
    arithmetic: Arithmetic = Field(ARITHMETIC, description=
        "Products with a GGUF target's packed weights on a CPU: int8 keeps them packed and quantizes"
        " activations, which moves probabilities a little; float32 dequantises, which takes four bytes a"
        " weight and more time.")
    threads: int = Field(0, ge=0, le=MOST_THREADS, description=
        "CPU threads of a forward pass; 0: the cores, up to 8, or by the model's size with torch.")
    draft_policy: Literal["auto", Policy] = Field("auto", description=
        "How long a draft gets: " + ", ".join(f"{name} ({words})" for name, (words, _) in POLICIES.items())
        + "; auto is cost, and chance for a repeated task and with *Show every likely guess*.")
    draft_length: DraftLength = Field(USUAL["draft_length"].default, description=
        "Policy `fixed`: drafter tokens per round; 0: plain decoding.")
    longest_draft: LongestDraft = Field(USUAL["longest_draft"].default, description=
        "Other policies: most drafter tokens per round.")
    confidence: Confidence = Field(USUAL["confidence"].default, description=
        "Policy `confidence`: a draft ends below this probability.")
    gamma: Gamma = Field(USUAL["gamma"].default, description=
        "Policy `head`: a draft ends above this probability of a rejection.")
    copying: bool = Field(USUAL["copying"].default, description=
        "Draft from memory, too: the chat and earlier answers.")
    copy_mb: int = Field(4, ge=0, le=1024, description=
        "Most memory of the earlier answers that a line, or a visitor, copies from. Their continuations take"
        " up to 4 times as much, a visitor's half as much, all lines' together 32 times as much.")
    max_new_tokens: Tokens = Field(256, description="Longest answer, in target tokens.")

    storage: Path = Field(Path("storage"), description="Folder of the database and the adapters.")
    database_url: str = Field("", description=
        "URL of a database such as postgresql://user@host/name; empty: SQLite in the storage folder.")
    backup: str = Field("", description=
        "Folder outside the storage for copies of the SQLite database and adapters, such as /data on a"
        " Space.")
    keep_text: bool = Field(True, description=
        "Store prompts and answers in the history; false: figures alone. A session can opt out of either.")
    adapters_kept: int = Field(20, ge=1, le=10_000, description=
        "Adapter versions kept on disk per line.")
    cache_size: int = Field(20_000, ge=0, le=10_000_000, description=
        "Most n-grams kept per pair; 0 switches merging off.")
    cache_policy: Literal["lfu", "lru"] = Field("lfu", description="Which n-gram leaves a full cache first.")
    conversations_mb: int = Field(1024, ge=0, le=1_048_576, description=
        "Most memory of a pair's idle conversations, at most 8 of them; the newest always stays.")
    warm_start: bool = Field(False, description=
        "Fill an empty n-gram cache at load with every target token that can be spelled.")

    domain: str = Field("default", description=
        "Adapter line that answers use and teach; auto chooses one by the prompt.")
    lines_in_memory: int = Field(4, ge=1, le=32, description=
        "Adapter lines of a pair kept in memory.")

    measure_speed: bool = Field(True, description=
        "Measure how much faster guessing made the newest answer, while no request is running.")
    host: str = Field("127.0.0.1", description=
        "Address the app listens on; 0.0.0.0 or :: (IPv6) for every interface.")
    port: int = Field(7860, ge=0, le=65_535, description="Port of the app; 0 picks a free one.")
    share: bool = Field(False, description="Ask Gradio for a public link.")
    auth: str = Field("", description="user:password that the app asks for.")
    queue_size: int = Field(32, ge=1, le=10_000, description=
        "Most requests that wait, on the page and at the endpoint each; more are refused.")
    public: Literal["auto", "true", "false"] = Field("auto", description=
        "Whether strangers may come; auto: on a Space, shared, or reached by more than the loopback"
        " (docs/spaces.md).")
    allowed_hosts: str = Field("", description=
        "Names besides localhost by which the app may be reached, separated by commas.")
    operator_key: str = Field("", repr=False, description=
        "Password of a public app's operator; empty: there is none.")
    api_keys: str = Field("", repr=False, description=
        "Keys of the endpoint, separated by commas; empty: this machine only, nobody in a public app or one"
        " with a password.")
    api_origins: str = Field("", description=
        "Origins of desktop programs and browser extensions that may call the endpoint, separated by commas,"
        " such as app://obsidian.md.")
    upload_mb: int = Field(20, ge=1, description="Largest file that may be uploaded.")
    visitor_requests: int = Field(600, ge=1, description="Answers for one visitor in an hour.")
    visitor_tokens: int = Field(150_000, ge=1, description="Tokens for one visitor in an hour.")
    visitor_rows: int = Field(200, ge=1, description=
        "Requests in a visitor's history; older ones are deleted.")
    visitor_hours: float = Field(24.0, gt=0, description="Hours that a visitor's history is kept.")
    visitor_minutes: float = Field(60.0, gt=0, description=
        "Minutes unused after which a visitor's adapter and n-grams go.")
    visitor_lines: int = Field(32, ge=1, description=
        "Most visitors with an adapter of their own; the one unused for longest goes.")
    public_requests: int = Field(6000, ge=1, description=
        "Answers for all visitors together in an hour.")
    public_tokens: int = Field(1_500_000, ge=1, description=
        "Tokens for all visitors together in an hour.")
    public_rows: int = Field(5000, ge=1, description=
        "Requests in the history of all visitors together.")
    trust_hub: bool = Field(True, description=
        "Allow downloads of models (safetensors and GGUF only, no remote code).")
    # fmt: on

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: Any, init_settings: Any, env_settings: Any, *others: Any, **more: Any
    ) -> tuple[Any, ...]:
        env_settings.env_vars = {
            name: value
            for name, value in env_settings.env_vars.items()
            if value.strip() and not of_kubernetes(name, value)
        }
        return init_settings, env_settings

    @field_validator("*", mode="before")
    @classmethod
    def _is_text(cls, value: Any) -> Any:
        # a file of settings with Windows' line ends leaves \r after each value
        return check_text(value).rstrip("\r\n") if isinstance(value, str) else value

    @field_validator("host")
    @classmethod
    def _address(cls, value: str) -> str:
        return value.strip().removeprefix("[").removesuffix("]")

    @field_validator("storage", "backup")
    @classmethod
    def _at_home(cls, value: Any) -> Any:
        return type(value)(os.path.expanduser(value))

    @field_validator("api_origins")
    @classmethod
    def _origins(cls, value: str) -> str:
        listed = [part.strip().rstrip("/").lower() for part in value.split(",") if part.strip()]
        for wrong in (one for one in listed if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s/?#*@]+", one)):
            raise ValueError(f"{wrong[:80]} is no origin of one program; write such as app://obsidian.md")
        return ",".join(listed)

    @field_validator("backup")
    @classmethod
    def _outside(cls, value: str, info: ValidationInfo) -> str:
        copy, storage = Path(value).resolve(), info.data.get("storage")
        if value and storage and storage.resolve() in (copy, *copy.parents):
            raise ValueError(
                f"a copy in the storage folder ({storage}) would be lost with it; name a folder outside it"
            )
        return value

    @property
    def folders(self) -> list[str]:
        """Folders with GGUF files, beside those of programs and the user's cache folder. A list of lines, as
        `with_files` in `models/names.py` writes it, may contain the other separators."""
        between = "\n" if "\n" in self.model_folders else f"[,{re.escape(os.pathsep)}]"
        listed = [part.strip() for part in re.split(between, self.model_folders) if part.strip()]
        return list(dict.fromkeys([*listed, *filter(None, [self.models])]))

    @property
    def packed(self) -> bool:
        """Whether a target's passes on a CPU read a GGUF file's packed weights, in int8."""
        wide = self.backend == "reference" or self.dtype not in ("auto", "float32")
        return self.arithmetic == "int8" and self.compact == "auto" and not wide

    def policy(self, likely: bool = False) -> Policy:
        """The draft policy of an answer that names none. `auto` drafts only where that is faster by its
        prices; where a visitor wants every `likely` guess it drafts wherever a guess is likely to be
        right."""
        if self.draft_policy != "auto":
            return self.draft_policy
        return "chance" if likely else "cost"

    @property
    def drafting(self) -> dict[str, Any]:
        """DRAFTING by name, for an answer that names none of it and is not the page's."""
        return {name: getattr(self, name) for name in DRAFTING} | {"draft_policy": self.policy()}

    @property
    def loading(self) -> dict[str, Any]:
        """The settings that `load_model` takes of every model."""
        taken = {"dtype": self.dtype, "hub": self.trust_hub, "models": self.models}
        return taken | {"fast": self.backend != "reference"}

    @property
    def limits(self) -> dict[str, Any]:
        """The settings that a `Pair` takes."""
        taken = {"cache_size": self.cache_size, "cache_policy": self.cache_policy, "top_k": self.top_k_traces}
        return taken | {"conversations_mb": self.conversations_mb, "copy_mb": self.copy_mb}


def changed(settings: Settings, changes: Mapping[str, Any], names: Collection[str]) -> Settings:
    """The settings with changes of these names. ValueError, one sentence, for another name or an impossible
    value."""
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


# options of an answer whose defaults are settings
DRAFTING = tuple(
    name
    for name in GenerationConfig.model_fields
    if name in Settings.model_fields and name not in ("method", "max_new_tokens", "domain")
)


def otherwise(name: str) -> str:
    """The value of an option that a command does not give, in words."""
    if name in SAMPLING:
        return "the target's own"
    if name in Settings.model_fields:
        return f"OMNIDEMO_{name.upper()}, else {Settings.model_fields[name].default}"
    default = GenerationConfig.model_fields[name].default
    return "" if default in (None, ()) else str(default)
