"""Answers that are written many at once are those that are written alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from omnidemo.backends import compile_kernels
from omnidemo.backends.batched_writer import LEAST, BatchedWriter, Order
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.models.load import load_model
from tests.support.gguf_files import tiny_model, write_gguf

PROMPTS = [[3, 9, 4], [5, 6, 7, 8, 9, 10, 11], [12], [20, 21], [30, 31, 32, 33]]


@pytest.fixture(scope="module")
def runner() -> FusedLlama:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16, max_position_embeddings=128, initializer_range=0.3,
    )  # fmt: skip
    return FusedLlama(LlamaForCausalLM(config).eval().requires_grad_(False))


def order(number: int, temperature: float = 0.0, length: int = 12) -> Order:
    return Order("s", str(number), number, length, temperature)


def written(
    runner: FusedLlama, orders: list[tuple[list[int], list[Order]]], rows: int, ends: tuple[int, ...] = ()
) -> dict[str, list[int]]:
    found = list(BatchedWriter(runner, ends, rows, positions=64).write(orders))
    assert all(len(answer.ids) == len(answer.labels) == len(answer.probs) for answer in found)
    return {answer.order: answer.ids for answer in found}


def test_rows_do_not_see_each_other(runner: FusedLlama) -> None:
    orders = [(prompt, [order(number), order(number, 0.9)]) for number, prompt in enumerate(PROMPTS)]
    alone = [written(runner, [one], 1) for one in orders]
    assert written(runner, orders, 3) == {name: ids for one in alone for name, ids in one.items()}


def check_against_the_model_itself(runner: FusedLlama) -> None:
    for answer in BatchedWriter(runner, (), 4, positions=64).write(
        (prompt, [order(number)]) for number, prompt in enumerate(PROMPTS)
    ):
        assert answer.labels is not None and answer.labels.shape == (len(answer.ids), 4)
        assert answer.labels[:, 0].tolist() == answer.ids
        cache = runner.new_cache()
        rows = cache.forward([*answer.prompt, *answer.ids[:-1]], len(answer.ids)).logits
        values, ids = torch.as_tensor(rows).softmax(-1).topk(4)
        probable = values >= LEAST
        assert torch.where(probable, ids, -1).tolist() == answer.labels.tolist()
        assert np.allclose(torch.where(probable, values, 0).numpy(), answer.probs, atol=1e-4)


def test_what_is_written_is_what_the_model_itself_writes(runner: FusedLlama) -> None:
    check_against_the_model_itself(runner)


def test_and_so_it_is_in_whole_numbers(tmp_path: Path) -> None:
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 8}
    path = write_gguf(tmp_path / "m.gguf", tiny_model(**sizes, num_key_value_heads=2), "Q4_1")
    runner = load_model(str(path), device="cpu", packed=True).runner
    assert isinstance(runner, FusedLlama) and runner.form == "packed"
    check_against_the_model_itself(runner)


def test_top_k_is_kept(runner: FusedLlama) -> None:
    one = Order("s", "0", 1, 12, 5.0, top_k=1)
    (only,) = BatchedWriter(runner, (), 1, positions=64).write([(PROMPTS[0], [one])])
    assert only.labels is not None and only.ids == only.labels[:, 0].tolist()


def test_nothing_is_added_to_the_machine_code(runner: FusedLlama) -> None:
    """More of it would not fit its sums, and the next start of the app would compile everything again."""
    folder = Path(compile_kernels._folder())
    before = compile_kernels._sums(folder)
    assert written(runner, [(PROMPTS[0], [order(0), order(1, 0.9)])], 2)
    assert compile_kernels._sums(folder).keys() == before.keys()


def test_who_holds_the_writer_up_may_end_it(runner: FusedLlama) -> None:
    steps = iter(range(5))

    def hold() -> None:
        if next(steps) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        list(BatchedWriter(runner, (), 1, positions=64, hold=hold).write([(PROMPTS[0], [order(0)])]))


def test_an_answer_ends_with_its_end_token_at_its_length_or_in_a_loop(runner: FusedLlama) -> None:
    (free,) = written(runner, [(PROMPTS[0], [order(0)])], 1).values()
    end = next(token for token in free[1:] if token != free[0])
    (ended,) = written(runner, [(PROMPTS[0], [order(0)])], 1, (end,)).values()
    assert ended == free[: free.index(end) + 1]
    assert len(free) == 12
    reasons = [
        answer.reason
        for answer in BatchedWriter(runner, (), 1, positions=64).write([(PROMPTS[0], [order(0, length=60)])])
    ]
    assert reasons in (["loop"], ["length"])
