"""CPU time of the first fit in a new process without cached kernels.

    python benchmarks/coldstart.py [--quick]

Each row is a new process. "first fit" rows start with an empty kernel cache and give the CPU time from process start to
the first result, imports included, and the functions that were compiled. "with a filled cache" repeats the first of
them. "then" rows give what the first use of another method, constraint or kind of data adds after a fit of the digits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

CHILD = """
import json, sys, time
import numpy as np, scipy.sparse as sp
from sklearn.datasets import load_digits
import partwise as pw
from partwise.runtime.compiled import compiling

names, start = [], compiling.on_start
compiling.on_start = lambda event: (names.append(event.data["dispatcher"].py_func.__name__), start(event))
first, second = sys.argv[1:]
X = load_digits().data
common = dict(max_iter=3, tol=0, random_state=0)
FITS = {
    "float64": lambda: pw.SparseNMF(16, sparsity=0.6, random_state=0).fit(X),
    "float32": lambda: pw.SparseNMF(16, sparsity=0.6, random_state=0).fit(X.astype(np.float32)),
    "sparsity=None": lambda: pw.SparseNMF(16, random_state=0).fit(X),
    "sparse X": lambda: pw.ssnmf(sp.csr_array(X), 16, sparsity=0.6, **common),
    "missing entries": lambda: pw.ssnmf(np.where(X > 15, np.nan, X), 16, sparsity=0.6, missing="em", **common),
    "tensor": lambda: pw.cp(X.reshape(-1, 8, 8), 4, sparsity={1: 0.3}, **common),
    "an interval": lambda: pw.ssnmf(X, 16, sparsity=(0.5, 0.7), **common),
    "sparsity=1": lambda: pw.ssnmf(X, 16, sparsity=1.0, **common),
    "the paper's": lambda: pw.ssnmf(X, 16, sparsity=0.6, faithful=True, **common),
    "mini-batches": lambda: pw.MiniBatchSparseNMF(16, sparsity=0.6, random_state=0).partial_fit(X),
    "transform": lambda: pw.SparseNMF(16, sparsity=0.6, **common).fit(X).transform(X),
    "nmfsc": lambda: pw.nmfsc(X, 16, sparsity=0.6, **common),
    "nnsc": lambda: pw.nnsc(X, 16, l1=0.1, **common),
    "snmf": lambda: pw.snmf(X, 16, **common),
    "nsnmf": lambda: pw.nsnmf(X, 16, **common),
    "l0": lambda: pw.l0(X, 16, nonzeros=10, **common),
    "l0, activations": lambda: pw.l0(X, 16, nonzeros=3, side="activations", **common),
    "l0_path": lambda: pw.l0_path(X, 16, nonzeros=3, **common),
    "bisparse": lambda: pw.bisparse(X, 16, sparsity=0.6, activation_sparsity=0.3, **common),
    "grouped": lambda: pw.grouped(X, 16, sparsity=0.6, **common),
}
if second == "list":
    print(json.dumps(list(FITS)))
    raise SystemExit
import warnings
warnings.simplefilter("ignore")
FITS[first]()
if second:
    names.clear()
    began = time.process_time()
    FITS[second]()
    print(json.dumps([time.process_time() - began, names]))
else:
    print(json.dumps([time.process_time(), names]))
"""


def child(first: str, second: str, cache: str) -> tuple[float, list[str]]:
    """CPU seconds of the first fit, or of a second one after it, and the functions compiled for it."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, first, second], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def tell(label: str, seconds: float, names: list[str]) -> None:
    """Print one row."""
    ours = [name for name in names if name != "impl"]
    print(f"{label:<24} {seconds:6.2f} s  {len(names):3} compiled: {', '.join(dict.fromkeys(ours))}"[:160], flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two first fits, two further ones")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as cache:
        for dtype in ("float64", "float32"):
            tell(f"first fit, {dtype}", *child(dtype, "", f"{cache}/{dtype}"))
        tell("with a filled cache", *child("float64", "", f"{cache}/float64"))
        further: list[str] = child("float64", "list", cache)  # type: ignore[assignment]
        for name in further[2:4] if quick else further[1:]:
            tell(f"then {name}", *child("float64", name, f"{cache}/then-{name}"))


if __name__ == "__main__":
    main()
