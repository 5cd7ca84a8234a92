"""Partwise compared with other NMF libraries, all in the same run, on one thread, in CPU time.

    python benchmarks/race.py [--quick] [--data NAME …] [--sparsity S …] [--seeds 3]

The other methods (*peers* in the code) are scikit-learn's NMF (coordinate descent from two starts, and with the L1
penalty whose mean sparsity is closest to the requested one) and MiniBatchNMF, tensorly's nonnegative HALS, torchnmf's
`sparse_fit`, and our `nmfsc` with Hoyer's projection and with ours. Libraries that are not installed are skipped. They
run for a fixed number of iterations (200; tensorly 50; a tenth on sMRI), `nmfsc` for the same time as Partwise.

Prints medians over the seeds: the relative error and time of each method; the time in which Partwise reaches that
error, as a share of the method's time (with default parameters and with ``accelerate=False``; inf: not reached); the
final error of Partwise ÷ that of the method; the achieved sparsity (mean, smallest and largest over components and
seeds), the number of dead components, and peak memory beyond X. Lines below each table compare the results with our
targets.

Partwise starts from samples; without sparsity, it starts as the method it is compared with. Times include the start.
Grey values are divided by 255; "CBCL, Hoyer" has the faces as Hoyer (2004) prepares them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.decomposition import NMF, MiniBatchNMF
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments import loaders
from partwise import datasets

Pair = tuple[np.ndarray, np.ndarray]  # activations (samples × r), components (r × features)


@dataclass(frozen=True)
class Problem:
    """Data, number of components, iterations of the peers, and seconds for Partwise and nmfsc."""

    load: Callable[[], np.ndarray]
    r: int
    iterations: int
    seconds: float
    sparsity: tuple[float, ...] = (0.3, 0.5, 0.7)


PROBLEMS = {
    "CBCL": Problem(lambda: loaders.load_cbcl(prepared="grey")[0], 49, 200, 4),
    "CBCL, Hoyer": Problem(lambda: loaders.load_cbcl()[0], 49, 200, 4, (0.7,)),
    "ORL": Problem(lambda: loaders.load_orl()[0], 25, 200, 6),
    "digits": Problem(lambda: datasets.load_digits()[0], 16, 200, 2),
    "swimmer": Problem(lambda: datasets.load_swimmer()[0].astype(float), 17, 200, 2),
    "sMRI": Problem(lambda: np.asarray(loaders.load_smri()[0], dtype=np.float32), 40, 20, 20, (0.5,)),
}
QUICK = Problem(lambda: datasets.load_digits()[0][:200], 5, 5, 0.2, (0.5,))


def scikit_learn(X: np.ndarray, r: int, seed: int, iterations: int, init: str, penalty: float = 0.0) -> Pair:
    """NMF by coordinate descent; the L1 penalty is on both factors, since scaling would undo it on one."""
    model = NMF(r, init=init, max_iter=iterations, tol=0, random_state=seed, alpha_W=penalty, l1_ratio=1)
    return model.fit_transform(X), model.components_


def mini_batches(X: np.ndarray, r: int, seed: int, iterations: int) -> Pair:
    """MiniBatchNMF with default parameters, but without early stopping."""
    model = MiniBatchNMF(r, init="random", max_iter=iterations, tol=0, max_no_improvement=None, random_state=seed)
    return model.fit_transform(X), model.components_


def tensorly_hals(X: np.ndarray, r: int, seed: int, iterations: int) -> Pair:
    """Nonnegative HALS for tensors, on a matrix; a quarter of the iterations, since each has many inner ones."""
    from tensorly.decomposition import non_negative_parafac_hals

    weights, factors = non_negative_parafac_hals(
        X, r, n_iter_max=max(iterations // 4, 1), init="random", tol=0, random_state=seed
    )
    return factors[0] * weights, factors[1].T


def torchnmf_sparse(X: np.ndarray, r: int, seed: int, iterations: int, sparsity: float) -> Pair:
    """Hoyer's method in torchnmf, in single precision (its default)."""
    import torch
    from torchnmf import nmf

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    values = torch.as_tensor(X, dtype=torch.float32)
    model = nmf.NMF(values.shape, rank=r)
    model.sparse_fit(values, beta=2, max_iter=iterations, sW=sparsity)
    return model.H.detach().numpy().astype(X.dtype), model.W.detach().numpy().astype(X.dtype).T


def hoyer_2004(X: np.ndarray, r: int, seed: int, seconds: float, sparsity: float, projection: str) -> Pair:
    """Our `nmfsc`."""
    result = pw.nmfsc(
        X, r, sparsity=sparsity, projection=projection, tol=0, max_iter=10**6, max_time=seconds, random_state=seed
    )
    return result.activations, result.components


