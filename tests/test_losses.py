"""The distillation loss: hand-computed values, equality with the full KL, and safety at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from omnidemo.core import losses
from omnidemo.records import Trace


def trace(drafter_ids: list[int], spans: list[tuple[int, int]], p: list[float], top: list[dict[int, float]]) -> Trace:
    """`spans` are (start, length) of each answer position, `top` its target probabilities by drafter id (all equally many)."""
    return Trace(
        drafter_ids=np.array(drafter_ids),
        starts=np.array([start for start, _ in spans]),
        lengths=np.array([length for _, length in spans]),
        accepted=np.ones(len(spans), dtype=bool),
        p=np.array(p, dtype=np.float32),
        top_ids=np.array([list(row) for row in top]),
        top_p=np.array([list(row.values()) for row in top], dtype=np.float32),
    )


def logits_of(*rows: list[float]) -> torch.Tensor:
    """Logits (with an arbitrary shift per row) of the given probabilities."""
    return torch.tensor(rows).log() + torch.arange(len(rows))[:, None] * 3.0


def test_forward_and_reverse_by_hand() -> None:
    logits = logits_of([0.5, 0.25, 0.125, 0.125])
    ids, p = torch.tensor([[0, 2]]), torch.tensor([[0.25, 0.25]])  # rest: p 0.5, q 0.375
    forward = 0.25 * math.log(0.25 / 0.5) + 0.25 * math.log(0.25 / 0.125) + 0.5 * math.log(0.5 / 0.375)
    reverse = 0.5 * math.log(0.5 / 0.25) + 0.125 * math.log(0.125 / 0.25) + 0.375 * math.log(0.375 / 0.5)
    assert losses.direct_divergence(logits, ids, p, "forward").item() == pytest.approx(forward, abs=1e-6)
    assert losses.direct_divergence(logits, ids, p, "reverse").item() == pytest.approx(reverse, abs=1e-6)
    with pytest.raises(ValueError, match="forward"):
        losses.direct_divergence(logits, ids, p, "sideways")  # type: ignore[arg-type]


def test_the_right_rows_predict_and_the_sum_is_by_hand() -> None:
    # Position 0: direct, drafter id 3 at place 1, so row 0. Position 1: n-gram (1, 2) at places 2 and 3, so rows 1 and 2.
    # Position 2 cannot be spelled, and position 3 has no row before it.
    one = trace([0, 3, 1, 2], [(1, 1), (2, 2), (4, 0), (0, 1)], [0.9, 0.4, 0.1, 0.2], [{3: 0.5}, {0: 0.1}, {0: 0.1}, {0: 0.1}])
    at = losses.positions([one, one])
    assert at.direct.tolist() == [[0, 0], [1, 0]]
    assert at.sub.tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]] and at.sub_ids.tolist() == [1, 2, 1, 2]
    assert at.ngrams == 2 and len(at) == 4
    direct = logits_of([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4])
    sub = logits_of([0.2, 0.5, 0.2, 0.1], [0.2, 0.2, 0.25, 0.35], [0.2, 0.5, 0.2, 0.1], [0.2, 0.2, 0.25, 0.35])
    expected_direct = 0.5 * math.log(0.5 / 0.4) + 0.5 * math.log(0.5 / 0.6)
    expected_ngram = -math.log(0.5) - math.log(0.25)
    fixed = losses.distillation(direct, sub, at, 0.5)
    assert fixed.direct.item() == pytest.approx(expected_direct, abs=1e-6)
    assert fixed.ngram.item() == pytest.approx(expected_ngram, abs=1e-6)
    assert fixed.total.item() == pytest.approx(expected_direct + 0.5 * expected_ngram, abs=1e-6)
    dynamic = losses.distillation(direct, sub, at, "dynamic")  # λ = p(t) = 0.4
    assert dynamic.total.item() == pytest.approx(expected_direct + 0.4 * expected_ngram, abs=1e-6)


@pytest.mark.parametrize("kind", ["forward", "reverse"])
def test_top_k_of_the_whole_vocabulary_is_the_full_kl(kind: losses.Divergence) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(50, 40, generator=generator) * 4
    p = (torch.randn(50, 40, generator=generator) * 2).softmax(-1)
    order = p.argsort(-1, descending=True)
    found = losses.direct_divergence(logits, order, p.gather(1, order), kind)
    log_q = logits.log_softmax(-1)
    full = (p * (p.log() - log_q)).sum(-1) if kind == "forward" else (log_q.exp() * (log_q - p.log())).sum(-1)
    torch.testing.assert_close(found, full, atol=2e-5, rtol=1e-5)


def test_padding_changes_nothing() -> None:
    logits = torch.randn(3, 9, generator=torch.Generator().manual_seed(2))
    ids, p = torch.tensor([[4, 1], [0, 8], [2, 3]]), torch.tensor([[0.5, 0.2], [0.3, 0.3], [0.9, 0.05]])
    padded_ids = torch.nn.functional.pad(ids, (0, 3), value=-1)
    padded_p = torch.nn.functional.pad(p, (0, 3))
    for kind in ("forward", "reverse"):
        plain = losses.direct_divergence(logits, ids, p, kind)
        torch.testing.assert_close(losses.direct_divergence(logits, padded_ids, padded_p, kind), plain)
    wide = trace([0, 1], [(1, 1)], [0.5], [{0: 0.4, 1: 0.3, 2: 0.1}])
    narrow = trace([0, 1], [(1, 1)], [0.5], [{1: 0.4}])
    assert losses.positions([narrow, wide]).top_ids.tolist() == [[1, -1, -1], [0, 1, 2]]


def test_gradient_is_that_of_the_bucketed_law() -> None:
    """Forward KL: dL/dlogit = q − p inside the top, and the rest bucket's mass is shared among the others by q."""
    logits = torch.randn(1, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float32).requires_grad_()
    ids, p = torch.tensor([[1, 4]]), torch.tensor([[0.6, 0.1]])
    losses.direct_divergence(logits, ids, p).sum().backward()
    q = logits.detach().softmax(-1)[0]
    expected = q - 0.3 * q / (1 - q[1] - q[4])
    expected[1], expected[4] = q[1] - 0.6, q[4] - 0.1
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad[0], expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["forward", "reverse"])
def test_extremes_stay_finite(kind: losses.Divergence) -> None:
    logits = torch.zeros(4, 5)
    logits[0, 0], logits[1, 0], logits[2, 1] = 200.0, -200.0, 90.0
    logits.requires_grad_()
    ids = torch.tensor([[0, 1], [0, 1], [0, 2], [0, 1]])
    p = torch.tensor([[1.0, 0.0], [1.0, 1e-7], [0.0, 0.0], [0.7, 0.3000001]])
    found = losses.direct_divergence(logits, ids, p, kind)
    found.sum().backward()
    assert found.isfinite().all() and (found > -1e-5).all()
    assert logits.grad is not None and logits.grad.isfinite().all()


