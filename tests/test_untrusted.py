"""Files from strangers: refused in one sentence, or read; nothing is executed, and memory is limited."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import tifffile
from hostile_files import (
    BOMBS,
    BROKEN,
    CODE,
    INDICES,
    MODELS,
    OUTSIDE,
    SEARCHES,
    compressed_header,
    damaged_zarr,
    hdf5,
    png,
    written,
    zarr2,
    zarr3,
)

import partwise as pw
from partwise.cli.main import main
from partwise.runtime import archive, untrusted

READABLE = {  # broken, but not where it matters
    ".npz with a number as its shape": (2, 3),
    ".mat with a dangling link": (2, 2),
    ".h5 with a dangling link": (2, 2),
}
QUIET = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning", "ignore::FutureWarning")


def outcome(source):
    """The table and its values, or the sentence that refuses them."""
    try:
        table = pw.io.read(source)
        for _ in table.blocks():
            pass
    except pw.UnreadableError as error:
        message = str(error)
        assert "\n" not in message
        assert "allow_pickle" not in message
        assert str(source) in message
        return message
    return table


@QUIET
@pytest.mark.parametrize("name", CODE)
def test_no_code_runs(tmp_path, monkeypatch, name):
    source = CODE[name](tmp_path)
    before = {*os.listdir(tmp_path)}
    monkeypatch.chdir(tmp_path)
    assert isinstance(outcome(source), str)
    assert {*os.listdir(tmp_path)} == before


@pytest.mark.parametrize("codec", [{"id": "zlib"}, {"id": "bz2"}, {"id": "blosc"}, {"id": "delta", "dtype": "<f8"}])
def test_plain_codecs_are_read(tmp_path, codec):
    encoder = pytest.importorskip("numcodecs").get_codec(codec)
    place = {"filters": [encoder.get_config()]} if codec["id"] == "delta" else {"compressor": encoder.get_config()}
    zarr2(tmp_path / "x.zarr", bytes(encoder.encode(np.ones(4))), **place)
    assert pw.io.read(tmp_path / "x.zarr").X[:].tolist() == [[1.0, 1.0]] * 2


def test_zarr_3_with_shards_is_read(tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "x.zarr", shape=(8, 4), dtype="f4", chunks=(2, 4), shards=(4, 4))
    array[:] = np.ones((8, 4))
    assert outcome(tmp_path / "x.zarr").shape == (8, 4)


@QUIET
@pytest.mark.parametrize("name", OUTSIDE)
def test_no_other_file_is_read(tmp_path, name):
    assert "is in another file or virtual" in outcome(OUTSIDE[name](tmp_path))


@QUIET
@pytest.mark.parametrize("name", INDICES)
def test_indices_are_checked(tmp_path, name):
    assert "cannot be read" in outcome(INDICES[name](tmp_path))


@QUIET
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_refused_in_a_sentence(tmp_path, name):
    found = outcome(BROKEN[name](tmp_path))
    assert getattr(found, "shape", None) == READABLE.get(name)


@pytest.mark.parametrize("name", [".nii nowhere", ".nii far away", ".nii.gz, a negative extension"])
def test_a_damaged_header_of_nifti_is_called_damaged(tmp_path, name):
    assert "cannot be read: it is damaged: " in outcome(BROKEN[name](tmp_path))


def test_blocks_without_entries_are_named(tmp_path):
    assert "blocks of 0 × 0 do not divide its shape" in outcome(INDICES["bsr, blocks of nothing"](tmp_path))


def test_extensions_of_nifti_are_read(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    for kind, name in ((nibabel.Nifti1Image, "x.nii"), (nibabel.Nifti2Image, "y.nii.gz")):
        image = kind(np.ones((2, 2, 2), dtype=np.float32), np.eye(4))
        image.header.extensions.extend(nibabel.nifti1.Nifti1Extension("comment", text) for text in (b"a" * 99, b"b"))
        image.to_filename(tmp_path / name)
        assert outcome(tmp_path / name).shape == (1, 8)


@pytest.mark.parametrize("how", [{}, {"do_compression": True}, {"format": "4"}])
@pytest.mark.parametrize("kind", [np.asarray, sp.csc_array, np.float32, lambda X: X > 0])
def test_good_matlab_files_pass_the_checks(tmp_path, kind, how):
    X = kind(np.diag(np.arange(1.0, 600.0)))
    more = {} if "format" in how else {"a_long_name_of_text": "abc", "cells": {"inside": X}}
    scipy.io.savemat(tmp_path / "x.mat", {**more, "X": X}, **how)
    found = outcome(tmp_path / "x.mat").X
    assert (found != X).sum() == 0


def test_images_are_opened_as_images_only(tmp_path):
    assert "cannot identify image file" in outcome(BROKEN[".png, an EPS"](tmp_path))


def test_a_tiff_that_names_another_file(tmp_path):
    tifffile.imwrite(tmp_path / "secret.tif", np.full((4, 5), 7, np.uint16))
    uuid = "urn:uuid:00000000-0000-0000-0000-00000000000"
    data = "".join(
        f'<TiffData IFD="0" FirstT="{t}" PlaneCount="1"><UUID FileName="{name}">{uuid}{t}</UUID></TiffData>'
        for t, name in enumerate(("x.ome.tif", "secret.tif"))
    )
    pixels = 'DimensionOrder="XYZCT" Type="uint16" SizeX="5" SizeY="4" SizeZ="1" SizeC="1" SizeT="2"'
    schema = 'xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"'
    about = (
        f'<OME {schema} UUID="{uuid}0"><Image ID="Image:0"><Pixels ID="Pixels:0" {pixels}>{data}</Pixels></Image></OME>'
    )
    tifffile.imwrite(tmp_path / "x.ome.tif", np.ones((4, 5), np.uint16), description=about, metadata=None)
    assert tifffile.imread(tmp_path / "x.ome.tif").shape == (2, 4, 5)  # what a reader of OME-TIFF does
    assert pw.io.read(tmp_path / "x.ome.tif").shape == (1, 20)


@pytest.mark.parametrize("limit", [None, 24000])
def test_a_damaged_chunk_is_named_during_a_fit(tmp_path, limit):
    damaged_zarr(tmp_path / "x.zarr")

    def corrupt(file):
        data = file.create_dataset("x", (200, 20), "<f8", chunks=(10, 20), compression="gzip")
        data[:] = 1
        data.id.write_direct_chunk((190, 0), b"not zlib")

    hdf5(tmp_path / "x.h5", corrupt)
    for name in ("x.zarr", "x.h5"):
        for transpose in (False, True):  # True: rows are read by a function of ours
            X = pw.io.read(tmp_path / name, transpose=transpose).X
            with pytest.raises(pw.UnreadableError, match=rf"{name}.* cannot be read") as caught:
                pw.ssnmf(X, 1, max_iter=1, memory_limit=limit)
            assert caught.value.__cause__ is not None


# memory

CHILD = """
import os, resource, sys, warnings
sys.path[:0] = sys.argv[1:3]
from hostile_files import BOMBS, MODELS, SEARCHES
from pathlib import Path
import partwise as pw, partwise.runtime.archive as archive, partwise.selection.records as records
import anndata, h5py, nibabel, pandas, PIL.Image, scipy.io, soundfile, tifffile, zarr

