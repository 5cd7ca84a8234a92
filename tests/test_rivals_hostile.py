"""Every recipe names what is bad or missing among its arguments."""

import re
import sys

import numpy as np
import pytest
from catalogues import planted

import partwise as pw
from partwise.recipes import RECIPES as FUNCTIONS


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=18, m=22, r=4, noise=0.1).X


BAD = [
    *((name, {"sides": 1}, TypeError, "does not take sides") for name in FUNCTIONS if name != "tpc"),
    *((name, {"side": "parts"}, ValueError, "side='parts'") for name in ("nnsc", "snmf", "l0", "l0_path", "grouped")),
    ("nnsc", {"method": "fast"}, ValueError, "method='fast' is not one of 'sequential'"),
    ("l0", {"method": "forward"}, ValueError, "method='forward' is not one of 'prune', 'sequential'"),
    ("l0", {"method": "prune", "side": "activations"}, ValueError, "method='prune' is not one of 'reverse'"),
    ("nsnmf", {"loss": "frobenius"}, ValueError, "loss='frobenius' is not one of 'squared', 'kullback-leibler', 'kl'"),
    *(("nsnmf", {"theta": v}, ValueError, re.escape(f"theta={v!r}")) for v in (1.2, -0.1, "a", None, np.nan)),
    ("nsnmf", {"loss": "kl", "kkt_tol": 1e-3}, ValueError, "kkt_tol"),
    *(("nnsc", {"l1": v}, ValueError, f"l1={v!r}") for v in (-1, "a", None, np.nan, np.inf)),
    *(("snmf", {"beta": v}, ValueError, f"beta={v!r}") for v in (-1, "a", None, np.nan, np.inf)),
    *(("snmf", {"eta": v}, ValueError, f"eta={v!r}") for v in (-1, "a", np.nan, np.inf)),
    *((name, {"nonzeros": v}, ValueError, f"nonzeros={v!r}") for name in ("l0", "l0_path") for v in (0, 1.5, True)),
    *(("grouped", {"sparsity": v}, ValueError, f"sparsity={v!r}") for v in (1.2, -0.1, None)),
    *(("nmfsc", {"sparsity": v}, ValueError, re.escape(f"sparsity={v!r}")) for v in (1.2, "a")),
    ("nmfsc", {"activation_sparsity": [0.1]}, ValueError, "activation_sparsity has 1 values"),
    ("nmfsc", {"projection": "quick"}, ValueError, "projection='quick'"),
    ("bisparse", {"projection": "quick"}, ValueError, "projection='quick'"),
    ("bisparse", {"sparsity": None}, ValueError, "sparsity=None: bisparse needs both"),
    ("bisparse", {"activation_sparsity": None}, ValueError, "activation_sparsity=None"),
    ("bisparse", {"middle": "none"}, ValueError, "middle='none' is not one of 'diagonal', 'full'"),
    ("bisparse", {"middle_solver": "hals"}, ValueError, "middle_solver='hals'"),
    ("bisparse", {"middle": "full", "n_components": 65}, ValueError, "n_components=65.*at most 64"),
]
NEEDED = {
    "nnsc": {"l1": 0.1},
    "l0": {"nonzeros": 3},
    "l0_path": {"nonzeros": 2},
    "grouped": {"sparsity": 0.5},
    "bisparse": {"sparsity": 0.5, "activation_sparsity": 0.3},
}


@pytest.mark.parametrize(("name", "options", "error", "message"), BAD)
def test_bad_arguments_are_named(X, name, options, error, message):
    with pytest.raises(error, match=message):
        getattr(pw, name)(X, **{"n_components": 3, "max_iter": 2, **NEEDED.get(name, {}), **options})


@pytest.mark.parametrize(("name", "missing"), [(name, missing) for name in NEEDED for missing in NEEDED[name]])
def test_missing_arguments_are_named(X, name, missing):
    rest = {key: value for key, value in NEEDED[name].items() if key != missing}
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{missing}'"):
        getattr(pw, name)(X, 3, **rest)


def test_tpc_says_what_it_needs(X, monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'partwise[cone]'")):
        pw.tpc(X, 3, sparsity=(0.3, 0.5))


@pytest.mark.parametrize("options", [{"sides": 1}, {"sparsity": 1.2}, {"activation_sparsity": (0.6, 0.2)}])
def test_bad_arguments_of_tpc(X, options):
    pytest.importorskip("clarabel")
    (name, value), error = next(iter(options.items())), TypeError if "sides" in options else ValueError
    with pytest.raises(error, match=name if error is TypeError else re.escape(f"{name}={value!r}")):
        pw.tpc(X, 3, **options)
