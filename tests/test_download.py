"""Datasets are read from folders, archives and a server; damaged ones are rejected with advice."""

import builtins
import hashlib
import io
import os
import re
import socket
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import loaders
from experiments.loaders import faces, packed_files
from experiments.loaders.faces import CBCL, ORL, digest
from experiments.loaders.fetch import Address

pooch = pytest.importorskip("pooch")
PICTURES = np.arange(6 * 2 * 3, dtype=np.uint8).reshape(6, 2, 3)
SMALL = {
    "orl": replace(ORL, shape=PICTURES.shape, digest=digest(PICTURES), addresses=()),
    "cbcl": replace(CBCL, shape=PICTURES.shape, digest=digest(PICTURES), addresses=()),
}
NAMES = {
    "orl": [f"att_faces/s{person}/{pose}.pgm" for person in (1, 2, 10) for pose in (1, 2)],
    "cbcl": [f"train/face/face{number:05}.pgm" for number in range(1, 7)],
}
OTHERS = {"README": b"about", "train/non-face/B1.pgm": b"?", "test/face/cmu_0001.pgm": b"?", "__MACOSX/s1/._1.pgm": b""}


def files(kind, pictures=PICTURES):
    """The public files of a dataset, unordered, with some unrelated files."""
    pgm = [b"P5\n%d %d\n255\n" % picture.shape[::-1] + picture.tobytes() for picture in pictures]
    return OTHERS | dict(reversed(list(zip(NAMES[kind], pgm, strict=True))))


def zipped(content, compression=zipfile.ZIP_DEFLATED):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", compression) as out:
        for name, data in content.items():
            out.writestr(name, data)
    return raw.getvalue()


def tarred(content, mode="w:gz"):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode=mode) as out:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))
    return raw.getvalue()


def nested(content):
    """The nested archive published by MIT."""
    return tarred({"face.train.tar.gz": tarred(content), "face.test.tar.gz": b"not looked into", "README": b""})


PACKED = {
    "a.zip": zipped,
    "plain.zip": lambda content: zipped(content, zipfile.ZIP_STORED),
    "b.tar.gz": tarred,
    "b.tgz": tarred,
    "c.tar": lambda content: tarred(content, "w"),
}
each_kind = pytest.mark.parametrize("kind", SMALL)
each_archive = pytest.mark.parametrize("name", PACKED)


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No local data, and an empty cache."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("PARTWISE_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "partwise"


