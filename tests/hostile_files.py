"""Files that somebody made to do harm, or that broke. Each maker writes into a folder and returns what to read.

The law for all of them: `partwise.io.read` returns a table, whose values can be read, or raises an `UnreadableError` of
one sentence that names the file. It runs no code of the file, reads no other file, and keeps within the memory limit.
"""

import gzip
import hashlib
import io
import json
import os
import pickle
import struct
import zipfile
import zlib

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

SPARSE = sp.csr_array(np.diag([1.0, 2.0, 3.0, 4.0]))
WILD = 10**8
MTX = "%%MatrixMarket matrix {} real general\n{}\n"


# pieces


def sealed(members, number=1, compression=zipfile.ZIP_STORED):
    """A model file of these members, under a right digest."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members:
            file.writestr(name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name), content, compression)
        file.comment = b"partwise %03d sha256 " % number + bytes(64)
    body = buffer.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def npy(shape, descr="<f8", body=b"", order=False):
    """A .npy file with any header."""
    text = str({"descr": descr, "fortran_order": order, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + body


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def scipy_npz(path, form, **arrays):
    arrays = {"format": np.array(form.encode()), **{name: np.asarray(value) for name, value in arrays.items()}}
    return zipped(path, {f"{name}.npy": saved(array) for name, array in arrays.items()})


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def png_piece(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, rows=b"", bits=8, kind=0):
    """A PNG, grey or of another kind, with any size in its header."""
    pieces = (b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 9))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_piece(*one) for one in (*pieces, (b"IEND", b"")))


def tiff(width, height, pages=1):
    """A TIFF whose pages of 16 bits, of any size in their headers, share a strip of zeros."""
    strip = zlib.compress(bytes(99))
    start = 8 + len(strip) + len(strip) % 2
    content = b"II*\0" + struct.pack("<I", start) + strip.ljust(start - 8, b"\0")
    tags = {256: width, 257: height, 258: 16, 259: 8, 262: 1, 273: 8, 277: 1, 278: height, 279: len(strip)}
    for k in range(pages):
        following = len(content) + 6 + 12 * len(tags)
        entries = (struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
        content += struct.pack("<H", len(tags)) + b"".join(entries) + struct.pack("<I", following * (k < pages - 1))
    return content


def nifti(path, **header):
    """A NIfTI file of 2 × 2 × 2 ones, with changed fields of its header."""
    import nibabel

    image = nibabel.Nifti1Image(np.ones((2, 2, 2), dtype=np.float32), np.eye(4))
    content = bytearray(image.to_bytes())
    about = nibabel.Nifti1Header(bytes(content[:348]), check=False)
    for name, value in header.items():
        about[name] = value
    content[:348] = about.binaryblock
    return written(path, gzip.compress(bytes(content)) if path.suffix == ".gz" else bytes(content))


def extended_nifti(path, length, count=0):
    """A NIfTI file whose header has an extension of any length, with ``count`` bytes in the file."""
    content = bytearray(gzip.decompress(nifti(path, vox_offset=352 + max(length, 16)).read_bytes()))
    content[348:352] = b"\1\0\0\0" + struct.pack("<ii", length, 6) + bytes(count)
    return written(path, gzip.compress(bytes(content)))


def hdf5(path, fill):
    with h5py.File(path, "w") as file:
        fill(file)
    return path


def mat73(path, **parts):
    """A sparse matrix as MATLAB 7.3 writes it, with changed parts."""
    arrays = {"data": SPARSE.data, "ir": SPARSE.indices, "jc": SPARSE.indptr, **parts}
    rows = arrays.pop("rows", 4)
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("X")
        group.attrs["MATLAB_sparse"] = np.uint64(rows)
        for name, values in arrays.items():
            group[name] = np.asarray(values)
    content = bytearray(path.read_bytes())
    content[:19] = b"MATLAB 7.3 MAT-file"
    return written(path, bytes(content))


def mat5(path, kind, zipped=False):
    """A matrix as MATLAB 5 writes it, whose values have an unknown type."""
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"X": np.ones((4, 4))})
    head, body = buffer.getvalue()[:128], bytearray(buffer.getvalue()[128:])
    body[48:52] = struct.pack("<I", kind)
    packed = zlib.compress(bytes(body))
    return written(path, head + (struct.pack("<II", 15, len(packed)) + packed if zipped else bytes(body)))


def h5ad(path, change=lambda file: None, X=SPARSE):
    import anndata

    anndata.AnnData(sp.csr_matrix(X) if sp.issparse(X) else X).write_h5ad(path)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def replaced(file, name, values):
    about = dict(file[name].attrs)
    del file[name]
    file[name] = values
    file[name].attrs.update(about)


def ten_x(path, **parts):
    """The HDF5 format of 10x, with changed parts."""
    names = np.array([b"a", b"b", b"c", b"d"])
    arrays = {"data": SPARSE.data, "indices": SPARSE.indices, "indptr": SPARSE.indptr, "shape": [4, 4], **parts}

    def fill(file):
        for name, values in arrays.items():
            file[f"matrix/{name}"] = np.asarray(values)
        file["matrix/features/name"], file["matrix/features/id"], file["matrix/barcodes"] = names, names, names

    return hdf5(path, fill)


def zarr2(path, chunk=b"", **about):
    """A zarr 2 array of one chunk, with changed metadata."""
    about = {
        "zarr_format": 2,
        "shape": [2, 2],
        "chunks": [2, 2],
        "dtype": "<f8",
        "compressor": None,
        "fill_value": 0,
        "order": "C",
        "filters": None,
        **about,
    }
    path.mkdir()
    written(path / ".zarray", json.dumps(about))
    written(path / "0.0", chunk)
    return path


def zarr3(path, **about):
    """A zarr 3 array without chunks, with changed metadata."""
    about = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [2, 2],
        "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
        **about,
    }
    path.mkdir(parents=True)
    written(path / "zarr.json", json.dumps(about))
    return path


class Code:
    """What is left behind if a pickle is loaded."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


