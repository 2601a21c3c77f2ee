"""The result of asking a memory for every item of a data set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recall:
    """How many items a memory returns correctly.

    Attributes:
        correct: items whose stored label is returned exactly.
        total: items asked (sequences, or real positions for sequence to sequence).
        wrong: 1-based rows of the data that are not recalled.
        ties: items without a unique answer (the output is no label at all); they count as not recalled.
    """

    correct: int
    total: int
    wrong: tuple[int, ...] = ()
    ties: int = 0

    @property
    def fraction(self) -> float:
        """Recall in [0, 1]."""
        return self.correct / self.total

    def __str__(self) -> str:
        return f"{self.correct:,} / {self.total:,} recalled"
