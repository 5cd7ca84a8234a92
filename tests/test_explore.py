"""The explorer: its fits agree with single fits, its page with its fits, and names in it cannot run."""

import base64
import json
import re
import zlib
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

import partwise as pw
from partwise.cli import main
from partwise.data import as_data
from partwise.engine.origins import Brain, Sound
from partwise.selection import levels as along

pytest.importorskip("matplotlib")
from partwise.engine.summary import Summary
from partwise.pages import views
from partwise.pages.packed import STEPS, Arrays, safe_json
from partwise.plotting.looks import Bars, Images, Lines, Volumes

EVIL = "</script><script>document.title = 'taken'</script>\"'&\u2028é\U0001f9e0\u202e"
LEVELS = [0.3, 0.6, 0.8]


@pytest.fixture(scope="module", name="X")
def digits():
    return load_digits().data[:150]


@pytest.fixture(scope="module")
def found(X):
    return pw.explore(X, 5, LEVELS, part_shape=(8, 8), random_state=0, holdout=0.1)


def block(page, name):
    return re.search(rf'<script type="text/plain" id="{name}">(.*?)</script>', page, re.DOTALL)[1]


def held(page):
    """The data of a page as the browser reads them, and a function that reads its rows."""
    data = json.loads(block(page, "page-data"))
    arrays = zlib.decompress(base64.b64decode(block(page, "page-arrays")))

    def rows(where):
        count = where["count"]
        folded = np.frombuffer(arrays, np.uint8, 2 * count, where["at"]).astype(int)
        folded = (folded[:count] + 256 * folded[count:]).reshape(-1, where["width"])
        steps = np.where(folded % 2, -(folded + 1) // 2, folded // 2)
        return np.cumsum(steps, axis=1) * np.array(where["scales"])[:, None] / data["steps"]

    def floats(where):
        return np.frombuffer(arrays, "<f4", where["count"], where["at"])

    return data, rows, floats


# fits


def test_every_level_has_its_sparsity_and_the_free_one_lies_between(found):
    for level, fit in zip(found.sparsities, found.results, strict=True):
        np.testing.assert_allclose(fit.sparsity, level, atol=1e-9)
    assert found.free.relative_error <= found.errors.min()
    assert found.natural == pytest.approx(np.median(found.free.sparsity))
    assert found.heldout_errors.shape == found.errors.shape == (3,)
    assert (found.heldout_errors > 0).all()


def test_levels_agree_with_fits_of_their_own(X, found):
    for level, error in zip(LEVELS, found.errors, strict=True):
        alone = pw.ssnmf(X, 5, sparsity=level, random_state=0)
        assert error <= 1.02 * alone.relative_error


def test_levels_of_an_exact_fit_settle():
    found = pw.explore(np.zeros((9, 8)), 3, [0.3, 0.6], random_state=0)
    assert [result.n_iter for result in found.results] == [along.LAST, along.LAST]


def test_components_are_matched_from_level_to_level(found):
    for (_, one), (_, other) in pairwise(in_order(found)):
        pairs = pw.match_parts(one.components, other.components)
        np.testing.assert_array_equal(pairs.second, np.arange(5))


def test_matching_reorders_all_of_a_result(rng):
    result = pw.bisparse(rng.random((9, 8)), 3, sparsity=0.4, activation_sparsity=0.3, max_iter=3, random_state=0)
    order = np.array([2, 0, 1])
    shuffled = along.replace(
        result, factors=[f[:, order] for f in result.factors], middle=result.middle[np.ix_(order, order)]
    )
    again = along.matched(shuffled, result)
    for a, b in zip([*again.factors, again.middle], [*result.factors, result.middle], strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_same_seed_gives_the_same_page(X):
    pages = [pw.explore(X[:40], 3, 0.5, random_state=3).page for _ in range(2)]
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    "options",
    [
        {"recipe": "nmfsc"},
        {"recipe": "tpc"},
        {"recipe": "grouped"},
        {"activation_sparsity": 0.3},
        {"l1": 0.1},
        {"tol": 0.1},
        {"n_init": 2, "init": "random"},
        {"recipe_params": {"faithful": True}},
        {"fixed_components": np.eye(2, 64)},
        {"fixed_activations": np.ones((40, 1))},
        {"missing": "em"},
        {"accelerate": False, "max_time": 100.0, "n_threads": 1},
    ],
    ids=lambda options: ",".join(options),
)
def test_takes_the_options_of_a_fit(X, options):
    Y = X[:40].copy()
    if options.get("missing"):
        Y[1, 2] = np.nan
    found = pw.explore(Y, 3, [0.4, 0.6], random_state=0, max_iter=30, **options)
    data, _, floats = held(found.page)
    for level, (_, fit) in zip(data["levels"], in_order(found), strict=True):
        assert level["error"] == pytest.approx(fit.relative_error, rel=1e-6)
        activations = fit.activations if fit.middle is None else fit.activations @ fit.middle
        np.testing.assert_allclose(floats(level["activations"]).reshape(-1, 3), activations[data["samples"]], rtol=1e-6)
    if "fixed_components" in options:
        assert all((fit.components[:2] == np.eye(2, 64)).all() for fit in (*found.results, found.free))


MODULE = import_module("partwise.pages.explore")  # pw.pages.explore is the function


def in_order(found):
    return along.LevelFits(found.sparsities, found.results, found.free).in_order()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsities": []}, "sparsities is empty: give at least one number between 0 and 1"),
        ({"sparsities": [(0.2, 0.4)]}, "sparsities=(0.2, 0.4): give numbers between 0 and 1"),
        ({"sparsities": 1.5}, "sparsities=1.5 is outside [0, 1]"),
        ({"checkpoint": "fit.ckpt"}, "checkpoint belongs to one fit, but explore makes many: omit it"),
        ({"recipe": "l0", "recipe_params": {"nonzeros": 2}}, "recipe l0 does not accept 'sparsity'"),
        ({"part_shape": (5, 5)}, "do not fit images of 5 × 5 pixels"),
        ({"sample_names": ["a"]}, "1 sample names for 150 samples: give one for each"),
        ({"holdout": 1.0}, "holdout=1.0: give a share between 0 and 1"),
        ({"holdout": 2}, "holdout=2: give a number"),
        ({"path": 5}, "path=5: give the path of a file"),
        ({"mask": np.ones(3)}, "mask has 3 True entries for 64 features: give one for each"),
        ({"title": 5}, "title=5: give a string"),
        ({"provenance": 5}, "provenance=5: give a dict"),
        ({"provenance": {"cells": 5}}, "provenance={'cells': 5}: give a dict of facts"),
    ],
)
def test_wrong_arguments_are_refused(X, monkeypatch, options, message):
    monkeypatch.setattr(MODULE, "fit_levels", lambda *args, **options: pytest.fail("a fit was made"))
    with pytest.raises(ValueError, match=re.escape(message)):
        pw.explore(X, 3, **({"sparsities": 0.5, "max_iter": 2} | options))


