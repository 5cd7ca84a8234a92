"""The progress line: its content, at the width of the terminal."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from partwise import SparseNMF
from partwise.engine.progress import progress_line, sparsity_range
from partwise.engine.stopping import Iteration

PARTS = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])


def drawn(width, first=1, label="SparseNMF", passes=None):
    """The final state of the line in a terminal of that width."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None, legacy_windows=False)
    with progress_line(label, console) as tell:
        for n in range(first, 9):
            tell(Iteration(n, 200, 1234.5 / n, 0.125, 0.1, [None, PARTS], passes))
    text = re.sub(r"\x1b\[[\d;?]*\w", "", console.file.getvalue())
    return [line for line in re.split(r"[\r\n]+", text) if line.strip()][-1]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_line_fits_a_terminal(width):
    line = drawn(width)
    for text in ("SparseNMF", "8/8", "relative error 0.1250", "sparsity 0.00–1.00", "loss 154", "0:00:00"):
        assert text in line
    assert "…" not in line
    assert ("━" in line) == (width > 80)


def test_line_is_shortened_in_a_narrow_terminal():
    line = drawn(60)
    assert "relative error 0.1250" in line
    assert "loss" not in line
    assert "…" not in line


@pytest.mark.parametrize("width", [80, 100])
def test_passes_are_counted_if_x_is_read_in_chunks(width):
    line = drawn(width, passes=123)
    assert "pass 123" in line
    assert "sparsity" in line
    assert ("loss" in line) == (width > 80)
    assert "…" not in line
    assert "pass" not in drawn(width)


def test_resumed_fit_shows_its_iteration():
    assert "8/8" in drawn(100, first=8)


def test_range_omits_dead_components():
    assert sparsity_range(np.hstack([PARTS, np.zeros((4, 1))])) == "0.00–1.00"
    assert sparsity_range(np.zeros((4, 2))) == "none"


@pytest.mark.parametrize(
    ("modes", "said"), [((1,), "0.00–1.00"), ((0,), "0.00–0.00"), ((2, 0), "0.00–1.00"), ((3,), "none")]
)
def test_sparsity_is_that_of_the_constrained_modes(modes, said):
    flat, peak, elsewhere = np.ones((5, 2)), np.eye(5)[:, :2], object()
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None, legacy_windows=False)
    with progress_line("SparseCP", console, modes) as tell:
        tell(Iteration(1, 200, 1.0, 0.1, 0.1, [flat, PARTS, peak, elsewhere]))
    assert f"sparsity {said}" in console.file.getvalue()


@pytest.mark.parametrize(
    ("asked", "modes"),
    [
        ({}, [1]),
        ({"sparsity": 0.5}, [1]),
        ({"activation_sparsity": 0.5}, [0]),
        ({"sparsity": 0.5, "activation_sparsity": 0.5}, [0, 1]),
        ({"recipe": "l0", "recipe_params": {"nonzeros": 2, "side": "activations"}}, [0]),
    ],
)
def test_estimator_knows_its_constrained_modes(asked, modes):
    assert SparseNMF(**asked)._sparse_modes() == modes


def test_a_file_gets_plain_lines():
    console = Console(file=io.StringIO(), force_terminal=False, width=20)
    with progress_line("SparseNMF", console) as tell:
        for n, seconds in enumerate((0.0, 0.5, 10.5, 11.0)):
            tell(Iteration(n, 200, 1.0, 0.1, seconds, [None, PARTS]))
    assert console.file.getvalue().splitlines() == [
        "SparseNMF: iteration 0 of 200, relative error 0.1000, 0.0 s",
        "SparseNMF: iteration 2 of 200, relative error 0.1000, 10.5 s",
        "SparseNMF: iteration 3 of 200, relative error 0.1000, 11.0 s",
    ]