warnings.simplefilter("ignore")
folder = Path(sys.argv[3])
made = {}
for read, bombs in ((pw.io.read, BOMBS), (pw.load, MODELS), (archive.kind_of, MODELS), (records.read, SEARCHES)):
    for name, make in bombs.items():
        home = folder / str(len(made))
        home.mkdir()
        made[f"{read.__module__}.{read.__name__}: {name}"] = read, make(home)
status = Path("/proc/self/status").read_text().split()
used = 1024 * int(status[status.index("VmSize:") + 1])
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, used + 2**30))
for name, (read, path) in made.items():
    try:
        print(name, "|", "read", type(read(path)).__name__)
    except ValueError as error:
        print(name, "|", error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_small_files_do_not_take_gigabytes(tmp_path):
    source = Path(pw.__file__).parents[1]
    command = [sys.executable, "-c", CHILD, str(source), str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(" | ", 1) for line in done.stdout.splitlines())
    assert len(lines) == len(BOMBS) + 2 * len(MODELS) + len(SEARCHES)
    kinds = {
        f"partwise.runtime.archive.kind_of: {name}": "read str" for name in MODELS if name != "compressed header"
    }  # reads no array
    for name, line in lines.items():
        assert not re.search("not enough memory|MemoryError|allocat", line), (name, line)
        assert line == kinds[name] if name in kinds else not line.startswith("read"), (name, line)


def small(monkeypatch, floor=1000):
    monkeypatch.setattr(untrusted, "FLOOR", floor)


def test_the_limit_can_be_raised(tmp_path, monkeypatch, capsys):
    small(monkeypatch)
    path = written(tmp_path / "x.png", png(300, 300, bytes(301 * 300)))
    with pytest.raises(pw.UnreadableError, match=r"x.png takes 1.4 MB .* has \d+ B on disk; .* raise max_bytes if you"):
        pw.io.read(path)
    assert pw.io.read(path, max_bytes="2 MB").shape == (1, 90_000)
    with pytest.raises(pw.UnreadableError, match=r"limit is 1.0 MB: raise max_bytes"):
        pw.io.read(path, max_bytes=10**6)
    assert main(["convert", str(path), str(tmp_path / "x.npy")]) == 1
    assert "raise --max-bytes if you trust the file" in capsys.readouterr().err
    assert main(["convert", str(path), str(tmp_path / "x.npy"), "--max-bytes", "2 MB"]) == 0
    assert main(["convert", str(path), str(tmp_path / "x.npy"), "--max-bytes", "much"]) == 1
    assert "--max-bytes much: give a number of bytes" in capsys.readouterr().err


def test_the_limit_of_pillow_does_not_count(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    path = written(tmp_path / "x.png", png(300, 300, bytes(301 * 300)))
    assert pw.io.read(path).shape == (1, 90_000)
    Image.new("1", (90, 40)).save(tmp_path / "x.tif", compression="group4", save_all=True)
    assert pw.io.read(tmp_path / "x.tif").shape == (1, 3600)
    with pytest.raises(pw.UnreadableError, match="raise max_bytes"):
        pw.io.read(written(tmp_path / "y.png", png(30_000, 30_000)))
    assert Image.MAX_IMAGE_PIXELS == 1000


@pytest.mark.parametrize(("name", "text"), [("x.csv", "1,2\n" * 5000), ("x.txt", "1 2\n" * 5000)])
def test_the_limit_holds_for_plain_text(tmp_path, name, text):
    path = written(tmp_path / name, text)
    with pytest.raises(pw.UnreadableError, match=r"takes 260.0 kB of memory and has 20.0 kB on disk"):
        pw.io.read(path, max_bytes="200 kB")
    assert pw.io.read(path, max_bytes="300 kB").shape == (5000, 2)


def test_the_limit_of_models_can_be_raised(tmp_path, monkeypatch):
    model = pw.SparseNMF(2, random_state=0, max_iter=2, tol=0.5).fit(np.eye(2, 5000))
    model.components_ = np.eye(2, 5000)
    model.save(tmp_path / "x.pw")
    small(monkeypatch)
    monkeypatch.setattr(untrusted, "RATIO", 1)
    with pytest.raises(pw.UnreadableError, match=r"x.pw takes .* raise max_bytes"):
        pw.load(tmp_path / "x.pw")
    assert pw.load(tmp_path / "x.pw", max_bytes="1 MB").components_.shape == (2, 5000)


def test_what_the_file_holds_is_always_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted, "free_memory", lambda: 0)
    small(monkeypatch)
    X = np.random.default_rng(0).random((30, 40))
    np.savez(tmp_path / "x.npz", X=X)
    assert pw.io.read(tmp_path / "x.npz").shape == (30, 40)
    np.savez_compressed(tmp_path / "y.npz", X=np.ones_like(X))
    with pytest.raises(pw.UnreadableError, match=r"y.npz takes 9.7 kB"):
        pw.io.read(tmp_path / "y.npz")


def test_large_shapes_with_few_entries_are_read(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.coo_array(([1.0], ([0], [0])), shape=(10**6, 10**6)))
    assert pw.io.read(tmp_path / "x.npz").shape == (10**6, 10**6)
    zarr3(tmp_path / "x.zarr", shape=[10**6, 10**4])  # chunks of zeros are not stored
    assert pw.io.read(tmp_path / "x.zarr").shape == (10**6, 10**4)


def test_all_written_models_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "FLOOR", 4000)
    small(monkeypatch, 4000)
    sizes = [(1, 200), (1, 1000), (40, 1000), (3, 90), (500, 300), (1, 5)]
    arrays = {f"a{k}": np.eye(*shape) for k, shape in enumerate(sizes)}
    archive.write(tmp_path / "x.pw", {}, arrays)
    monkeypatch.setattr(untrusted, "free_memory", lambda: 2**40)
    for name, array in archive.read(tmp_path / "x.pw")[1].items():
        np.testing.assert_array_equal(array, arrays[name])


