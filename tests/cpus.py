"""Run the reproducibility tests with the code paths of other CPUs: ``python tests/cpus.py``, or ``make cpus``.

OpenBLAS can use the kernels of another CPU (``OPENBLAS_CORETYPE``), and numba can compile for a generic CPU
(``NUMBA_CPU_NAME=generic``). CPUs that this machine cannot emulate, and its own, are skipped with a message.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CORES = ("Nehalem", "Haswell", "SkylakeX")
FILES = ("bits", "brain", "saved", "checkpoint", "threads", "minibatch")
CLUSTER = "test_cluster_processes.py::test_same_bits_for_any_placement_of_chunks"
PROBE = """
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
square = numpy.random.default_rng(0).random((99, 99))
scipy.linalg.cholesky(square @ square.T + numpy.eye(99))
print(*{lib.get("architecture", lib["internal_api"]) for lib in threadpool_info() if lib["user_api"] == "blas"})
"""


def kernels(core=None):
    """The CPU whose kernels BLAS uses if ``core`` is requested, or None if it cannot run them."""
    environment = os.environ | ({"OPENBLAS_CORETYPE": core} if core else {})
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def lanes():
    """Names and environment variables of the configurations to test."""
    own = kernels()
    for core in CORES:
        found = kernels(core)
        if core == own:
            print(f"{core} skipped: BLAS detects this CPU anyway, so all other tests use it")
        elif found != core:
            print(f"{core} skipped: BLAS cannot use it on this machine (it uses {found})")
        else:
            yield f"BLAS as on {core}", {"OPENBLAS_CORETYPE": core}
    yield "kernels for any CPU", {"NUMBA_CPU_NAME": "generic"}


def main():
    tests = [*(str(HERE / f"test_{name}.py") for name in FILES), str(HERE / CLUSTER)]
    failed = []
    for name, settings in lanes():
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", *sys.argv[1:], *tests]
        if subprocess.run(command, env=os.environ | settings).returncode:
            failed.append(name)
    return f"failed: {', '.join(failed)}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())
