"""A literal network that reads real vectors: the fixed-point projection as d ordinary weights in front of it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from memcap.data.projection import WIDEST_GRID, VectorProjection
from memcap.errors import DomainError
from memcap.model.literal import LiteralNetwork


class ProjectedNetwork(nn.Module):
    """Vectors in, label numbers out.

    Coordinates are rounded to multiples of 2^-s; the integers of the grid meet the weights ``u`` exactly, because both
    stay far below 2^53.

    Args:
        network: the network on token ids.
        projection: vectors to token ids.
    """

    def __init__(self, network: LiteralNetwork, projection: VectorProjection) -> None:
        super().__init__()
        self.network = network
        self.scale = 2.0**projection.scale_bits
        self.size = projection.size
        self.weight = nn.Parameter(torch.tensor(projection.weights, dtype=torch.float64))
        self.bias = nn.Parameter(torch.tensor(float(projection.offset), dtype=torch.float64))

    def forward(self, vectors: Tensor) -> Tensor:
        """Label numbers, as `LiteralNetwork.forward`.

        Args:
            vectors: float (rows, length, d), or (rows, d) for one-token sequences.

        Raises:
            DomainError: for a vector outside the region of the data, or of another shape.
        """
        dimension = len(self.weight)
        if vectors.ndim not in (2, 3) or vectors.shape[-1] != dimension:
            raise DomainError(
                f"expected vectors (rows, length, {dimension}), or (rows, {dimension}) for one-token sequences, "
                f"got shape {tuple(vectors.shape)}"
            )
        grid = torch.round(vectors.to(torch.float64) * self.scale)
        if not bool((grid.abs() < WIDEST_GRID).all()):  # also refuses NaN
            raise DomainError("a vector lies far outside the radius of the data, or is not finite")
        ids = (grid @ self.weight + self.bias).to(torch.int64)
        if ids.numel() and bool(((ids < 0) | (ids >= self.size)).any()):
            raise DomainError("a vector is outside the region the data fill; it is no token of the data")
        if ids.ndim == 2 and ids.shape[1] == 1 and not self.network.reads_tokens:
            ids = ids[:, 0]  # a one-token sequence is the key itself
        answer: Tensor = self.network(ids)
        return answer
