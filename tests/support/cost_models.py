"""A cost model that knows what a machine takes."""

from __future__ import annotations

from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.cost_table import CostTable


def known(step: float = 0.2, plain: float = 1.0, row: float = 0.1) -> CostModel:
    """One whose prices were measured: seconds of a drafter's step, of a plain round and of a row more."""
    return CostModel(CostTable.linear(plain, row, step, origin="measured", at=1e9))
