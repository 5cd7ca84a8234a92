"""The files of `fuzz.py`: valid small ones of every format, damaged, and read by what reads them.

The law: a table of the claimed shape that a fit takes or refuses, a model, a fit; or one sentence that names the file.
"""

import logging
import random
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp
from filemakers import save_images, save_matrix, save_nifti
from fuzz_damage import damaged, invented
from hostile_files import BROKEN, INDICES, hdf5, mat73, nifti, png, ten_x, written, zarr2, zarr3

import partwise as pw
from partwise.io import Table, convert

warnings.simplefilter("ignore")
for name in ("nibabel", "nibabel.global", "tifffile"):
    logging.getLogger(name).setLevel(logging.CRITICAL + 1)
X = np.arange(20.0).reshape(4, 5) % 7
SPARSE = sp.csr_array(X * (X > 3))
FIT = {"n_components": 2, "sparsity": 0.4, "random_state": 0, "tol": 0}
DECODED = ".zarr cannot be read: not enough memory"  # its chunks may decode to more than they claim: docs/files.md
MOST = 10**5  # entries of a table that are looked at


def matrix(ending, values=X):
    return lambda folder: (save_matrix(folder / f"x{ending}", values), folder / f"x{ending}")[1]


def named(ending):
    def make(folder):
        names = [f"s{i}" for i in range(4)], [f"f{j}" for j in range(5)]
        convert(Table(X, "made up", "nowhere", *map(tuple, names)), folder / f"x{ending}")
        return folder / f"x{ending}"

    return make


def npy(values):
    return lambda folder: (np.save(folder / "x.npy", values), folder / "x.npy")[1]


def npz(values, form):
    return lambda folder: (sp.save_npz(folder / "x.npz", values.asformat(form)), folder / "x.npz")[1]


def mat(**how):
    def make(folder):
        scipy.io.savemat(
            folder / "x.mat", {"X": SPARSE.tocsc() if how.pop("sparse", False) else X, **how.pop("more", {})}, **how
        )
        return folder / "x.mat"

    return make


def image(ending):
    def make(folder):
        save_images(folder, np.arange(48, dtype=np.uint8).reshape(1, 6, 8), ending)
        return folder / f"i0{ending}"

    return make


def sound(ending):
    def make(folder):
        import soundfile

        soundfile.write(folder / f"x{ending}", np.sin(np.arange(1500) / 9) / 2, 8000)
        return folder / f"x{ending}"

    return make


def volume(ending):
    return lambda folder: save_nifti(folder / f"x{ending}", np.arange(48, dtype=np.float32).reshape(2, 3, 4, 2))


def ten_x_folder(folder):
    scipy.io.mmwrite(folder / "matrix.mtx", SPARSE, symmetry="general")
    written(folder / "features.tsv", "".join(f"id{i}\tgene{i}\tGene Expression\n" for i in range(4)))
    written(folder / "barcodes.tsv", "".join(f"cell{i}\n" for i in range(5)))
    return folder


def stored(fill, ending=".h5"):
    return lambda folder: hdf5(folder / f"x{ending}", fill)


def chunked(file):
    file.create_dataset("x", data=X, chunks=(2, 3), compression="gzip", shuffle=True, fletcher32=True)


def zarr(**how):
    def make(folder):
        import zarr

        if how.get("zarr_format") == 2 or "group" in how:
            group = zarr.open_group(folder / "x.zarr", mode="w", zarr_format=how.get("zarr_format", 3))
            group.create_array("a", shape=X.shape, dtype="f8", chunks=(2, 3))[:] = X
        else:
            zarr.create_array(folder / "x.zarr", shape=X.shape, dtype="f8", **how)[:] = X
        return folder / "x.zarr"

    return make


def model(estimator):
    def make(folder):
        fitted = (
            estimator(**FIT, max_iter=3) if estimator is not pw.SparseCP else pw.SparseCP(2, random_state=0, max_iter=3)
        )
        fitted.fit(X if estimator is not pw.SparseCP else X.reshape(2, 2, 5)).save(folder / "x.pw")
        return folder / "x.pw"

    return make


def checkpoint(folder):
    pw.ssnmf(X, **FIT, max_iter=3, checkpoint=folder / "x.pw")
    return folder / "x.pw"


SEARCH = {"ranks": [1, 2], "sparsities": [None, 0.3], "n_splits": 1, "n_init": 1, "max_iter": 3, "random_state": 0}


def search(folder):
    pw.select(X, **SEARCH, checkpoint=folder / "x.pw")
    return folder / "x.pw"


