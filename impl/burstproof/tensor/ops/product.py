"""Shape of a matrix product, as the operation and cuBLAS both need it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """Shape of a matrix product.

    Attributes
    ----------
    batch : tuple of int
        Leading axes of the result.
    rows, columns, inner : int
        Of one product: (rows, inner) times (inner, columns).
    """

    batch: tuple[int, ...]
    rows: int
    columns: int
    inner: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.batch, self.rows, self.columns)
