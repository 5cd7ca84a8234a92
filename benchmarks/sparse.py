"""Sparse X: time to reach scikit-learn's error, in batch and mini-batch fits; products against SciPy's.

    python benchmarks/sparse.py [--quick] [--products]

Generated matrices in the shape of text (20,000 × 40,000, 1 % stored, word frequencies by Zipf's law) and of single
cells (10,000 × 15,000, 5 % stored), made of 20 topics and fitted with 20 components from an NNDSVD start, so that both
methods find the same minimum. scikit-learn's NMF runs for 100 iterations. The script prints its time and the time in
which Partwise reaches its final error (to a relative 1e-6), starts included, with one thread and with all. scikit-learn
uses one thread for sparse data. Target: ``sparsity=None`` ≤ 0.5 × its time. Time and error at sparsity 0.7, which
scikit-learn cannot set, are printed too.

Mini-batches on the text data: the error of Partwise after the time of three epochs of scikit-learn's MiniBatchNMF.

``--products`` prints only the time of the two products that an iteration consists of, X·rest and Xᵀ·rest, as a multiple
of the time of SciPy's: CPU time on one thread, the median of alternating runs. SciPy is given ``rest`` with contiguous
rows, while ours includes the conversion of ``rest`` and of the result, whose columns are contiguous. X are the matrices
above, and posts to newsgroups (tf-idf) and blood cells (counts), if their files are in the folder given by
PARTWISE_DATA or in the user's cache. Each is stored by rows and by columns, in double and in single precision, with
indices of 64 and of 32 bits. The first run is not counted, in which ours compiles, and copies indices of 64 bits to 32.
Target: at most 1.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF, MiniBatchNMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments import loaders
from partwise.data import as_data
from partwise.engine.solving import solve_activations

R = 20
RANKS = (4, 8, 10, 16, 20, 32, 50)


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


def tf_idf(counts: sp.csr_array) -> sp.csr_array:
    """Weighted counts, with rows of norm one."""
    found = np.bincount(counts.indices, minlength=counts.shape[1])
    weighted = counts * np.log((1 + counts.shape[0]) / (1 + found))
    norms = np.sqrt(weighted.multiply(weighted).sum(axis=1))
    return sp.csr_array(weighted.multiply(1 / np.maximum(norms, 1e-300)[:, None]))


def real_data() -> Iterator[tuple[str, sp.csr_array]]:
    """Newsgroups and blood cells, or a sentence on why one of them is skipped."""
    for name, load, prepare in (
        ("newsgroups", loaders.load_newsgroups, tf_idf),
        ("blood cells", loaders.load_pbmc, sp.csr_array),
    ):
        try:
            X, _ = load()
        except FileNotFoundError as error:
            print(f"{name} is skipped: {error}")
            continue
        yield name, prepare(X)


def against_scipy(name: str, X: sp.csr_array, runs: int) -> None:
    """Print the time of our products divided by that of SciPy's."""
    print(f"{name}: {X.shape[0]} × {X.shape[1]}, {X.nnz} stored; ours ÷ SciPy")
    print(f"  {'rank':28}" + "".join(f"{r:6}" for r in RANKS))
    for dtype in (np.float64, np.float32):
        for form in ("csr", "csc"):
            for bits in (64, 32):
                stored = X.astype(dtype).asformat(form)
                index = f"int{bits}"
                stored.indices, stored.indptr = stored.indices.astype(index), stored.indptr.astype(index)
                for mode, product in enumerate(("X·rest ", "Xᵀ·rest")):
                    ratios = [product_ratio(stored, mode, r, runs) for r in RANKS]
                    label = f"{product} {form} {np.dtype(dtype).name} {index}"
                    print(f"  {label:28}" + "".join(f"{ratio:6.2f}" for ratio in ratios), flush=True)


def product_ratio(X: sp.csr_array | sp.csc_array, mode: int, r: int, runs: int) -> float:
    """The CPU time of our product divided by that of SciPy's."""
    data, along = as_data(X), X.T if mode else X
    rows = np.random.default_rng(0).random((along.shape[1], r)).astype(X.dtype)
    columns = np.asfortranarray(rows)
    ours, theirs = [], []
    for _ in range(runs + 1):  # the first is not counted
        began = process_time()
        data.cross(columns, mode)
        between = process_time()
        along @ rows
        ours.append(between - began)
        theirs.append(process_time() - between)
    return float(np.median(ours[1:]) / np.median(theirs[1:]))


def main() -> None:
    """Run the products, or both shapes and then the mini-batches. A quick run does all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small matrices, without checking the target")
    parser.add_argument("--products", action="store_true", help="only the products, against SciPy's")
    options = parser.parse_args()
    quick = options.quick
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", pw.CapacityWarning)
    shapes = {"text": (20_000, 40_000, 0.01), "single cell": (10_000, 15_000, 0.05)}
    if quick:
        shapes = {"text": (500, 1000, 0.01), "single cell": (300, 400, 0.05)}
    if quick or options.products:
        with threadpool_limits(limits=1):
            for name, X in [] if quick else real_data():
                against_scipy(name, X, 7)
            for name, shape in shapes.items():
                against_scipy(name, topics(*shape), 3 if quick else 7)
    if options.products:
        return
    against_nmf("warm-up", topics(200, 300, 0.05), 2)
    for name, shape in shapes.items():
        against_nmf(name, topics(*shape), 5 if quick else 100)
    with threadpool_limits(limits=1):
        against_mini_batches(topics(*shapes["text"]), 1 if quick else 3)


if __name__ == "__main__":
    main()
