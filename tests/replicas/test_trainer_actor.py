"""What an actor that trains does, without Ray."""

from __future__ import annotations

import pytest

from omnidemo.learning.distill.worker import WorkerError
from omnidemo.serving.replicas.trainer import RayTrainer, Trainer
from tests.support.trained_pair import DRAFTER


def test_a_pause_that_is_overtaken_by_its_end_does_not_hold_training_up() -> None:
    trainer = Trainer(DRAFTER, hub=False, nice=0)
    assert not trainer._paused
    trainer.hold(True, 1)
    assert trainer._paused
    trainer.hold(False, 3)
    trainer.hold(True, 2)
    assert not trainer._paused


def test_a_closed_trainer_starts_no_actor() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements-scale.txt")
    trainer = RayTrainer(lambda: pytest.fail("an actor was started"))
    trainer.pause(), trainer.resume(), trainer.close()
    with pytest.raises(WorkerError, match="closed"):
        trainer._call("agree")
