"""Our methods beside `transformers`' assisted generation: the same weights, prompts, dtype and threads, in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer, GenerationConfig
from transformers.utils import logging

from omnidemo.backends.runner import overwrite_named
from omnidemo.bench.compare_methods import Spread, check_prompts, sheet
from omnidemo.config import Settings
from omnidemo.decoding.contexts import common_prefix
from omnidemo.methods import make_method
from omnidemo.models.load import LanguageModel
from omnidemo.models.read_weights import read_model
from omnidemo.pair import Pair
from omnidemo.serving.comparison import BASELINE
from omnidemo.serving.pair_loading import build_measured_pair

PLAIN, ASSISTED, DEFAULTS, LOOKUP = "transformers", "transformers-assisted", "transformers-assisted-defaults", "transformers-prompt-lookup"
PEER = (PLAIN, ASSISTED, DEFAULTS, LOOKUP)
GREEDY, SAMPLED, LAWS = "greedy", "sampled", ("first token", "second token")  # kinds of rows
LAW_PROMPTS = 2
EXPECTED = 5.0  # fewest expected samples of a χ² cell; rarer tokens share one
HEADINGS = ("decoding", "exact", "acceptance", "tokens/pass", "tokens/s", "× transformers", "× own plain")

Progress = Callable[[int, int], None]  # (done, of)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the CSV. kind "greedy" or "sampled" (temperature 1): one answer; "first token" and "second token": a χ² test of
    `samples` drawn tokens against the target's law, behind a beginning of the answer.

    seconds: the whole call, prompt included. speedup, own_speedup: ratios of tokens/s to `transformers`' plain generation and to
    plain decoding by the same engine, on the same prompt. target_passes: forward passes that wrote tokens. drafted: tokens drawn
    from the drafter. acceptance_rate: as in `core.metrics`. error: why the peer could not answer.
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


@dataclass(frozen=True, slots=True)
class Answer:
    """ids without the prompt; `rounds`: (proposed, accepted) target tokens of each target pass; drafted: drafter tokens drawn.

    The peer also tells `passes`, its own, and `first_seconds`, when the first token was written.
    """

    ids: Sequence[int]
    seconds: float
    rounds: Sequence[tuple[int, int]]
    drafted: int
    passes: Sequence[PeerPass] = ()
    first_seconds: float | None = None


@dataclass(slots=True)
class PeerPass:
    """A forward pass of the peer: by which model, the positions in its cache before, how many tokens it read, and when it ran. Where a
    device works by itself, the seconds are those of the launch."""

    drafter: bool
    start: int
    ids: Tensor  # [1, T]
    began: float
    seconds: float = 0.0


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


class Peer:
    """`transformers`' generation on the pair's weights, which are loaded again as plain modules."""

    def __init__(self, pair: Pair, draft_length: int, target: Any = None, weights: Mapping[str, Tensor] | None = None) -> None:
        """`target`: the module of another peer of the same pair, to be shared. `weights`: the drafter's; default: those that draft now."""
        self.draft_length = draft_length
        self.target = target if target is not None else _module(pair.target, pair.target.runner.weights())
        ends = list(pair.target.vocabulary.roles.get("end", ())) or None
        self.target.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=ends[0] if ends else 0)
        # Sampling across vocabularies rewrites the drafter's head in place and remembers that by the tokenizers: it gets its own.
        weights = pair.drafting_weights() if weights is None else weights
        self.drafters = {sampled: _module(pair.drafter, weights) for sampled in (False, True)}
        self.tokenizers: dict[str, Any] = {}
        if pair.target.tokenizer.get_vocab() != pair.drafter.tokenizer.get_vocab():
            names = {"tokenizer": pair.target, "assistant_tokenizer": pair.drafter}
            self.tokenizers = {name: AutoTokenizer.from_pretrained(model.folder) for name, model in names.items()}

    def generate(self, method: str, ids: Sequence[int], max_new_tokens: int, sampled: bool, temperature: float = 1.0) -> Answer:
        """Answer a prompt; at that temperature where it is sampled. Raises what `transformers` raises."""
        prompt = torch.tensor([list(ids)], device=self.target.device)
        options: dict[str, Any] = {"do_sample": sampled, "max_new_tokens": max_new_tokens, "attention_mask": torch.ones_like(prompt)}
        options |= {"temperature": temperature, "top_k": 0, "top_p": 1.0} if sampled else {}
        options |= self._assistance(method, sampled)
        with self._watching(sampled) as passes:
            first = _FirstToken()
            began = perf_counter()
            written = self.target.generate(prompt, streamer=first, **options)[0].tolist()[len(ids) :]
            seconds = perf_counter() - began
        rounds = [_judged(len(ids), written, one.start, one.ids) for one in passes if not one.drafter]
        drafted = sum(one.drafter for one in passes)  # each pass writes one token
        return Answer(written, seconds, rounds, drafted, passes, first.at - began if first.at else None)

    def laws(self, ids: Sequence[int]) -> Tensor:
        """The target's laws [T, V] of the token after each of these ids, at temperature 1, float64."""
        logits: Tensor = self.target(input_ids=torch.tensor([list(ids)], device=self.target.device)).logits
        return logits[0].double().cpu().softmax(-1)

    def _assistance(self, method: str, sampled: bool) -> dict[str, Any]:
        if method == PLAIN:
            return {}
        if method == LOOKUP:
            return {"prompt_lookup_num_tokens": self.draft_length}
        drafter = self.drafters[sampled]
        drafter.generation_config = config = GenerationConfig()  # its defaults: up to 20 tokens, until one is improbable
        if method == ASSISTED:
            config.num_assistant_tokens, config.num_assistant_tokens_schedule = self.draft_length, "constant"
            config.assistant_confidence_threshold = 0.0
        return {"assistant_model": drafter, **self.tokenizers}

    @contextmanager
    def _watching(self, sampled: bool) -> Iterator[list[PeerPass]]:
        """The passes within the block, as they come."""
        passes: list[PeerPass] = []

        def before(module: Any, args: Any, options: dict[str, Any]) -> None:
            cache = options.get("past_key_values")
            ids: Tensor = options["input_ids"] if "input_ids" in options else args[0]
            start = cache.get_seq_length() if cache is not None else 0
            passes.append(PeerPass(module is not self.target, start, ids, perf_counter()))

        def after(module: Any, args: Any, output: Any) -> None:
            passes[-1].seconds = perf_counter() - passes[-1].began

        modules = (self.target, self.drafters[sampled])
        handles = [module.register_forward_pre_hook(before, with_kwargs=True) for module in modules]
        handles += [module.register_forward_hook(after) for module in modules]
        try:
            yield passes
        finally:
            for handle in handles:
                handle.remove()


