"""Which drafter suits a target: candidates in the order of their modelled speedup, with warnings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from omnidemo.core.catalogue_file import entries
from omnidemo.core.config import REAL_DRAFTER, Settings
from omnidemo.models import model_files
from omnidemo.models.catalogue import place_and_widths
from omnidemo.models.load import ModelError
from omnidemo.models.memory_need import LEAST, conversation_in
from omnidemo.models.names import resolve
from omnidemo.serving.advisor.model_facts import ModelFacts, read_facts
from omnidemo.serving.advisor.overlap import Overlap, overlap, read_vocabulary, reported

ACCEPTANCES = (0.3, 0.5, 0.7)
RANKED_AT = 0.5
LARGEST_SHARE = 0.2  # a drafter with a larger share of the target's bytes gets a warning


@dataclass(frozen=True, slots=True)
class Report:
    """A speedup that a paper reports: tokens/s over plain decoding, from `low` to `high`. `what` names what
    the range is over, `parameters` is the target's size."""

    target: str
    drafter: str
    parameters: int
    low: float
    high: float
    what: str
    source: str

    def __str__(self) -> str:
        speedup = f"{self.low:.2f}×" if self.low == self.high else f"{self.low:.2f} to {self.high:.2f}×"
        return f"{speedup} with {self.target.rpartition('/')[2]} ({self.what}; {self.source})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drafter. `cost` is c: bytes read per guess ÷ bytes read per pass of the target. `share`: its
    parameters ÷ the target's. `modelled`: speedups at ACCEPTANCES. `pays_from`: the lowest acceptance, in
    steps of 0.01, with a modelled gain; None: there is none."""

    model: ModelFacts
    bytes: int
    cost: float
    share: float
    modelled: tuple[float, ...]
    pays_from: float | None
    overlap: Overlap | None
    reported: tuple[Report, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """`candidates`: the best first. `bytes`: of the target's weights in memory. `warnings`: about the target.
    `assumptions`: what the modelled figures rest on."""

    target: ModelFacts
    bytes: int
    draft_length: int
    candidates: tuple[Candidate, ...]
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]


def modelled_speedup(acceptance: float, draft_length: int, cost: float) -> float:
    """The expected speedup (1 − α^(k+1)) / ((1 − α)(1 + c·k)) of drafts of k tokens, each accepted with
    chance α, where a drafter's pass costs c passes of the target (Leviathan et al. 2023, theorem 3.8)."""
    tokens = (
        draft_length + 1 if acceptance == 1 else (1 - acceptance ** (draft_length + 1)) / (1 - acceptance)
    )
    return tokens / (1 + cost * draft_length)


def advise(target: str, drafters: Sequence[str] = (), settings: Settings | None = None) -> Advice:
    """Judge `drafters`, by default the catalogue's `candidates`. Reads no weights and uses no network.
    ModelError or ValueError, one sentence, for an unknown model, or where there is no candidate."""
    settings = settings or Settings()
    target, *drafters = (resolve(name, settings).name for name in (target, *drafters))
    length, large = settings.draft_length, read_facts(target)
    names = drafters or candidates(
        target, [name for name, entry in entries().items() if entry["role"] != "target"]
    )
    if not names:
        raise ValueError(
            f"no drafter of the catalogue is smaller than {target}; name one yourself after the target"
        )
    small = [read_facts(name) for name in dict.fromkeys(names)]
    place, *widths = place_and_widths(settings)
    free, vocabulary = model_files.free_memory(place), read_vocabulary(large)
    if large.packed_bytes and settings.packed and place == "cpu":
        widths[0] = large.packed_bytes / large.parameters
    judged = [_judge(large, own, overlap(large, vocabulary, own), length, widths, free) for own in small]
    judged.sort(
        key=lambda row: (_useless(large, row.model, row.overlap), -row.modelled[ACCEPTANCES.index(RANKED_AT)])
    )
    warnings = _licence_warnings(large) + (
        [] if large.chat else ["it has no chat template, so it goes on from a prompt as plain text"]
    )
    return Advice(
        large, int(large.parameters * widths[0]), length, tuple(judged), tuple(warnings), _assumptions(length)
    )


def candidates(target: str, names: Sequence[str]) -> list[str]:
    """Those of `names` that are on this machine or in the catalogue and smaller than the target. A bundled
    target gets bundled drafters, because others would be too slow for it. Another target gets the bundled
    drafter that has read real text, and drafters that are not bundled."""
    models, large = [], read_facts(target).parameters
    for name in names:
        if name != target and (_bundled(name) == _bundled(target) or name == REAL_DRAFTER):
            with suppress(ModelError):
                models += [name] if read_facts(name).parameters < large else []
    return models


