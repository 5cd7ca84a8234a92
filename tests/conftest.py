"""Fixtures over the catalogues: a test of ``problem``, ``kind``, ``update`` or ``columns`` runs over all of them.

A test that needs only some names them: ``@pytest.mark.parametrize("problem", ["planted"], indirect=True)``.
"""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # importlib mode leaves it out, and test files import the catalogues

from catalogues import KINDS, PROBLEMS, SETS, UPDATES

import partwise.recipes  # noqa: F401  before doctests are looked for in its files, which would take its functions' names
from partwise.runtime.compiled import compiling

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in background processes: `make test &` in a script
    signal.signal(signal.SIGINT, signal.default_int_handler)

compiling.announced = True  # the message about compilation is tested in test_compiled.py only

settings.register_profile(  # the same examples each time, however busy the machine is
    "partwise", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("partwise")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=PROBLEMS)
def problem(request):
    """A nonnegative matrix X and a number of components r."""
    return PROBLEMS[request.param](np.random.default_rng(list(request.param.encode())))


@pytest.fixture(params=KINDS)
def kind(request):
    """Converts an array to another kind of data."""
    return KINDS[request.param]


@pytest.fixture(params=UPDATES)
def update(request):
    return UPDATES[request.param]


@pytest.fixture(params=SETS)
def columns(request):
    """Takes r and returns a set for each column."""
    return SETS[request.param]
