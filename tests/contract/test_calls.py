"""An answer that is asked for by a call: what comes with it counts on every backend."""

from __future__ import annotations

from omnidemo.core.config import GenerationConfig, Settings
from omnidemo.core.records import Round
from omnidemo.decoding.cost_model import CostModel
from omnidemo.pair.remote.messages import Adapter, Call, insertions
from omnidemo.pair.remote.writing_pair import WritingPair
from omnidemo.serving.pair_loading import build_pair
from tests.contract.sides import STORY, Sides
from tests.support.trained_pair import DRAFTER, TARGET


def test_n_grams_that_come_with_a_call(trained: Sides, backend: str) -> None:
    """A process that has never met their tokens takes them off corrections too, so the numbers of a seed draw
    the reference's ids."""
    brought = insertions(trained.reference.ngrams, 0)

    def written(name: str) -> list[list[int]]:
        pair = build_pair(
            TARGET,
            DRAFTER,
            Settings(backend=name, device=backend, dtype="float32"),
            make=WritingPair,
        )
        found = []
        for seed in range(4):
            asked = GenerationConfig.of(
                temperature=1.0, seed=seed, learn=False, reuse=False, max_new_tokens=60
            ).model_dump()
            call = Call(tuple(pair.prompt_ids(STORY)), asked, False, False, Adapter(), brought, CostModel())
            found.append(
                [
                    token.id
                    for done in pair.serve(call, lambda: False)
                    if isinstance(done, Round)
                    for token in done.tokens
                ]
            )
        return found

    assert written("auto") == written("reference")
