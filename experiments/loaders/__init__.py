"""Loaders of the paper's data, from local files or downloaded: ORL and CBCL faces, and grey matter of 185 subjects.

Each returns X and the shape of an image, or the brain mask. Licences and sources are in docs/reproduction.md.
"""

from .faces import load_cbcl, load_orl
from .smri import load_smri

__all__ = ["load_cbcl", "load_orl", "load_smri"]
