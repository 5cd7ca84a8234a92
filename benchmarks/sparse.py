"""Sparse X: time to reach scikit-learn's error, in batch and mini-batch fits.

    python benchmarks/sparse.py [--quick]

Generated matrices in the shape of text (20,000 × 40,000, 1 % stored, word frequencies by Zipf's law) and of single
cells (10,000 × 15,000, 5 % stored), made of 20 topics and fitted with 20 components from an NNDSVD start, so that both
methods find the same minimum. scikit-learn's NMF runs for 100 iterations. The script prints its time and the time in
which Partwise reaches its final error (to a relative 1e-6), starts included, with one thread and with all. scikit-learn
uses one thread for sparse data. Target: ``sparsity=None`` ≤ 0.5 × its time. Time and error at sparsity 0.7, which
scikit-learn cannot set, are printed too.

Mini-batches on the text data: the error of Partwise after the time of three epochs of scikit-learn's MiniBatchNMF.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF, MiniBatchNMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import partwise as pw
from partwise.data import as_data
from partwise.engine.solving import solve_activations

R = 20


def topics(n: int, m: int, share: float, seed: int = 0) -> sp.csr_array:
    """Counts of m words in n texts about R topics; ``share`` is the approximate fraction of stored entries."""
    rng = np.random.default_rng(seed)
    frequency = 1 / (np.arange(m) + 10)
    words = frequency * rng.gamma(0.1, size=(R, m))
    words /= words.sum(axis=1, keepdims=True)
    lengths = np.maximum(rng.lognormal(np.log(1.7 * share * m), 0.5, n), 2).astype(int)
    about = rng.dirichlet(np.full(R, 0.1), n)
    rows = []
    for i in range(n):
        found = rng.choice(R, lengths[i], p=about[i])
        rows.append(np.bincount(found, minlength=R))
    counts = np.array(rows)
    entries = []
    for topic in range(R):
        drawn = rng.choice(m, counts[:, topic].sum(), p=words[topic])
        entries.append((np.repeat(np.arange(n), counts[:, topic]), drawn))
    i, j = (np.concatenate(x) for x in zip(*entries, strict=True))
    return sp.csr_array((np.ones(len(i)), (i, j)), shape=(n, m))


def time_to(error: float, X: sp.csr_array, seconds: float, **asked: Any) -> tuple[float, float]:
    """Seconds in which Partwise reaches that error (inf: not within ``seconds``), and its final error."""
    reached = [np.inf]

    def watch(here: pw.Iteration) -> bool:
        if here.relative_error <= error * (1 + 1e-6) and here.n_iter:
            reached[0] = min(reached[0], here.seconds)
        return reached[0] < np.inf

    result = pw.ssnmf(X, R, tol=0, max_iter=1000, max_time=seconds, random_state=0, callback=watch, **asked)
    return reached[0], result.relative_error


def against_nmf(name: str, X: sp.csr_array, iterations: int) -> None:
    """Print the time to scikit-learn's error, both from NNDSVD."""
    norm = np.sqrt(X.multiply(X).sum())
    started = perf_counter()
    model = NMF(R, init="nndsvd", max_iter=iterations, tol=0, random_state=0).fit(X)
    theirs, error = perf_counter() - started, float(model.reconstruction_err_ / norm)
    print(f"{name}: {X.shape[0]} × {X.shape[1]}, {100 * X.nnz / np.prod(X.shape):.1f} % stored")
    print(f"  scikit-learn, {iterations} iterations {theirs:7.1f} s, relative error {error:.5f}")
    for n_threads, label in ((1, "one thread "), (None, "all threads")):
        ours, _ = time_to(error, X, 2 * theirs, init="nndsvd", n_threads=n_threads)
        ratio = ours / theirs
        verdict = f": {'meets' if ratio <= 0.5 else 'MISSES'} ≤ 0.5" if iterations >= 100 else ""
        print(f"  ours to that error, {label} {ours:5.1f} s, {ratio:.2f} of its time{verdict}", flush=True)
    started = perf_counter()
    result = pw.ssnmf(X, R, sparsity=0.7, random_state=0)
    print(
        f"  ours at sparsity .7         {perf_counter() - started:7.1f} s, relative error {result.relative_error:.5f}"
    )


def against_mini_batches(X: sp.csr_array, epochs: int) -> None:
    """Print the errors of both after the same time."""
    started = perf_counter()
    theirs = MiniBatchNMF(R, init="random", batch_size=1024, max_iter=epochs, tol=0, max_no_improvement=None)
    theirs.set_params(random_state=0).fit(X)
    seconds = perf_counter() - started
    print(f"mini-batches of 1024, {seconds:.1f} s each")
    print(f"  scikit-learn, {epochs} epochs      relative error {error_of(X, theirs.components_):.5f}")
    for sparsity in (None, 0.7):
        ours = pw.MiniBatchSparseNMF(R, sparsity=sparsity, random_state=0)
        started = perf_counter()
        rng = np.random.default_rng(0)
        while perf_counter() - started < seconds:
            for rows in np.array_split(rng.permutation(X.shape[0]), -(-X.shape[0] // 1024)):
                ours.partial_fit(X[np.sort(rows)])
                if perf_counter() - started >= seconds:
                    break
        error = error_of(X, ours.components_)
        print(f"  ours, sparsity {sparsity!s:4}, {ours.n_steps_:4} batches   relative error {error:.5f}")


def error_of(X: sp.csr_array, components: np.ndarray) -> float:
    """The relative error of some components with their optimal activations."""
    return solve_activations(as_data(X), components.T).relative_error


def main() -> None:
    """Run both shapes, then the mini-batches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small matrices, without checking the target")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", pw.CapacityWarning)
    shapes = {"text": (20_000, 40_000, 0.01), "single cell": (10_000, 15_000, 0.05)}
    if quick:
        shapes = {"text": (500, 1000, 0.01), "single cell": (300, 400, 0.05)}
    against_nmf("warm-up", topics(200, 300, 0.05), 2)
    for name, shape in shapes.items():
        against_nmf(name, topics(*shape), 5 if quick else 100)
    with threadpool_limits(limits=1):
        against_mini_batches(topics(*shapes["text"]), 1 if quick else 3)


if __name__ == "__main__":
    main()