def nearest_penalty(X: np.ndarray, r: int, sparsity: float, iterations: int) -> float:
    """The L1 penalty whose mean sparsity is closest to the requested one, by bisection."""
    low, high, tried = -8.0, 0.0, []
    for _ in range(8):
        exponent = 0.5 * (low + high)
        components = scikit_learn(X, r, 0, min(iterations, 50), "random", 10**exponent)[1]
        found = float(np.mean(np.nan_to_num(sparsities(components), nan=1.0)))
        tried.append((abs(found - sparsity), 10**exponent))
        low, high = (exponent, high) if found < sparsity else (low, exponent)
    return min(tried)[1]


def sparsities(components: np.ndarray) -> np.ndarray:
    """Sparsity of each component; nan for dead ones."""
    return np.asarray(pw.hoyer_sparsity(np.asarray(components, dtype=float), axis=1))


@dataclass
class Peer:
    """Results of one method, one value per seed."""

    errors: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)
    sparsity: list[np.ndarray] = field(default_factory=list)

    def note(self, X: np.ndarray, fit: Callable[[], Pair]) -> None:
        """Run the method once and record the results."""
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak memory
        before, started = resident("VmRSS"), process_time()
        activations, components = fit()
        self.seconds.append(process_time() - started)
        self.memory.append(resident("VmHWM") - before)
        self.errors.append(float(np.linalg.norm(X - activations @ components) / np.linalg.norm(X)))
        self.dead.append(int(np.count_nonzero(~(components.max(axis=1) * activations.max(axis=0) > 0))))
        self.sparsity.append(sparsities(components))


