"""The paper's data, from files of one's own or downloaded: the ORL and CBCL faces, and grey matter of 185 people.

Each gives X and the shape of a picture, or the mask of a volume. Terms and sources are in docs/reproduction.md.
"""

from .faces import load_cbcl, load_orl
from .smri import load_smri

__all__ = ["load_cbcl", "load_orl", "load_smri"]
