"""
Missing entries
===============

Four of ten pixels of each digit are missing. With ``missing="em"``, NaN marks what is missing, and the fit uses the
other entries only. Its model predicts the missing pixels from what the digits have in common. Components that are
broader than those of an unconstrained fit predict them better, because each is determined by more of the observed
pixels.
"""

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

complete, shape = pw.datasets.load_digits()
missing = (np.random.default_rng(0).random(complete.shape) < 0.4) & complete.any(axis=0)
X = np.where(missing, np.nan, complete)


def predicted(sparsity):
    model = pw.SparseNMF(10, sparsity=sparsity, missing="em", random_state=0)
    return model.fit_transform(X) @ model.components_


guesses = {
    "mean": np.broadcast_to(np.nanmean(X, axis=0), X.shape),
    "free": predicted(None),
    "0.4 to 0.5": predicted((0.4, 0.5)),
}
for name, guess in guesses.items():
    error = np.linalg.norm((guess - complete)[missing]) / np.linalg.norm(complete[missing])
    print(f"{name}: relative error of the missing pixels {error:.2f}")

# %%
# What the fits saw (missing pixels in blue), what they predict for the missing pixels, and the true digits.

figure, axes = plt.subplots(4, 10, figsize=(10, 4.4), layout="constrained")
colours = plt.get_cmap("gray_r").with_extremes(bad="#9ecae1")
rows = (
    {"observed": X}
    | {name: np.where(missing, guesses[name], X) for name in ("free", "0.4 to 0.5")}
    | {"true": complete}
)
for row, (name, images) in zip(axes, rows.items(), strict=True):
    for axis, image in zip(row, images, strict=False):
        axis.imshow(np.ma.masked_invalid(image.reshape(shape)), cmap=colours, vmin=0, vmax=16)
        axis.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)
plt.show()
