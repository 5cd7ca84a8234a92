"""CP decomposition of the Swimmer data: 256 stick figures of 32 × 32 pixels, as rows × columns × images.

    python examples/swimmer_tensor.py [swimmer_tensor.png]

Each figure has a torso, which is the same in all images, and four limbs, each in one of four positions. NMF of the
flattened images mixes the torso into every limb (A. Shashua and T. Hazan, "Non-negative tensor factorization with
applications to statistics and computer vision", ICML 2005). A component of the CP model is the outer product of a
pattern of rows and a pattern of columns, with a weight for each image: a bar, or a single pixel of a diagonal limb.

Sparsity in the third mode sets in how many images a component appears. The torso is in all images (sparsity 0), and
each position of a limb in a quarter of them (8/15 for 256 images). The example requests one component of the first kind
and 56 of the second, and compares the result with a fit without sparsity, which splits the torso. The figure shows both
fits, without sparsity on the left. The first component on the right is the torso.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

import partwise as pw
from partwise.plotting import gallery, new_figure

SIDE, LENGTH, RANK = 32, 6, 57
SPARSITY = {2: [0.0] + [8 / 15] * (RANK - 1)}  # (√256 − √64) / (√256 − 1): a quarter of the images
TOP, BOTTOM, MIDDLE = 11, 20, 16
TURNS = [
    (-1, 0),
    (-1, 1),
    (0, 1),
    (1, 1),
]  # up, diagonally up, sideways, diagonally down; mirrored for left limbs and for legs


def swimmers() -> np.ndarray:
    """All 256 figures, rows × columns × images."""
    pictures = []
    for pose in product(range(4), repeat=4):
        picture = np.zeros((SIDE, SIDE))
        picture[TOP : BOTTOM + 1, MIDDLE] = 1
        for limb, turn in enumerate(pose):
            row, side = (TOP, BOTTOM)[limb // 2], (-1, 1)[limb % 2]
            down, aside = TURNS[turn] if limb < 2 else (-TURNS[turn][0], TURNS[turn][1])
            steps = np.arange(1, LENGTH + 1)
            picture[row + down * steps, MIDDLE + side * (1 + aside * steps)] = 1
        pictures.append(picture)
    return np.stack(pictures, axis=2)


def parts(result: pw.Result) -> np.ndarray:
    """The components as images (outer products of rows and columns), in order of decreasing weight."""
    rows, columns, _ = result.factors
    heaviest = np.argsort(-result.weights, kind="stable")
    return np.einsum("ij,kj->jik", rows, columns)[heaviest].reshape(RANK, -1)


def main() -> None:
    """Fit with and without sparsity, print the results and draw the components."""
    path = sys.argv[1] if len(sys.argv) > 1 else "swimmer_tensor.png"
    X = swimmers()
    figure = new_figure(11, 4.4)
    halves = figure.subfigures(1, 2, wspace=0.05)
    for half, sparsity in zip(halves, (None, SPARSITY), strict=True):
        result = pw.cp(X, RANK, sparsity=sparsity, max_iter=500, random_state=0)
        title = "without sparsity" if sparsity is None else "one component in every image, the others in a quarter"
        achieved = ", ".join(f"{np.nanmean(s):.2f}" for s in result.sparsities)
        print(f"{title}: relative error {result.relative_error:.3f}, {result.n_iter} iterations")
        print(f"  mean sparsity of rows, columns, images: {achieved}; {np.sum(result.weights > 0)} components in use")
        gallery(parts(result), (SIDE, SIDE), title=title, columns=10, figure=half)
    figure.savefig(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
