"""Data to try things on: generators that know their parts, and small public sets.

Generators (`bars`, `swimmer`, `planted`, `nine_by_nine`, `brain_volume`) give a `GroundTruth`: X, and the factors that
it is made of. `load_digits` and `load_swimmer` give X and the shape of a picture.
"""

from .bars import bars
from .brain import brain_volume
from .ground_truth import GroundTruth
from .nine_by_nine import nine_by_nine
from .planted import planted
from .small import load_digits, load_swimmer
from .swimmer import swimmer

__all__ = [
    "GroundTruth",
    "bars",
    "brain_volume",
    "load_digits",
    "load_swimmer",
    "nine_by_nine",
    "planted",
    "swimmer",
]
