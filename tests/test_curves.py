"""Plots of the experiments: curves with error bands, and mosaics of components."""

import numpy as np
import pytest
from catalogues import one_at_a_time

pytest.importorskip("matplotlib")

from experiments.curves import Line, Panel, curves
from experiments.mosaics import mosaic, mosaics


def lines():
    x = np.array([1.0, 2.0, 4.0])
    band = Line("ours", x, 1 / x, 0.9 / x, 1.1 / x, {"after 3 updates": (2.0, 0.5)})
    return [band, Line("theirs", x, 2 / x, points={"after 3 updates": (4.0, 0.5), "after 9 updates": (4.0, 0.5)})]


@one_at_a_time(count=[4, 1, 3, 7], log=["", "x", "xy"])
def test_a_pair_of_axes_for_each_panel(tmp_path, count, log):
    panels = [Panel(f"panel {i}", lines()) for i in range(count)]
    figure = curves(panels, title="all", x="time (s)", y="error", log=log, columns=3, caption="what the band is")
    drawn = [axis for axis in figure.get_axes() if axis.axison]
    assert [axis.get_title() for axis in drawn] == [panel.title for panel in panels]
    for axis in drawn:
        assert (axis.get_xscale(), axis.get_yscale()) == tuple("log" if a in log else "linear" for a in "xy")
        assert len(axis.collections) == 1  # one band
        np.testing.assert_array_equal(axis.lines[0].get_ydata(), [1, 0.5, 0.25])
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["ours", "theirs", "after 3 updates", "after 9 updates"]
    assert legend.get_title().get_text() == "what the band is"
    labelled = [axis.get_xlabel() for axis in drawn]
    assert labelled == [""] * (count - min(count, 3)) + ["time (s)"] * min(count, 3)
    assert [axis.get_ylabel() for axis in drawn] == ["error" if i % 3 == 0 else "" for i in range(count)]
    figure.savefig(tmp_path / "curves.png")


def test_a_method_has_one_colour():
    first, second = lines()
    figure = curves([Panel("a", [first, second]), Panel("b", [second])], title="", x="", y="")
    a, b = figure.get_axes()
    assert a.lines[0].get_color() != b.lines[0].get_color()
    assert b.lines[0].get_color() in [line.get_color() for line in a.lines]


def test_single_point_is_drawn():
    figure = curves([Panel("a", [Line("one", [2.0, 2.0], [1.0, 1.0]), lines()[0]])], title="", x="", y="")
    assert [line.get_marker() for line in figure.get_axes()[0].lines[:2]] == ["o", "None"]


@pytest.mark.parametrize("r", [1, 3, 4, 5])
def test_mosaic_contains_every_component(rng, r):
    parts = rng.random((r, 6))
    picture = mosaic(parts, (2, 3))
    assert (picture == 1).sum() == r  # the largest entry of each
    for part in parts:
        assert all(np.isclose(picture, value / part.max()).any() for value in part)


def test_signed_components_are_drawn_in_two_colours(rng, tmp_path):
    parts = rng.random((4, 6))
    figure = mosaics([("plain", parts), ("signed", parts - 0.5), ("zero", 0 * parts)], (2, 3), title="all", columns=2)
    images = [axis.get_images()[0] for axis in figure.get_axes() if axis.get_images()]
    assert [image.get_cmap().name for image in images] == ["gray_r", "RdGy", "gray_r"]
    assert [image.get_clim() for image in images] == [(0, 1), (-1, 1), (0, 1)]
    assert not any(axis.axison for axis in figure.get_axes())
    figure.savefig(tmp_path / "parts.png")


@pytest.mark.parametrize("parts", [np.ones((2, 5)), np.ones(6), np.ones((0, 6))])
def test_components_of_another_shape_are_rejected(parts):
    with pytest.raises(ValueError, match=r"components of shape \(.*\) do not fit images of 2 × 3 pixels"):
        mosaics([("it", parts)], (2, 3), title="")