@pytest.mark.parametrize(
    ("wrong", "right"), [("part_shap", "part_shape"), ("max_iters", "max_iter"), ("sparsity", "sparsities")]
)
def test_unknown_keywords_are_named_with_the_nearest(X, wrong, right):
    with pytest.raises(TypeError, match=rf"explore does not take {wrong} \(did you mean {right}\?\); it takes X, "):
        pw.explore(X, 3, 0.5, **{wrong: 2})


def test_sparser_levels_are_fitted_for_longer():
    def stopped(share, errors):
        rule = along.ErrorSettled(share)
        return next(k for k, error in enumerate(errors) if rule(SimpleNamespace(relative_error=error)))

    errors = 0.2 * (1 + 0.01 * 0.9 ** np.arange(100))
    assert stopped(along.SPARSER, errors) > stopped(along.DENSER, errors) > stopped(along.WITHIN, errors) >= along.LAST


def test_a_stride_is_fitted_from_its_end_and_then_from_the_mean_of_both_ends(X):
    starts = {}

    def fit(sparsity, init, callback):
        starts[sparsity] = init
        return pw.ssnmf(X, 3, sparsity=sparsity, init=init, random_state=0, callback=callback)

    path = along.fit_levels(fit, [0.2, 0.25, 0.35, 0.4])
    assert [*starts] == [None, 0.35, 0.4, 0.2, 0.25]
    free, near, far = path.free, path.results[2], path.results[0]
    for given, mean in zip(starts[0.25], ("activations", "components"), strict=True):
        np.testing.assert_allclose(given, (getattr(near, mean) + getattr(far, mean)) / 2, atol=1e-12)
    norms = np.linalg.norm(free.components, axis=1)
    np.testing.assert_allclose(starts[0.4][0], (free.activations * norms + near.activations) / 2, atol=1e-9)