def test_links_in_a_store_that_lead_back(tmp_path):
    zarr2(tmp_path / "x.zarr", np.ones(4).tobytes())
    (tmp_path / "x.zarr" / "again").symlink_to(tmp_path / "x.zarr")
    assert outcome(tmp_path / "x.zarr").shape == (2, 2)
    assert untrusted.size_of(tmp_path / "x.zarr") < 2000


def test_a_compressed_header_is_not_read(tmp_path):
    path = written(tmp_path / "x.pw", compressed_header(1))
    for read in (archive.read, archive.kind_of, pw.load):
        with pytest.raises(pw.UnreadableError):
            read(path)


# names in the terminal


def test_names_do_not_control_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["a\x1b[2Jb", "c\x9b31m", "d\u202ee"]
    Path("x.csv").write_text("\n".join([",".join(["id", *names]), "s\x1b]0;title\x07,1,2,3", "t,3,2,1"]), "utf-8")
    assert main(["fit", "x.csv", "-r", "1", "-o", "x.pw"]) == 0
    assert main(["show", "x.pw"]) == 0
    assert main(["show", "x.pw", "--json"]) == 0
    Path("y.csv").write_text("id,a\x1b[2J\nx,-1\n", "utf-8")
    assert main(["info", "y.csv"]) == 1
    printed = "".join(capsys.readouterr())
    assert "\\u001b[2J" in printed
    assert all(c.isprintable() or c == "\n" for c in printed)