def test_the_rest_bucket_keeps_its_digits() -> None:
    logits = torch.tensor([[30.0, 0.0, 1.0]])
    _, rest = losses.log_q_with_rest(logits, torch.tensor([[0]]))
    assert rest.item() == pytest.approx(math.log(1 + math.e) - 30.0, abs=1e-5)


def test_no_positions_is_zero_and_differentiable() -> None:
    at = losses.positions([trace([0, 1], [(1, 0)], [0.5], [{0: 0.5}])])
    empty = torch.zeros(0, 4, requires_grad=True)
    found = losses.distillation(empty, empty, at)
    found.total.backward()
    assert found.total.item() == found.direct.item() == found.ngram.item() == 0.0 and len(at) == 0
    assert len(losses.positions([])) == 0


def test_newest_drops_the_oldest_part_consistently() -> None:
    top = [{0: 0.1}, {1: 0.2}, {2: 0.3}, {3: 0.4}]
    whole = trace([10, 11, 12, 13, 14, 15], [(1, 1), (2, 2), (4, 1), (5, 1)], [0.1, 0.2, 0.3, 0.4], top)
    assert losses.newest(whole, 6) is whole
    cut = losses.newest(whole, 4)  # 12 13 14 15: the n-gram at 2 has lost the row that predicts its first token
    assert cut.drafter_ids.tolist() == [12, 13, 14, 15] and cut.starts.tolist() == [2, 3] and cut.lengths.tolist() == [1, 1]
    assert cut.top_ids.tolist() == [[2], [3]] and cut.p.tolist() == pytest.approx([0.3, 0.4])
    assert [int(cut.drafter_ids[start]) for start in cut.starts] == [14, 15]