def test_known_activations_stay_in_their_columns(rng):
    X, known = rng.random((40, 5)) @ rng.random((5, 20)), rng.random((40, 2))
    found = pw.explore(X, 5, np.linspace(0.05, 0.9, 12), fixed_activations=known, max_iter=15, random_state=0)
    for result in (found.free, *found.results):
        np.testing.assert_array_equal(result.activations[:, :2], known)


@pytest.mark.parametrize("scale", [1e60, 1e-60])
def test_values_that_browsers_cannot_draw_are_refused(rng, scale):
    with pytest.raises(ValueError, match=r"the largest value of X is .*, which the page cannot show: rescale X"):
        pw.explore(scale * rng.random((9, 8)), 2, 0.4)


def test_missing_entries_are_marked(rng):
    X = rng.random((30, 64))
    X[0, :32] = np.nan
    found = pw.explore(X, 2, 0.5, part_shape=(8, 8), missing="em", max_iter=3, random_state=0)
    page = held(found.page)[0]
    arrays = zlib.decompress(base64.b64decode(block(found.page, "page-arrays")))
    unseen = np.frombuffer(arrays, np.uint8, page["unseen"]["count"], page["unseen"]["at"]).reshape(-1, 64)
    at = page["samples"].index(0)
    assert unseen[at].tolist() == [1] * 32 + [0] * 32
    assert unseen.sum() == 32
    assert pw.explore(X[1:], 2, 0.5, part_shape=(8, 8), max_iter=3).page.count('"unseen":null') == 1


def test_a_folder_that_does_not_exist_is_refused_before_the_fits(X, tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "fit_levels", lambda *args, **options: pytest.fail("a fit was made"))
    with pytest.raises(FileNotFoundError, match=r"page\.html"):
        pw.explore(X, 3, 0.5, tmp_path / "none" / "page.html")


def test_data_in_chunks_are_refused(X):
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="explore needs X in memory"):
        pw.explore(da.from_array(X), 3, 0.5)


def test_interrupts_end_the_path(X, monkeypatch):
    def stop(iteration):
        import _thread

        _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        pw.explore(X[:40], 3, [0.4, 0.6], callback=stop)


# the page


def test_page_holds_the_numbers_of_the_fits(X, found):
    data, rows, _ = held(found.page)
    assert [level["asked"] for level in data["levels"]] == [asked for asked, _ in in_order(found)]
    for level, (_, fit) in zip(data["levels"], in_order(found), strict=True):
        assert level["error"] == pytest.approx(fit.relative_error)
        assert level["explained"] == pytest.approx(1 - fit.relative_error**2)
        assert level["nonzeros"] == np.count_nonzero(fit.components, axis=1).mean()
        assert sum(part["explained"] for part in level["parts"]) == pytest.approx(level["explained"])
        peaks = fit.components.max(axis=1, keepdims=True)
        assert (np.abs(rows(level["weights"]) - fit.components) <= peaks / STEPS / 2 + 1e-12).all()
        for j, part in enumerate(level["parts"]):
            assert part["sparsity"] == pytest.approx(fit.sparsity[j])
            assert part["nonzeros"] == np.count_nonzero(fit.components[j])
            assert [i for i, _ in part["samples"]] == np.argsort(-fit.activations[:, j], kind="stable")[:8].tolist()
            assert part["samples"][0][1] == pytest.approx(fit.activations[:, j].max())
    assert data["samples"] == list(range(150))
    np.testing.assert_allclose(rows(data["originals"]), X, atol=16 / STEPS)
    assert [level["heldout"] for level in data["levels"] if level["asked"]] == found.heldout_errors.tolist()