class _FirstToken:
    """A streamer that notes when the first token behind the prompt comes."""

    at: float | None = None
    _prompt = True

    def put(self, ids: Tensor) -> None:
        if not self._prompt and self.at is None:
            self.at = perf_counter()
        self._prompt = False

    def end(self) -> None:
        pass


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
        turn = index % len(self.methods)
        order = self.methods[turn:] + self.methods[:turn]
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
        shares = [accepted / proposed for proposed, accepted in answer.rounds if proposed]
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
            acceptance_rate=fmean(shares) if shares else None,
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
    rest = torch.stack([counts[~common].sum(), expected[~common].sum()])
    if rest[1] >= EXPECTED:
        cells = torch.cat([cells, rest[:, None]], 1)
    elif cells.shape[1]:
        cells[:, cells[1].argmin()] += rest  # no cell may be too small, and no token may be left out
    if cells.shape[1] < 2:
        return 0.0, 0
    return float(((cells[0] - cells[1]) ** 2 / cells[1]).sum()), cells.shape[1] - 1


def upper_tail(chi: float, freedom: int) -> float:
    """The probability of a χ² at least this large."""
    return float(torch.special.gammaincc(torch.tensor(freedom / 2, dtype=torch.float64), torch.tensor(chi / 2, dtype=torch.float64)))


def _judged(prompt: int, written: Sequence[int], before: int, read: Tensor) -> tuple[int, int]:
    """(proposed, accepted) of a target pass that read ids [1, T] behind `before` positions: the first reads the prompt and a
    proposal, each later one the newest token and a proposal."""
    known = max(before + 1, prompt)
    proposal = read[0, known - before :].tolist()
    return len(proposal), common_prefix(proposal, written[known - prompt :])


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


def _module(model: LanguageModel, weights: Mapping[str, Tensor]) -> Any:
    """The model as `transformers` loads it, with the weights that ours uses now."""
    module = read_model(model.folder, dtype=model.dtype)
    module = module.to(model.device).eval()
    overwrite_named(dict(module.named_parameters(remove_duplicate=False)), weights)
    return module


@contextmanager
def quietly() -> Iterator[None]:
    """Without the peer's warnings about its own settings and its progress bars."""
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
