"""A drafter is taught a model by the model's own answers, and a file takes that elsewhere."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from omnidemo import load_pair
from omnidemo.core.config import Settings
from omnidemo.learning.lines.learned_file import FACTS, IDS, read_learned
from omnidemo.learning.lines.measurer import mean_of
from omnidemo.pair.pair import Pair
from omnidemo.serving.measuring import learn
from omnidemo.serving.measuring.learning_pair import learning
from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.trained_pair.patterns import UNREAD, questions

PROMPTS = questions(UNREAD, 60)  # of a topic that the drafter has not read
ENOUGH = 8  # updates
LINE = "default"


def loaded(storage: Path | None = None, learned: Path | None = None, target: str = TARGET) -> Pair:
    settings = Settings(device="cpu", dtype="float32", threads=1, training="off")
    return load_pair(target, DRAFTER, settings=settings, storage=storage, learned=learned)


@dataclass(frozen=True)
class Run:
    folder: Path
    file: Path
    before: float
    after: float
    written: set[str]
    pair: Pair


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, pair = tmp_path_factory.mktemp("learn"), loaded()
    with learn.begun(pair, Settings(), PROMPTS, folder) as going:
        stages = going.run(600.0)
        for _ in stages:
            if going.state.optimiser is not None and going.state.optimiser.step >= ENOUGH * learn.STEPS:
                break
        stages.close()
        before, after = (
            mean_of(list(going.agreement(each).values())) for each in (None, going.state.adapter)
        )
        assert before is not None and after is not None
        file = going.write_file(folder / "mine.zip")
        return Run(folder, file, before.overlap, after.overlap, set(going.state.answers), pair)


def test_kept_prompts_agree_more(made: Run) -> None:
    assert made.after > made.before + 0.02


def test_a_second_run_goes_on_where_the_first_one_ended(made: Run) -> None:
    with learn.begun(made.pair, Settings(), PROMPTS, made.folder) as going:
        assert set(going.state.answers) == made.written
        after = mean_of(list(going.agreement(going.state.adapter).values()))
        assert after is not None and after.overlap == pytest.approx(made.after, abs=1e-6)
        assert (
            not {learn.order_of(one.set, one.id, one.temperature) for _, one in going.orders()} & made.written
        )


def test_what_is_written_is_measured_in_turns(made: Run) -> None:
    with learn.begun(made.pair, Settings(), PROMPTS, made.folder) as going:
        gain = going.measure(20.0)
    assert gain.after.overlap > gain.before.overlap and gain.plain > 0
    assert [low <= mid <= high for mid, low, high in gain.speeds] == [True, True]
    ups = [up for _, up in (*gain.most, *gain.least)]
    assert ups[0] == max(ups) and ups[3] == min(ups)


def test_a_pair_with_the_file_says_the_same_and_guesses_more(made: Run) -> None:
    fresh, taught = loaded(), loaded(learned=made.file)
    options = {"max_new_tokens": 48, "learn": False, "reuse": False, "copying": False}
    asked = [prompt for prompt in PROMPTS if learn.is_kept(prompt)]
    sides = [[pair.generate(prompt, **options) for prompt in asked] for pair in (fresh, taught)]
    first, second = ([one.token_ids for one in side] for side in sides)
    assert first == second
    rounds = [sum(len(one.rounds) for one in side) for side in sides]
    assert rounds[1] < rounds[0]
    assert taught.copies.nbytes > 0 and len(taught.ngrams) >= len(fresh.ngrams)


def test_a_storage_keeps_what_a_file_brought(made: Run, tmp_path: Path) -> None:
    settings = Settings(storage=tmp_path, device="cpu", dtype="float32", threads=1)
    digests = list[str]()
    for turn in range(2):
        pair = loaded()
        with learning(pair, settings, keep=True, training="inline") as learner:
            if not turn:
                assert learner.lines.adopt(LINE, made.file) == 1
            assert learner.lines.get(LINE).versions.current.version == 1
            digests.append(pair.copies.digest(LINE))
            if turn:
                learner.lines.reset(LINE)
                assert not list((tmp_path / "learned").iterdir())
    assert digests[0] == digests[1] != ""


@pytest.fixture
def changed(made: Run, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copy(made.file, tmp_path / "changed.zip"))


def without(file: Path, *names: str, **more: bytes) -> Path:
    """The zip with other members in the place of some."""
    with zipfile.ZipFile(file) as old:
        kept = {name: old.read(name) for name in old.namelist() if name not in names}
    with zipfile.ZipFile(file, "w") as new:
        for name, data in (kept | more).items():
            new.writestr(name, data)
    return file


def test_a_zip_of_peft_alone_is_no_such_file(made: Run, changed: Path) -> None:
    assert read_learned(without(changed, FACTS, IDS), made.pair) is None


def test_a_damaged_file_is_refused_in_a_sentence(made: Run, changed: Path) -> None:
    for name, data in ((IDS, b"nothing"), (FACTS, b"[]"), (FACTS, b"{")):
        broken = without(Path(shutil.copy(made.file, changed)), name, **{name: data})
        with pytest.raises(ValueError, match=r"is damaged .*make it again"):
            read_learned(broken, made.pair)


def test_a_file_of_another_target_is_refused_by_its_name(made: Run, changed: Path) -> None:
    with zipfile.ZipFile(changed) as archive:
        facts = json.loads(archive.read(FACTS))
    other = without(changed, FACTS, **{FACTS: json.dumps(facts | {"target_digest": "0" * 12}).encode()})
    with pytest.raises(ValueError, match=r"was learned for the target .* other weights of that name"):
        read_learned(other, made.pair)


def test_too_long_prompts_are_left_out(made: Run, tmp_path: Path) -> None:
    long = "duck " * 2_000
    with learn.begun(made.pair, Settings(), [*PROMPTS, long], tmp_path) as going:
        assert long not in (*going.kept, *going.taught)
        assert "(and 1 of more than 576 tokens, left out)" in going.needs()
    with (
        pytest.raises(ValueError, match=r"0 prompts \(and 1 of more than 576 tokens, left out\) are too few"),
        learn.begun(made.pair, Settings(), [long], tmp_path),
    ):
        pass


def test_too_few_prompts_are_refused(made: Run, tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="too few"),
        learn.begun(made.pair, Settings(), PROMPTS[:5], tmp_path),
    ):
        pass