def test_page_names_what_repeats_it(found):
    asked = "n_components=5, sparsities=[0.3, 0.6, 0.8], holdout=0.1, part_shape=(8, 8), random_state=0"
    call = f"partwise.explore(X, {asked})"
    for words in (f"Partwise {pw.__version__}", "SHA-256", call):
        assert words in found.page


def test_levels_are_decimal_numbers(X):
    found = pw.explore(X[:30], 2, np.linspace(0.2, 0.9, 15), max_iter=2)
    assert found.sparsities == tuple((np.arange(20, 95, 5) / 100).tolist())


def test_nothing_in_names_ends_an_element(X):
    names = [f"{EVIL}{i}" for i in range(64)]
    page = pw.explore(
        X[:30], 3, 0.5, title=EVIL, feature_names=names, sample_names=names[:30], provenance={EVIL: EVIL}, max_iter=3
    ).page
    assert page.count("<script") == page.count("</script") == 3
    assert "document.title = 'taken'</script>" not in page
    data, _, _ = held(page)
    assert data["names"]["0"].startswith("</script><script>")
    assert "\u202e" not in page  # control characters are shown as escapes
    assert json.loads(safe_json(EVIL)) == EVIL


def test_policy_allows_nothing_but_the_page_itself(found):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', found.page)[1]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"\sstyle=|\son\w+=", re.sub(r"<script.*?</script>", "", found.page, flags=re.DOTALL))


def test_rows_survive(rng):
    arrays = Arrays()
    values = rng.random((6, 40)) * 10.0 ** rng.integers(-5, 5, (6, 1))
    values[5] -= 0.9 * values[5].max()
    values[2] = 0
    values[3, ::2] = 0
    values[4] = rng.integers(0, STEPS + 1, 40)
    where = arrays.rows(values)
    page = f'<script type="text/plain" id="page-data">{{"steps": {STEPS}}}</script>'
    page += f'<script type="text/plain" id="page-arrays">{arrays.text()}</script>'
    _, rows, _ = held(page)
    assert (np.abs(rows(where) - values) <= np.abs(values).max(axis=1, keepdims=True) / STEPS / 2 + 1e-15).all()
    np.testing.assert_array_equal(rows(where)[4], values[4])  # counts are exact


def test_frames_and_sparse_matrices(X):
    frame = pd.DataFrame(X[:40], columns=[f"g{i}" for i in range(64)])
    data, _, _ = held(pw.explore(frame, 3, 0.5, random_state=0).page)
    assert data["kind"] == "bars"
    assert data["view"]["names"] == list(frame.columns)
    same, _, _ = held(pw.explore(sp.csr_array(X[:40]), 3, 0.5, random_state=0, feature_names=list(frame.columns)).page)
    assert same["levels"][0]["error"] == pytest.approx(data["levels"][0]["error"], rel=1e-6)
    features = data["levels"][0]["parts"][0]["features"]
    assert [len(feature) for feature in features] == [3] * len(features)
    assert features == sorted(features, key=lambda feature: -feature[1])


def test_most_specific_features_are_listed(X):
    names = [f"g{i}" for i in range(63)] + [""]
    found = pw.explore(X[:40], 3, 0.5, feature_names=names, random_state=0)
    data, _, _ = held(found.page)
    assert data["view"]["names"][-1] == "feature 63"  # a name that is empty says nothing
    for level, (_, fit) in zip(data["levels"], in_order(found), strict=True):
        for part, specific in zip(level["parts"], pw.specificity(fit.components), strict=True):
            expected = np.sort(specific[specific > 0])[::-1][:8]
            np.testing.assert_allclose([value for _, value in part["specific"]], expected)


def test_strongest_samples_have_pictures_even_if_the_page_does_not_hold_them(rng, monkeypatch):
    contents = import_module("partwise.pages.contents")
    monkeypatch.setattr(contents, "PICTURED", 0)  # as if images were very large
    X = rng.random((90, 70 * 33))
    data, rows, _ = held(pw.explore(X, 4, 0.5, part_shape=(70, 33), max_iter=3, random_state=0).page)
    small = data["thumbnails"]
    strongest = {i for level in data["levels"] for part in level["parts"] for i, _ in part["samples"]}
    assert len(data["samples"]) == contents.FEWEST
    assert strongest == set(data["samples"]) & strongest | set(small["samples"])
    assert small["view"]["shape"] == [24, 11]
    first = X[small["samples"][0]].reshape(70, 33)
    np.testing.assert_allclose(
        rows(small["rows"])[0].reshape(24, 11)[:23], first[:69].reshape(23, 3, 11, 3).mean((1, 3)), atol=1e-3
    )


