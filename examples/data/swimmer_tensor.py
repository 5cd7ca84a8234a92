"""
A tensor of images
==================

Each of 256 stick figures has a torso, which is the same in all images, and four limbs, each in one of four
positions. NMF of the flattened images mixes the torso into the limbs (Shashua and Hazan 2005). As a tensor of rows
× columns × images, they can be decomposed by :func:`partwise.cp`: a component is a pattern of rows times a pattern
of columns, with a weight for each image. That is a bar, or a single pixel of a diagonal limb.

The sparsity in the third mode determines in how many images a component appears. The torso is in all images (sparsity
0), and each position of a limb in a quarter of them (8/15 for 256 images). The second fit therefore asks for one
component of the first kind and 56 of the second. Most starts end in a poor local optimum, so the best of four is kept.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

SIDE, LENGTH, RANK = 32, 6, 57
TOP, BOTTOM, MIDDLE = 11, 20, 16
TURNS = [(-1, 0), (-1, 1), (0, 1), (1, 1)]  # up, diagonally up, sideways, diagonally down; mirrored for the other limbs

figures = np.zeros((SIDE, SIDE, 256))
figures[TOP : BOTTOM + 1, MIDDLE] = 1
steps = np.arange(1, LENGTH + 1)
for image, pose in enumerate(product(TURNS, repeat=4)):
    for limb, (down, aside) in enumerate(pose):
        row, out, side = (TOP, BOTTOM)[limb // 2], (1, -1)[limb // 2], (-1, 1)[limb % 2]
        figures[row + out * down * steps, MIDDLE + side * (1 + aside * steps), image] = 1


def best(sparsity):
    fits = [pw.cp(figures, RANK, sparsity=sparsity, max_iter=200, random_state=seed) for seed in range(4)]
    print("relative errors:", *(f"{fit.relative_error:.3f}" for fit in fits))
    return min(fits, key=lambda fit: fit.relative_error)


quarter = (16 - 8) / (16 - 1)  # of 256 images: (√256 − √64) / (√256 − 1)
free, sparse = best(None), best({2: [0.0] + [quarter] * (RANK - 1)})

# %%
# Some images, and the components of both fits, in order of decreasing weight. With sparsity, the first one is the
# torso. Without it, the torso is split.

figure = plt.figure(figsize=(10, 4.2), layout="constrained")
left, *halves = figure.subfigures(1, 3, width_ratios=(0.45, 1, 1), wspace=0.04)
pw.plotting.gallery(
    figures[..., ::51].reshape(-1, 6).T, (SIDE, SIDE), columns=2, labels=False, title="images", figure=left
)
for half, (title, fit) in zip(halves, {"without sparsity": free, "with sparsity": sparse}.items(), strict=True):
    rows, columns, _ = (factor[:, np.argsort(-fit.weights)[:25]] for factor in fit.factors)
    components = np.einsum("ij,kj->jik", rows, columns).reshape(25, -1)
    pw.plotting.gallery(components, (SIDE, SIDE), labels=False, title=title, figure=half)
plt.show()
