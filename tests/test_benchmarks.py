"""Every benchmark runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.compiled
@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_it_runs(path):
    done = subprocess.run(
        [sys.executable, str(path), "--quick"], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