@pytest.fixture
def served():
    """A local server: the dict holds the files; an int is an HTTP status, and None breaks the connection."""
    content: dict[str, bytes | int | None] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = content.get(self.path.removeprefix("/"), 404)
            if isinstance(body, int):
                return self.send_error(body)
            self.send_response(200)
            self.send_header("Content-Length", str(100 if body is None else len(body)))
            self.end_headers()
            self.wfile.write(b"half" if body is None else body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield SimpleNamespace(content=content, asked=asked, url=f"http://127.0.0.1:{server.server_port}/")
    server.shutdown()
    thread.join()
    server.server_close()


def at(served, *names, checksum=None, kind="orl"):
    return replace(SMALL[kind], addresses=tuple(Address(served.url + name, checksum) for name in names))


@each_kind
@each_archive
def test_archives_are_read(tmp_path, kind, name):
    (tmp_path / name).write_bytes(PACKED[name](files(kind)))
    assert np.array_equal(SMALL[kind].load(tmp_path / name), PICTURES)


@each_kind
def test_folders_are_read(tmp_path, kind):
    for name, content in files(kind).items():
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_bytes(content)
    assert np.array_equal(SMALL[kind].load(str(tmp_path / "set")), PICTURES)
    assert np.array_equal(SMALL[kind].load((tmp_path / "set" / NAMES[kind][0]).parents[1]), PICTURES)


@each_kind
def test_arrays_are_read_and_found(tmp_path, monkeypatch, kind):
    np.savez_compressed(tmp_path / SMALL[kind].places[0], images=PICTURES)
    assert np.array_equal(SMALL[kind].load(tmp_path), PICTURES)
    monkeypatch.setenv("PARTWISE_DATA", str(tmp_path))
    assert np.array_equal(SMALL[kind].load(None), PICTURES)


def test_data_in_the_cache_is_found(nowhere):
    nowhere.mkdir(parents=True)
    (nowhere / "att_faces.zip").write_bytes(zipped(files("orl")))
    assert np.array_equal(SMALL["orl"].load(None), PICTURES)


def test_the_archive_inside_of_the_archive_is_read(tmp_path):
    (tmp_path / "faces.tar.gz").write_bytes(nested(files("cbcl")))
    assert np.array_equal(SMALL["cbcl"].load(tmp_path), PICTURES)


@each_archive
def test_damage_is_detected(tmp_path, name):
    """Any flipped or truncated byte gives the right images or one error message."""
    place, raw = tmp_path / name, PACKED[name](files("orl"))
    where = np.random.default_rng(0).integers(len(raw), size=150)
    damaged = [raw[:i] + bytes([raw[i] ^ 255]) + raw[i + 1 :] for i in where] + [raw[:i] for i in where]
    refused = 0
    for broken in damaged:
        place.write_bytes(broken)
        try:
            assert np.array_equal(SMALL["orl"].load(place), PICTURES)
        except ValueError as error:
            assert str(place) in str(error)  # noqa: PT017
            refused += 1
    assert refused > 20


def changed(kind="orl"):
    pictures = PICTURES.copy()
    pictures[3, 1, 1] ^= 1
    return files(kind, pictures)


def missing(kind="orl"):
    return {name: data for name, data in files(kind).items() if name != NAMES[kind][2]}


def as_text(kind="orl"):
    """The effect of a text-mode transfer."""
    return {name: data.replace(b"\n", b"\r\n") for name, data in files(kind).items()}


def leading_out(kind="orl"):
    return missing(kind) | {f"../../{NAMES[kind][2]}": files(kind)[NAMES[kind][2]]}


PAGE = b"<!DOCTYPE html><html><body>We have moved</body></html>"
WRONG = {
    "one pixel": (zipped(changed()), "does not contain the ORL faces as published"),
    "one missing": (zipped(missing()), "has 5 of the 6 images"),
    "in text mode": (zipped(as_text()), "13 bytes for an image|bytes for an image of 6"),
    "leading out": (zipped(leading_out()), "has 5 of the 6 images"),
    "absolute": (zipped(missing() | {f"/{NAMES['orl'][2]}": b""}), "has 5 of the 6 images"),
    "twice": (zipped(files("orl") | {"copy/s1/1.pgm": b""}), "has .*s1/1.pgm in two folders"),
    "larger": (zipped(files("orl", np.zeros((6, 3, 3), np.uint8))), r"an image of shape \(3, 3\)"),
    "no picture": (zipped(dict.fromkeys(files("orl"), PAGE)), "is not a PGM image"),
    "a page": (PAGE, "damaged, or not the format of its name"),
    "nothing": (b"", "damaged, or not the format of its name"),
    "another archive": (tarred(files("orl")), "damaged, or not the format of its name"),
}


@pytest.mark.parametrize(("raw", "message"), WRONG.values(), ids=WRONG)
def test_files_other_than_the_dataset_are_rejected(tmp_path, raw, message):
    (tmp_path / "att_faces.zip").write_bytes(raw)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=message):
        SMALL["orl"].load(tmp_path / "att_faces.zip")
    assert sorted(tmp_path.rglob("*")) == before  # nothing is unpacked


def test_links_and_huge_files_in_archives_are_ignored_or_rejected(tmp_path, monkeypatch):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as out:
        member = tarfile.TarInfo("s1/1.pgm")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        out.addfile(member)
    (tmp_path / "a.tar").write_bytes(raw.getvalue())
    assert packed_files.numbered_files(tmp_path / "a.tar", ORL.wanted) == {}
    monkeypatch.setattr(packed_files, "LARGEST", 10)
    (tmp_path / "b.zip").write_bytes(zipped(files("orl")))
    with pytest.raises(ValueError, match="would take 17 bytes"):
        SMALL["orl"].load(tmp_path / "b.zip")


def test_archive_with_a_negative_size_does_not_loop(tmp_path):
    """A member of negative size makes Python's loop over a tar file endless (CVE-2025-8194)."""
    raw = bytearray(tarred(files("orl"), "w"))
    raw[124:136] = (2**96 - 1024).to_bytes(12, "big")  # its size: -1024, in base 256
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    (tmp_path / "a.tar").write_bytes(raw)
    with pytest.raises(ValueError, match="download it again"):
        SMALL["orl"].load(tmp_path / "a.tar")


