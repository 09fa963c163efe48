"""The layer of the feature drafter: what guesses are made of, in training and along answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor

NORM = 1e-6  # added to a mean of squares


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Its weights by name, for a target's states of H numbers and V tokens, of which it guesses K: `kept`
    [K], `table` [K + 1, W], `head` [K, W], `enter` [W, H], `own` and `read` [W, W], `gate` and `up` [I, W],
    `down` [W, I], `scale` [W].

    A state s and a token t give z = own·norm(s) + read·norm(table[t]), the next state z + down(silu(gate) ·
    up) of norm(z), and logits head·norm of that. Tokens that are not kept share the last row of the table."""

    named: Mapping[str, Tensor]
    vocabulary: int
    places: Tensor = field(init=False)  # of each token [V] in the table

    def __post_init__(self) -> None:
        kept = self.named["kept"].long()
        places = torch.full((self.vocabulary,), len(kept), device=kept.device)
        places[kept] = torch.arange(len(kept), device=kept.device)
        object.__setattr__(self, "places", places)

    def enters(self, states: Tensor) -> Tensor:
        """The target's states [n, H] as its own [n, W]."""
        return norm(states) @ self.named["enter"].T

    def step(self, states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(its next states [n, W], logits [n, K]) behind its states [n, W] and `tokens` [n]."""
        named = self.named
        read = F.embedding(self.places[tokens], named["table"])
        z = norm(states) @ named["own"].T + norm(read) @ named["read"].T
        y = norm(z)
        z = z + (F.silu(y @ named["gate"].T) * (y @ named["up"].T)) @ named["down"].T
        return z, (norm(z) * named["scale"]) @ named["head"].T


def norm(x: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + NORM).rsqrt()


def save(model: Features, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({**model.named, "vocabulary": torch.tensor([model.vocabulary])}, path)


def load(path: Path) -> Features:
    named = load_file(path)
    return Features(named, int(named.pop("vocabulary")))