def object_zarr2(path, **about):
    chunk = pickle.dumps([Code()])
    return zarr2(path, chunk, dtype="|O", **about)


PICKLE = {"id": "pickle", "protocol": 5}


def consolidated(path):
    """A group whose consolidated metadata alone names the codec."""
    zarr2(path)
    about = json.loads((path / ".zarray").read_text())
    (path / "a").mkdir()
    (path / ".zarray").rename(path / "a" / ".zarray")
    written(path / "a" / "0.0", pickle.dumps([Code()]))
    written(path / ".zgroup", json.dumps({"zarr_format": 2}))
    hidden = {".zgroup": {"zarr_format": 2}, "a/.zarray": {**about, "dtype": "|O", "filters": [PICKLE]}}
    written(path / ".zmetadata", json.dumps({"zarr_consolidated_format": 1, "metadata": hidden}))
    return path


def consolidated3(path):
    zarr3(path / "a")
    about = json.loads((path / "a" / "zarr.json").read_text())
    hidden = {"kind": "inline", "must_understand": False, "metadata": {"a": {**about, "codecs": ["numcodecs.pickle"]}}}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": hidden}
    written(path / "zarr.json", json.dumps(group))
    return path


def cells_zarr(path):
    """An AnnData store with a pickle in ``uns``."""
    import anndata

    anndata.AnnData(np.ones((2, 2))).write_zarr(path)
    object_zarr2(path / "uns" / "more", filters=[PICKLE])
    return path


# refused: code, other files, memory out of bounds

