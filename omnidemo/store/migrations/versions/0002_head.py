"""The loss of the acceptance head beside the drafter's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("training_steps", sa.Column("loss_head", sa.Float))


def downgrade() -> None:
    with op.batch_alter_table("training_steps") as table:
        table.drop_column("loss_head")
