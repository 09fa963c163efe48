"""Rollouts on a GPU: read a token, draw the next, follow the trie, and again, with one synchronisation at the
end.

A step has fixed shapes and addresses and needs nothing from the host, so it is recorded once as a CUDA graph
and replayed. It mirrors `NgramExact.draft`, which stays the definition: the host walks again over these
draws.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from omnidemo.backends.cuda_graphs import GraphCache, KVBuffer, Outputs, fixed_pass, lock
from omnidemo.decoding.rollout import DRAWS, ProposalRule, Rollout, RolloutRequest
from omnidemo.decoding.sampling import SamplingParams, drawn_at
from omnidemo.vocabulary.trie_table import NOWHERE, TrieTable

if TYPE_CHECKING:
    from omnidemo.backends.fused_llama import FusedLlama

# most tokens that one rollout reads; a step makes at most two draws, and one comes before the first step
STEPS = 16
MARGIN = STEPS + 2  # free positions that a rollout needs in the KV buffer
# drafter tokens drawn together where the draft may end after each slot: more are often discarded, and fewer
# let the host wait more often
FEW = 4
MOST_RECORDINGS = 4  # that a KV buffer keeps, the newest
assert 2 * STEPS + 2 < DRAWS

# The state. Of two numbers the first belongs to the walk under way and the second to the next slot.
AT, TOKEN = 0, 1  # the position of the next token to read, and its id: the inputs of a fixed pass
PLACES = slice(2, 4)  # rows to draw from: after the token that is read next, and after what the slot proposes
LIMITS = slice(4, 6)  # drafter tokens that the slot may use
NODES = slice(6, 8)  # trie nodes: that of the walk, and the root
DRAW_NUMBERS = slice(8, 10)  # the numbers of the draws
COUNT, READ = 10, 11  # draws made, and tokens read and kept
SIZE = 12
# constants of a rollout: positions read before, the first slot's limit, and the limit at which no slot begins
START, TOTAL, FLOOR = 12, 13, 14

# the trie's keys, which must not move; open; step
RecordedStep = tuple[Tensor, Callable[[], Outputs], Callable[[], Outputs]]


class GraphRollout:
    """The rollouts of one runner, with common inputs, state and outputs at fixed addresses.

    A step makes two draws at once: the next one in the walk, and the first one of the next slot, in case the
    walk ends here. Both have to be made before it is known which counts. Further steps do not change a
    finished rollout: they read the same token and draw with the same numbers.
    """

    def __init__(self, runner: FusedLlama, fixed: GraphCache) -> None:
        self.runner, self.fixed = runner, fixed
        device, tokens = runner.device, runner.rows
        whole = partial(torch.zeros, dtype=torch.int64, device=device)
        self.numbers = whole(15)
        self.state = self.numbers[:SIZE]
        self.uniforms = torch.zeros(DRAWS + 1, dtype=torch.float64, device=device)
        # the least limit at which a token may be drawn
        self.least = torch.zeros(2, tokens, dtype=torch.int32, device=device)
        # no token of a walk is a slot by itself
        self.alone = torch.zeros(2, tokens, dtype=torch.bool, device=device)
        self.rule: ProposalRule | None = None  # whose limits `least` and `alone` hold
        self.rows = torch.zeros(STEPS + 2, tokens, device=device)
        self.states = torch.zeros(STEPS + 2, runner.embed.shape[1], dtype=runner.dtype, device=device)
        self.read = whole(STEPS + 2)  # tokens, by the row after them
        # the last of each is for draws that do not count
        self.places, self.ids = whole(DRAWS + 1), whole(DRAWS + 1)
        self.probabilities = torch.zeros(DRAWS + 1, device=device)
        self.distributions = torch.zeros(DRAWS + 1, tokens, device=device)
        self.one, self.root = whole(1), whole(2)

    def roll_out(
        self, kv: KVBuffer, start: int, order: RolloutRequest, row: Tensor, state: Any
    ) -> Rollout | None:
        """Draw from the logits `row` [D] and the `state` [H] after the `start` positions in the KV buffer,
        which has room for `MARGIN` more. None the first time, because a first answer must not wait for a
        recording, and after a failed recording."""
        key = (order.sampling, id(order.rule.trie.keys))
        if self.fixed.record is None:
            return None
        if key not in kv.seen:
            kv.seen.add(key)
            return None
        with lock:
            self._begin(start, order, row, state)
            recorded = kv.rollouts.get(key)
            if recorded is None:
                recorded = self._recorded(kv, order.rule.trie, order.sampling)
                if recorded is None:
                    return None
                kv.rollouts[key] = recorded
                while len(kv.rollouts) > MOST_RECORDINGS:
                    kv.rollouts.pop(next(iter(kv.rollouts)))
                self._begin(start, order, row, state)  # a recording also runs the step
            _, open_, step = recorded
            open_()
            for _ in range(steps(order)):
                step()
            return self._fetched(order.states)

    def _begin(self, start: int, order: RolloutRequest, row: Tensor, state: Any) -> None:
        """Set the state for the first draw: a slot has just ended, and no walk is under way."""
        rule, total = order.rule, order.left + order.rule.overrun
        given = [
            start,
            0,
            0,
            0,
            total + 1,
            total,
            NOWHERE,
            0,
            DRAWS,
            0,
            0,
            0,
            start,
            total,
            total - _aim(order),
        ]
        self.numbers.copy_(torch.tensor(given), non_blocking=True)
        if order.uniforms is not None:
            self.uniforms[:DRAWS].copy_(torch.from_numpy(order.uniforms[:DRAWS]), non_blocking=True)
        if rule is not self.rule:
            self.rule = rule
            self.least[0].copy_(rule.inside)
            self.least[1].copy_(rule.first)
            self.alone[1].copy_(rule.alone)
        self.rows[0].copy_(row)
        # numpy's where it has been fetched before
        self.states[0].copy_(torch.as_tensor(state), non_blocking=True)

    def _recorded(self, kv: KVBuffer, trie: TrieTable, sampling: SamplingParams) -> RecordedStep | None:
        open_ = self.fixed.recorded(partial(self._draw, trie, sampling))
        step = self.fixed.recorded(partial(self._step, kv.buffer, trie, sampling)) if open_ else None
        return (trie.keys, open_, step) if open_ and step else None

    def _step(self, buffer: Tensor, trie: TrieTable, sampling: SamplingParams) -> Outputs:
        logits, states = fixed_pass(self.runner, buffer, self.state, self.one, 1)
        row = self.state[PLACES][:1]
        self.rows.index_copy_(0, row, logits.float())
        self.states.index_copy_(0, row, states)
        self.read.index_copy_(0, row, self.state[TOKEN : TOKEN + 1])
        return self._draw(trie, sampling)

    def _draw(self, trie: TrieTable, sampling: SamplingParams) -> Outputs:
        places, limits, draw_numbers = self.state[PLACES], self.state[LIMITS], self.state[DRAW_NUMBERS]
        logits = self.rows.index_select(0, places).masked_fill_(self.least > limits[:, None], float("-inf"))
        if sampling.greedy:
            distributions, drawn = logits, logits.argmax(-1, keepdim=True)
            probabilities = logits.softmax(-1).gather(-1, drawn)
        else:
            distributions = sampling.probs(logits)
            drawn, probabilities = drawn_at(
                distributions, self.uniforms.index_select(0, draw_numbers)[:, None]
            )
        ids = drawn.squeeze(-1)
        self.places.index_copy_(0, draw_numbers, places)
        self.ids.index_copy_(0, draw_numbers, ids)
        self.probabilities.index_copy_(0, draw_numbers, probabilities.squeeze(-1))
        self.distributions.index_copy_(0, draw_numbers, distributions)
        self.state.copy_(self._next(trie, ids))
        return self.state, self.rows

    def _next(self, trie: TrieTable, ids: Tensor) -> Tensor:
        """The state [12] after two draws `ids` [2]: that of the walk going on, that of the next slot, or the
        old one."""
        state = self.state
        places = self.state[PLACES]
        limits = self.state[LIMITS]
        draw_numbers = self.state[DRAW_NUMBERS]
        children = trie.find(state[NODES], ids)
        complete, within, open_ = (trie.info.index_select(0, children) <= limits[:, None]).unbind(1)
        complete = complete | self.alone.gather(1, ids[:, None]).squeeze(1)
        nodes = children.masked_fill(~open_, NOWHERE)  # a walk that cannot become longer has ended
        walking = nodes > 0
        rows, after = places + 1, draw_numbers + 1
        end = torch.where(complete, rows, state[3])  # where the next slot begins
        walk = after.masked_fill(~walking, DRAWS)
        columns = [
            places + self.numbers[START],
            ids,
            rows,
            end,
            limits,
            self.numbers[TOTAL] - end,
            nodes,
            self.root,
        ]
        going = torch.stack([*columns, walk, after + walking, after, places], 1)
        # The draws of this step count, and the token just read was the last.
        staying = torch.cat([state[:10], state[9:10], state[2:3]])
        proposes, affordable = state[5] < state[4], state[5] > self.numbers[FLOOR]
        choice = ((proposes & affordable).long() * 2).masked_fill(within[0], 1)
        return torch.cat([staying[None], going]).index_select(0, choice[None]).squeeze(0)

    def _fetched(self, with_states: bool) -> Rollout:
        """The results, by one transfer."""
        parts = [self.state[COUNT : READ + 1], self.places[:DRAWS], self.ids[:DRAWS], self.read]
        bits = [torch.cat(parts).int(), self.probabilities[:DRAWS].view(torch.int32)]
        if with_states:
            bits.append(self.states.float().view(torch.int32).flatten())
        found = torch.cat(bits).cpu().numpy()
        sizes = (2, DRAWS, DRAWS, STEPS + 2, DRAWS, len(found) - 3 * DRAWS - STEPS - 4)
        (count, read), places, ids, tokens, probabilities, numbers = np.split(found, np.cumsum(sizes)[:-1])
        count, read = int(count), int(read)
        states: Any = (
            numbers.view(np.float32).reshape(STEPS + 2, -1)[: read + 1]
            if with_states
            else self.states[: read + 1].clone()
        )
        return Rollout(
            places[:count].tolist(),
            ids[:count].tolist(),
            probabilities.view(np.float32)[:count].tolist(),
            self.distributions[:count].clone(),
            tokens[1 : read + 1].tolist(),
            self.rows[: read + 1].clone(),
            states,
        )


def roller_of(runner: FusedLlama, fixed: GraphCache) -> GraphRollout:
    """The `GraphRollout` of a runner, made at first use; recordings are tied to its tensors."""
    with lock:
        if fixed.roller is None:
            fixed.roller = GraphRollout(runner, fixed)
        return fixed.roller


def _aim(order: RolloutRequest) -> int:
    return min(
        order.left if order.stop_rule is None else min(order.left, FEW), STEPS + 1 - order.rule.overrun
    )


def steps(order: RolloutRequest) -> int:
    """Tokens that a rollout reads: all drafter tokens that it aims at but the last, and those of a last walk
    beyond the budget. A discarded walk may need more; the host then draws the rest."""
    return max(0, _aim(order) + order.rule.overrun - 1)
