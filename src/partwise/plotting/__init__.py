"""Plots with matplotlib; no display is needed.

Every function takes a `partwise.Result`, a fitted estimator or an array, and returns a matplotlib ``Figure`` to save
(``figure.savefig("parts.png")``) or modify. ``figure=`` draws into an existing figure.
"""

from .charts import activations, convergence, sparsity_histogram
from .consensus import clustergram, clustermap, ranks
from .figures import new_figure
from .gallery import compare, gallery
from .selection import selection

__all__ = [
    "activations",
    "clustergram",
    "clustermap",
    "compare",
    "convergence",
    "gallery",
    "new_figure",
    "ranks",
    "selection",
    "sparsity_histogram",
]