def _reports(target: str, drafter: str, parameters: int) -> tuple[Report, ...]:
    """Reports of this pair, else of the drafter with the next larger target where it lost: it would lose more
    with a smaller one."""
    reports = [Report(**row) for row in reported()["speedups"] if row["drafter"] == drafter]
    own = [report for report in reports if report.target == target]
    larger = sorted(
        (report for report in reports if report.parameters >= parameters and report.low < 1),
        key=lambda report: report.parameters,
    )
    return tuple(own or larger[:1])


def _bundled(name: str) -> bool:
    return name.startswith("bundled/")


def _stranger(drafter: str, target: str) -> bool:
    """Whether the drafter has read bundled targets' text only, and the target is not bundled."""
    return _bundled(drafter) and drafter != REAL_DRAFTER and not _bundled(target)


def _useless(large: ModelFacts, small: ModelFacts, shared: Overlap | None) -> bool:
    """Whether its guesses can hardly be right: no token in common, or it never read such text."""
    return (shared is not None and shared.mapped == 0) or _stranger(small.name, large.name)


def _judge(
    large: ModelFacts,
    small: ModelFacts,
    shared: Overlap | None,
    draft_length: int,
    widths: Sequence[float],
    free: int,
) -> Candidate:
    cost, share = small.read / large.read, small.parameters / large.parameters
    reports = _reports(large.name, small.name, large.parameters)
    warnings = []
    if share > LARGEST_SHARE:
        warnings.append(
            f"it has {share:.0%} of the target's bytes; above {LARGEST_SHARE:.0%} guessing tends to cost more"
            " than it saves"
        )
    if _stranger(small.name, large.name):
        warnings.append(
            "it knows only the generated text of the bundled targets, so the modelled speedups are out of its"
            " reach"
        )
    if slow := [report for report in reports if report.low < 1]:
        warnings.append(
            f"a paper reports {slow[0].low:.2f}× with this target or a larger one, slower than without"
            " guessing"
        )
    if small.gguf:
        warnings.append("it is a GGUF file, which cannot be trained: it guesses, and never learns")
    warnings += _overlap_warnings(shared)
    warnings += _licence_warnings(small)
    need = (large.parameters * widths[0] + small.parameters * widths[1]) * model_files.MARGIN
    need += sum(
        conversation_in(model.folder, widths[1], LEAST)
        for model in (large, small)
        if model.folder is not None
    )
    if need > free:
        warnings.append(f"the pair needs about {need / 1e9:.1f} GB and {free / 1e9:.1f} GB are free")
    hundredths = (step / 100 for step in range(100))
    return Candidate(
        model=small,
        bytes=int(small.parameters * widths[1]),
        cost=cost,
        share=share,
        modelled=tuple(modelled_speedup(rate, draft_length, cost) for rate in ACCEPTANCES),
        pays_from=next((rate for rate in hundredths if modelled_speedup(rate, draft_length, cost) > 1), None),
        overlap=shared,
        reported=reports,
        warnings=tuple(warnings),
    )


def _overlap_warnings(shared: Overlap | None) -> list[str]:
    if shared is None:
        hint = (
            'it is measured once the small files of both are here (`hf download NAME --include "*.json"'
            ' "*.model"`)'
        )
        return [f"another tokenizer, and how much of it fits is not known; {hint}"]
    if shared.mapped == 0:
        return ["the tokenizers have no token in common, so it cannot draft for this target"]
    if shared.mapped is not None and shared.tokens and shared.mapped < shared.tokens:
        rest = (
            f"{shared.tokens - shared.mapped:,} of the target's {shared.tokens:,} tokens take several guesses"
            " each (n-grams) or none"
        )
        return [f"another tokenizer: {rest}"]
    return []


def _licence_warnings(model: ModelFacts) -> list[str]:
    if model.gated:
        return [
            f"gated: accept its licence ({model.licence}) at https://huggingface.co/{model.name} and set"
            " HF_TOKEN"
        ]
    return [] if model.licence else ["its licence is not known; read it before you serve others with it"]


def _assumptions(draft_length: int) -> tuple[str, ...]:
    return (
        (
            f"Modelled: (1 − α^(k+1)) / ((1 − α)(1 + c·k)) by Leviathan et al. (2023), k = {draft_length}"
            " guesses a round, c = bytes that the drafter reads for a guess ÷ bytes that the target reads"
            " for a pass. Nothing was run."
        ),
        (
            "The acceptance α is assumed, and the same for every drafter; really a larger or related one"
            " guesses better, and each learns."
        ),
        (
            "Reading weights is taken to be all that costs time. It is not: on an A100 a guess of Llama-68M"
            " took 0.076 of a pass of Qwen2-7B (OmniDraft, table 8), where bytes say 0.006. Small targets and"
            " GPUs gain less than modelled."
        ),
    )
