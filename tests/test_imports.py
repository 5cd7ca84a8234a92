"""A fit imports only what it needs."""

import subprocess
import sys

import numpy as np
import pytest

NOT_NEEDED = {
    *("anndata", "clarabel", "dask", "distributed", "h5py", "matplotlib", "nibabel", "nilearn", "pandas", "PIL"),
    *("pooch", "rich", "soundfile", "tensorly", "zarr"),
}
# scikit-learn imports pandas wherever it is installed: pandas is hidden from that import, and from no other
FITS = """
import sys
sys.modules["pandas"] = None
import sklearn.base
del sys.modules["pandas"]
import numpy as np, scipy.sparse as sp, partwise as pw
X = np.eye(6) + 1
for kind in (pw.SparseNMF, pw.MiniBatchSparseNMF):
    for data in (X, sp.csr_array(X)):
        kind(2, sparsity=0.4, max_iter=3, tol=0, random_state=0).fit(data).transform(data)
print(*sys.modules)
"""


def test_fits_import_only_what_they_need():
    done = subprocess.run([sys.executable, "-c", FITS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "partwise.estimators" in loaded
    assert not loaded & NOT_NEEDED


CONSENSUS = """
import sys
from partwise.cells import cNMF
one = cNMF(sys.argv[1], "it")
one.prepare(sys.argv[1] + "/counts.h5ad", components=[2, 3], n_iter=3, seed=0, num_highvar_genes=40)
one.factorize()
one.combine()
one.consensus(3, 2.0, show_clustering=False)
print(*sys.modules)
"""
BEYOND_A_FIT = {"joblib", "scipy.cluster", "scipy.optimize", "scipy.stats", "sklearn"}
COMPILER = {"numba.np.linalg", "numba.np.arraymath"}


def test_a_consensus_of_a_file_imports_only_what_it_needs(tmp_path):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    rates = np.kron(np.eye(3), np.full(20, 8.0))[rng.integers(3, size=60)] + 0.2
    anndata.AnnData(rng.poisson(rates).astype("float32")).write_h5ad(tmp_path / "counts.h5ad")
    for _ in range(2):  # the first may compile kernels
        command = [sys.executable, "-W", "ignore", "-c", CONSENSUS, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        loaded = set(done.stdout.split())
        assert not loaded & (NOT_NEEDED - {"h5py"} | BEYOND_A_FIT)
    assert not loaded & COMPILER  # kernels from the cache need no compiler


ROOMS = """
from partwise.brain import BrainNMF
from partwise.cells import sparse_nmf
import partwise.cells, partwise as pw
assert pw.cells is partwise.cells and pw.cells.sparse_nmf is sparse_nmf
assert pw.brain.BrainNMF is BrainNMF
assert callable(pw.report)
for room in (pw.brain, pw.cells, pw.datasets, pw.io, pw.plotting):
    assert all(getattr(room, name) is not None for name in room.__all__), room
"""


def test_public_rooms_are_modules_in_a_fresh_process():
    done = subprocess.run([sys.executable, "-c", ROOMS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
