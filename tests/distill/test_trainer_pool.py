"""The lines of a pair: one distiller per domain, few in memory, nothing lost when one has to wait on disk."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from omnidemo.core.config import Settings
from omnidemo.core.records import Trace
from omnidemo.learning.distill.distiller import Distiller
from omnidemo.learning.lines import trainer_pool as module
from omnidemo.learning.lines.line_names import check_domain
from omnidemo.learning.lines.trainer_pool import TrainerPool
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import attach_storage, build_pair
from omnidemo.storage.store import Store

NAMES = ("maths", "code", "stories")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    options = {
        "training": "inline",
        "update_interval": 2,
        "steps_per_update": 1,
        "batch_size": 2,
        "lora_rank": 2,
        "head": "off",
    }
    return Settings(storage=tmp_path / "storage", lines_in_memory=3, **options)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path / 'omnidemo.db'}")
    yield made
    made.close()


@pytest.fixture
def pair(models: tuple[str, str], settings: Settings) -> Pair:
    return build_pair(*models, settings)


@pytest.fixture
def lines(pair: Pair, settings: Settings, store: Store) -> Iterator[TrainerPool]:
    made = attach_storage(pair, settings, store)
    yield made
    made.close()


def ask(pair: Pair, lines: TrainerPool, domain: str, count: int = 1) -> None:
    """Requests that are answered and learned from, as the services do it."""
    for number in range(count):
        with lines.using(domain):
            pair.generate(f"the {number} small duck", domain=domain, max_new_tokens=12)
            lines.run_pending(domain)


def open_lines(lines: TrainerPool) -> list[str]:
    return [info.domain for info in lines.infos() if info.in_memory]


def weights(pair: Pair, domain: str) -> dict[str, torch.Tensor]:
    # published weights are swapped in before a round
    pair.generate("duck", domain=domain, max_new_tokens=1, learn=False)
    return {name: tensor.clone() for name, tensor in pair.drafting_weights(domain).items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_a_line_that_waited_on_disk_comes_back_as_it_was(pair: Pair, lines: TrainerPool) -> None:
    ask(pair, lines, "maths", 4)
    learned, before = weights(pair, "maths"), lines.status("maths")
    assert before.version == 2 and not same(learned, weights(pair, "default"))
    for name in ("code", "stories"):
        ask(pair, lines, name)
    assert open_lines(lines) == ["default", "code", "stories"]
    plain_lookahead = lines.status("maths")
    assert (plain_lookahead.version, plain_lookahead.step, plain_lookahead.requests_seen) == (
        2,
        before.step,
        4,
    ) and "on disk" in plain_lookahead.why
    with lines.using("maths") as line:
        back = line.status()
        assert (back.version, back.step, back.requests_seen) == (
            before.version,
            before.step,
            before.requests_seen,
        )
        assert same(weights(pair, "maths"), learned)
        assert pair.generate("duck", domain="maths", max_new_tokens=2, learn=False).adapter_version == 2


def test_lines_do_not_touch_one_another(pair: Pair, lines: TrainerPool) -> None:
    base = weights(pair, "default")
    ask(pair, lines, "maths", 2)
    assert lines.status("maths").version == 1 and lines.status().version == 0
    assert same(weights(pair, "default"), base) and not same(weights(pair, "maths"), base)


def test_the_number_in_memory_is_bounded_and_the_default_line_goes_last(
    pair: Pair, lines: TrainerPool
) -> None:
    for turn in range(8):
        ask(pair, lines, NAMES[turn % 3])
        assert len(open_lines(lines)) <= 3
    lines.get()
    lines.get("maths")
    lines.get("code")
    assert open_lines(lines) == ["default", "code", "maths"]


def test_answers_that_a_line_had_not_learned_from_yet_are_not_lost(pair: Pair, lines: TrainerPool) -> None:
    """More lines than fit take turns: each is put away after a single answer, and an update needs two."""
    for _ in range(2):
        for name in NAMES:
            ask(pair, lines, name)
    assert [lines.status(name).version for name in NAMES] == [1, 1, 1]
    assert [lines.status(name).requests_seen for name in NAMES] == [2, 2, 2]


def test_a_line_in_use_stays(pair: Pair, lines: TrainerPool) -> None:
    with lines.using("maths") as line:
        for name in ("code", "stories", "default"):
            lines.get(name)
        assert lines.get("maths") is line
    lines.get("code")
    assert len(open_lines(lines)) == 3


def test_all_lines_share_one_training_process(lines: TrainerPool) -> None:
    assert lines.get("maths")._worker is lines.get("code")._worker is lines._worker


def test_names_come_from_disk_too(pair: Pair, lines: TrainerPool, settings: Settings, store: Store) -> None:
    strange = "Ärzte & co. ✓"
    ask(pair, lines, strange, 2)
    lines.close()
    again = TrainerPool(pair, settings, store)
    try:
        assert again.names() == ["default", strange]
        (info,) = [info for info in again.infos() if info.domain == strange]
        assert (info.version, info.requests_seen, info.in_memory) == (1, 2, False)
    finally:
        again.close()


@pytest.mark.parametrize("name", ["", "  ", "auto", "x" * 41, "a\nb", "\x00"])
def test_a_name_that_cannot_be_one_is_refused(lines: TrainerPool, name: str) -> None:
    with pytest.raises(ValueError, match=r"name"):
        lines.get(name)
    assert lines.names() == ["default"]


def test_a_name_is_taken_without_spaces_around() -> None:
    assert check_domain(" maths ") == "maths"


def test_visitors_cannot_start_lines_without_end(lines: TrainerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LINES", 2)
    lines.get("maths")
    assert lines.accepts("maths") and not lines.accepts("code")
    with pytest.raises(ValueError, match="2 topic lines, which is the most"):
        lines.get("code")


def test_asking_for_a_status_opens_no_line(lines: TrainerPool) -> None:
    assert lines.status("nobody").version == 0 and "has no answer" in lines.status("nobody").why
    assert open_lines(lines) == ["default"] and lines.names() == ["default"]


def test_a_paused_line_is_still_paused_when_it_comes_back(pair: Pair, lines: TrainerPool) -> None:
    lines.pause("maths")
    for name in ("code", "stories"):
        ask(pair, lines, name)
    assert "maths" not in open_lines(lines) and lines.status("maths").state == "paused"
    ask(pair, lines, "maths", 3)
    assert (lines.status("maths").state, lines.status("maths").version) == ("paused", 0)
    lines.resume("maths")
    ask(pair, lines, "maths")
    assert lines.status("maths").version == 1


def test_new_settings_hold_for_open_lines_and_for_those_to_come(
    pair: Pair, lines: TrainerPool, settings: Settings
) -> None:
    ask(pair, lines, "maths", 2)
    lines.configure(settings.model_copy(update={"learning_rate": 1e-3, "lora_rank": 4}))
    assert lines.get("maths").settings.learning_rate == lines.get("code").settings.learning_rate == 1e-3
    assert (lines.get("maths").settings.lora_rank, lines.get("code").settings.lora_rank) == (2, 4)
    lines.reset("maths")
    assert lines.get("maths").settings.lora_rank == 4 and lines.status("maths").version == 0
    ask(pair, lines, "maths", 2)
    assert lines.status("maths").version == 1


def test_an_adapter_goes_out_and_comes_back_in(pair: Pair, lines: TrainerPool, tmp_path: Path) -> None:
    ask(pair, lines, "maths", 2)
    file = lines.export("maths", 1, tmp_path)
    assert file.name == "omnidemo-drafter-for-target-maths-v1.zip"
    assert lines.adopt("copied", file) == 1
    assert lines.status("copied").version == 1
    original = weights(pair, "maths")
    for name, tensor in weights(pair, "copied").items():
        assert torch.allclose(tensor, original[name], atol=1e-6), name
    with pytest.raises(ValueError, match="Version 0 is the base drafter"):
        lines.export("maths", 0, tmp_path)
    with pytest.raises(ValueError, match="Version 9 of the line maths is not on disk"):
        lines.export("maths", 9, tmp_path)
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"no zip")
    with pytest.raises(ValueError, match="zip"):
        lines.adopt("maths", broken)
    assert lines.status("maths").version == 1


def test_a_damaged_manifest_hides_nothing_else(
    pair: Pair, lines: TrainerPool, settings: Settings, store: Store
) -> None:
    ask(pair, lines, "maths", 4)
    ask(pair, lines, "code", 2)
    lines.close()
    for manifest in Path(settings.storage).rglob("v000002/manifest.json"):
        manifest.write_text("{")
    again = TrainerPool(pair, settings, store)
    try:
        assert again.names() == ["default", "code", "maths"]
        assert again.get("maths").status().version == 1
    finally:
        again.close()


def test_threads_use_more_lines_than_fit(pair: Pair, lines: TrainerPool) -> None:
    troubles: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(6):
                ask(pair, lines, NAMES[(number + turn) % 3])
                lines.infos()
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not troubles and len(open_lines(lines)) <= 3
    assert sum(lines.status(name).requests_seen for name in NAMES) == 24
    for name in NAMES:  # an update that met another one stayed due
        ask(pair, lines, name)
    assert all(lines.status(name).version > 0 for name in NAMES)


def test_what_a_line_cannot_take_does_not_reach_the_answer(
    pair: Pair, lines: TrainerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Distiller, "observe", lambda self, trace: 1 / 0)
    assert len(pair.generate("the duck", max_new_tokens=8).token_ids) == 8
    monkeypatch.undo()
    empty = np.zeros(0, np.int64)
    lines.observe(
        Trace(
            empty,
            empty,
            empty,
            empty.astype(bool),
            empty.astype(float),
            empty,
            empty.astype(float),
            domain="\x00",
        )
    )


def test_a_line_that_cannot_be_restored_starts_from_the_base_drafter(
    pair: Pair, lines: TrainerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Distiller) -> int:
        raise OSError("the disk is gone")

    monkeypatch.setattr(Distiller, "restore", fails)
    assert lines.get("maths").status().version == 0


def test_the_history_knows_the_lines(pair: Pair, lines: TrainerPool, store: Store) -> None:
    ask(pair, lines, "maths", 2)
    assert store.flush()
    names = (pair.target.name, pair.drafter.name, "maths")
    (noted,) = store.adapters(*names)
    assert (noted.domain, noted.requests_seen, store.active_version(*names)) == ("maths", 2, 1)
    assert (
        json.loads((lines.get("maths").versions.folder / "v000001" / "manifest.json").read_text())["domain"]
        == "maths"
    )
