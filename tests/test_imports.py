"""A fit imports only what it needs."""

import subprocess
import sys

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
