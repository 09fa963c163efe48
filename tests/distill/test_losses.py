"""The distillation loss: hand-computed values, equality with the full KL, and safety at the edges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from omnidemo.core.records import Trace
from omnidemo.learning.distill import losses


def trace(
    drafter_ids: list[int], spans: list[tuple[int, int]], p: list[float], top: list[dict[int, float]]
) -> Trace:
    """`spans` are (start, length) of each answer position, `top` its target probabilities by drafter id (all
    equally many)."""
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


def test_labels_by_first_tokens_count_at_n_grams_too() -> None:
    # As below; the target goes on with 3 (0.5) or 0 (0.25), then with 1 (0.75, most of it the n-gram).
    one = trace([0, 3, 1, 2], [(1, 1), (2, 2)], [0.5, 0.7], [{3: 0.5}, {0: 0.1}])
    whole = replace(
        one,
        first_ids=np.array([[3, 0], [1, -1]]),
        first_p=np.array([[0.5, 0.25], [0.75, 0.0]], dtype=np.float32),
    )
    logits = logits_of([0.1, 0.2, 0.3, 0.4], [0.2, 0.5, 0.2, 0.1], [0.2, 0.2, 0.25, 0.35])
    found = losses.distillation(logits, losses.positions([whole]), 0.5, "acceptance")
    # Σ min(p, q), the rest of each (0.25 and 0.5; 0.25 and 0.5) among it
    shared = [0.4 + 0.1 + 0.25, 0.5 + 0.25]
    assert found.direct.item() == pytest.approx(-(math.log(shared[0]) + math.log(shared[1])) / 2, abs=1e-6)
    assert found.ngram.item() == pytest.approx(-math.log(0.25), abs=1e-6)  # of its second token alone
    assert found.total.item() == pytest.approx(found.direct.item() + 0.5 * found.ngram.item(), abs=1e-6)
    # Equation 2 has labels of its own.
    second = [
        losses.distillation(logits, losses.positions([trace]), 0.5, ngram="kl").total.item()
        for trace in (whole, one)
    ]
    assert second[0] == second[1]
    # Among traces without such labels it is one of them.
    mixed = losses.positions([whole, one])
    assert mixed.first_ids is None and losses.newest(whole, 3).first_ids.tolist() == [[1, -1]]  # type: ignore[union-attr]


def test_the_right_rows_predict_and_the_sum_is_by_hand() -> None:
    # Position 0: direct, drafter id 3 at place 1, so row 0. Position 1: n-gram (1, 2) at places 2 and 3, so
    # rows 1 and 2. Position 2 cannot be spelled, and position 3 has no row before it.
    one = trace(
        [0, 3, 1, 2],
        [(1, 1), (2, 2), (4, 0), (0, 1)],
        [0.9, 0.4, 0.1, 0.2],
        [{3: 0.5}, {0: 0.1}, {0: 0.1}, {0: 0.1}],
    )
    at = losses.positions([one, one])
    assert at.rows.tolist() == [[0, 0], [1, 0], [0, 1], [0, 2], [1, 1], [1, 2]] and at.ids.tolist() == [
        3,
        3,
        1,
        2,
        1,
        2,
    ]
    assert at.owner.tolist() == [0, 1, 2, 2, 3, 3] and at.first.tolist() == [0, 1, 2, 4]
    assert at.direct == 2 and len(at) == 4 and at.ngram_p.tolist() == pytest.approx([0, 0, 0.4, 0.4])
    direct = logits_of([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4])
    ngrams = logits_of(
        [0.2, 0.5, 0.2, 0.1], [0.2, 0.2, 0.25, 0.35], [0.2, 0.5, 0.2, 0.1], [0.2, 0.2, 0.25, 0.35]
    )
    expected_direct = 0.5 * math.log(0.5 / 0.4) + 0.5 * math.log(0.5 / 0.6)
    expected_ngram = -math.log(0.5) - math.log(0.25)
    fixed = losses.distillation(torch.cat([direct, ngrams]), at, 0.5)
    assert fixed.direct.item() == pytest.approx(expected_direct, abs=1e-6)
    assert fixed.ngram.item() == pytest.approx(expected_ngram, abs=1e-6)
    assert fixed.total.item() == pytest.approx(expected_direct + 0.5 * expected_ngram, abs=1e-6)
    dynamic = losses.distillation(torch.cat([direct, ngrams]), at, 0.5, ngram="dynamic")  # λ = p(t) = 0.4
    assert dynamic.total.item() == pytest.approx(expected_direct + 0.4 * expected_ngram, abs=1e-6)


def slow(p: list[float], q: list[float], kind: str, beta: float = 0.5) -> float:
    """A divergence of two whole laws, one term after the other."""

    def kl(one: list[float], other: list[float]) -> float:
        return sum(a * math.log(a / b) for a, b in zip(one, other, strict=True) if a > 0)

    if kind == "tv":
        return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
    if kind == "acceptance":
        return -math.log(sum(min(a, b) for a, b in zip(p, q, strict=True)))
    if kind == "jsd":
        mixture = [beta * a + (1 - beta) * b for a, b in zip(p, q, strict=True)]
        return beta * kl(p, mixture) + (1 - beta) * kl(q, mixture)
    return kl(p, q) if kind == "forward" else kl(q, p)


DIVERGENCES = ["forward", "reverse", "jsd", "tv", "acceptance"]


@pytest.mark.parametrize("kind", DIVERGENCES)
@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
def test_top_k_of_the_whole_vocabulary_is_the_full_divergence(kind: losses.Divergence, beta: float) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(50, 40, generator=generator) * 4
    p = (torch.randn(50, 40, generator=generator) * 2).softmax(-1)
    order = p.argsort(-1, descending=True)
    found = losses.direct_divergence(logits, order, p.gather(1, order), kind, beta)
    full = [
        slow(*laws, kind, beta) for laws in zip(p.tolist(), logits.double().softmax(-1).tolist(), strict=True)
    ]
    torch.testing.assert_close(found, torch.tensor(full), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", DIVERGENCES)
def test_top_k_with_a_rest_bucket_equals_the_slow_form(kind: losses.Divergence) -> None:
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(30, 20, generator=generator) * 2
    p = (torch.randn(30, 20, generator=generator) * 2).softmax(-1)
    top = p.topk(5)
    found = losses.direct_divergence(logits, top.indices, top.values, kind, 0.3)
    q = logits.double().softmax(-1)
    for row in range(30):
        bucketed = [
            [*law[row, top.indices[row]].tolist(), 1 - law[row, top.indices[row]].sum().item()]
            for law in (p.double(), q)
        ]
        assert found[row].item() == pytest.approx(slow(*bucketed, kind, 0.3), abs=2e-5)


def test_acceptance_by_hand_and_where_nothing_is_accepted() -> None:
    logits = logits_of([0.5, 0.25, 0.125, 0.125])
    ids, p = torch.tensor([[0, 2]]), torch.tensor([[0.25, 0.25]])  # p: ¼ ¼ ½; q: ½ ⅛ ⅜
    assert losses.direct_divergence(logits, ids, p, "acceptance").item() == pytest.approx(
        -math.log(0.25 + 0.125 + 0.375), abs=1e-6
    )
    # the target's only token is all but impossible for the drafter
    apart = torch.tensor([[-40.0, 0.0, 0.0, 0.0]], requires_grad=True)
    slopes = {}
    for kind in ("acceptance", "tv"):
        loss = losses.direct_divergence(apart, torch.tensor([[0]]), torch.tensor([[1.0]]), kind)  # type: ignore[arg-type]
        (slope,) = torch.autograd.grad(loss.sum(), apart)
        slopes[kind] = slope[0].tolist()
        assert torch.isfinite(loss).all() and torch.isfinite(slope).all()
    assert slopes["acceptance"][0] == pytest.approx(-1.0, abs=1e-5) and abs(slopes["tv"][0]) < 1e-12


def test_nll_is_that_of_the_emitted_token() -> None:
    at = losses.positions([trace([0, 3, 1], [(1, 1), (2, 1)], [0.9, 0.4], [{0: 0.5}, {1: 0.4}])])
    found = losses.direct_loss(logits_of([0.1, 0.2, 0.3, 0.4], [0.2, 0.5, 0.2, 0.1]), at, "nll")
    assert found.tolist() == pytest.approx([-math.log(0.4), -math.log(0.5)])
    whole = losses.distillation(logits_of([0.1, 0.2, 0.3, 0.4], [0.2, 0.5, 0.2, 0.1]), at, kind="nll")
    assert whole.total.item() == pytest.approx(-(math.log(0.4) + math.log(0.5)) / 2)


# --- the approximate KL of equation 2 -----------------------------------------------------------------------


def slow_ngram_kl(one: Trace, rows: dict[int, list[float]], position: int) -> float:
    """Equation 2 spelled out: q' over the n-gram, its first sub-token, the other top tokens, and everything
    else."""
    start, length = int(one.starts[position]), int(one.lengths[position])
    ids = [int(token) for token in one.drafter_ids[start : start + length]]
    product = math.prod(rows[start + offset - 1][token] for offset, token in enumerate(ids))
    q = list(rows[start - 1])
    q[ids[0]] -= product
    p = {
        int(token): float(value)
        for token, value in zip(one.top_ids[position], one.top_p[position], strict=True)
        if token >= 0
    }
    laws = [(product, float(one.p[position]))] + [(q[token], value) for token, value in p.items()]
    rest_p = 1 - sum(p.values()) - float(one.p[position])
    laws.append((1 - sum(mass for mass, _ in laws), rest_p if rest_p > 1e-6 else 0.0))
    return sum(mass * math.log(mass / max(value, losses.P_FLOOR)) for mass, value in laws if mass > 1e-12)


@pytest.mark.parametrize("width", [3, 12])
def test_ngram_kl_equals_the_slow_form_and_of_the_whole_vocabulary_the_full_kl(width: int) -> None:
    """Traces of 2- and 3-grams, first sub-tokens inside and outside the top; width 12: every token is in the
    top."""
    random = np.random.default_rng(width)
    for _ in range(20):
        ids = random.integers(0, 12, 8).tolist()
        law = random.dirichlet(np.full(13, 0.7), 3)
        tops = [{int(token): float(row[token]) for token in random.permutation(12)[:width]} for row in law]
        one = trace(ids, [(1, 2), (3, 3), (6, 2)], [float(row[12]) for row in law], tops)
        at = losses.positions([one])
        logits = torch.from_numpy(random.normal(size=(7, 12)) * 2).float()
        rows = {
            int(place): row.tolist()
            for place, row in zip(at.rows[:, 1], logits.double().softmax(-1), strict=True)
        }
        found = losses.ngram_divergence(logits, at).tolist()
        assert found == pytest.approx(
            [slow_ngram_kl(one, rows, position) for position in range(3)], abs=1e-4, rel=1e-4
        )
        if width == 12:
            assert min(found) > -1e-4  # a divergence of whole laws


def test_ngram_kl_has_the_right_gradient_through_the_product() -> None:
    one = trace([0, 1, 2, 3], [(1, 3)], [0.4], [{1: 0.2, 0: 0.1}])
    at = losses.positions([one])
    logits = torch.randn(3, 5, generator=torch.Generator().manual_seed(2)).requires_grad_()
    losses.ngram_divergence(logits, at).sum().backward()
    assert logits.grad is not None
    for row, column in [(0, 1), (0, 0), (0, 4), (1, 2), (1, 0), (2, 3), (2, 4)]:
        values = []
        for step in (1e-3, -1e-3):
            moved = logits.detach().double()
            moved[row, column] += step
            rows = dict(enumerate(moved.softmax(-1).tolist()))
            values.append(slow_ngram_kl(one, rows, 0))
        assert logits.grad[row, column].item() == pytest.approx((values[0] - values[1]) / 2e-3, abs=1e-4)


def test_padding_changes_nothing() -> None:
    logits = torch.randn(3, 9, generator=torch.Generator().manual_seed(2))
    ids, p = torch.tensor([[4, 1], [0, 8], [2, 3]]), torch.tensor([[0.5, 0.2], [0.3, 0.3], [0.9, 0.05]])
    padded_ids = torch.nn.functional.pad(ids, (0, 3), value=-1)
    padded_p = torch.nn.functional.pad(p, (0, 3))
    for kind in DIVERGENCES:
        plain = losses.direct_divergence(logits, ids, p, kind)
        torch.testing.assert_close(losses.direct_divergence(logits, padded_ids, padded_p, kind), plain)
    wide = trace([0, 1], [(1, 1)], [0.5], [{0: 0.4, 1: 0.3, 2: 0.1}])
    narrow = trace([0, 1], [(1, 1)], [0.5], [{1: 0.4}])
    assert losses.positions([narrow, wide]).top_ids.tolist() == [[1, -1, -1], [0, 1, 2]]


@pytest.mark.parametrize("kind", DIVERGENCES)
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


def test_extremes_of_the_ngram_kl_stay_finite() -> None:
    """Followed for certain, left for certain, and a target that is sure of the n-gram or of anything else."""
    for p, top in [(1.0, {1: 0.0}), (0.0, {1: 1.0}), (1e-9, {3: 1.0}), (0.3, {0: 0.7})]:
        at = losses.positions([trace([0, 1, 2], [(1, 2)], [p], [top])])
        for first, second in [(300.0, 300.0), (300.0, -300.0), (-300.0, 300.0), (0.0, 300.0), (300.0, 15.0)]:
            logits = torch.zeros(2, 5)
            logits[0, 1], logits[1, 2] = first, second
            logits.requires_grad_()
            found = losses.ngram_divergence(logits, at)
            found.sum().backward()
            assert found.isfinite().all() and logits.grad is not None and logits.grad.isfinite().all()


def test_errors_only_keeps_what_was_not_accepted() -> None:
    one = trace(
        [0, 3, 1, 2, 3, 1],
        [(1, 1), (2, 2), (4, 1), (5, 1)],
        [0.9, 0.4, 0.1, 0.2],
        [{3: 0.5}, {0: 0.1}, {2: 0.1}, {1: 0.1}],
    )
    one.accepted[[0, 3]] = False
    at = losses.positions([one], errors_only=True)
    assert at.ids.tolist() == [3, 1] and len(at) == at.direct == 2
    assert losses.positions([one]).ids.tolist() == [3, 3, 1, 1, 2]  # the n-gram last


def test_the_rest_bucket_keeps_its_digits() -> None:
    logits = torch.tensor([[30.0, 0.0, 1.0]])
    _, rest = losses.log_q_with_rest(logits, torch.tensor([[0]]))
    assert rest.item() == pytest.approx(math.log(1 + math.e) - 30.0, abs=1e-5)


def test_no_positions_is_zero_and_differentiable() -> None:
    at = losses.positions([trace([0, 1], [(1, 0)], [0.5], [{0: 0.5}])])
    empty = torch.zeros(0, 4, requires_grad=True)
    found = losses.distillation(empty, at)
    found.total.backward()
    assert found.total.item() == found.direct.item() == found.ngram.item() == 0.0 and len(at) == 0


def test_newest_drops_the_oldest_part_consistently() -> None:
    top = [{0: 0.1}, {1: 0.2}, {2: 0.3}, {3: 0.4}]
    whole = trace([10, 11, 12, 13, 14, 15], [(1, 1), (2, 2), (4, 1), (5, 1)], [0.1, 0.2, 0.3, 0.4], top)
    assert losses.newest(whole, 6) is whole
    # 12 13 14 15: the n-gram at 2 has lost the row that predicts its first token
    cut = losses.newest(whole, 4)
    assert (
        cut.drafter_ids.tolist() == [12, 13, 14, 15]
        and cut.starts.tolist() == [2, 3]
        and cut.lengths.tolist() == [1, 1]
    )
    assert cut.top_ids.tolist() == [[2], [3]] and cut.p.tolist() == pytest.approx([0.3, 0.4])
    assert [int(cut.drafter_ids[start]) for start in cut.starts] == [14, 15]
