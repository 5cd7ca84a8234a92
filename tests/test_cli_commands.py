"""From files to parts by commands alone: what is asked for is what is written."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from filemakers import QUICK, a_folder, numbers, save_images, save_nifti  # noqa: F401  (fixtures)
from sklearn.datasets import load_digits

import partwise as pw
from partwise.cli import main, parser
from partwise.cli.common import plain
from partwise.cli.fit import stem
from partwise.cli.info import features_at
from partwise.cli.model_options import FIT, RECIPE, RECIPES, level, read_sparsities
from partwise.data import as_data
from partwise.engine.natural import natural_fit
from partwise.io import Table, convert, read
from partwise.recipes import RECIPES as KNOWN


def test_from_a_table_to_tables(here, X):
    assert (
        main(
            ["fit", "x.csv", "-r", "3", "-s", "0.4", "--components-out", "p.csv", "--activations-out", "l.tsv", *QUICK]
        )
        == 0
    )
    model = pw.load("x.pw")
    np.testing.assert_allclose(model.sparsity_, 0.4, atol=1e-10)
    parts, activations = read("p.csv"), read("l.tsv")
    np.testing.assert_array_equal(parts.X.T, model.components_)
    assert parts.sample_names == tuple(model.feature_names_in_) == tuple(f"f{j}" for j in range(16))
    np.testing.assert_array_equal(activations.X, model.activations_)
    assert activations.sample_names == tuple(model.sample_names_)
    assert np.linalg.norm(X - activations.X @ parts.X.T) == pytest.approx(model.reconstruction_err_)


def test_transform_finds_features_by_name(here, X):
    assert main(["fit", "x.csv", "-r", "3", "-s", "0.4", *QUICK]) == 0
    shuffled = np.arange(16)[::-1]
    names = tuple(f"f{j}" for j in shuffled)
    convert(Table(X[:5][:, shuffled], "made up", "nowhere", None, names), here / "y.csv")
    assert main(["transform", "x.pw", "y.csv", "--out", "y.activations.csv", "-q"]) == 0
    np.testing.assert_allclose(read("y.activations.csv").X, pw.load("x.pw").activations_[:5], atol=1e-9)


@pytest.mark.parametrize(
    ("asked", "lo", "hi"),
    [
        (["-s", "0.5"], 0.5, 0.5),
        (["--sparsity", "0.2:0.4"], 0.2, 0.4),
        (["--sparsity=:0.3"], 0, 0.3),
        (["--sparsity-file", "levels.txt"], [0.2, 0.3, 0], [0.2, 0.5, 1]),
        (["-s", "0.5", "--recipe", "nmfsc"], 0.5, 0.5),
        (["-s", "0.5", "--solver", "pivot", "--component-sweeps", "2", "--init", "random"], 0.5, 0.5),
    ],
)
def test_what_is_asked_for_is_achieved(here, asked, lo, hi):
    (here / "levels.txt").write_text("0.2\n0.3:0.5  # an interval\n\nany\n")
    given = [] if "--sparsity-file" in asked else ["-r", "3"]
    assert main(["fit", "x.npy", *given, *asked, *QUICK]) == 0
    found = pw.load("x.pw").sparsity_
    assert len(found) == 3
    assert (found >= np.array(lo) - 1e-9).all()
    assert (found <= np.array(hi) + 1e-9).all()


def test_options_of_recipes_reach_them(here):
    assert main(["fit", "x.npy", "-r", "3", "--recipe", "l0", "--nonzeros", "4", "--method", "sequential", *QUICK]) == 0
    assert (np.count_nonzero(pw.load("x.pw").components_, axis=1) <= 4).all()
    assert pw.load("x.pw").recipe_params == {"nonzeros": 4, "method": "sequential"}
    assert main(["fit", "x.npy", "-r", "3", "--l1", "0.1,0.2", "--no-accelerate", "--no-compress", *QUICK]) == 0
    assert pw.load("x.pw").l1 == (0.1, 0.2)
    assert pw.load("x.pw").compress is False


def test_every_option_of_every_recipe_is_there():
    """A new parameter of a recipe or of SparseNMF needs a line in ``cli/model_options.py``."""
    assert set(RECIPES) == set(KNOWN)
    own = {"X", "n_components", "sparsity", "callback", "observed"}  # NaN says it, in a file
    own |= {"weights", "sample_weight", "feature_weight"}  # options of the command, not of the model
    of_recipes = {name for recipe in KNOWN.values() for name in inspect.signature(recipe).parameters}
    of_model = set(pw.SparseNMF().get_params())
    by_hand = {"checkpoint", "checkpoint_every", "resume_from", "recipe", "recipe_params", "verbose"}
    assert of_recipes | of_model <= own | by_hand | set(FIT) | set(RECIPE)
    assert set(FIT) <= of_model
    assert set(RECIPE) <= of_recipes - of_model


@pytest.fixture(name="gaps")
def a_table_with_gaps(here, X):
    X[X < 0.4] = 0
    X[2:5, 3] = np.nan
    convert(Table(X, "made up", "nowhere"), here / "gaps.csv")
    np.save(here / "gaps.npy", X)
    return X


@pytest.mark.parametrize("name", ["gaps.csv", "gaps.npy"])
def test_empty_cells_are_missing(gaps, name, capsys):
    assert main(["fit", name, "-r", "3", "--missing", "em", *QUICK]) == 0
    model = pw.load("gaps.pw")
    fitted = pw.SparseNMF(3, missing="em", max_iter=15, tol=0, random_state=0).fit(gaps)
    np.testing.assert_allclose(model.components_, fitted.components_, rtol=1e-6, atol=1e-9)
    assert main(["transform", "gaps.pw", name, "--out", "l.npy", "-q"]) == 0
    np.testing.assert_allclose(np.load("l.npy"), model.activations_, atol=1e-9)
    assert main(["transform", "gaps.pw", name, "--out", "l.npy", "--missing", "error", "-f"]) == 1
    assert "NaN" in capsys.readouterr().err
    assert main(["info", name, "--json", "-r", "3"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["missing"] == 3
    assert facts["zeros"] == pytest.approx(np.mean(gaps[~np.isnan(gaps)] == 0))
    assert main(["info", name]) == 0
    assert "3 values are missing" in capsys.readouterr().out


def test_known_parts_stay(here, X):
    known = np.stack([X[0], np.full(16, np.nan), X[1]])
    np.save("known.npy", known)
    convert(Table(np.arange(1.0, 25)[:, None], "made up", "nowhere"), here / "design.csv")
    fit = ["fit", "x.npy", "-r", "4", "--fixed-components", "known.npy", "--fixed-activations", "design.csv", *QUICK]
    assert main([*fit, "--init", "random"]) == 0
    model = pw.load("x.pw")
    np.testing.assert_array_equal(model.components_[[0, 2]], known[[0, 2]])
    np.testing.assert_array_equal(model.activations_[:, 0], np.arange(1.0, 25))
    np.testing.assert_array_equal(model.fixed_components, known)


def test_weights_from_files(here, X, rng):
    samples, features, entries = rng.random(24), rng.random(16), rng.random(X.shape)
    names = tuple(f"f{j}" for j in range(16))
    convert(Table(X, "made up", "nowhere", feature_names=names), here / "named.csv")
    np.save("samples.npy", samples)
    shuffled = rng.permutation(16)  # names decide on the order
    convert(
        Table(features[None, shuffled], "made up", "nowhere", ("weight",), tuple(names[j] for j in shuffled)),
        here / "features.csv",
    )
    np.save("entries.npy", entries)
    model = pw.SparseNMF(3, max_iter=15, tol=0, random_state=0)
    for flags, given in (
        (["--sample-weight", "samples.npy"], {"sample_weight": samples}),
        (["--feature-weight", "features.csv"], {"feature_weight": features}),
        (["--weights", "entries.npy"], {"weights": entries}),
    ):
        assert main(["fit", "named.csv", "-r", "3", "--out", "w.pw", "-f", *flags, *QUICK]) == 0
        np.testing.assert_allclose(pw.load("w.pw").components_, model.fit(X, **given).components_, atol=1e-9)


def test_names_decide_on_the_order_of_weights(here, X, rng):
    weights = rng.random(X.shape)
    samples, features = (tuple(f"{what}{i}" for i in range(n)) for what, n in zip("sf", X.shape, strict=True))
    convert(Table(X, "made up", "nowhere", samples, features), here / "named.csv")
    rows, columns = (rng.permutation(n) for n in X.shape)
    shuffled = tuple(samples[i] for i in rows), tuple(features[j] for j in columns)
    convert(Table(weights[np.ix_(rows, columns)], "made up", "nowhere", *shuffled), here / "weights.csv")
    assert main(["fit", "named.csv", "-r", "3", "--out", "w.pw", "--weights", "weights.csv", *QUICK]) == 0
    expected = pw.SparseNMF(3, max_iter=15, tol=0, random_state=0).fit(X, weights=weights)
    np.testing.assert_allclose(pw.load("w.pw").components_, expected.components_, atol=1e-9)


def test_negative_entries_from_files(here, X):
    np.save("noise.npy", X - 0.1)
    assert main(["fit", "noise.npy", "-r", "3", "--negative", "allow", *QUICK]) == 0
    model = pw.load("noise.pw")
    fitted = pw.SparseNMF(3, negative="allow", max_iter=15, tol=0, random_state=0).fit(X - 0.1)
    np.testing.assert_allclose(model.components_, fitted.components_, atol=1e-9)
    assert main(["transform", "noise.pw", "noise.npy", "--out", "a.npy", "-q"]) == 0
    np.testing.assert_allclose(np.load("a.npy"), model.activations_, atol=1e-9)


def test_transform_takes_negative_entries_if_asked(here, X, capsys):
    assert main(["fit", "x.npy", "-r", "3", "--out", "x.pw", *QUICK]) == 0
    np.save("noise.npy", X - 1)
    command = ["transform", "x.pw", "noise.npy", "--out", "a.npy", "-q"]
    assert main(command) == 1
    assert "set --negative allow" in capsys.readouterr().err
    assert main([*command, "--negative", "allow"]) == 0
    expected = pw.load("x.pw").set_params(negative="allow").transform(X - 1)
    np.testing.assert_array_equal(np.load("a.npy"), expected)


def test_any_format_with_negative_entries_is_converted(here, X):
    np.save("noise.npy", X - 1)
    assert main(["convert", "noise.npy", "noise.csv", "-q"]) == 0
    assert main(["convert", "noise.csv", "back.npy", "-q"]) == 0
    np.testing.assert_array_equal(np.load("back.npy"), X - 1)


def test_tables_with_negative_entries_are_fitted_shown_and_grouped(here, X):
    convert(Table(X, "made up", "nowhere"), here / "noise.csv")
    text = (here / "noise.csv").read_text().splitlines()
    first, _, rest = text[1].partition(",")
    (here / "noise.csv").write_text("\n".join([text[0], f"{first},-0.5,{rest.partition(',')[2]}", *text[2:]]))
    assert main(["fit", "noise.csv", "-r", "3", "--negative", "allow", *QUICK]) == 0
    assert main(["show", "noise.pw", "--data", "noise.csv", "--html", "noise.html"]) == 0
    runs = ["--ranks", "2", "--runs", "2", "--seed", "0", "--at", "2", "--out", "found.pw", "-q"]
    assert main(["consensus", "noise.csv", *runs]) == 1
    assert main(["consensus", "noise.csv", "--negative", "allow", *runs]) == 0
    assert pw.load("found-2.pw").negative == "allow"


def test_constrained_activations_at_the_command_line(here, X):
    assert main(["fit", "x.npy", "-r", "3", "--activations", "simplex", *QUICK]) == 0
    np.testing.assert_allclose(pw.load("x.pw").activations_.sum(axis=1), 1, atol=1e-12)
    assert main(["fit", "x.npy", "-r", "3", "--max-activation", "0.5", "-s", "0.3", "-f", *QUICK]) == 0
    assert pw.load("x.pw").activations_.max() <= 0.5


def test_colours_at_the_command_line(here, rng, capsys):
    (here / "faces").mkdir()
    save_images(here / "faces", rng.integers(0, 256, (3, 4, 5, 3), dtype=np.uint8))
    assert main(["info", "faces/", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == "partwise: faces: colours are converted to grey (--colour keeps them)\n"
    assert json.loads(said.out)["features"] == 20
    assert main(["info", "faces/", "--json", "--colour"]) == 0
    said = capsys.readouterr()
    assert (said.err, json.loads(said.out)["part_shape"]) == ("", [4, 5, 3])
    assert main(["info", "x.npy", "--colour"]) == 1
    assert "colour applies only to images" in capsys.readouterr().err


def test_parts_go_back_to_images(here, rng, capsys):
    (here / "faces").mkdir()
    save_images(here / "faces", rng.integers(0, 256, (9, 4, 5), dtype=np.uint8))
    assert main(["fit", "faces/", "-r", "2", "-s", "0.3", *QUICK]) == 0
    assert main(["convert", "faces.pw", "part_%d.tif", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == {"part 0": "part_0.tif", "part 1": "part_1.tif"}
    found = pw.io.read(["part_0.tif", "part_1.tif"]).X
    np.testing.assert_array_equal(found, pw.load("faces.pw").components_.astype(np.float32))
    for out, message in (
        ("part_%d.tif", "part_0.tif exists: choose another name, or overwrite it with --force"),
        ("part.png", "the name needs one %d"),
        ("nowhere/%d.png", "nowhere is not a writable folder"),
    ):
        assert main(["convert", "faces.pw", out]) in (1, 2)
        assert message in capsys.readouterr().err
    assert main(["convert", "faces.pw", "part_%d.tif", "--force"]) == 0
    assert main(["fit", "x.npy", "-r", "2", "-s", "0.3", *QUICK]) == 0
    assert main(["convert", "x.pw", "part_%d.png"]) == 1
    assert "only if the data consists of images" in capsys.readouterr().err


def test_images_to_parts(here, rng, capsys):
    (here / "faces").mkdir()
    save_images(here / "faces", rng.integers(0, 256, (9, 4, 5), dtype=np.uint8))
    assert main(["fit", "faces/", "-r", "2", "-s", "0.3", *QUICK[:-1], "--json", "--png", "p.png"]) == 0
    assert (here / "p.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(capsys.readouterr().out)
    assert (facts["samples"], facts["features"], facts["components"], facts["interrupted"]) == (9, 20, 2, False)
    assert facts["files"] == {"model": "faces.pw", "picture": "p.png"}
    assert pw.load("faces.pw").part_shape_ == (4, 5)


def test_brains_to_parts(here, rng):
    import nibabel

    inside = rng.random((3, 4, 2)) < 0.8
    for i in range(5):
        save_nifti(here / f"b{i}.nii", rng.random((3, 4, 2)))
    save_nifti(here / "mask.nii", inside.astype(np.uint8))
    fit = [
        "fit",
        "b?.nii",
        "--mask",
        "mask.nii",
        "-r",
        "2",
        "-s",
        "0.3",
        "--out",
        "b.pw",
        "--components-out",
        "p.nii.gz",
    ]
    assert main([*fit, "--png", "p.png", *QUICK]) == 0
    assert (here / "p.png").read_bytes().startswith(b"\x89PNG")
    image = nibabel.load("p.nii.gz")
    np.testing.assert_allclose(image.get_fdata()[inside].T, pw.load("b.pw").components_, rtol=1e-6)
    assert not image.get_fdata()[~inside].any()
    assert main(["transform", "b.pw", "b1.nii", "b3.nii", "--mask", "mask.nii", "--out", "l.csv", "-q"]) == 0
    np.testing.assert_allclose(read("l.csv").X, pw.load("b.pw").activations_[[1, 3]], atol=1e-9)


def test_models_of_brains_know_mask_and_affine(here, rng, capsys):
    import nibabel

    inside = rng.random((3, 4, 2)) < 0.8
    for i in range(5):
        save_nifti(here / f"b{i}.nii", rng.random((3, 4, 2)))
    save_nifti(here / "mask.nii", inside.astype(np.uint8))
    assert main(["fit", "b?.nii", "--mask", "mask.nii", "-r", "2", "--out", "b.pw", *QUICK]) == 0
    assert main(["convert", "b.pw", "p.nii.gz", "-q"]) == 0
    image = nibabel.load("p.nii.gz")
    np.testing.assert_array_equal(image.affine, nibabel.load("mask.nii").affine)
    np.testing.assert_allclose(image.get_fdata()[inside].T, pw.load("b.pw").components_, rtol=1e-6)
    assert not image.get_fdata()[~inside].any()
    for data in (["b1.nii", "b3.nii"], ["b[13].nii"]):
        assert main(["transform", "b.pw", *data, "--out", "l.csv", "--force", "-q"]) == 0
        np.testing.assert_allclose(read("l.csv").X, pw.load("b.pw").activations_[[1, 3]], atol=1e-9)
    save_nifti(here / "large.nii", np.ones((3, 4, 3)))
    save_nifti(here / "moved.nii", np.ones((3, 4, 2)), np.eye(4))
    for name, words in (
        ("large.nii", "large.nii has 3 × 4 × 3 voxels but the model has 3 × 4 × 2: resample"),
        ("moved.nii", "moved.nii has a different affine than the model: resample"),
    ):
        assert main(["transform", "b.pw", name, "--out", "m.csv"]) == 1
        assert words in capsys.readouterr().err


def test_sound_to_parts(here, rng):
    import soundfile

    soundfile.write("x.wav", rng.random(2000) / 2, 8000)
    fit = ["fit", "x.wav", "--window", "64", "--hop", "32", "-r", "2", "-s", "0.3", "--components-out", "p.tsv"]
    assert main([*fit, "--png", "p.png", *QUICK]) == 0
    assert read("p.tsv").sample_names[:2] == ("0.0 Hz", "125.0 Hz")
    assert (here / "p.png").read_bytes().startswith(b"\x89PNG")


def test_cells_beside_what_was_there(here, X):
    import anndata

    anndata.AnnData(sp.csr_matrix(X), uns={"kept": 1}).write_h5ad("c.h5ad")
    assert main(["fit", "c.h5ad", "-r", "2", "-s", "0.3", "--components-out", "c.h5ad", *QUICK]) == 0
    adata, model = anndata.read_h5ad("c.h5ad"), pw.load("c.pw")
    np.testing.assert_array_equal(adata.varm["NMFs"].T, model.components_)
    np.testing.assert_array_equal(adata.obsm["X_nmf"], model.activations_)
    assert (adata.uns["nmf"]["stop_reason"], adata.uns["kept"]) == (model.stop_reason_, 1)


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.npz"])
def test_info(here, X, capsys, name):
    X[X < 0.5] = 0
    convert(Table(sp.csr_array(X) if name == "x.npz" else X, "made up", "nowhere"), here / name)
    assert main(["info", name, "--json", "-r", "3"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["samples"], facts["features"], facts["on_disk"]) == (24, 16, name == "x.npy")
    assert facts["zeros"] == pytest.approx(np.mean(X == 0))
    assert facts["largest"] == X.max()
    assert len(facts["unconstrained_sparsity"]) == 3
    assert facts["features_at_least"]["0.5"] == features_at(0.5, 16) == 7
    assert main(["info", name]) == 0
    said = capsys.readouterr().out
    assert "24 samples × 16 features" in said
    assert "without a constraint" in said


def test_info_says_the_sparsity_of_a_fit_without_a_constraint(here, X, capsys):
    assert main(["info", "x.npy", "-r", "3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["unconstrained_sparsity"]
    np.testing.assert_allclose(said, natural_fit(as_data(X), 3).sparsity)
    np.testing.assert_allclose(np.mean(said), pw.ssnmf(X, 3, random_state=0).sparsity.mean(), atol=0.1)


def test_info_of_nothing(here, capsys):
    np.save("zeros.npy", np.zeros((3, 4)))
    assert main(["info", "zeros.npy"]) == 0
    assert "100.0% of the values are 0" in capsys.readouterr().out


@pytest.mark.parametrize("level", [0, 0.3, 0.8, 1])
def test_no_part_has_fewer_features(level, rng):
    part = pw.Hoyer(level)(rng.random(50))
    assert np.count_nonzero(part) >= features_at(level, 50)


@pytest.mark.parametrize("m", [2, 64, 361, 613410])
@pytest.mark.parametrize("d", [1, 2, 7, 50])
def test_a_flat_part_has_the_fewest_features(d, m):
    d = min(d, m)
    level = (m**0.5 - d**0.5) / (m**0.5 - 1)
    assert features_at(level, m) == d
    assert features_at(level * 0.999, m) > d or d == m


def test_convert(here, X, capsys):
    assert main(["convert", "x.csv", "y.npz", "--transpose", "-q"]) == 0
    assert capsys.readouterr().out == ""
    table = read("y.npz")
    np.testing.assert_array_equal(table.X, X.T)
    assert table.sample_names == tuple(f"f{j}" for j in range(16))
    assert main(["fit", "x.csv", "-r", "2", *QUICK]) == 0
    for out in ("parts.csv", "parts.h5ad"):
        assert main(["convert", "x.pw", out, "-q"]) == 0
    np.testing.assert_array_equal(read("parts.csv").X.T, pw.load("x.pw").components_)


def test_a_model_is_called_what_its_data_is(here):
    names = {
        "a/x.csv.gz": "x",
        "a/faces/": "faces",
        "x.h5:/deep/X": "x",
        "subjects/*.nii.gz": "subjects",
        ".": here.name,
    }
    assert {name: stem([name]) for name in names} == names
    assert stem(["scans/a.png", "scans/b.png"]) == "scans"


# ---- help


@pytest.mark.parametrize("command", ["fit", "transform", "info", "convert"])
def test_help_teaches(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert f"  partwise {command} " in said
    assert "rows are samples" in said
    assert "--json" in said


def test_examples_in_the_help_can_be_parsed():
    import shlex

    from partwise.cli.main import COMMANDS, EPILOG

    texts = [EPILOG, *(getattr(command, "EXAMPLES", "") for command in COMMANDS)]
    lines = [line.split("   ")[0] for text in texts for line in text.replace("  partwise", "partwise").splitlines()]
    examples = [line.split("|")[0] for line in lines if line.startswith("partwise ")]
    assert len(examples) > 12
    for example in examples:
        assert parser().parse_args(shlex.split(example)[1:]).run


def test_levels(tmp_path):
    assert (level("0.7"), level("0.2:0.4"), level(":0.4"), level("0.2:")) == (0.7, (0.2, 0.4), (None, 0.4), (0.2, None))
    (tmp_path / "levels").write_text("0.1\nany # free\n\n0.2:\n")
    assert read_sparsities(tmp_path / "levels") == [0.1, None, (0.2, None)]


def test_json_knows_no_nan():
    given = {"a": np.float64(np.nan), "b": (1, np.inf), 3: np.arange(2), "p": None}
    assert plain(given) == {"a": None, "b": [1, None], "3": [0, 1], "p": None}


# ---- real processes


def started(here, *arguments, **more):
    command = [sys.executable, "-m", "partwise", *map(str, arguments)]
    return subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **more)


def test_ctrl_c_writes_the_parts_so_far(here, rng):
    np.save(here / "large.npy", rng.random((400, 300)))
    fit = ["fit", "large.npy", "-r", "10", "-s", "0.5", "--tol", "0", "--max-iter", "100000000"]
    process = started(here, *fit, "--activations-out", "l.csv", "--checkpoint", "c.pw", "--checkpoint-every", "1")
    end = time.monotonic() + 500
    while not (here / "c.pw").exists():  # it runs: one iteration is done
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "the results so far are in large.pw" in err
    assert "Traceback" not in err
    assert "interrupted" in out
    model = pw.load(here / "large.pw")
    np.testing.assert_allclose(model.sparsity_, 0.5, atol=1e-10)
    np.testing.assert_array_equal(read(here / "l.csv").X, model.activations_)


def test_a_reader_that_has_seen_enough(here):
    process = started(here, "convert", "x.csv", "y.npy")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=300) == 0
    process.stderr.close()


def test_resuming_gives_the_same(here):
    fit = ["fit", "x.npy", "-r", "3", "-s", "0.4", "--tol", "0", "--seed", "3", "-q"]
    assert main([*fit, "--max-iter", "12", "--out", "whole.pw"]) == 0
    assert main([*fit, "--max-iter", "5", "--out", "some.pw", "--checkpoint", "c.pw", "--checkpoint-every", "1"]) == 0
    assert main([*fit, "--max-iter", "12", "--out", "rest.pw", "--resume", "c.pw"]) == 0
    whole, rest = pw.load("whole.pw"), pw.load("rest.pw")
    np.testing.assert_array_equal(rest.components_, whole.components_)
    np.testing.assert_array_equal(rest.loss_curve_, whole.loss_curve_)
    assert os.path.exists("c.pw")


def test_a_drawn_seed_is_printed_and_repeats_the_fit(here, capsys):
    assert main(["fit", "x.npy", "-r", "2", "--max-iter", "3", "-o", "a.pw"]) == 0
    seed = re.search(r"seed (\d+) was drawn: repeat with --seed \1", capsys.readouterr().out)[1]
    assert main(["fit", "x.npy", "-r", "2", "--max-iter", "3", "-o", "b.pw", "--seed", seed, "--json"]) == 0
    said = capsys.readouterr().out
    assert json.loads(said)["seed"] == int(seed)
    assert "drawn" not in said
    np.testing.assert_array_equal(pw.load("a.pw").components_, pw.load("b.pw").components_)


def test_advice_is_given_in_terms_of_options(here, capsys):
    np.save("digits.npy", load_digits().data[:300])
    assert main(["fit", "digits.npy", "-r", "4", "-s", "0.1", "--max-iter", "3", "-q"]) == 0
    assert not capsys.readouterr().err
    assert main(["fit", "digits.npy", "-r", "4", "-s", "0.1", "--max-iter", "3", "--force"]) == 0
    said = capsys.readouterr().err
    assert "partwise: --sparsity 0.1 makes the components denser" in said
    assert "use --sparsity 0.1:" in said
    assert said.count("denser") == 1
