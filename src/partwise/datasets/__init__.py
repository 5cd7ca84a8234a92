"""Synthetic data with known parts, and small public datasets.

The generators (`bars`, `swimmer`, `planted`, `nine_by_nine`, `brain_volume`) return a `GroundTruth`: X and its true
factors. `load_digits` and `load_swimmer` return X and the shape of an image.
"""

from .small import load_digits, load_swimmer
from .synthetic import GroundTruth, bars, brain_volume, nine_by_nine, planted, swimmer

__all__ = ["GroundTruth", "bars", "brain_volume", "load_digits", "load_swimmer", "nine_by_nine", "planted", "swimmer"]
