"""
Faces or digits at three sparsities
===================================

The sparsity decides what a component is. At a low sparsity, a component is almost a whole image. At a high one, it is a
small part. Every component has exactly the requested sparsity, so the three fits below differ in nothing else.

The images are the CBCL faces if the folder ``PARTWISE_DATA`` has them, and handwritten digits otherwise.
"""

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

file = Path(os.environ.get("PARTWISE_DATA", "."), "cbcl_faces.npz")
images = pw.datasets.load_digits()[0].reshape(-1, 8, 8)
if file.exists():
    images = np.load(file)["images"][::4] / 255  # every fourth face
X, shape = images.reshape(len(images), -1), images.shape[1:]

# %%
# The natural sparsity is that of a fit without a constraint. Values near it cost little.

free = pw.SparseNMF(16, random_state=0).fit(X)
print(f"natural sparsity: {free.sparsity_.min():.2f} to {free.sparsity_.max():.2f}")

# %%
# Three fits. Partwise warns of sparsities that are far from the natural one. Here they are intended, so the warning is
# turned off.

figure = plt.figure(figsize=(10, 3.9), layout="constrained")
for part, sparsity in zip(figure.subfigures(1, 3, wspace=0.06), (0.4, 0.6, 0.8), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pw.CapacityWarning)
        model = pw.SparseNMF(16, sparsity=sparsity, random_state=0).fit(X)
    assert np.allclose(model.sparsity_, sparsity)
    title = f"sparsity {sparsity}: {model.score(X):.1%} explained"
    pw.plotting.gallery(model, shape, labels=False, title=title, figure=part)
plt.show()
