"""Every benchmark runs at a tiny size and prints its table: all rows, with finite positive numbers."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NUMBER = r"([+-]?[\d.]+(?:e[+-]?\d+)?|nan|inf)"
TABLES = {  # (a row, where # is a finite number above zero, and how many rows there are at least)
    "acceleration": [
        (r"^digits +sparsity \S+ +to +5 iterations +#, to 20 iterations +# \(worst #\); largest rise", 3),
        (r"^geometric mean # of the time", 1),
    ],
    "cluster": [
        (r"^  (?:without Dask|one worker|two workers) +# ", 3),
        (r"^one worker ÷ (?:two workers|without Dask): #", 2),
        (r"^components differ by at most (?:0\.0e\+00|\d\.\de-(?:0[89]|[1-9]\d))$", 1),
        (r"error of #; the default fit reaches it: # after # passes in all$", 1),
    ],
    "coldstart": [
        (r"^first fit, float(?:64|32) +# s +# compiled: \w+, ", 2),
        (r"^with a filled cache +# s +0 compiled: $", 1),
        (r"^then \S.* # s +\d+ compiled: ", 2),
    ],
    "columns": [(r"^quick .* loss +[+-]\S+ % after 10 iterations \(\d+ increases\), one pass \d\.\d{4} s$", 4)],
    "curves": [(r"^digits +\S.* \d+ points, at the end +# s, error #$", 3)],
    "explore": [
        (r"^digits +3 levels: # fits \(largest #\); error against fits alone (?:[+-]\S+ %,? ){3}.*; page # MB$", 1)
    ],
    "importing": [(r"^(?:by hand|Partwise) +# s ", 2), (r"^ratio # ", 1)],
    "consensus": [
        (r"^ours +# s CPU \(prepare #, .*; peak # MB, # MB of it after importing; mean objective #; silhouette", 1)
    ],
    "iteration": [
        (r"^tiny .* sparsity #: .* iteration ÷ products # +default ÷ products #", 12),
        (r"^tiny .* two threads ÷ one: #", 2),
        (r"^tiny .* peak memory beyond X .* = # × the factors$", 2),
        (r"^(?:python|import) .* # s$", 5),
    ],
    "kl": [
        (r"^scikit-learn, .*: its divergence in # of its time \(largest #\); numbers differ by \S+$", 2),
        (r"^nsnmf, .* seed 0: .* s: \S+ against \S+ %; .* s: \S+ against \S+ %$", 2),
        (r"^components, mean count #: sparsity none: # squared, # KL; sparsity the true ones: # squared, # KL$", 5),
    ],
    "missing": [
        (r"^\w+, .*, float(?:64|32): complete # ms; missing 0%: # ×, 10%: # ×, 30%: # ×, 50%: # ×, 90%: # ×$", 4),
        (r"% missing \| tol 0\.05: +# iterations, .* iteration # × plain \| tol 1e-06: +# iterations", 10),
        (r"[1357]0% missing .* error # × noise.* error # × noise", 8),
    ],
    "outofcore": [
        (r"^(?:plain read|matrix products, data in memory|an iteration) +\d+\.\d\d s", 3),
        (r"^an iteration ÷ the larger of the two: #.*; relative error #", 1),
        (r"^the default fit reaches it: # after # passes in all; ", 1),
    ],
    "projections": [(r"^ +(?:[\d,]+|at 0\.\d) +# +# +# +#", 32)],
    "race": [
        (r"^\| [^|]+ \| \*\*Partwise\*\* \| # ", 3),
        (r"^\| [^|]+ \| [^*|]+ \| # \| \S+ \| \S+ \| \S+ \| # \| # \(", 12),
    ],
    "recipes": [(r"^  \S.* # # +# # # +\d+ +\d+\.\d\d", 20)],
    "restarts": [
        (r"^(?:sparse|dense|file|\.h5ad)[a-z, ]* 3 starts together: # of the CPU time of .*, # of the wall time", 6),
        (r"factors differ by (?:0\.0e\+00|\d\.\de-(?:09|[1-9]\d))$", 6),
    ],
    "scaling": [
        (r"^(?:fitted|checked|on Dask) .* chunks: predicted \d+\.\d{4}, measured \d+\.\d{4} s", 6),
        (r"^# × #, r 50, 100 workers, .* per pass \d+ s of work, \d+ s of scheduling, # GB sent", 2),
    ],
    "selection": [
        (r"^noise #: lowest at the true rank in \d of 1, within one in \d; error \S+% at -1, \S+% at \+1", 3),
        (r"^overall: at the true rank in \d+%, within one in \d+%", 1),
        (r"^\S.*: search # s, # × the \d+ fits it contains", 1),
    ],
    "weights": [
        (r"^ +[\d.]+ +\S+ +# +# +# +# +# +# +\S+$", 6),
        (r"^[158]0% weights of 0, sparsity \S+: differs from the observed mask by 0e\+00$", 6),
    ],
    "sparse": [
        (r"^  Xᵀ?·rest +cs[rc] float(?:64|32) int(?:64|32) +# +# +# +# +# +# +#$", 32),
        (r"^  scikit-learn, \d iterations .* relative error #", 3),
        (r"^  ours to that error, (?:one thread|all threads) +\S+ s, \S+ of its time", 6),  # inf: not in its time
        (r"^  ours at sparsity \.7 .* relative error #", 3),
        (r"^  ours, sparsity \S+ *, .* relative error #", 2),
    ],
    "settling": [(r"^\w+ +sparsity \S+ +# iterations, .* cosines #, least #; changed", 4)],
    "starts": [
        (r"^digits +\w+ +#: auto \S+ # s, samples .*; auto ÷ \w+: time #; loss \w+, time \w+$", 4),
        (r"^Swimmer at 0\.9: \d of 2 exact$", 1),
        (r"^Swimmer with its own sparsities: \d of 2 exact; in the order of the list: True$", 1),
    ],
    "tensor": [
        (r"^  seed 0, (?:same start|own starts): error #; tensorly \S+ s, ours \S+ s", 2),
        (r"^  (?:same start|own starts): # × tensorly's time", 2),
        (r"^  .*: match # \(median", 3),
    ],
    "textcells": [(r"^generated counts scikit-learn +\S+ s, relative error #; ours from our start \S+ of its time", 1)],
}


def test_every_benchmark_has_an_expected_table():
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == set(TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_benchmark_prints_its_table(name):
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr
    for row, count in TABLES[name]:
        found = [*re.finditer(row.replace("#", NUMBER), done.stdout, re.MULTILINE)]
        assert len(found) >= count, (row, done.stdout)
        for match in found:
            assert all(math.isfinite(float(x)) and float(x) > 0 for x in match.groups()), match[0]