CODE = {
    "zarr 2, pickle as a filter": lambda f: object_zarr2(f / "x.zarr", filters=[PICKLE]),
    "zarr 2, pickle as the compressor": lambda f: object_zarr2(f / "x.zarr", compressor=PICKLE),
    "zarr 2, two names": lambda f: object_zarr2(f / "x.zarr", filters=[PICKLE | {"name": "zlib"}]),
    "zarr 2, msgpack": lambda f: object_zarr2(f / "x.zarr", filters=[{"id": "msgpack2"}]),
    "zarr 2, consolidated": lambda f: consolidated(f / "x.zarr"),
    "zarr 3, pickle": lambda f: zarr3(f / "x.zarr", codecs=[{"name": "numcodecs.pickle"}]),
    "zarr 3, pickle in shards": lambda f: zarr3(
        f / "x.zarr",
        codecs=[
            {
                "name": "sharding_indexed",
                "configuration": {"chunk_shape": [2, 2], "codecs": ["numcodecs.pickle"], "index_codecs": ["bytes"]},
            }
        ],
    ),
    "zarr 3, consolidated": lambda f: consolidated3(f / "x.zarr"),
    "AnnData, pickle in zarr": lambda f: cells_zarr(f / "x.zarr"),
    "npy, pickle": lambda f: written(f / "x.npy", npy((1, 1), "|O", pickle.dumps(Code()))),
    "npz, pickle": lambda f: zipped(f / "x.npz", {"x.npy": npy((1, 1), "|O", pickle.dumps(Code()))}),
    "npz, a pickle by itself": lambda f: zipped(f / "x.npz", {"x.npy": pickle.dumps(Code())}),
}


def secret(folder):
    return str(written(folder / "secret.bin", np.arange(4.0).tobytes()))


def other_hdf5(folder):
    return str(hdf5(folder / "other.h5", lambda file: file.update({"x": np.ones((2, 2))})))


def stored_outside(folder):
    def fill(file):
        file.create_dataset("x", (2, 2), "<f8", external=[(secret(folder), 0, 32)])

    return fill


def virtual(folder):
    def fill(file):
        layout = h5py.VirtualLayout((2, 2), "<f8")
        layout[:] = h5py.VirtualSource(other_hdf5(folder), "x", (2, 2))
        file.create_virtual_dataset("x", layout)

    return fill


def linked(folder):
    def fill(file):
        file["x"] = h5py.ExternalLink(other_hdf5(folder), "x")

    return fill


OUTSIDE = {
    f"{what}, {ending}": lambda f, fill=fill, ending=ending: hdf5(f / f"x{ending}", fill(f))
    for what, fill in {"external storage": stored_outside, "external link": linked, "virtual": virtual}.items()
    for ending in (".h5", ".mat")
} | {
    "external storage, .h5ad": lambda f: h5ad(
        f / "x.h5ad",
        lambda file: (
            file.pop("X"),
            file.create_dataset("X", (4, 4), "<u2", external=[(secret(f), 0, 32)]),
        ),
    ),
    "external link, .h5ad": lambda f: h5ad(
        f / "x.h5ad", lambda file: file.__setitem__("obsm/more", h5py.ExternalLink(other_hdf5(f), "x"))
    ),
}

POINTERS = {
    "an index too large": {"indices": [0, 1, 2, WILD]},
    "a negative index": {"indices": [0, 1, 2, -WILD]},
    "pointers too large": {"indptr": [0, 1, 2, 3, WILD]},
    "pointers that go back": {"indptr": [0, WILD, 2, 3, 4]},
    "negative pointers": {"indptr": [0, -WILD, 2, 3, 4]},
    "too few pointers": {"indptr": [0, 4]},
    "too few values": {"data": [1.0]},
    "floats as indices": {"indices": [0.0, np.nan, np.inf, 1e300]},
    "a table of indices": {"indices": [[0, 1], [2, 3]]},
}
RENAMED = {"indices": "ir", "indptr": "jc", "data": "data"}


def compressed(path, form, parts):
    arrays = {"data": SPARSE.data, "indices": SPARSE.indices, "indptr": SPARSE.indptr, "shape": [4, 4], **parts}
    if form == "bsr":
        arrays["data"] = np.asarray(arrays["data"]).reshape(-1, 1, 1)
    return scipy_npz(path, form, **arrays)


def changed_h5ad(path, parts):
    return h5ad(path, lambda file: [replaced(file, f"X/{name}", np.asarray(v)) for name, v in parts.items()])


