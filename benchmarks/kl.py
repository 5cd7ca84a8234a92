"""The Kullback–Leibler divergence: speed against other libraries, and components found in counts.

    python benchmarks/kl.py [--quick] [--seeds N]

CPU time in one thread; starts are included, compilation is not. All data are generated Poisson counts.

- scikit-learn: NMF(solver="mu", beta_loss="kullback-leibler"), 100 iterations from its default start, the faster of two
  runs. Printed is the share of its time after which `ssnmf` has its divergence, dense and sparse, and how far
  scikit-learn's own number for our factors is from ours.
- torchnmf: sparse_fit(beta=1), 200 iterations in single precision (its defaults), against `ssnmf` at the same sparsity.
  Printed is how many times sooner `ssnmf` has its divergence.
- `nsnmf` with theta=0: the multiplicative updates of Partwise, on the same start. Printed is its divergence above the
  lowest one found, in per cent, and that of `ssnmf`, after the same time.
- Components: the mean cosine with the components that the counts were drawn from, with both losses.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.decomposition._nmf import _beta_divergence
from threadpoolctl import threadpool_limits

import partwise as pw
from partwise.engine.metrics import match_parts

KL = "kullback-leibler"
SHAPES = {  # samples, features, components, mean count, and whether X is sparse
    "dense": (2000, 500, 10, 1.0, False),
    "dense, large counts": (2000, 500, 20, 20.0, False),
    "cells": (3000, 2000, 10, 0.1, True),
}
TINY = {"dense": (120, 60, 3, 1.0, False), "cells": (200, 150, 3, 0.1, True)}


def counts(shape: tuple[int, int, int, float, bool], seed: int) -> tuple[Any, np.ndarray]:
    """Poisson counts of a model with sparse components, and these components."""
    n, m, r, mean, sparse = shape
    rng = np.random.default_rng(seed)
    activations, parts = rng.gamma(0.5, 1.0, (n, r)), rng.gamma(0.2, 1.0, (r, m))
    rates = activations @ parts
    X = rng.poisson(rates * (mean / rates.mean())).astype(float)
    return sp.csr_array(X) if sparse else X, parts


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and its CPU time."""
    started = process_time()
    return work(), process_time() - started


def fitted(X: Any, r: int, seed: int, **options: Any) -> tuple[pw.Result, np.ndarray]:
    """A fit with the divergence, and the CPU seconds after each iteration."""
    at: list[float] = []
    started = process_time()
    asked = {"loss": KL, "random_state": seed, "n_threads": 1, "tol": 0} | options
    result = pw.ssnmf(X, r, callback=lambda _: at.append(process_time() - started), **asked)
    return result, np.array(at)


def reached(result: pw.Result, at: np.ndarray, loss: float) -> float:
    """The time after which a fit has this loss; inf if it never has."""
    below = result.losses <= loss
    return float(at[np.argmax(below)]) if below.any() else np.inf


def against_sklearn(shapes: dict[str, Any], seeds: Sequence[int], iterations: int) -> None:
    """Print the share of scikit-learn's time."""
    for name, shape in shapes.items():
        shares, apart = [], []
        for seed in seeds:
            X, _ = counts(shape, seed)
            peer = NMF(shape[2], solver="mu", beta_loss=KL, max_iter=iterations, tol=0, random_state=seed)
            runs = [timed(partial(peer.fit_transform, X)) for _ in range(2)]  # the first one is often slower
            activations, seconds = min(runs, key=lambda run: run[1])
            theirs = _beta_divergence(X, activations, peer.components_, 1)
            result, at = fitted(X, shape[2], seed, max_iter=30)
            shares.append(reached(result, at, theirs) / seconds)
            same = _beta_divergence(X, result.activations, np.ascontiguousarray(result.components), 1)
            apart.append(abs(same / result.losses[-1] - 1))
        print(
            f"scikit-learn, {described(name, shape)}: its divergence in {median(shares):.3f} of its time (largest "
            f"{max(shares):.3f}); numbers differ by {max(apart):.0e}",
            flush=True,
        )