TABLES = {
    **{f"{ending}, dense": matrix(ending) for ending in (".npz", ".csv", ".tsv", ".csv.gz", ".mtx", ".mtx.gz", ".mat")},
    **{f"{ending}, sparse": matrix(ending, SPARSE) for ending in (".mtx", ".mtx.gz", ".mat", ".h5ad", ".h5")},
    **{f"{ending}, dense": matrix(ending) for ending in (".h5ad", ".h5", ".zarr")},
    **{f"{ending}, named": named(ending) for ending in (".csv", ".tsv.gz", ".h5ad")},
    **{f".npy {i}": npy(x) for i, x in enumerate((X, X.T, X.astype("f4"), X.astype(">i2"), X.reshape(2, 2, 5), X > 2))},
    **{f".npz, {form}": npz(SPARSE, form) for form in ("csr", "csc", "coo", "dia", "bsr")},
    ".mat 4": mat(format="4"),
    ".mat 5, compressed": mat(do_compression=True),
    ".mat 5, several": mat(more={"text": "abc", "cells": {"inside": X}}),
    ".mat 7.3": lambda folder: mat73(folder / "x.mat"),
    **{ending: image(ending) for ending in (".png", ".pgm", ".jpg", ".tif", ".bmp")},
    **{ending: sound(ending) for ending in (".wav", ".flac", ".ogg")},
    **{ending: volume(ending) for ending in (".nii", ".nii.gz")},
    ".png, by hand": lambda folder: written(folder / "x.png", png(3, 2, bytes(8))),
    ".nii, small": lambda folder: nifti(folder / "x.nii"),
    "10x folder": ten_x_folder,
    "10x": lambda folder: ten_x(folder / "x.h5"),
    ".h5, chunked": stored(chunked),
    ".h5, with text": stored(lambda file: file.update({"a": X, "g/b": "text"})),
    ".hdf5": stored(lambda file: file.update({"x": X > 2}), ".hdf5"),
    "zarr 2": zarr(zarr_format=2),
    "zarr 2, plain": lambda folder: zarr2(folder / "x.zarr", np.ones(4).tobytes()),
    "zarr 3, group": zarr(group=True),
    "zarr 3, shards": zarr(chunks=(2, 5), shards=(4, 5)),
    "zarr 3, no chunks": lambda folder: zarr3(folder / "x.zarr"),
}
MODELS = {kind.__name__: model(kind) for kind in (pw.SparseNMF, pw.MiniBatchSparseNMF, pw.SparseCP)}


@cache
def contents(make):
    """The files that a maker writes, by name, and what of them to read."""
    with tempfile.TemporaryDirectory() as folder:
        source = make(Path(folder)).relative_to(folder)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return source, {path.relative_to(folder): path.read_bytes() for path in files}


def refused(work, path=""):
    """Whether ``work`` raises an error of one sentence that names the file. Any other error is a failure."""
    try:
        work()
        return False
    except (ValueError, ImportError, OSError) as error:
        refusal = error
    message, cause = str(refusal), refusal
    while cause is not None and not message.endswith(DECODED):
        assert not isinstance(cause, MemoryError), f"it takes too much memory: {message}"
        cause = cause.__cause__
    assert message, "the error has no message"
    assert "\n" not in message, f"not one sentence: {message!r}"
    assert str(path) in message, f"does not name the file: {message!r}"
    return True


def look(table):
    """Refuse a table that is not what it claims to be, and fit it, if a fit takes such values."""
    n, m = table.shape
    if n * m > MOST:
        return
    shapes = [block.shape for _, block in table.blocks()]
    assert sum(rows for rows, _ in shapes) == n, f"blocks of shapes {shapes}, but the table claims {n} × {m}"
    assert {columns for _, columns in shapes} == {m}, f"blocks of shapes {shapes}, but the table claims {n} × {m}"
    refused(lambda: check_factors(pw.ssnmf(table.X, 1, max_iter=1).factors))


def check_factors(factors):
    for factor in factors:
        assert np.isfinite(factor).all(), "a factor is not finite"
        assert factor.min() >= 0, "a factor is negative"


def use(model):
    repr(model)
    shape = model.data_shape_ if hasattr(model, "data_shape_") else X.shape
    refused(lambda: check_factors([model.transform(np.ones((2, *shape[1:])))]))


def resume(path):
    check_factors(pw.ssnmf(X, **FIT, max_iter=5, resume_from=path).factors)


def search_on(path):
    pw.select(X, **SEARCH, checkpoint=path)


READERS = (  # makers, what to do with their files, and how often
    (TABLES, lambda path: look(pw.io.read(path)), 8),
    (BROKEN | INDICES, lambda path: look(pw.io.read(path)), 1),
    (MODELS, lambda path: use(pw.load(path)), 2),
    ({"checkpoint": checkpoint}, resume, 1),
    ({"search": search}, search_on, 1),
)


def case(seed, folder, readers=READERS):
    """Damage a file, or make one up, and read it."""
    rng = random.Random(seed)
    makers, read = rng.choices([r[:2] for r in readers], [r[2] for r in readers])[0]
    source, files = contents(makers[rng.choice(list(makers))])
    files = dict(files)
    chosen = rng.choice(list(files))
    files[chosen] = invented(rng) if rng.random() < 0.05 else damaged(files[chosen], rng)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    path = folder / source
    return ["refused" if refused(lambda: read(path), path) else "read"]