INDICES = (
    {
        f"{what}, {form}": lambda f, parts=parts, form=form: compressed(f / "x.npz", form, parts)
        for what, parts in POINTERS.items()
        for form in ("csr", "csc", "bsr")
    }
    | {
        f"{what}, {kind}": lambda f, parts=parts, make=make: make(f, parts)
        for what, parts in POINTERS.items()
        if what != "too few pointers"  # in MATLAB fewer columns
        for kind, make in {
            ".h5ad": lambda f, parts: changed_h5ad(f / "x.h5ad", parts),
            "10x": lambda f, parts: ten_x(f / "x.h5", **parts),
            ".mat 7.3": lambda f, parts: mat73(f / "x.mat", **{RENAMED[name]: value for name, value in parts.items()}),
        }.items()
    }
    | {
        "coo, rows too large": lambda f: scipy_npz(f / "x.npz", "coo", data=[1.0], row=[WILD], col=[0], shape=[4, 4]),
        "coo, negative columns": lambda f: scipy_npz(f / "x.npz", "coo", data=[1.0], row=[0], col=[-1], shape=[4, 4]),
        "dia, offset too large": lambda f: scipy_npz(f / "x.npz", "dia", data=[[1.0]], offsets=[WILD], shape=[4, 4]),
        "dia, offset too small": lambda f: scipy_npz(
            f / "x.npz", "dia", data=[[1.0]], offsets=[-(2**62)], shape=[4, 4]
        ),
        "bsr, blocks of nothing": lambda f: scipy_npz(
            f / "x.npz", "bsr", data=np.ones((1, 0, 0)), indices=[0], indptr=[0, 1], shape=[4, 4]
        ),
        ".mat 5, a type without an entry": lambda f: mat5(f / "x.mat", 0),
        ".mat 5, a type beyond the table": lambda f: mat5(f / "x.mat", 5000),
        ".mat 5, compressed": lambda f: mat5(f / "x.mat", 5000, zipped=True),
        ".mat 7.3, fewer rows": lambda f: mat73(f / "x.mat", rows=2),
        ".mtx, outside": lambda f: written(
            f / "x.mtx", f"%%MatrixMarket matrix coordinate real general\n2 2 1\n{WILD} 1 1.0\n"
        ),
        ".mtx, negative": lambda f: written(
            f / "x.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n-1 1 1.0\n"
        ),
        ".mtx, NUL": lambda f: written(f / "x.mtx", MTX.format("coordinate", "2 2 2\n1 1 2.\0\0005\n1 2 3")),
        ".mtx, a word too many": lambda f: written(f / "x.mtx", MTX.format("coordinate", "1 2 2\n1 1 1\n1 2 3 4")[:-1]),
        ".mtx, underscore": lambda f: written(f / "x.mtx", MTX.format("coordinate", "1 2 2\n1 1 1\n1 2 1_0")[:-1]),
        ".mtx.gz, ends in a number": lambda f: written(
            f / "x.mtx.gz", gzip.compress(b"%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 1.5\n1 2 2.5E-")
        ),
    }
)

# refused: small files that take gigabytes


def element(kind, body):
    return struct.pack("<II", kind, len(body)) + body + bytes(-len(body) % 8)


def packed_mat(path, kind, shape, *parts, flags=0):
    """A compressed MATLAB 5 file of matrices with the name x."""
    about = element(6, struct.pack("<II", kind | flags << 8, 0)) + element(5, struct.pack("<ii", *shape))
    packed = zlib.compress(element(14, about + element(1, b"x") + b"".join(parts)))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)
    return written(path, head + struct.pack("<II", 15, len(packed)) + packed)


def sparse_mat(path):
    """A sparse matrix of 20 million zeros at one place, each a byte in the file."""
    count = 2 * 10**7
    starts = struct.pack("<3i", 0, count, count)
    return packed_mat(path, 5, (2, 2), element(5, bytes(4 * count)), element(5, starts), element(2, bytes(count)))


def two_mats(path):
    """A large matrix and a small one of the same name."""
    large = packed_mat(path, 6, (10**4, 5000), element(2, bytes(5 * 10**7))).read_bytes()
    return written(path, large + packed_mat(path, 6, (2, 1), element(2, bytes(2))).read_bytes()[128:])


