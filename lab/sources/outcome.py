"""A table of this folder, with the sentence that says what it brings."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from lab.drafters.score import table


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str  # of its file
    title: str
    heads: list[str]
    rows: list[list[str]]
    says: str

    @property
    def markdown(self) -> str:
        return f"### {self.title}\n\n{table(self.heads, self.rows)}\n\n{self.says}"

    def write(self, folder: Path) -> None:
        """As CSV."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([self.heads, *self.rows])
