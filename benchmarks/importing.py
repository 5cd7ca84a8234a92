"""Import time of `pw.SparseNMF`, compared with that of the libraries it uses.

    python benchmarks/importing.py [--quick]

CPU time of new processes, in turn; medians over the rounds. Partwise's bytecode is compiled before the first
measurement, as after an installation by pip. "by hand" imports NumPy, SciPy, scikit-learn and numba directly. The last
line lists the third-party modules that Partwise imports beyond these. Target: ratio ≤ 1.3.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from statistics import median

BY_HAND = "import numpy, scipy.sparse, sklearn.base, numba.core.dispatcher"
PARTWISE = "import partwise as pw; pw.SparseNMF"
TIMED = "\nimport time; print(time.process_time())"
NEW = f"import sys; {BY_HAND}; known = set(sys.modules); {PARTWISE}; print(*sorted(set(sys.modules) - known))"
MOST = 1.3


def fresh(code: str) -> str:
    """The output of ``code`` in a new process."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, "-c", code], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Print the two times, their ratio, and the additional third-party modules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round")
    rounds = 1 if parser.parse_args().quick else 15
    new = [name for name in fresh(NEW).split() if not name.startswith("partwise")]  # writes the bytecode
    times = [[float(fresh(code + TIMED)) for code in (BY_HAND, PARTWISE)] for _ in range(rounds)]
    by_hand, ours = (median(column) for column in zip(*times, strict=True))
    ratio = median(ours / by_hand for by_hand, ours in times)
    print(f"by hand   {by_hand:.3f} s   {BY_HAND}")
    print(f"Partwise  {ours:.3f} s   {PARTWISE}")
    print(f"ratio {ratio:.3f}  {'meets' if ratio <= MOST else 'misses'} ≤ {MOST}")
    print("additional third-party modules:", ", ".join(new) or "none")


if __name__ == "__main__":
    main()
