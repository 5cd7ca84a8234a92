"""Dense chunks of an X with many zeros, such as counts of genes or words that were stored as a dense array."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ..runtime.compiled import kernel
from ..statistics import Array
from .dense import DenseData
from .sparse import SparseData

FEW = 0.1  # of the entries: if so many are nonzero, finding them takes less time than the products with the others


class DenseChunk(DenseData):
    """A dense array. If few entries are nonzero, its products use only these."""

    @cached_property
    def nonzeros(self) -> SparseData | None:
        """The nonzeros, found at the first product; None if there are many."""
        rows = self.matrix if self.matrix.flags.c_contiguous else self.matrix.T
        room = int(FEW * rows.size) + rows.shape[1]
        values, indices = np.empty(room, dtype=rows.dtype), np.empty(room, dtype=np.int32)
        starts = np.zeros(len(rows) + 1, dtype=np.int64)
        if not find_nonzeros(rows, values, indices, starts):
            return None
        found = (values[: starts[-1]], indices[: starts[-1]], starts)
        form = sp.csr_array if self.matrix.flags.c_contiguous else sp.csc_array
        data = SparseData(form(found, shape=self.shape), check=False)
        data.arrangements = self.arrangements
        return data

    def multiply(self, rest: Array, mode: int, out: Array) -> None:
        if self.nonzeros is None:
            super().multiply(rest, mode, out)
        else:
            self.nonzeros.multiply(rest, mode, out)

    def multiply_wide(self, rests: Sequence[Array], mode: int, out: Array) -> None:
        if self.nonzeros is None:
            super().multiply_wide(rests, mode, out)
        else:
            self.nonzeros.multiply_wide(rests, mode, out)


@kernel
def find_nonzeros(rows: Array, values: Array, indices: Array, starts: Array) -> bool:
    """Write the nonzeros of compressed rows. Returns False if more than ``values`` has room for, less one row."""
    for i in range(len(rows)):
        row, k = rows[i], starts[i]
        for j in range(row.size):  # without a branch: an entry is overwritten by the next one, unless it is nonzero
            values[k], indices[k] = row[j], j
            k += row[j] != 0
        if k > values.size - row.size:
            return False
        starts[i + 1] = k
    return True