def zeros_mat(path):
    """MATLAB 5 can store doubles as bytes: eight times as many after decompression."""
    size = 20_000
    body = struct.pack("<IIII", 6, 8, 6, 0) + struct.pack("<IIii", 5, 8, size, size) + struct.pack("<II", 1, 0)
    body += b"x" + bytes(7) + struct.pack("<II", 2, size * size) + bytes(1000)
    content = struct.pack("<II", 14, len(body)) + body
    packed = zlib.compress(content)
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)
    return written(path, head + struct.pack("<II", 15, len(packed)) + packed)


def flac(path, frames):
    """A FLAC file with another number of frames in its header."""
    import soundfile

    soundfile.write(path, np.zeros(5000), 8000)
    content = bytearray(path.read_bytes())
    number = int.from_bytes(content[18:26], "big")  # rate, channels, bits, and 36 bits of the number of samples
    content[18:26] = (number >> 36 << 36 | frames).to_bytes(8, "big")
    return written(path, bytes(content))


def repeated_gzip(path, text, count):
    with gzip.open(path, "wb") as file:
        for _ in range(count):
            file.write(text)
    return path


def empty_chunks(path, shape, chunks):
    return hdf5(path, lambda file: file.create_dataset("x", shape, "<f8", chunks=chunks, compression="gzip"))


def full_chunk(path):
    def fill(file):
        data = file.create_dataset("x", (2**14, 2**14), "<f8", chunks=(2**14, 2**14), compression="gzip")
        data.id.write_direct_chunk((0, 0), zlib.compress(bytes(100)))

    return hdf5(path, fill)


def cells_of_zeros(path):
    def fill(file):
        del file["X"]
        data = file.create_dataset("X", (2**15, 2**15), "<f8", chunks=(64, 64), compression="gzip")
        data.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})

    return h5ad(path, fill, np.ones((2, 2)))


def npz_beside(path, **members):
    """An array with more arrays beside it."""
    return zipped(path, {f"{name}.npy": content for name, content in {"x": saved(np.ones((3, 4))), **members}.items()})


def twice_compressed(path):
    def fill(file):
        about = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        about.set_chunk((4, 4))
        for _ in range(2):
            about.set_filter(h5py.h5z.FILTER_DEFLATE, 0, (9,))
        space = h5py.h5s.create_simple((4, 4))
        data = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, about)
        data.write_direct_chunk((0, 0), zlib.compress(zlib.compress(bytes(128))))

    return hdf5(path, fill)


def overfull_tiff(path):
    """A TIFF of 4 × 4 pixels whose strip of 5 MB decodes to 5 MB."""
    strip = zlib.compress(bytes(32) + np.random.default_rng(0).bytes(5 * 10**6))
    content = bytearray(tiff(4, 4))
    content[-4:] = struct.pack("<I", 0)
    where, length = len(content), len(strip)
    for tag, value in ((273, where), (279, length)):
        place = content.index(struct.pack("<HHI", tag, 4, 1)) + 8
        content[place : place + 4] = struct.pack("<I", value)
    return written(path, bytes(content) + strip)


def linked_cells(path, kind):
    """Cells with an array of 134 MB under 16 names."""

    def fill(file):
        first = file["obsm"].create_dataset("a", (4, 2**22), "<f8", chunks=(4, 64), compression="gzip")
        first.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        for k in range(16):
            file[f"obsm/a{k}"] = first if kind == "hard" else h5py.SoftLink("/obsm/a")

    return h5ad(path, fill)


def doubled_groups(path):
    """Cells with 40 nested groups of two names each: 2**40 paths."""

    def fill(file):
        group = file["uns"]
        for _ in range(40):
            inner = group.create_group("a")
            inner.attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
            group["b"] = inner
            group = inner

    return h5ad(path, fill)