def against_torch(shape: Any, seeds: Sequence[int], sparsities: Sequence[float], iterations: int) -> None:
    """Print how many times sooner than torchnmf."""
    import torch
    from torchnmf import nmf

    torch.set_num_threads(1)
    for sparsity in sparsities:
        ratios = []
        for seed in seeds:
            X, _ = counts(shape, seed)
            torch.manual_seed(seed)
            values = torch.as_tensor(X, dtype=torch.float32)
            peer = nmf.NMF(values.shape, rank=shape[2])
            _, seconds = timed(partial(peer.sparse_fit, values, beta=1, max_iter=iterations, sW=sparsity))
            model = (peer.H @ peer.W.T).detach().numpy().astype(float)
            theirs = float(
                np.sum(np.where(X > 0, X * np.log(np.maximum(X, 1) / np.maximum(model, 1e-30)), 0) - X + model)
            )
            result, at = fitted(X, shape[2], seed, sparsity=sparsity, max_iter=60)
            ratios.append(seconds / reached(result, at, theirs))
        print(
            f"torchnmf, sparsity {sparsity}, {described('dense', shape)}: its divergence {median(ratios):.0f} × sooner "
            f"(least {min(ratios):.0f})",
            flush=True,
        )


def against_multiplicative(shapes: dict[str, Any], seeds: Sequence[int], iterations: int) -> None:
    """Print the divergences of both updates after the same times."""
    for name, shape in shapes.items():
        for seed in seeds:
            X, _ = counts(shape, seed)
            rng = np.random.default_rng(seed)
            start = (rng.random((shape[0], shape[2])), rng.random((shape[2], shape[1])))
            at: list[float] = []
            started = process_time()
            slow = pw.nsnmf(
                X,
                shape[2],
                theta=0.0,
                loss=KL,
                init=start,
                max_iter=iterations,
                tol=0,
                n_threads=1,
                callback=lambda _, at=at, started=started: at.append(process_time() - started),
            )
            fast, when = fitted(X, shape[2], seed, init=start, max_iter=iterations)
            lowest = min(slow.losses[-1], fast.losses[-1])
            columns = []
            for share in (0.1, 0.3, 1.0):
                limit = share * min(at[-1], when[-1])
                pair = [
                    100 * (losses[max(np.searchsorted(times, limit, side="right") - 1, 0)] / lowest - 1)
                    for losses, times in ((slow.losses, at), (fast.losses, when))
                ]
                columns.append(f"{limit:.2f} s: {pair[0]:.3f} against {pair[1]:.3f} %")
            print(f"nsnmf, {described(name, shape)}, seed {seed}: {'; '.join(columns)}", flush=True)


def recovery(n: int, m: int, r: int, seeds: Sequence[int]) -> None:
    """Print the mean cosines with the components that counts were drawn from."""
    for mean in (0.1, 0.3, 1.0, 3.0, 10.0):
        cosines: dict[tuple[str, str], list[float]] = {}
        for seed in seeds:
            X, parts = counts((n, m, r, mean, False), seed)
            sparsity = pw.hoyer_sparsity(parts, axis=1).tolist()
            for label, level in (("none", None), ("the true ones", sparsity)):
                for loss in ("squared", KL):
                    found = pw.ssnmf(X, r, sparsity=level, loss=loss, random_state=seed, n_threads=1)
                    cosines.setdefault((label, loss), []).append(
                        float(match_parts(found.components, parts).cosines.mean())
                    )
        row = [
            f"sparsity {label}: {np.mean(cosines[label, 'squared']):.3f} squared, {np.mean(cosines[label, KL]):.3f} KL"
            for label in ("none", "the true ones")
        ]
        print(f"components, mean count {mean:g}: {'; '.join(row)}", flush=True)


def described(name: str, shape: tuple[int, int, int, float, bool]) -> str:
    """A data set in words."""
    n, m, r, mean, _ = shape
    return f"{name} {n} × {m}, r {r}, mean count {mean:g}"


def main() -> None:
    """Run all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny data")
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    shapes, seeds = (TINY if asked.quick else SHAPES), range(1 if asked.quick else asked.seeds)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for shape in TINY.values():  # compiles the kernels
            X, _ = counts(shape, 0)
            for sparsity in (None, 0.5):
                pw.ssnmf(X, 3, sparsity=sparsity, loss=KL, max_iter=3, tol=0)
            pw.nsnmf(X, 3, loss=KL, max_iter=2)
        against_sklearn(shapes, seeds, 20 if asked.quick else 100)
        against_multiplicative(shapes, seeds, 10 if asked.quick else 100)
        if find_spec("torchnmf"):
            against_torch(shapes["dense"], seeds, (0.5,) if asked.quick else (0.5, 0.8), 20 if asked.quick else 200)
        recovery(*((60, 30, 3) if asked.quick else (500, 200, 6)), seeds)


if __name__ == "__main__":
    main()
