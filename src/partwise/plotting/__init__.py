"""Plots with matplotlib; no display is needed.

Every function takes a `partwise.Result`, a fitted estimator or an array, and returns a matplotlib ``Figure`` to save
(``figure.savefig("parts.png")``) or modify. ``figure=`` draws into an existing figure.
"""

from .charts import activations, convergence, sparsity_histogram
from .figures import new_figure
from .gallery import compare, gallery
from .selection import selection

__all__ = ["activations", "compare", "convergence", "gallery", "new_figure", "selection", "sparsity_histogram"]
