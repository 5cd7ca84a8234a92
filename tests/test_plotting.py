"""Pictures of parts."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from partwise.plotting import gallery, new_figure


def images(figure):
    return [image for axis in figure.get_axes() for image in axis.get_images()]


@pytest.mark.parametrize("r", [1, 2, 5, 16])
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_one_image_for_each_part(rng, r, columns):
    parts = rng.random((r, 12))
    figure = gallery(parts, (3, 4), title="parts", columns=columns)
    drawn = images(figure)
    assert len(drawn) == r
    for image, part in zip(drawn, parts, strict=True):
        np.testing.assert_array_equal(image.get_array(), part.reshape(3, 4))
        assert image.get_clim() == (0, part.max())
    assert not any(axis.axison for axis in figure.get_axes())
    assert figure.get_suptitle() == "parts"


@pytest.mark.parametrize("value", [0.0, 0.5, 1e-300])
def test_a_constant_part(value, tmp_path):
    figure = gallery(np.full((2, 6), value), (2, 3))
    for image in images(figure):
        low, high = image.get_clim()
        assert low == 0 < high
    figure.savefig(tmp_path / "parts.png")
    assert (tmp_path / "parts.png").stat().st_size > 0


def test_lists_and_given_figures(rng):
    figure = new_figure(4, 2)
    left, right = figure.subfigures(1, 2)
    parts = rng.random((3, 4))
    assert gallery(parts.tolist(), (2, 2), figure=left) is left
    gallery(parts, (2, 2), figure=right)
    assert len(images(figure)) == 6


@pytest.mark.parametrize("components", [np.ones((2, 5)), np.ones(6), np.ones((1, 2, 3)), np.ones((0, 6))])
def test_parts_of_another_shape(components):
    with pytest.raises(ValueError, match=r"shape \(.*\) do not fit images of 2 × 3 pixels"):
        gallery(components, (2, 3))


DRAW = """
import sys
{before}
import numpy as np
from partwise.plotting import gallery
gallery(np.eye(6), (2, 3)).savefig(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""


def draw(path, before=""):
    environment = {k: v for k, v in os.environ.items() if k not in ("MPLBACKEND", "DISPLAY", "WAYLAND_DISPLAY")}
    code = [sys.executable, "-c", DRAW.format(before=before), str(path)]
    return subprocess.run(code, env=environment, capture_output=True, text=True, timeout=120)


def test_no_display_is_needed(tmp_path):
    done = draw(tmp_path / "parts.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(tmp_path):
    done = draw(tmp_path / "parts.png", "sys.modules['matplotlib'] = None")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ImportError: pictures need matplotlib: pip install 'partwise[plot]'"