BOMBS = {
    ".npz, shape beyond the file": lambda f: zipped(f / "x.npz", {"x.npy": npy((2**16, 2**16))}),
    ".npz, names of no bytes": lambda f: npz_beside(f / "x.npz", sample_names=npy((3 * 10**8,), "|V0")),
    ".npz, a shape of no bytes": lambda f: npz_beside(f / "x.npz", part_shape=npy((3 * 10**8,), "|S0")),
    ".npz, short names": lambda f: npz_beside(f / "x.npz", sample_names=npy((2 * 10**7,), "|S1", bytes(2 * 10**7))),
    ".npz, csr of many rows": lambda f: compressed(f / "x.npz", "csr", {"shape": [4, 10**10]}),
    ".npz, dia": lambda f: scipy_npz(f / "x.npz", "dia", data=[[1.0]], offsets=[0], shape=[10**9, 4]),
    ".npz, coo": lambda f: scipy_npz(f / "x.npz", "coo", data=[1.0], row=[0], col=[0], shape=[10**9, 4]),
    ".mtx, coordinates": lambda f: written(f / "x.mtx", MTX.format("coordinate", "1000000000 4 1\n1 1 1.0")),
    ".mtx, entries": lambda f: written(f / "x.mtx", MTX.format("coordinate", "4 4 1000000000\n1 1 1.0")),
    ".mtx, array": lambda f: written(f / "x.mtx", MTX.format("array", "40000 40000\n1.0")),
    ".mtx.gz, array": lambda f: written(
        f / "x.mtx.gz", gzip.compress(MTX.format("array", "40000 40000\n1.0").encode())
    ),
    ".mat 5": lambda f: zeros_mat(f / "x.mat"),
    ".mat 5, sparse": lambda f: sparse_mat(f / "x.mat"),
    ".mat 5, logical": lambda f: packed_mat(f / "x.mat", 6, (10**4, 5000), element(2, bytes(5 * 10**7)), flags=2),
    ".mat 5, one name twice": lambda f: two_mats(f / "x.mat"),
    ".mat 7.3": lambda f: mat73(f / "x.mat", rows=10**10),
    ".png": lambda f: written(f / "x.png", png(13_000, 13_000)),
    ".tif": lambda f: written(f / "x.tif", tiff(40_000, 40_000)),
    ".tif, a strip beyond its values": lambda f: overfull_tiff(f / "x.tif"),
    ".tif of many pages": lambda f: written(f / "x.tif", tiff(1000, 1000, 300)),
    ".nii": lambda f: nifti(f / "x.nii", dim=[4, 1000, 1000, 100, 8, 1, 1, 1]),
    ".nii.gz": lambda f: nifti(f / "x.nii.gz", dim=[4, 1000, 1000, 100, 8, 1, 1, 1]),
    ".nii.gz, an extension": lambda f: extended_nifti(f / "x.nii.gz", 3 * 10**8, 3 * 10**8),
    ".csv.gz": lambda f: repeated_gzip(f / "x.csv.gz", b"0," * 499_999 + b"0\n", 30),
    ".csv.gz, a line": lambda f: repeated_gzip(f / "x.csv.gz", b"0," * 500_000, 30),
    "10x names": lambda f: named_10x(f),
    ".flac": lambda f: flac(f / "x.flac", 2**33),
    ".h5, compressed twice": lambda f: twice_compressed(f / "x.h5"),
    ".h5, a chunk": lambda f: full_chunk(f / "x.h5"),
    ".h5, rows": lambda f: empty_chunks(f / "x.h5", (2**33, 4), (64, 4)),
    ".h5ad, hard links": lambda f: linked_cells(f / "x.h5ad", "hard"),
    ".h5ad, soft links": lambda f: linked_cells(f / "x.h5ad", "soft"),
    ".h5ad, groups": lambda f: doubled_groups(f / "x.h5ad"),
    ".h5ad": lambda f: cells_of_zeros(f / "x.h5ad"),
    "zarr 2, a chunk": lambda f: zarr2(f / "x.zarr", shape=[2**15, 2**15], chunks=[2**15, 2**15]),
    "zarr 2, rows": lambda f: zarr2(f / "x.zarr", shape=[2**33, 2]),
}


def named_10x(folder):
    """A 10x folder with 8 million names."""
    written(folder / "matrix.mtx", MTX.format("coordinate", "2 2 1\n1 1 1.0"))
    written(folder / "barcodes.tsv", "a\nb\n")
    repeated_gzip(folder / "features.tsv.gz", b"a\n" * 2**19, 16)
    return folder


