"""How well a drafter's tokens can propose a target's: the direct map, and n-grams for the other tokens of a
text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from transformers import AutoTokenizer

from omnidemo.backends.runner import ModelError
from omnidemo.models.gguf_model import GgufModel
from omnidemo.models.model_files import local_folder
from omnidemo.models.names import gguf_file
from omnidemo.vocabulary.vocabulary import Vocabulary, read_vocabulary
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

Tell = Callable[[str], None]  # takes a line of progress
HEADINGS = (
    "target", "drafter", "mapped", "tokens", "direct", "2-grams", "3-grams", "4-grams", "longer", "none",
    "n-grams", "map ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """Two vocabularies, and the target tokens of some texts by how the drafter can propose them.

    `mapped`: tokens of the target's vocabulary with a drafter token; `seconds`: to build that map. `spelled`:
    how many drafter tokens spell a token (1: the map; 0: nothing spells it) → tokens of the texts, without
    special ones. `distinct`: different n-grams among them, which is the size of an n-gram cache.
    """

    target: str
    drafter: str
    mapped: int
    spelled: Mapping[int, int]
    distinct: int
    seconds: float

    @property
    def tokens(self) -> int:
        return sum(self.spelled.values())

    @property
    def direct(self) -> int:
        return self.spelled.get(1, 0)

    def shares(self) -> list[float | None]:
        """Shares from 0 to 1: of all tokens the directly mapped ones; of the others those that 2-, 3-, 4-,
        longer n-grams and nothing cover."""
        others = self.tokens - self.direct
        longer = sum(count for n, count in self.spelled.items() if n > 4)
        covered = (*(self.spelled.get(n, 0) for n in (2, 3, 4)), longer, self.spelled.get(0, 0))
        return [
            self.direct / self.tokens if self.tokens else None,
            *(count / others if others else None for count in covered),
        ]

    def cells(self) -> list[str]:
        """The figures as text, under HEADINGS."""
        shares = ["–" if share is None else f"{share:.2%}" for share in self.shares()]
        counts = (f"{self.mapped:,}", f"{self.tokens:,}")
        return [
            self.target, self.drafter, *counts, *shares,
            f"{self.distinct:,}",
            f"{self.seconds * 1000:.0f}",
        ]  # fmt: skip


def report(
    target: tuple[str, Vocabulary],
    drafter: tuple[str, Vocabulary],
    texts: Sequence[str],
    tell: Tell = lambda said: None,
) -> Report:
    """Build the map of two named vocabularies, and count the target tokens of `texts`. ValueError where they
    have no token in common, and for a target's vocabulary that cannot encode."""
    (target_name, large), (drafter_name, small) = target, drafter
    if large.encode_text is None:
        raise ValueError("the target's vocabulary came without its tokenizer; read it with `read_vocabulary`")
    tell(f"mapping the tokens of {target_name} onto those of {drafter_name}")
    began = perf_counter()
    built = VocabularyMap(large, small, len(large), len(small))
    seconds = perf_counter() - began
    ids: list[int] = []
    for done, text in enumerate(texts):
        tell(f"texts in tokens of {target_name}: {done:,} of {len(texts):,}")
        ids += filter(large.writes, large.encode_text(text))
    lengths = {
        token_id: 1 if built.drafters[token_id] >= 0 else len(built.ngram(token_id) or ()) for token_id in ids
    }
    spelled = Counter(lengths[token_id] for token_id in ids)
    distinct = sum(length > 1 for length in lengths.values())
    return Report(target_name, drafter_name, sum(i >= 0 for i in built.drafters), spelled, distinct, seconds)


def compare(
    target: str, drafter: str, texts: Sequence[str], hub: bool = True, tell: Tell = lambda said: None
) -> list[Report]:
    """Reports of two tokenizers (bundled name, folder or Hub id) in both directions. ModelError or
    ValueError, one sentence."""
    named = []
    for name in (target, drafter):
        tell(f"reading the tokenizer of {name}")
        named.append((name, read_tokenizer(name, hub)))
    return [report(named[0], named[1], texts, tell), report(named[1], named[0], texts, tell)]


def read_tokenizer(name: str, hub: bool = True) -> Vocabulary:
    """The vocabulary of a bundled name, a folder with a tokenizer, a GGUF file on this machine, or a Hub id
    (`hub`: whether downloads are allowed). ModelError."""
    if (file := gguf_file(name, hub=False)) is not None:
        return GgufModel(file).tokenizer()[1]
    folder = local_folder(name)
    try:
        return read_vocabulary(
            AutoTokenizer.from_pretrained(folder or name, trust_remote_code=False, local_files_only=not hub)
        )
    except Exception as error:  # whatever transformers raises
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ModelError(
            f"the tokenizer of {name} cannot be read ({cause}); give a folder with a tokenizer.json or a"
            " Hub id"
        ) from error