def test_thumbnails_of_volumes_and_lines(rng):
    cuts = views.cuts_of(Volumes((40, 50, 60)), 120_000)
    volume = rng.random((1, 120_000))
    small = cuts.thumbnail()
    planes = [plane[::2, ::2].ravel() for plane in cuts.planes(volume[0], cuts.place)]
    np.testing.assert_array_equal(small.rows(cuts.rows(volume))[0], np.concatenate(planes))
    assert [(plane["height"], plane["width"]) for plane in small.facts["planes"]] == [(30, 20), (30, 25), (25, 20)]
    line = views.lines_of(Lines(np.arange(240), "x"), 240, 4)
    values = rng.random((1, 240))
    np.testing.assert_allclose(line.thumbnail().rows(line.rows(values)), values.reshape(1, 120, 2).mean(axis=2))


def test_brains_have_their_orientation(rng):
    pytest.importorskip("nibabel")
    mask = rng.random((5, 6, 7)) < 0.7
    affine = np.array([[0, -3.0, 0, 9], [2, 0, 0, -4], [0, 0, 4, -8], [0, 0, 0, 1]])  # axes: front, left, up
    parts = pw.explore(rng.random((12, mask.sum())), 3, 0.5, origin=Brain(affine, mask.shape, mask), max_iter=5)
    data, _, _ = held(parts.page)
    planes = data["view"]["planes"]
    assert [plane["name"] for plane in planes] == ["coronal", "sagittal", "axial"]
    assert [plane["ends"] for plane in planes] == [["L", "R"], ["P", "A"], ["L", "R"]]
    assert [(plane["across"], plane["up"]) for plane in planes] == [(18, 28), (10, 28), (18, 10)]
    voxel = np.argwhere(mask)[parts.results[0].components[0].argmax()]
    x, y, z = (affine @ [*voxel, 1])[:3]
    level = next(level for level in data["levels"] if level["asked"])
    assert level["parts"][0]["place"] == f"({x:g}, {y:g}, {z:g}) mm"


def test_volumes_without_orientation(rng):
    found = pw.explore(rng.random((12, 60)), 2, 0.5, part_shape=(3, 4, 5), max_iter=5)
    data, rows, _ = held(found.page)
    assert data["kind"] == "volumes"
    volume = found.results[0].components[0].reshape(3, 4, 5)
    level = next(level for level in data["levels"] if level["asked"])
    planes = [volume[:, 2, :], volume[1], volume[:, :, 2]]
    expected = np.concatenate([np.rot90(plane).ravel() for plane in planes])
    np.testing.assert_allclose(rows(level["weights"])[0], expected, atol=1e-3)


def test_sound_keeps_its_time_and_frequencies(rng):
    origin = Sound(8000, 64, 32)
    found = pw.explore(rng.random((700, 33)), 2, 0.4, origin=origin, max_iter=5)
    data, rows, _ = held(found.page)
    assert (data["kind"], data["view"]["label"]) == ("lines", "frequency (Hz)")
    np.testing.assert_allclose(data["view"]["x"], origin.frequencies)
    assert data["times"]["end"] == pytest.approx(699 * 32 / 8000)
    level = next(level for level in data["levels"] if level["asked"])
    starts = np.linspace(0, 700, 600, endpoint=False).astype(int)
    peaks = np.maximum.reduceat(found.results[0].activations, starts, axis=0).T
    np.testing.assert_allclose(rows(level["courses"]), peaks, atol=1e-3 * peaks.max())
    assert data["names"]["100"] == "0.400 s"


# views


