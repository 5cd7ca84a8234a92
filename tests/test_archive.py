"""Archive files: they round-trip bit for bit; foreign, damaged and hostile files are rejected with one message."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
from hostile_files import sealed

from partwise.runtime.archive import UnreadableError, read, write

ARRAYS = {
    "dense": np.random.default_rng(0).random((5, 7)),
    "columns": np.asfortranarray(np.random.default_rng(1).random((50, 7)) * (np.arange(50) % 9 == 0)[:, None]),
    "float32": np.float32(np.arange(120).reshape(3, 40) % 11 == 0) * np.float32(2.5),
    "many_columns": np.eye(3, 70_000),
    "nothing": np.zeros((30, 40)),
    "minus_zero": np.where(np.eye(12), 1.0, -0.0),
    "not_finite": np.array([[np.nan, np.inf, -np.inf] + [0.0] * 40]),
    "empty": np.empty((0, 4)),
    "number": np.array(3.0),
    "counts": np.arange(4, dtype=np.int16),
    "big_endian": np.arange(3, dtype=">f8"),
    "strided": np.random.default_rng(2).random((8, 9))[::2, ::3],
    "yes_no": np.array([True, False]),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.pw"


def equal_bits(a, b):
    same = a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    contiguous = not (a.flags.c_contiguous or a.flags.f_contiguous)
    return same and (contiguous or a.flags.f_contiguous == b.flags.f_contiguous) and b.flags.writeable


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_round_trip_bit_for_bit(path, name):
    write(path, {"kind": "test"}, {name: ARRAYS[name]})
    header, arrays = read(path)
    assert header["kind"] == "test"
    assert header["format"] == [1, 0]
    assert equal_bits(ARRAYS[name], arrays[name])


def test_arrays_are_stored_sparse_if_that_is_smaller(path):
    write(path, {}, {"x": np.eye(3, 70_000)})
    assert path.stat().st_size < 3000
    with zipfile.ZipFile(path) as members:  # and any other program can read it
        assert {m.split(".")[1] for m in members.namelist()} == {"json", "values", "indices", "starts"}
        assert np.load(io.BytesIO(members.read("x.values.npy"))).tolist() == [1.0] * 3


def test_only_numbers_are_stored(path):
    for array in (np.array(["a"]), np.array([None]), np.array([1j]), np.zeros(2, dtype=[("a", float)])):
        with pytest.raises(TypeError, match="only real numbers"):
            write(path, {}, {"x": array})
    for name in ("../x", "/x", "", "a b", "x."):
        with pytest.raises(ValueError, match="is not a valid array name"):
            write(path, {}, {name: np.ones(1)})
    assert not os.listdir(path.parent)


# damage


def mutations(original, rng, count):
    """Truncations, flipped bits, changed bytes, cut and doubled and exchanged pieces of a file."""
    size = len(original)
    for number in range(count):
        data = bytearray(original)
        a, b = sorted(rng.integers(0, size, 2).tolist())
        length = int(rng.integers(1, 40))
        match number % 6:
            case 0:
                data = data[:a]
            case 1:
                for where in rng.integers(0, size, rng.integers(1, 4)):
                    data[where] ^= 1 << int(rng.integers(8))
            case 2:
                data[a : a + length] = rng.bytes(len(data[a : a + length]))
            case 3:
                del data[a : a + length]
            case 4:
                data[a:a] = data[b : b + length]
            case 5:
                data[a : a + length], data[b : b + length] = data[b : b + length], data[a : a + length]
        yield bytes(data)


def test_damaged_files_are_rejected(path):
    write(path, {"kind": "test", "text": "é"}, {"x": np.eye(9), "y": np.arange(5.0)})
    original = path.read_bytes()
    refused = 0
    for data in mutations(original, np.random.default_rng(0), 300):
        if data == original:
            continue
        path.write_bytes(data)
        with pytest.raises(UnreadableError) as error:
            read(path)
        assert "\n" not in str(error.value)
        refused += 1
    assert refused > 270


def test_any_flipped_byte_is_detected(path):
    write(path, {}, {"x": np.arange(3.0)})
    original = path.read_bytes()
    for where in range(len(original)):
        data = bytearray(original)
        data[where] ^= 1 << where % 8
        path.write_bytes(data)
        with pytest.raises(UnreadableError):
            read(path)


def test_foreign_files_are_rejected(path, tmp_path):
    np.savez(tmp_path / "b.npz", x=np.ones(3))
    for content in (b"", b"PK", b"hello", bytes(1000), (tmp_path / "b.npz").read_bytes(), b"\x80\x04N."):
        path.write_bytes(content)
        with pytest.raises(UnreadableError, match="was not written by partwise"):
            read(path)
    with pytest.raises(UnreadableError, match="is not a regular file"):
        read(tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(UnreadableError, match="is not a regular file"):
        read(fifo)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing.pw")


# hostile: files with a valid digest that partwise did not write


def header(arrays, **more):
    return "partwise.json", json.dumps({"format": [1, 0], "arrays": arrays, **more})


def npy(array=None, shape=(3,), descr="<f8", body=None, order=False, version=(1, 0)):
    buffer = io.BytesIO()
    about = {"descr": descr, "fortran_order": order, "shape": shape}
    write_header = np.lib.format.write_array_header_1_0 if version == (1, 0) else np.lib.format.write_array_header_2_0
    write_header(buffer, about)
    return buffer.getvalue() + (bytes(24) if body is None else body)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def sparse(values, indices, starts, shape, form="by rows"):
    parts = {"values": np.array(values, float), "indices": np.array(indices, np.uint16), "starts": np.array(starts)}
    members = []
    for name, array in parts.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        members.append((f"x.{name}.npy", buffer.getvalue()))
    return [header({"x": {"shape": shape, "nonzeros": form}}), *members]


X = {"x": {"shape": [3]}}
link = zipfile.ZipInfo("x.npy")
link.external_attr = 0o120777 << 16

HOSTILE = {
    "no members": [],
    "no header": [("x.npy", npy())],
    "header is no JSON": [("partwise.json", "{")],
    "header is no text": [("partwise.json", b"\xff\xfe\x00")],
    "header is a list": [("partwise.json", "[]")],
    "header is deep": [("partwise.json", "[" * 100_000)],
    "header has a long number": [("partwise.json", '{"format": [1' + "0" * 5000 + "]}")],
    "header has NaN": [("partwise.json", '{"format": [1, 0], "arrays": {}, "a": NaN}')],
    "no format": [("partwise.json", '{"arrays": {}}')],
    "format is text": [("partwise.json", '{"format": ["1"], "arrays": {}}')],
    "no arrays": [("partwise.json", '{"format": [1, 0]}')],
    "arrays are a list": [header([])],
    "array is a number": [header({"x": 3}), ("x.npy", npy())],
    "array has no shape": [header({"x": {}}), ("x.npy", npy())],
    "array has another shape": [header({"x": {"shape": [4]}}), ("x.npy", npy())],
    "array is missing": [header(X)],
    "pickle inside": [header({"x": {"shape": [1]}}), ("x.npy", pickled())],
    "objects": [header(X), ("x.npy", npy(descr="|O"))],
    "texts": [header(X), ("x.npy", npy(descr="<U2"))],
    "structures": [header(X), ("x.npy", npy(descr=[("a", "<f8")]))],
    "sub-arrays": [header({"x": {"shape": [3, 1]}}), ("x.npy", npy(descr=("<f8", (1,))))],
    "complex": [header(X), ("x.npy", npy(descr="<c8"))],
    "huge shape": [header({"x": {"shape": [10**12]}}), ("x.npy", npy(shape=(10**12,)))],
    "shape that overflows": [header({"x": {"shape": [2**33, 2**33]}}), ("x.npy", npy(shape=(2**33, 2**33)))],
    "negative shape": [header({"x": {"shape": [-3]}}), ("x.npy", npy(shape=(-3,)))],
    "negative shapes": [header({"x": {"shape": [-3, -1]}}), ("x.npy", npy(shape=(-3, -1)))],
    "too many bytes": [header(X), ("x.npy", npy(body=bytes(32)))],
    "too few bytes": [header(X), ("x.npy", npy(body=bytes(8)))],
    "npy header is code": [header(X), ("x.npy", npy().replace(b"(3,)", b"f(3)"))],
    "no npy": [header(X), ("x.npy", b"hello")],
    "name goes up": [header({"../x": {"shape": [3]}}), ("../x.npy", npy())],
    "name is absolute": [header({"/x": {"shape": [3]}}), ("/x.npy", npy())],
    "the same name twice": [header(X), ("x.npy", npy()), ("x.npy", npy())],
    "sparse with a huge shape": sparse([1.0], [0], [0, 1], [1, 10**9]),
    "sparse outside": sparse([1.0], [7], [0, 1], [1, 3]),
    "sparse twice": sparse([1.0, 2.0], [1, 1], [0, 2], [1, 3]),
    "sparse backwards": sparse([1.0, 2.0], [1, 2], [0, 2, 1, 2], [3, 3]),
    "sparse, a row too few": sparse([1.0], [1], [0, 1], [2, 3]),
    "sparse, a value too few": sparse([1.0], [1, 2], [0, 2], [1, 3]),
    "sparse, negative start": sparse([1.0], [1], [-1, 1], [1, 3]),
    "sparse in one dimension": sparse([1.0], [1], [0, 1], [3]),
    "sparse by nothing": sparse([1.0], [1], [0, 1], [1, 3], "by diagonals"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_rejected(path, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path.write_bytes(sealed(HOSTILE[name]))
    with pytest.raises(UnreadableError) as error:
        read(path)
    assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == [path.name]  # nothing was executed or unpacked


def test_hostile_file_helper_can_write_valid_files(path):
    path.write_bytes(sealed([header(X), ("x.npy", npy()), ("unknown.npy", b"a later version's")]))
    assert read(path)[1]["x"].tolist() == [0.0] * 3
    path.write_bytes(sealed([header(X), (link, npy())]))  # names of members do not matter, since nothing is unpacked
    assert read(path)[1]["x"].tolist() == [0.0] * 3
    path.write_bytes(sealed(sparse([1.0, 2.0], [1, 2], [0, 2], [1, 3])))
    assert read(path)[1]["x"].tolist() == [[0.0, 1.0, 2.0]]


def test_compressed_members_are_refused(path):
    path.write_bytes(sealed([header(X), ("x.npy", npy())], compression=zipfile.ZIP_DEFLATED))
    with pytest.raises(UnreadableError, match="compressed"):
        read(path)


def test_newer_minor_versions_are_read_and_major_ones_rejected(path):
    path.write_bytes(sealed([header(X, format=[1, 7], news="kept"), ("x.npy", npy())]))
    assert read(path)[0]["news"] == "kept"
    for file in (sealed([], number=2), sealed([header(X, format=[2, 0]), ("x.npy", npy())])):
        path.write_bytes(file)
        with pytest.raises(UnreadableError, match=r"format 2, .* upgrade partwise"):
            read(path)