def nonzeros(count, shape):
    """A model file of ``count`` arrays of this shape, each with one nonzero."""
    arrays = {f"a{k}": {"shape": list(shape), "nonzeros": "by rows"} for k in range(count)}
    parts = {"values": np.ones(1), "indices": np.zeros(1, dtype=np.uint8), "starts": np.array([0, 1])}
    members = [(f"{name}.{part}.npy", saved(values)) for name in arrays for part, values in parts.items()]
    header = json.dumps({"format": [1, 0], "kind": "model", "class": "SparseNMF", "arrays": arrays})
    return sealed([("partwise.json", header), *members])


def compressed_header(megabytes):
    header = b'{"kind": "checkpoint", "x": "' + b" " * (megabytes * 2**20) + b'"}'
    return sealed([("partwise.json", header)], compression=zipfile.ZIP_DEFLATED)


MODELS = {  # to be read with `partwise.load`
    "one array": lambda f: written(f / "x.pw", nonzeros(1, (1, 2**28))),
    "many arrays": lambda f: written(f / "x.pw", nonzeros(16, (1, 2**24))),
    "compressed header": lambda f: written(f / "x.pw", compressed_header(16)),
}


def search(path):
    """A checkpoint of `partwise.select` that claims a billion starts."""
    settings = {"sparsities": [None], "n_init": 10**9}
    record = {"rank": 1, "split": 0, "stability": [None], "fits": []}
    about = {"kind": "partwise selection", "format": 1, "seed": 0, "settings": settings, "paths": [record]}
    return written(path, json.dumps(about))


SEARCHES = {"many starts": lambda f: search(f / "x.json")}  # to be read with `partwise.selection.records.read`


# broken: most are refused, some can be read


def damaged_zarr(path):
    return zarr2(path, b"not zlib", compressor={"id": "zlib", "level": 1})


def dangling(path):
    def fill(file):
        file["x"], file["y"] = np.ones((2, 2)), h5py.SoftLink("/nowhere")

    return hdf5(path, fill)


def string_cells(path):
    return h5ad(path, lambda file: replaced(file, "X", np.array([[b"a", b"b"]] * 2)), np.ones((2, 2)))


