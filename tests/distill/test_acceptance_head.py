"""The acceptance head, what it learns from, and what the drafter would propose: hand-computed values and a
slow reference."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from omnidemo.core.records import Trace
from omnidemo.learning.distill import losses, trace_agreement
from omnidemo.learning.distill.head_training import HeadTrainer
from omnidemo.models.adapters import acceptance_head


def logits_of(*rows: list[float]) -> torch.Tensor:
    """Logits (with an arbitrary shift per row) of the given probabilities."""
    return torch.tensor(rows).log() + torch.arange(len(rows))[:, None] * 3.0


def trained(width: int = 12) -> dict[str, torch.Tensor]:
    """Weights far from the fresh ones."""
    generator = torch.Generator().manual_seed(5)
    fresh = acceptance_head.fresh(width, 1)
    return {
        name: tensor + torch.randn(tensor.shape, generator=generator) * 0.3 for name, tensor in fresh.items()
    }


# --- the network --------------------------------------------------------------------------------------------


def test_numpy_and_torch_give_the_same() -> None:
    weights = trained()
    generator = torch.Generator().manual_seed(1)
    hidden, log_q = torch.randn(30, 12, generator=generator) * 7, -torch.rand(30, generator=generator) * 20
    fast = acceptance_head.NumpyHead(weights)
    there = torch.sigmoid(acceptance_head.logit(weights, hidden, log_q))
    here = [fast(row.numpy(), float(value)) for row, value in zip(hidden, log_q, strict=True)]
    assert here == pytest.approx(there.tolist(), abs=1e-5) and len(set(here)) > 20
    assert all(isinstance(one, float) for one in here) and fast(np.zeros(12, np.float32), -1e9) < 1e-6


def test_one_block_by_hand() -> None:
    weights = acceptance_head.fresh(2)
    weights["block0.weight"] = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    weights["out.weight"], weights["out.bias"] = torch.tensor([1.0, 2.0, 3.0]), torch.tensor(0.5)
    # h = (3, 4): rms = sqrt(12.5). x = (3, 4)/rms, −1. The block adds SiLU(−1) = −1/(1 + e) to the first.
    rms = math.sqrt(12.5)
    expected = 3 / rms - 1 / (1 + math.e) + 2 * 4 / rms - 3 + 0.5
    found = acceptance_head.logit(weights, torch.tensor([[3.0, 4.0]]), torch.tensor([-1.0]))
    assert found.item() == pytest.approx(expected, abs=1e-5)


def test_a_fresh_head_believes_the_drafter() -> None:
    torch.manual_seed(0)
    q = torch.linspace(0.05, 1, 20)
    p = torch.sigmoid(acceptance_head.logit(acceptance_head.fresh(8), torch.randn(20, 8), q.log()))
    assert (p - q).abs().max() < 0.2 and (p.diff() > 0).all()


def test_only_whole_finite_weights_of_the_right_width_fit() -> None:
    good = acceptance_head.fresh(6)
    assert (
        acceptance_head.fits(good, 6)
        and not acceptance_head.fits(good, 7)
        and not acceptance_head.fits({}, 6)
    )
    assert not acceptance_head.fits(good | {"out.bias": torch.tensor(math.nan)}, 6)
    assert not acceptance_head.fits(
        {name: tensor for name, tensor in good.items() if name != "block0.bias"}, 6
    )


# --- the loss -----------------------------------------------------------------------------------------------


def test_slot_loss_by_hand() -> None:
    p = torch.tensor([0.8, 0.5, 0.9])  # the first two tokens are one slot: 0.4
    logits = torch.logit(p)
    labels = torch.tensor([1.0, 0.3])
    plain = (-math.log(0.4) - 0.3 * math.log(0.9) - 0.7 * math.log(0.1)) / 2
    slot = torch.tensor([0, 0, 1])
    assert acceptance_head.slot_loss(logits, slot, labels).item() == pytest.approx(plain, abs=1e-5)
    assert acceptance_head.slot_log_probability(logits, slot, 2).exp().tolist() == pytest.approx([0.4, 0.9])


def test_slot_loss_stays_finite_at_the_ends() -> None:
    logits = torch.tensor([200.0, -200.0, 40.0, 200.0, 200.0], requires_grad=True)
    loss = acceptance_head.slot_loss(
        logits, torch.tensor([0, 1, 2, 3, 3]), torch.tensor([0.0, 1.0, 0.0, 1.0])
    )
    loss.backward()
    assert loss.isfinite() and logits.grad is not None and logits.grad.isfinite().all()
    # sure of what was rejected: pulled down with full strength
    assert logits.grad[2] == pytest.approx(0.25, rel=1e-3)


def test_steps_find_the_rate_that_the_labels_have() -> None:
    """Acceptance hangs on one number of the state; a trained head is calibrated on both of its values."""
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(400, 8, generator=generator)
    states[:, 0] = torch.where(torch.arange(400) < 200, 4.0, -4.0)
    labels = (torch.rand(400, generator=generator) < torch.where(states[:, 0] > 0, 0.9, 0.2)).float()
    seen = trace_agreement.Slots(torch.arange(400), torch.arange(400), torch.full((400,), -0.5), labels)
    trainer = HeadTrainer({}, {}, 3e-3, 1.0, 0)
    found = [trainer.step(states, seen) for _ in range(300)]
    p = torch.sigmoid(acceptance_head.logit(trainer.weights(), states, seen.log_q))
    assert found[-1] < found[0] and trainer.taken == 300
    for part in (slice(0, 200), slice(200, 400)):
        assert p[part].mean().item() == pytest.approx(labels[part].mean().item(), abs=0.05)


# --- what the drafter proposes ------------------------------------------------------------------------------


def a_trace(temperature: float) -> Trace:
    """Direct (drafter id 3), a 2-gram (1, 2), a direct (0), a 2-gram (2, 3), a direct (1); the rows are those
    of `LOGITS`."""
    top = [{3: 0.5, 1: 0.3}, {1: 0.2, 0: 0.1}, {0: 0.6, 2: 0.3}, {0: 0.1, 3: 0.1}, {1: 0.7, 0: 0.1}]
    return Trace(
        drafter_ids=np.array([0, 3, 1, 2, 0, 2, 3, 1]),
        starts=np.array([1, 2, 4, 5, 7]),
        lengths=np.array([1, 2, 1, 2, 1]),
        accepted=np.array([True, True, False, False, True]),
        p=np.array([0.5, 0.4, 0.6, 0.3, 0.7], dtype=np.float32),
        top_ids=np.array([list(row) for row in top]),
        top_p=np.array([list(row.values()) for row in top], dtype=np.float32),
        temperature=temperature,
    )


DIRECT = logits_of([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.6, 0.2, 0.1, 0.1])
SUB = logits_of([0.1, 0.5, 0.2, 0.2], [0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.7, 0.1], [0.6, 0.2, 0.1, 0.1])
LOGITS = torch.cat([DIRECT, SUB])


def test_slots_at_temperature_zero_by_hand() -> None:
    """The second 2-gram is followed to its second sub-token and missed there; the last direct token is
    missed."""
    at = losses.positions([a_trace(0.0)])
    assert at.direct == 3 and at.owner.tolist() == [0, 1, 2, 3, 3, 4, 4]
    found = trace_agreement.slots(LOGITS, at)
    assert found.labels.tolist() == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert found.rows.tolist() == [0, 1, 2, 3, 4, 5, 6] and found.slot.tolist() == [0, 1, 2, 3, 3, 4, 4]
    assert found.log_q.exp().tolist() == pytest.approx([0.4, 0.4, 0.6, 0.5, 0.7, 0.7, 0.6])
    # the first 2-gram is left at once: one token, no second
    missed = trace_agreement.slots(torch.cat([DIRECT, SUB[[3, 1, 2, 3]]]), at)
    assert (
        missed.rows.tolist() == [0, 1, 2, 3, 5, 6]
        and missed.slot.tolist() == [0, 1, 2, 3, 4, 4]
        and missed.labels[3] == 0
    )
    assert trace_agreement.expected(LOGITS, at).tolist() == [1.0, 1.0, 0.0, 1.0, 0.0]


def test_labels_above_zero_are_the_acceptance_ratios() -> None:
    """At temperature 1, whatever is drawn: min(1, p/q) of that token, of a followed 2-gram min(1, p/Πq), 0
    outside the top."""
    at = losses.positions([a_trace(1.0)])
    target, drafter = {3: 0.5, 1: 0.3}, [0.1, 0.2, 0.3, 0.4]
    seen_direct, seen_ngram = set(), set()
    for seed in range(60):
        found = trace_agreement.slots(LOGITS, at, torch.Generator().manual_seed(seed))
        q = found.log_q.exp()
        drawn = int((torch.tensor(drafter) - q[0]).abs().argmin())
        assert found.labels[0].item() == pytest.approx(
            min(1.0, target.get(drawn, 0.0) / drafter[drawn]), abs=1e-5
        )
        seen_direct.add(drawn)
        mine = found.slot == 3
        if mine.sum() == 2 and found.labels[3] > 0:
            assert q[mine].tolist() == pytest.approx([0.5, 0.7])
            assert found.labels[3].item() == pytest.approx(1.0)  # 0.4 / 0.35
            seen_ngram.add("whole")
        elif mine.sum() == 2:
            seen_ngram.add("left")
        else:
            first = q[mine].item()
            assert found.labels[3].item() in (pytest.approx(1.0, abs=1e-4), 0.0) and first in (
                pytest.approx(0.1),
                pytest.approx(0.2),
            )
            seen_ngram.add("alone")
    assert seen_direct == {0, 1, 2, 3} and seen_ngram == {"whole", "left", "alone"}


def test_drawing_is_seeded_and_follows_q() -> None:
    many = 4000
    trace = Trace(
        np.zeros(many + 1, np.int64), np.arange(1, many + 1), np.ones(many, np.int64), np.ones(many, bool),
        np.ones(many, np.float32),
        np.zeros((many, 1), np.int64), np.full((many, 1), 0.5, np.float32), temperature=0.5,
    )  # fmt: skip
    at = losses.positions([trace])
    logits = logits_of([0.2, 0.4, 0.4]).expand(many, 3)
    draw = lambda seed: trace_agreement.slots(logits, at, torch.Generator().manual_seed(seed))  # noqa: E731
    once, again, other = draw(1), draw(1), draw(2)
    assert torch.equal(once.log_q, again.log_q) and not torch.equal(once.log_q, other.log_q)
    share = (once.log_q < math.log(0.3)).float().mean().item()
    # q at temperature 0.5; log q is that of temperature 1
    assert share == pytest.approx(0.04 / (0.04 + 2 * 0.16), abs=0.02)


def test_the_targets_law_at_its_temperature() -> None:
    p, ngram = trace_agreement.target_probs(
        torch.tensor([[0, 2, -1]]), torch.tensor([[0.5, 0.2, 0.0]]), torch.tensor([0.2]), torch.tensor([0.5])
    )
    total = 0.25 + 0.04 + 0.04 + 0.01
    assert p.tolist()[0] == pytest.approx(
        [0.25 / total, 0.04 / total, 0.0]
    ) and ngram.item() == pytest.approx(0.04 / total)
    cold, _ = trace_agreement.target_probs(
        torch.tensor([[0, 1]]), torch.tensor([[0.6, 0.4]]), torch.zeros(1), torch.tensor([0.005])
    )
    assert cold.isfinite().all() and cold[0, 0] > 0.999


@pytest.mark.parametrize("temperature", [0.0, 0.6, 1.0, 1.5])
def test_expected_acceptance_equals_a_slow_reference(temperature: float) -> None:
    trace = a_trace(temperature)
    at = losses.positions([trace])
    found = trace_agreement.expected(LOGITS, at).tolist()
    rows = {0: DIRECT[0], 3: DIRECT[1], 6: DIRECT[2], 1: SUB[0], 2: SUB[1], 4: SUB[2], 5: SUB[3]}
    slow = slow_expected(trace, rows)
    assert found == pytest.approx([slow[position] for position in (0, 2, 4, 1, 3)])  # the n-grams last


def slow_expected(trace: Trace, rows: dict[int, torch.Tensor]) -> list[float]:
    """One position at a time, with Python numbers; `rows` by the place of the logits row."""
    heat = trace.temperature or 1.0
    values = []
    for position, (start, length) in enumerate(zip(trace.starts, trace.lengths, strict=True)):
        ids = [int(one) for one in trace.drafter_ids[start : start + length]]
        laws = [(rows[int(start) + j - 1] / heat).softmax(-1).tolist() for j in range(length)]
        if not trace.temperature:
            values.append(
                float(
                    all(max(range(4), key=law.__getitem__) == one for law, one in zip(laws, ids, strict=True))
                )
            )
            continue
        p = {
            int(one): float(value)
            for one, value in zip(trace.top_ids[position], trace.top_p[position], strict=True)
        }
        own = float(trace.p[position]) if length > 1 else 0.0
        total = sum(
            value ** (1 / heat) for value in [*p.values(), own, 1 - sum(p.values()) - own] if value > 1e-9
        )
        product = math.prod(law[one] for law, one in zip(laws, ids, strict=True)) if length > 1 else 0.0
        value = min(own ** (1 / heat) / total, product) if own else 0.0
        for one, mass in p.items():
            value += min(
                mass ** (1 / heat) / total, laws[0][one] - (product if length > 1 and one == ids[0] else 0.0)
            )
        values.append(value)
    return values


def test_no_positions() -> None:
    at = losses.positions([replace(a_trace(0.0), lengths=np.zeros(5, np.int64))])
    empty = torch.zeros(0, 4)
    found = trace_agreement.slots(empty, at)
    assert len(found.rows) == len(found.labels) == 0 and len(trace_agreement.expected(empty, at)) == 0
