"""The two datasets of faces that the paper uses."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from partwise.statistics import Array

from .fetch import Address, download, find
from .packed_files import arrays_in, numbered_files
from .pgm import read_pgm


@dataclass(frozen=True)
class Pictures:
    """A public set of images: its file names, and how to check that it is complete.

    ``digest`` is the SHA-256 of the images' bytes in sorted order, so it does not depend on how they were packed.
    """

    what: str
    places: tuple[str, ...]
    wanted: str
    shape: tuple[int, int, int]
    digest: str
    file: str
    addresses: tuple[Address, ...]
    inner: str | None = None

    def load(self, path: str | os.PathLike[str] | None) -> Array:
        """The images as uint8, from ``path``, from the searched folders, or downloaded."""
        place = find(*self.places) if path is None else self._inside(Path(path))
        return download(self.what, self.file, self.addresses, self.read) if place is None else self.read(place)

    def read(self, place: Path) -> Array:
        """Read and check the images in a folder, an archive or an .npz file."""
        pictures = arrays_in(place, "images")[0] if place.suffix == ".npz" else self._unpacked(place)
        if pictures.shape != self.shape or pictures.dtype != np.uint8:
            raise ValueError(
                f"{place} contains images of shape {pictures.shape} and type {pictures.dtype}; "
                f"{self.what} are {self.shape} and uint8: download them again"
            )
        if digest(pictures) != self.digest:
            raise ValueError(f"{place} does not contain {self.what} as published: it is damaged; download them again")
        return pictures

    def _inside(self, path: Path) -> Path:
        if not path.exists():
            raise FileNotFoundError(f"path={str(path)!r} does not exist: pass the folder or archive of {self.what}")
        return next((path / name for name in self.places if (path / name).exists()), path)

    def _unpacked(self, place: Path) -> Array:
        files = numbered_files(place, self.wanted, self.inner)
        if len(files) != self.shape[0]:
            raise ValueError(
                f"{place} has {len(files)} of the {self.shape[0]} images of {self.what}: download it again"
            )
        pictures = [read_pgm(raw, f"image {key} of {place}") for key, raw in files.items()]
        if odd := {picture.shape for picture in pictures} - {self.shape[1:]}:
            raise ValueError(f"{place} has an image of shape {odd.pop()}; those of {self.what} are {self.shape[1:]}")
        return np.stack(pictures)


def digest(pictures: Array) -> str:
    """The SHA-256 of a set of images, independent of their order."""
    return hashlib.sha256(b"".join(sorted(picture.tobytes() for picture in pictures))).hexdigest()


ORL = Pictures(
    what="the ORL faces",
    places=("orl_faces.npz", "att_faces.zip", "orl_faces.zip", "orl_faces.tar.gz", "orl_faces", "att_faces"),
    wanted=r"s(\d{1,3})/(\d{1,3})\.pgm",
    shape=(400, 112, 92),
    digest="0357e1049334df5e7b1e656d71d0089aebc18b014d23c86d23f9beb64f31f0f7",
    file="att_faces.zip",
    addresses=(
        Address("https://www.cl.cam.ac.uk/research/dtg/attarchive/pub/data/att_faces.zip"),
        Address("http://www.idiap.ch/software/bob/data/bob/att_faces.zip", "md5:6efb25cb0d40755e9492b9c012e3348d"),
    ),
)
CBCL = Pictures(
    what="the CBCL faces",
    places=("cbcl_faces.npz", "faces.tar.gz", "face.train.tar.gz", "cbcl_faces", "CBCL_faces", "CBCL"),
    wanted=r"face/face(\d{1,5})\.pgm",
    shape=(2429, 19, 19),
    digest="bc54a28d25b61375f150c7a6d75f88b7872c7197d8172582b9c3d1eaf1c2d8aa",
    file="faces.tar.gz",
    addresses=(Address("http://cbcl.mit.edu/projects/cbcl/software-datasets/faces.tar.gz"),),
    inner=r"face\.train\.tar\.gz",
)


def load_orl(path: str | os.PathLike[str] | None = None) -> tuple[Array, tuple[int, int]]:
    """The ORL (AT&T) faces, with grey values in [0, 1]: ten images of each of 40 people.

    Licence: when using these images, give credit to the Olivetti Research Laboratory [1]_.

    Parameters
    ----------
    path : path, optional
        A folder or an archive (.zip, .tar.gz) with s1/1.pgm … s40/10.pgm, or an .npz file with `images`. Without it,
        the folder given by PARTWISE_DATA and the user's cache are searched; if the faces are in neither, they are
        downloaded to the cache (extra `bench`). They are always compared with the published images.

    Returns
    -------
    X : array of shape (400, 10304)
        Ordered by person.
    shape : (112, 92)
        Of an image.

    References
    ----------
    .. [1] F. Samaria, A. Harter (1994). Parameterisation of a stochastic model for human face identification. 2nd IEEE
       Workshop on Applications of Computer Vision.

    Examples
    --------
    >>> X, shape = load_orl("Downloads/att_faces.zip")  # doctest: +SKIP
    """
    pictures = ORL.load(path)
    return pictures.reshape(len(pictures), -1) / 255.0, ORL.shape[1:]


def load_cbcl(
    path: str | os.PathLike[str] | None = None, *, prepared: Literal["hoyer", "grey"] = "hoyer"
) -> tuple[Array, tuple[int, int]]:
    """The training faces of the MIT CBCL face database #1.

    Licence: for research only, with credit to the MIT Center For Biological and Computation Learning.

    Parameters
    ----------
    path : path, optional
        A folder or an archive (.zip, .tar.gz, or the public faces.tar.gz, which contains archives) with
        face/face00001.pgm … face/face02429.pgm, or an .npz file with `images`. Without it, as in `load_orl`.
    prepared : {"hoyer", "grey"}
        As Hoyer (2004) prepares them, grey values minus their mean, divided by their root mean square, ×.25 + .25,
        clipped to [0, 1]; or grey values in [0, 1].

    Returns
    -------
    X : array of shape (2429, 361)
    shape : (19, 19)
        Of an image.

    Examples
    --------
    >>> X, shape = load_cbcl("Downloads/faces.tar.gz")  # doctest: +SKIP
    """
    if prepared not in ("hoyer", "grey"):
        raise ValueError(f"prepared={prepared!r} is neither 'hoyer' nor 'grey'")
    pictures = CBCL.load(path).astype(float)
    if prepared == "grey":
        pictures /= 255
    else:
        pictures -= pictures.mean()
        pictures /= np.sqrt(np.square(pictures).mean())
        pictures = np.clip(pictures * 0.25 + 0.25, 0, 1)
    return pictures.reshape(len(pictures), -1), CBCL.shape[1:]