def resident(name: str) -> float:
    """Resident memory of the process in MB: current (VmRSS) or peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


@dataclass
class Ours(Peer):
    """Ours: also when it had which error."""

    traces: list[np.ndarray] = field(default_factory=list)

    def run(self, X: np.ndarray, r: int, seed: int, seconds: float, **asked: Any) -> None:
        """Run Partwise once, for that many seconds."""
        trace: list[tuple[float, float]] = []
        started = process_time()

        def fit() -> Pair:
            result = pw.ssnmf(
                X,
                r,
                tol=0,
                max_iter=10**6,
                max_time=seconds,
                random_state=seed,
                callback=lambda here: trace.append((process_time() - started, here.relative_error)),
                **asked,
            )
            return result.activations, result.components

        self.note(X, fit)
        self.traces.append(np.array(trace))

    def shares(self, peer: Peer) -> list[float]:
        """For each seed, the time to the peer's final error as a share of the peer's time."""
        return [
            min(trace[trace[:, 1] <= error, 0], default=np.inf) / seconds
            for trace, error, seconds in zip(self.traces, peer.errors, peer.seconds, strict=True)
        ]


def peers_of(problem: Problem, X: np.ndarray, sparsity: float | None) -> Iterator[tuple[str, Callable[[int], Pair]]]:
    """The methods with a sparsity, or (None) those without."""
    r, iterations = problem.r, problem.iterations
    if sparsity is None:
        for init in ("random", "nndsvda"):
            yield f"scikit-learn {init}", lambda seed, init=init: scikit_learn(X, r, seed, iterations, init)
        yield "MiniBatchNMF", lambda seed: mini_batches(X, r, seed, iterations)
        if installed("tensorly"):
            yield "tensorly HALS", lambda seed: tensorly_hals(X, r, seed, iterations)
        return
    if X.size < 1e7:
        penalty = nearest_penalty(X, r, sparsity, iterations)
        name = f"scikit-learn L1 {penalty:.1g}"
        yield name, lambda seed: scikit_learn(X, r, seed, iterations, "random", penalty)
    if installed("torchnmf"):
        yield "torchnmf", lambda seed: torchnmf_sparse(X, r, seed, iterations, sparsity)
    for projection in ("hoyer", "fast"):
        fit = partial(hoyer_2004, X, r, seconds=problem.seconds, sparsity=sparsity, projection=projection)
        yield f"nmfsc, {projection}", lambda seed, fit=fit: fit(seed)


def installed(name: str) -> bool:
    """Whether a library can be imported."""
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def claim(label: str, shares: list[float], limit: float) -> str:
    """One line: a target, and whether the median meets it."""
    share = float(np.median(shares))
    return f"{'meets' if share <= limit else 'MISSES'} {label}: {share:.3f} of its time (≤ {limit:g})"


class Race:
    """One problem: all peers, and Partwise compared with each."""

    def __init__(self, name: str, problem: Problem, levels: tuple[float, ...], seeds: int) -> None:
        self.name, self.problem, self.X, self.seeds = name, problem, problem.load(), seeds
        self.levels, self.claims = levels, list[str]()

    def ours(self, **asked: Any) -> Ours:
        """Partwise with all seeds."""
        fits = Ours()
        for seed in range(self.seeds):
            fits.run(self.X, self.problem.r, seed, self.problem.seconds, **asked)
        return fits

    def run(self) -> None:
        """Run all methods and print the table."""
        n, m = self.X.shape
        print(
            f"\n## {self.name}: {n} × {m}, {self.problem.r} components, {self.X.dtype}, {self.seeds} seeds\n",
            flush=True,
        )
        heads = ("sparsity", "method", "error", "seconds", "time share", "plain", "error ratio")
        print("| " + " | ".join((*heads, "achieved sparsity", "dead", "memory MB")) + " |\n|" + "---|" * 10)
        free = {name: self.peer(fit) for name, fit in peers_of(self.problem, self.X, None)}
        for init in ("random", "nndsvd"):
            self.compare(None, {k: v for k, v in free.items() if init == "random" or init in k}, init=init)
        for sparsity in self.levels:
            asked = {name: self.peer(fit) for name, fit in peers_of(self.problem, self.X, sparsity)}
            self.compare(sparsity, free | asked)

    def peer(self, fit: Callable[[int], Pair]) -> Peer:
        """A peer with all seeds."""
        found = Peer()
        for seed in range(self.seeds):
            found.note(self.X, partial(fit, seed))
        return found

    def compare(self, sparsity: float | None, peers: dict[str, Peer], **asked: Any) -> None:
        """Compare Partwise at one sparsity with each peer."""
        default = self.ours(sparsity=sparsity, **asked)
        plain = self.ours(sparsity=sparsity, accelerate=False, **asked)
        label = f"{sparsity}" if sparsity is not None else f"none, {asked['init']}"
        self.row(label, "**Partwise**", default, "", "", "")
        for name, peer in peers.items():
            shares = default.shares(peer)
            ratio = np.median(np.array(default.errors) / peer.errors)
            share, plain_share = f"{np.median(shares):.3f}", f"{np.median(plain.shares(peer)):.3f}"
            self.row(label, name, peer, share, plain_share, f"{ratio:.4f}")
            self.judge(sparsity, asked.get("init"), name, shares, float(ratio))
        dead = sum(default.dead) + sum(plain.dead)
        off = max(abs(s - (sparsity or s)).max() for s in (*default.sparsity, *plain.sparsity))
        exact = 1e-10 if self.X.dtype == np.float64 else 1e-5
        if sparsity is not None:
            good = "meets" if not dead and off <= exact else "MISSES"
            self.claims.append(
                f"{good} (e) at {label}: {dead} dead components, largest deviation from the sparsity {off:.0e}"
            )

    def judge(self, sparsity: float | None, init: str | None, peer: str, shares: list[float], ratio: float) -> None:
        """Check the targets for this comparison."""
        plain = peer.startswith("scikit-learn") and "L1" not in peer
        case, about = (self.name, sparsity), f"at {sparsity} against {peer}"
        if plain and case == ("CBCL", 0.7):
            lower = "ending lower" if ratio < 1 else "ending HIGHER"
            self.claims.append(f"{claim(f'(a) {about}', shares, 0.2)}, {lower} ({ratio:.4f} × its error)")
        if plain and case == ("ORL", 0.3):
            self.claims.append(claim(f"(b) {about}", shares, 0.25))
        if peer.endswith(f" {init}") and self.name in ("CBCL", "ORL"):
            self.claims.append(claim(f"(c) without sparsity against {peer}", shares, 0.4))
        if peer == "torchnmf":
            self.claims.append(claim(f"(d) {about}", shares, 0.05))

    def row(self, label: str, name: str, peer: Peer, *rest: str) -> None:
        """Print medians over the seeds."""
        found = np.concatenate(peer.sparsity)
        levels = f"{np.nanmean(found):.3f} ({np.nanmin(found):.3f} – {np.nanmax(found):.3f})"
        error, seconds = f"{np.median(peer.errors):.5f}", f"{np.median(peer.seconds):.2f}"
        dead, memory = f"{np.median(peer.dead):.0f}", f"{np.median(peer.memory):.0f}"
        print("| " + " | ".join((label, name, error, seconds, *rest, levels, dead, memory)) + " |", flush=True)


def warm_up() -> None:
    """Run everything once, to import and compile."""
    X = QUICK.load()
    for sparsity in (None, 0.5):
        for _, fit in peers_of(QUICK, X, sparsity):
            fit(0)
        for accelerate in (False, "auto"):
            Ours().run(X, 3, 0, 0.01, sparsity=sparsity, accelerate=accelerate)


def main() -> None:
    """Run the problems one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 digits, five iterations, one seed, without targets")
    parser.add_argument("--data", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--sparsity", nargs="+", type=float, help="(default: .3 .5 .7; sMRI .5)")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # peers warn that they have not converged, since their iterations are limited
    for name in ("tensorly", "torchnmf"):
        if not installed(name):
            print(f"{name} is skipped: not installed")
    warm_up()
    if options.quick:
        Race("digits", QUICK, QUICK.sparsity, 1).run()
        return
    for name in options.data:
        try:
            race = Race(name, PROBLEMS[name], tuple(options.sparsity or PROBLEMS[name].sparsity), options.seeds)
        except FileNotFoundError as error:
            print(f"{name} is skipped: {error}")
            continue
        race.run()
        print(*race.claims, sep="\n", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
