"""
Data larger than memory
=======================

A path to a .npy file, a memory map, a zarr or an HDF5 array can take the place of X. If it is larger than
``memory_limit``, it is read in chunks of samples, once per iteration, while the next chunk is read ahead. The result is
the same as in memory. Here the limit is 1 MB and the file has 8 MB, so that the example is quick.
"""

import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

truth = pw.datasets.bars(16_000)
X = truth.X + 0.05 * np.random.default_rng(0).random(truth.X.shape)
options = {"sparsity": 0.74, "init": "samples", "random_state": 0}

with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/large.npy"
    np.save(path, X)
    stored = pw.SparseNMF(16, memory_limit="1 MB", **options).fit(path)
    print(f"{os.path.getsize(path) / 1e6:.1f} MB on disk, {stored.n_iter_} iterations: {stored.stop_reason_}")
memory = pw.SparseNMF(16, **options).fit(X)
print(f"largest difference between the components: {abs(stored.components_ - memory.components_).max():.0e}")

# %%
# The bars that were found, and the loss of both fits: the lines coincide.

figure = plt.figure(figsize=(10, 3.8), layout="constrained")
left, right = figure.subfigures(1, 2)
pw.plotting.gallery(stored, truth.shape, labels=False, title="components from the file", figure=left)
pw.plotting.convergence({"from the file": stored, "in memory": memory}, figure=right)
plt.show()
