"""Answers that are written many at once are those that are written alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lab.drafters.batched import TOP, BatchedWriter, Order
from omnidemo.backends.fused_llama import FusedLlama

PROMPTS = [[3, 9, 4], [5, 6, 7, 8, 9, 10, 11], [12], [20, 21], [30, 31, 32, 33]]


@pytest.fixture(scope="module")
def runner() -> FusedLlama:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16, max_position_embeddings=128, initializer_range=0.3,
    )  # fmt: skip
    return FusedLlama(LlamaForCausalLM(config).eval().requires_grad_(False), fast=False)


def order(number: int, temperature: float = 0.0, length: int = 12) -> Order:
    return Order(f"t/s/{number}", temperature, number, length)


def written(
    runner: FusedLlama, orders: list[tuple[list[int], list[Order]]], rows: int, ends: tuple[int, ...] = ()
) -> dict[str, list[int]]:
    found = list(BatchedWriter(runner, ends, rows, positions=64).write(orders))
    assert all(len(answer.ids) == len(answer.top) == len(answer.logprobs) for answer in found)
    return {answer.order.id + str(answer.order.temperature): answer.ids for answer in found}


def test_rows_do_not_see_each_other(runner: FusedLlama) -> None:
    orders = [(prompt, [order(number), order(number, 0.9)]) for number, prompt in enumerate(PROMPTS)]
    alone = [written(runner, [one], 1) for one in orders]
    assert written(runner, orders, 3) == {name: ids for one in alone for name, ids in one.items()}


def test_what_is_written_is_probable_for_the_model_itself(runner: FusedLlama) -> None:
    """Products are rounded to bfloat16, so the most probable token may be another where two are close."""
    for answer in BatchedWriter(runner, (), 4, positions=64).write(
        (prompt, [order(number)]) for number, prompt in enumerate(PROMPTS)
    ):
        assert answer.top.shape == answer.logprobs.shape == (len(answer.ids), TOP)
        assert answer.top[:, 0].tolist() == answer.ids
        cache = runner.new_cache()
        logits = torch.as_tensor(
            cache.forward([*answer.prompt, *answer.ids[:-1]], len(answer.ids)).logits
        ).log_softmax(-1)
        exact = logits.gather(1, torch.from_numpy(answer.top.astype(np.int64)))
        assert (exact - torch.from_numpy(answer.logprobs.astype(np.float32))).abs().mean() < 0.2
        assert (logits.amax(-1) - exact[:, 0]).max() < 0.5


def test_an_answer_ends_with_its_end_token_at_its_length_or_in_a_loop(runner: FusedLlama) -> None:
    (free,) = written(runner, [(PROMPTS[0], [order(0)])], 1).values()
    end = next(token for token in free[1:] if token != free[0])
    (ended,) = written(runner, [(PROMPTS[0], [order(0)])], 1, (end,)).values()
    assert ended == free[: free.index(end) + 1]
    assert len(free) == 12
    reasons = [
        answer.reason
        for answer in BatchedWriter(runner, (), 1, positions=64).write([(PROMPTS[0], [order(0, length=500)])])
    ]
    assert reasons in (["loop"], ["length"])
