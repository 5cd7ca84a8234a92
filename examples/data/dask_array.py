"""
A Dask cluster
==============

A Dask array is fitted where its chunks are: each worker solves the activations of its samples and sends back sums,
which are as large as the components, whatever the number of samples. With a ``distributed.Client``, the workers of
its cluster are used. This example has a cluster of two workers in its own process; for another one, only the
address in ``Client`` changes.
"""

import dask.array as da
import matplotlib.pyplot as plt
from dask.distributed import Client

import partwise as pw

truth = pw.datasets.brain_volume(240, (24, 28, 1), parts=9, noise=0.2, dtype=float, random_state=1)
with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"):
    X = da.from_array(truth.X, chunks=(60, -1))  # four chunks of 60 samples
    model = pw.SparseNMF(9, sparsity=(0.7, 0.9), init="samples", random_state=0).fit(X)
    activations = model.transform(X)
    print(f"activations: {activations}")
    print(f"explained: {model.score(X):.1%}")

# %%
# The nine components. Those of a fit in memory with the same seed are equal to rounding.

memory = pw.SparseNMF(9, sparsity=(0.7, 0.9), init="samples", random_state=0).fit(truth.X)
print(f"largest difference: {abs(model.components_ - memory.components_).max():.0e}")
figure = plt.figure(figsize=(9, 1.5), layout="constrained")
pw.plotting.gallery(model, truth.shape[:2], columns=9, title="nine components, from four chunks", figure=figure)
plt.show()
