"""Swimmers as a tensor: 256 stick figures of 32 × 32 pixels, rows × columns × pictures, and the parts they are made of.

    python examples/swimmer_tensor.py [swimmer_tensor.png]

Four limbs, each in one of four positions, and a torso that all pictures share, which NMF of the flattened pictures
smears into every limb (A. Shashua and T. Hazan, "Non-negative tensor factorization with applications to statistics and
computer vision", ICML 2005). A component of the CP model is a pattern of rows, one of columns, and how much of both is
in each picture: a bar, or a single pixel where a limb runs askew.

How often a part is seen is a sparsity of the third mode: the torso is in every picture (0), a limb's position in one of
four (8/15, for 256 pictures). So we ask for one component of the first kind, and 56 of the second. Without it, torso
and limbs are cut up as it happens. The picture shows both; the first part on the right is the torso.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

import partwise as pw
from partwise.plotting import gallery, new_figure

SIDE, LENGTH, RANK = 32, 6, 57
SPARSITY = {2: [0.0] + [8 / 15] * (RANK - 1)}  # (√256 − √64) / (√256 − 1): a quarter of the pictures
TOP, BOTTOM, MIDDLE = 11, 20, 16
TURNS = [(-1, 0), (-1, 1), (0, 1), (1, 1)]  # up, askew, aside, askew down; mirrored for the left, and for legs


def swimmers() -> np.ndarray:
    """All 256 figures, rows × columns × pictures."""
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
    """The pictures of the components, heaviest first: the outer products of their rows and columns."""
    rows, columns, _ = result.factors
    heaviest = np.argsort(-result.weights, kind="stable")
    return np.einsum("ij,kj->jik", rows, columns)[heaviest].reshape(RANK, -1)


def main() -> None:
    """Fit both, say what came out, draw."""
    path = sys.argv[1] if len(sys.argv) > 1 else "swimmer_tensor.png"
    X = swimmers()
    figure = new_figure(11, 4.4)
    halves = figure.subfigures(1, 2, wspace=0.05)
    for half, sparsity in zip(halves, (None, SPARSITY), strict=True):
        result = pw.cp(X, RANK, sparsity=sparsity, max_iter=500, random_state=0)
        asked = "no sparsity asked for" if sparsity is None else "one part in every picture, the others in a quarter"
        got = ", ".join(f"{np.nanmean(s):.2f}" for s in result.sparsities)
        print(f"{asked}: relative error {result.relative_error:.3f}, {result.n_iter} iterations")
        print(f"  mean sparsity of rows, columns, pictures: {got}; {np.sum(result.weights > 0)} parts in use")
        gallery(parts(result), (SIDE, SIDE), title=asked, columns=10, figure=half)
    figure.savefig(path)
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
