"""Figures of classifiers and of segmentation networks: the share of pictures in the first k, and mean IoU."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

VOID = 255  # of masks: what no class is told of


@dataclass
class TopK:
    """Counts the pictures whose class is among the k that a network gives most; of equal scores the first counts."""

    pictures: int = 0
    first: int = 0
    first_five: int = 0

    def add(self, scores: npt.NDArray[np.float64], label: int) -> None:
        """One picture."""
        ahead = int((scores > scores[label]).sum() + (scores[:label] == scores[label]).sum())
        is_number = not np.isnan(scores[label])
        self.pictures += 1
        self.first += is_number and ahead < 1
        self.first_five += is_number and ahead < 5


@dataclass
class Confusion:
    """Counts the pixels of each true class that a network takes for each."""

    classes: int
    counts: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((self.classes, self.classes), np.int64)

    def add(self, found: npt.NDArray[np.int64], true: npt.NDArray[np.int64]) -> None:
        """One picture; VOID pixels of `true` do not count."""
        told = true != VOID
        pairs = true[told] * self.classes + found[told]
        self.counts += np.bincount(pairs, minlength=self.classes**2).reshape(self.classes, self.classes)

    def mean_iou(self) -> float | None:
        """Of the classes that are there, or that the network takes pixels for; None where nothing is told."""
        both = np.diag(self.counts).astype(np.float64)
        either = self.counts.sum(0) + self.counts.sum(1) - both
        there = either > 0
        return float((both[there] / either[there]).mean()) if there.any() else None