BROKEN = {
    ".npy of bools as a shape": lambda f: written(f / "x.npy", npy((True, True), body=bytes(8))),
    ".npy of a long number": lambda f: written(f / "x.npy", npy((10**40, 4))),
    ".npy of a negative shape": lambda f: written(f / "x.npy", npy((-1, 4))),
    ".npy of nothing": lambda f: written(f / "x.npy", npy((), body=bytes(8))),
    ".npy of records": lambda f: written(f / "x.npy", npy((1,), [("a", "<f8")], bytes(8))),
    ".npy that is text": lambda f: written(f / "x.npy", "junk" * 20),
    ".npy with code as its header": lambda f: written(f / "x.npy", npy((1, 1)).replace(b"(1, 1)", b"f(1,1)")),
    ".npz with a text": lambda f: zipped(f / "x.npz", {"x.txt": b"hello"}),
    ".npz with a text as an array": lambda f: zipped(f / "x.npz", {"x.npy": b"hello"}),
    ".npz with a number as its shape": lambda f: zipped(
        f / "x.npz", {"x.npy": saved(np.ones((2, 3))), "part_shape.npy": saved(np.array(3))}
    ),
    ".npz with fractions as its shape": lambda f: npz_beside(f / "x.npz", part_shape=saved(np.array([2.5, 2]))),
    ".npz with a shape of one": lambda f: compressed(f / "x.npz", "csr", {"shape": [4]}),
    ".npz of an unknown format": lambda f: compressed(f / "x.npz", "xyz", {}),
    ".npz of complex numbers": lambda f: compressed(f / "x.npz", "csr", {"data": [1j] * 4}),
    ".npz without indices": lambda f: scipy_npz(f / "x.npz", "csr", data=[1.0], shape=[4, 4]),
    ".nii of colours": lambda f: nifti(f / "x.nii", datatype=128, bitpix=24),
    ".nii nowhere": lambda f: nifti(f / "x.nii", vox_offset=np.nan),
    ".nii.gz, a negative extension": lambda f: extended_nifti(f / "x.nii.gz", -16),
    ".nii far away": lambda f: nifti(f / "x.nii", vox_offset=1e30),
    ".nii of an unknown type": lambda f: nifti(f / "x.nii", datatype=77),
    ".nii.gz of negative size": lambda f: nifti(f / "x.nii.gz", dim=[3, -2, 2, 2, 1, 1, 1, 1]),
    ".mat with a dangling link": lambda f: dangling(f / "x.mat"),
    ".h5 with a dangling link": lambda f: dangling(f / "x.h5"),
    ".mat 7.3 without pointers": lambda f: hdf5(
        f / "x.mat", lambda file: file.create_group("X").attrs.__setitem__("MATLAB_sparse", 4)
    ),
    ".mat 7.3, text for rows": lambda f: mat73(f / "x.mat", data=np.array([b"a"] * 4)),
    ".h5 of text": lambda f: hdf5(f / "x.h5", lambda file: file.update({"x": np.array([[b"a"]])})),
    "10x without names": lambda f: hdf5(f / "x.h5", lambda file: file.update({"matrix/indptr": [0]})),
    ".h5ad of text": lambda f: string_cells(f / "x.h5ad"),
    ".h5ad within itself": lambda f: h5ad(f / "x.h5ad", lambda file: file.__setitem__("uns/more", file["uns"])),
    ".h5ad without anything": lambda f: hdf5(f / "x.h5ad", lambda file: None),
    "zarr, damaged chunk": lambda f: damaged_zarr(f / "x.zarr"),
    "zarr, short chunk": lambda f: zarr2(f / "x.zarr", b"short"),
    "zarr, no JSON": lambda f: written(zarr2(f / "x.zarr") / ".zarray", "{").parent,
    "zarr, a list": lambda f: written(zarr2(f / "x.zarr") / ".zarray", "[]").parent,
    "zarr, deep": lambda f: written(zarr2(f / "x.zarr") / ".zarray", "[" * 10**5).parent,
    "zarr, unknown dtype": lambda f: zarr2(f / "x.zarr", dtype="<z9"),
    "zarr, negative shape": lambda f: zarr2(f / "x.zarr", shape=[-2, 2]),
    "zarr, unknown codec": lambda f: zarr3(f / "x.zarr", codecs=["nothing"]),
    ".csv with a long field": lambda f: written(f / "x.csv", "a,b\n" + "9" * 300_000 + ",1\n"),
    ".csv with zeros": lambda f: written(f / "x.csv", b"a,b\n\0,1\n"),
    ".csv of quotes": lambda f: written(f / "x.csv", 'a,b\n"1,2\n3,4\n'),
    ".csv.gz that is none": lambda f: written(f / "x.csv.gz", b"\x1f\x8bnothing at all"),
    ".mtx of words": lambda f: written(f / "x.mtx", "%%MatrixMarket matrix coordinate real general\na b c\n"),
    ".mtx of complex numbers": lambda f: written(
        f / "x.mtx", "%%MatrixMarket matrix array complex general\n1 1\n1 2\n"
    ),
    ".png, an EPS": lambda f: written(f / "x.png", "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"),
    ".png without pixels": lambda f: written(f / "x.png", png(0, 0)),
    ".tif without pixels": lambda f: written(f / "x.tif", tiff(0, 0)),
    ".tif without its values": lambda f: written(f / "x.tif", tiff(40, 40)),
    ".tif in a circle": lambda f: written(f / "x.tif", tiff(40, 40)[:-4] + b"\x18\0\0\0"),
    ".tif without pages": lambda f: written(f / "x.tif", b"II*\0\0\0\0\0"),
    ".mat of zeros": lambda f: written(f / "x.mat", bytes(500)),
}
HOSTILE = {"code": CODE, "outside": OUTSIDE, "indices": INDICES, "bombs": BOMBS, "broken": BROKEN}
