"""The loss of the acceptance head beside the drafter's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("training_steps", sa.Column("loss_head", sa.Float))
