"""Pictures. The only importer of matplotlib (extra ``partwise[plot]``); needs no display.

Every picture takes a `partwise.Result`, a fitted estimator or a bare array, and is a matplotlib ``Figure`` that you can
save (``figure.savefig("parts.png")``), change, or draw into another one (``figure=``).
"""

from .compare import compare
from .gallery import gallery, new_figure
from .heat import activations
from .history import convergence, sparsity_histogram
from .selection import selection

__all__ = [
    "activations",
    "compare",
    "convergence",
    "gallery",
    "new_figure",
    "selection",
    "sparsity_histogram",
]