@pytest.mark.parametrize(
    ("name", "save", "message"),
    [
        ("a.npz", lambda file: np.savez(file, X=PICTURES), "lacks an array: images is not a file"),
        ("a.npz", lambda file: np.savez(file, images=PICTURES[1:]), r"shape \(5, 2, 3\)"),
        ("a.npz", lambda file: np.savez(file, images=PICTURES / 255), "type float64"),
        ("a.npz", lambda file: np.savez(file, images=PICTURES[:, ::-1]), "as published"),
        ("a.npz", lambda file: np.savez(file, images=np.array([None])), "not an .npz file .*pickle"),
        ("a.npz", lambda file: np.save(file, PICTURES), "it contains a single array"),
        ("a.npz", lambda file: file.write(PAGE), "damaged or not an .npz file"),
        ("a.rar", lambda file: file.write(PAGE), "pass a folder, a .zip, .tar, .tar.gz or .npz file"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path, name, save, message):
    with (tmp_path / name).open("wb") as file:
        save(file)
    with pytest.raises(ValueError, match=message):
        SMALL["orl"].load(tmp_path / name)


@pytest.mark.parametrize("load", [loaders.load_orl, loaders.load_cbcl])
def test_missing_path_raises(load):
    with pytest.raises(FileNotFoundError, match=r"path='nowhere\.zip' does not exist"):
        load("nowhere.zip")


@pytest.mark.parametrize("checksum", [None, "right"])
def test_downloads_are_kept(served, nowhere, capfd, checksum):
    raw = served.content["att_faces.zip"] = zipped(files("orl"))
    if checksum:
        checksum = "md5:" + hashlib.md5(raw, usedforsecurity=False).hexdigest()
    small = at(served, "att_faces.zip", checksum=checksum)
    for _ in range(2):
        assert np.array_equal(small.load(None), PICTURES)
    assert served.asked == ["/att_faces.zip"]
    assert [path.name for path in nowhere.iterdir()] == ["att_faces.zip"]
    assert capfd.readouterr() == ("", "")


def test_the_loaders_download(served, monkeypatch):
    served.content["faces.tar.gz"] = nested(files("cbcl"))
    served.content["att_faces.zip"] = zipped(files("orl"))
    monkeypatch.setattr(faces, "ORL", at(served, "att_faces.zip"))
    monkeypatch.setattr(faces, "CBCL", at(served, "faces.tar.gz", kind="cbcl"))
    X, shape = loaders.load_orl()
    assert shape == (2, 3)
    np.testing.assert_allclose(X, PICTURES.reshape(6, 6) / 255)
    X, shape = loaders.load_cbcl()
    assert (X.shape, shape, X.min() >= 0, X.max() <= 1) == ((6, 6), (2, 3), True, True)
    np.testing.assert_allclose(loaders.load_cbcl(prepared="grey")[0], PICTURES.reshape(6, 6) / 255)
    with pytest.raises(ValueError, match="prepared='raw' is neither"):
        loaders.load_cbcl(prepared="raw")


BAD = {
    "404": (404, "HTTP status 404"),
    "500": (500, "HTTP status 500"),
    "cut off": (None, "no connection"),
} | WRONG


@pytest.mark.parametrize(("raw", "message"), BAD.values(), ids=BAD)
def test_bad_downloads_are_not_kept(served, nowhere, raw, message):
    served.content["att_faces.zip"] = raw
    by_hand = rf"(?s)^the ORL faces are not in .*{message}.*: put att_faces.zip into {re.escape(str(nowhere))}, or"
    with pytest.raises(FileNotFoundError, match=by_hand):
        at(served, "att_faces.zip").load(None)
    assert not list(nowhere.iterdir())
    served.content["att_faces.zip"] = zipped(files("orl"))  # and so the next try can succeed
    assert np.array_equal(at(served, "att_faces.zip").load(None), PICTURES)


def test_a_wrong_checksum_is_refused(served, nowhere):
    served.content["att_faces.zip"] = zipped(files("orl"))
    with pytest.raises(FileNotFoundError, match="does not match"):
        at(served, "att_faces.zip", checksum="md5:" + "0" * 32).load(None)
    assert not list(nowhere.iterdir())


def test_the_next_address_is_tried(served):
    served.content["mirror.zip"] = zipped(files("orl"))
    assert np.array_equal(at(served, "gone.zip", "mirror.zip").load(None), PICTURES)
    assert served.asked == ["/gone.zip", "/mirror.zip"]


def test_message_without_a_network_says_what_to_do(nowhere):
    with socket.socket() as closed:  # the port is bound, but not listening
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/att_faces.zip"
        with pytest.raises(FileNotFoundError) as caught:
            replace(SMALL["orl"], addresses=(Address(url),)).load(None)
    assert str(caught.value) == (
        f"the ORL faces are not in {nowhere}, and could not be downloaded from {url} "
        f"(no connection: ConnectionError): put att_faces.zip into {nowhere}, or into a folder given by "
        "PARTWISE_DATA"
    )


def test_unwritable_cache_raises(served, nowhere):
    nowhere.parent.write_bytes(b"a file, where there should be a folder")
    with pytest.raises(FileNotFoundError, match=r"cannot be downloaded to .*PARTWISE_DATA"):
        at(served, "att_faces.zip").load(None)
    assert served.asked == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_cache_raises(served, nowhere):
    nowhere.mkdir(parents=True)
    nowhere.chmod(0o500)
    with pytest.raises(FileNotFoundError, match="it is read-only"):
        at(served, "att_faces.zip").load(None)


def test_without_pooch_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def no_pooch(name, *rest):
        if name == "pooch":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_pooch)
    with pytest.raises(ImportError, match=r"not in the folder given by PARTWISE_DATA, .* pip install '\.\[bench\]'"):
        loaders.load_orl()
    np.savez_compressed(tmp_path / SMALL["orl"].places[0], images=PICTURES)
    monkeypatch.setenv("PARTWISE_DATA", str(tmp_path))
    assert np.array_equal(SMALL["orl"].load(None), PICTURES)
