"""`partwise info` on many samples: it counts over all samples, and says how many it fitted."""

import json

import numpy as np
import pytest

from partwise.cli import main
from partwise.engine import natural


@pytest.fixture(autouse=True)
def few(monkeypatch, tmp_path):
    """Lower the limit on samples to twenty."""
    monkeypatch.setattr(natural, "SAMPLES", 20)
    monkeypatch.chdir(tmp_path)


def told(X, capsys):
    """The output for X, as JSON and as text."""
    np.save("x.npy", X)
    assert main(["info", "x.npy", "-r", "2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert main(["info", "x.npy", "-r", "2"]) == 0
    return facts, capsys.readouterr().out


def test_feature_observed_in_few_samples_is_not_missing(rng, capsys):
    X = rng.random((60, 5))
    X[:, 2] = np.nan
    X[1, 2] = 0.5  # a sample that is not among those fitted
    facts, said = told(X, capsys)
    assert (facts["missing"], facts["unseen_features"], facts["unconstrained_samples"]) == (59, 0, 20)
    assert "59 values are missing" in said
    assert "missing in all samples" not in said
    assert "2 components without a constraint, fitted to 20 samples, have sparsity" in said


def test_feature_never_observed_is_missing(rng, capsys):
    X = rng.random((60, 5))
    X[:, [1, 2]] = np.nan
    facts, said = told(X, capsys)
    assert facts["unseen_features"] == 2
    assert "2 features are missing in all samples: remove them" in said


def test_samples_of_zeros_are_left_out_of_the_fit(rng, capsys):
    X = np.zeros((60, 5))
    X[1:4] = rng.random((3, 5))
    facts, said = told(X, capsys)
    assert facts["zeros"] == pytest.approx(0.95)
    assert len(facts["unconstrained_sparsity"]) == 2
    assert facts["unconstrained_samples"] == 3
    assert "2 components without a constraint, fitted to 3 samples, have sparsity" in said


def test_negative_entries_are_described_if_they_are_allowed(rng, capsys):
    np.save("x.npy", rng.random((30, 5)) - 0.2)
    assert main(["info", "x.npy", "-r", "2", "--negative", "allow", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["unconstrained_sparsity"]) == 2
    for command in (["info", "x.npy"], ["select", "x.npy", "-r", "2"]):
        assert main(command) == 1
        assert "set --negative allow" in capsys.readouterr().err
    few = ["--max-iter", "2", "--n-splits", "1", "--n-init", "1", "--json"]
    assert main(["select", "x.npy", "-r", "2", "--negative", "allow", *few]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 1
