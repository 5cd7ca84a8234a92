"""Loaders of data, from local files or downloaded.

The paper's data are ORL and CBCL faces, and grey matter of 185 subjects: X, and the shape of an image or the brain
mask. Benchmarks of sparse X also use counts of words and of genes: X, and a label for each sample. Licences and sources
are in docs/reproduction.md.
"""

from .counts import load_newsgroups, load_pbmc
from .faces import load_cbcl, load_orl
from .smri import load_smri

__all__ = ["load_cbcl", "load_newsgroups", "load_orl", "load_pbmc", "load_smri"]
