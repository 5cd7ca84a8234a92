"""Data to try things on: generators that know their parts, and the sets that the paper uses.

Generators (`bars`, `swimmer`, `planted`, `nine_by_nine`, `brain_volume`) give a `Known`: X, and the factors that it is
made of. Loaders (`load_digits`, `load_orl`, `load_cbcl`, `load_smri`, `load_swimmer`) give X and
the shape of a picture, or the mask of a volume.
"""

from .bars import bars
from .brain import brain_volume
from .faces import load_cbcl, load_orl
from .known import Known
from .nine_by_nine import nine_by_nine
from .pgm import read_pgm
from .planted import planted
from .small import load_digits, load_swimmer
from .smri import load_smri
from .swimmer import swimmer

__all__ = [
    "Known",
    "bars",
    "brain_volume",
    "load_cbcl",
    "load_digits",
    "load_orl",
    "load_smri",
    "load_swimmer",
    "nine_by_nine",
    "planted",
    "read_pgm",
    "swimmer",
]