@pytest.mark.parametrize("look", [Images((6, 9)), Images((6, 3, 3)), Images((7, 9), np.arange(63).reshape(7, 9) < 54)])
def test_views_are_linear_and_may_be_reduced(look, rng, monkeypatch):
    parts = rng.random((4, 54))
    view = views.images_of(look, 4)
    assert view.left_out == ()
    inside = view.rows(parts)[:, view.facts.get("inside", slice(None))]
    np.testing.assert_array_equal(inside if inside.shape == parts.shape else view.rows(parts), parts)
    monkeypatch.setattr(views, "NUMBERS", 100)
    small = views.images_of(look, 4)
    assert small.left_out
    assert small.rows(parts).shape == (4, np.prod(small.facts["shape"]))
    one, other = small.rows(parts[:1]), small.rows(parts[1:2])
    np.testing.assert_allclose(small.rows(parts[:1] + 2 * parts[1:2]), one + 2 * other)


def test_long_lines_and_many_features_are_reduced(rng, monkeypatch):
    monkeypatch.setattr(views, "NUMBERS", 100)
    parts = rng.random((4, 100))
    known = Summary(parts, parts[:, 0])
    line = views.view_of(Lines(np.arange(100), "x"), known, [parts])
    np.testing.assert_allclose(line.rows(parts), parts.reshape(4, 25, 4).mean(axis=2))
    assert line.facts["x"] == pytest.approx(np.arange(25) * 4 + 1.5)
    some = views.view_of(Bars(known, 5), known, [parts])
    assert some.rows(parts).shape == (4, 25)
    assert some.left_out == ("75 of 100 features, which have the smallest weights in all components",)
    strength = (parts / parts.max(axis=1, keepdims=True)).max(axis=0)
    assert set(some.kept) == set(np.argsort(-strength)[:25])


def test_page_says_what_it_leaves_out(rng):
    found = pw.explore(rng.random((1100, 12)), 2, 0.4, max_iter=3, random_state=0)
    data, _, _ = held(found.page)
    assert len(data["samples"]) == 1000
    assert "the data and activations of 100 of 1100 samples" in found.page
    strongest = {part["samples"][0][0] for level in data["levels"] for part in level["parts"]}
    assert strongest <= set(data["samples"])


# the command


def test_command_writes_a_page(X, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X[:40])
    assert main(["explore", "x.npy", "-r", "3", "-s", "0.3:0.5:3", "0.7", "--html", "x.html", "--seed", "1", "-q"]) == 0
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    data, _, _ = held(page)
    assert [level["asked"] for level in data["levels"] if level["asked"]] == [0.3, 0.4, 0.5, 0.7]
    assert "partwise explore x.npy -r 3 -s 0.3:0.5:3 0.7 --html x.html --seed 1 -q" in page
    assert capsys.readouterr().out == ""
    assert main(["explore", "x.npy", "-r", "3", "--html", "x.html"]) == 2
    assert "x.html exists" in capsys.readouterr().err
    assert main(["explore", "x.npy", "-r", "3", "-s", "0.5", "--html", "y.html", "--json", "--l1", "0.1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["relative_errors"]) == ["0.5"]
    assert told["files"] == {"page": "y.html"}


@pytest.mark.parametrize("text", ["0.2:0.9", "a", "0.2:0.9:0", "0.2:0.9:-3", "a:b:c", "1.2"])
def test_command_refuses_bad_ranges(text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((3, 3)))
    try:
        code = main(["explore", "x.npy", "-s", text, "--html", "x.html"])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert not (tmp_path / "x.html").exists()
    told = (
        "--sparsity 1.2 is outside [0, 1]" if text == "1.2" else f"'{text}': give a number from 0 to 1, or FIRST:LAST"
    )
    assert told in capsys.readouterr().err


def test_digest_depends_on_values_alone(X):
    from partwise.data.values import digest

    assert digest(as_data(X)) == digest(as_data(np.asfortranarray(X)))
    other = X.copy()
    other[3, 3] += 1
    assert digest(as_data(X)) != digest(as_data(other))


def test_components_keep_their_place_in_a_list_of_activation_sparsities():
    rng, want = np.random.default_rng(0), [0.1, 0.3, 0.5, 0.7, 0.8]
    for seed in range(4):
        X = rng.random((40, 5)) ** 3 @ rng.random((5, 30)) ** 3 + 0.1 * rng.random((40, 30))
        for result in pw.explore(X, 5, [0.2, 0.4, 0.6, 0.8, 0.9], activation_sparsity=want, random_state=seed).results:
            np.testing.assert_allclose(result.activation_sparsity, want, atol=1e-10)
