"""Images: each image, and each page of a TIFF, is a sample; the features are its pixels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ..runtime.files import replacing
from ..runtime.untrusted import UnreadableError, allow, reading
from ..statistics import Array
from .table import Table, numeric

LOCK = Lock()  # for Pillow's limit, which is global
FORMATS = ("PNG", "PPM", "JPEG", "TIFF", "BMP")  # Pillow looks at the contents, and starts Ghostscript for EPS
LEAST_PAGE = 18  # bytes of a directory with one entry
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the first bytes; the last two are BigTIFF
PLAIN = (1, 8, 32773, 32946)  # compressions of TIFF that tifffile decodes alone: none, deflate and PackBits
OVERHEAD = 2**12  # bytes by which compressed values may exceed twice their size
WHITE_IS_ZERO, BLACK_IS_ZERO, RGB = 0, 1, 2  # what the values of a TIFF mean
ALPHA = (1, 2)  # kinds of additional channels of a TIFF
GREY = ("1", "L", "LA")  # Pillow's modes
DEEP = ("I;16", "I;16B", "I;16L", "I", "F")  # more than 8 bits
LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in a grey value, as in Pillow
FLIPS = ((0,), (), (1,), (0, 1))  # axes to reverse for an EXIF orientation modulo 4; from 5 on they are swapped first


def read_images(paths: Sequence[Path], inner: str = "", *, colour: bool = False) -> Table:
    """Read images of equal size, in the given order, in grey or with red, green and blue as the last axis.

    Values of 8 and 16 bits are divided by the largest possible one; all others (floats, 32 bits, signed) are kept.
    """
    pages = {path: _pages(path) for path in paths}
    names = [name for path in paths for name in _names(path, len(pages[path]))]
    lost: dict[str, None] = {}  # an ordered set
    X = np.empty((0, 0))
    shape: tuple[int, ...] = ()
    unit = True
    read = ((path, values) for path in paths for values in _read(path, pages[path], colour, lost))
    for i, (path, values) in enumerate(read):
        values, in_unit = _in_unit(numeric(values, str(path)))
        if values.ndim == 3 and not colour:
            values = values @ LUMA
        elif values.ndim == 2 and colour:
            values = np.repeat(values[:, :, None], 3, axis=2)
        if not i:
            allow(path, 8 * len(names) * values.size, *paths)
            shape, unit, X = values.shape, in_unit, np.empty((len(names), values.size))
        if values.shape != shape:
            raise UnreadableError(
                f"{path.with_name(names[i])} has {_size(values.shape)} pixels but {names[0]} has {_size(shape)}: "
                "all images must have the same size"
            )
        if in_unit != unit:
            raise UnreadableError(
                f"{path.with_name(names[i])} and {names[0]} have different kinds of values: one has 8 or 16 bits, "
                "scaled to [0, 1], and the other its own scale; convert all images to one kind"
            )
        X[i] = values.ravel()
    source = str(paths[0] if len(paths) == 1 else paths[0].parent)
    if lost:
        warnings.warn(f"{source}: {'; '.join(lost)}", UserWarning, stacklevel=3)
    kind = f"{'colour ' if colour else ''}images of {_size(shape)} pixels"
    return Table(X, kind, source, tuple(names), part_shape=shape)


def write_images(paths: Sequence[Path], parts: Array, shape: tuple[int, ...]) -> None:
    """Write one image per part: PNG scaled to 0–255 by the maximum of the part, TIFF with its values as float32."""
    import tifffile
    from PIL import Image

    for path, part in zip(paths, parts.reshape(-1, *shape), strict=True):
        with replacing(path) as fresh:
            if path.suffix.lower() == ".png":
                scaled = np.round(255 * (part / (part.max() or 1))).astype(np.uint8)
                Image.fromarray(scaled).save(fresh)
            else:
                kind = "rgb" if len(shape) == 3 else "minisblack"
                tifffile.imwrite(fresh, part.astype(np.float32), photometric=kind, metadata=None)


def _names(path: Path, count: int) -> list[str]:
    return [path.name] if count == 1 else [f"{path.name}[{k}]" for k in range(count)]


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} × {shape[0]}"


def _in_unit(values: Array) -> tuple[Array, bool]:
    """Values as floats, and whether they were scaled to [0, 1]."""
    scaled = values.dtype.kind == "u" and values.itemsize <= 2
    return values / np.iinfo(values.dtype).max if scaled else values.astype(float), scaled


def _pages(path: Path) -> Sequence[int]:
    """The numbers of the pages to read: all of a TIFF but previews of others, and one for other formats."""
    import tifffile

    with reading(path):
        if not _is_tiff(path):
            return (0,)
        with tifffile.TiffFile(path) as tiff:
            if len(tiff.pages) > path.stat().st_size // LEAST_PAGE:
                raise UnreadableError(f"{path} cannot be read: it is damaged, with more pages than it has room for")
            found = [k for k, page in enumerate(tiff.pages) if not page.is_reduced]
            about = [tiff.imagej_metadata or {}, *(tiff.shaped_metadata or ())]
            stacked = any(one.get("images", 1) > len(tiff.pages) or one.get("truncated") for one in about)
            if stacked or any(tiff.pages[k].imagedepth > 1 for k in found):
                raise UnreadableError(f"{path} has several images in one page: save it with a page for each image")
            return found


def _is_tiff(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in TIFF


def _read(path: Path, pages: Sequence[int], colour: bool, lost: dict[str, None]) -> Iterator[Array]:
    """The pages of a file as grey values (height, width) or colours (height, width, 3), at their own depth.

    Pillow would reduce colours of 16 bits to 8 and does not know many depths, so tifffile reads all TIFF of more than 8
    bits whose compression it knows.
    """
    import tifffile
    from PIL import Image

    with reading(path):
        if _is_tiff(path):
            with tifffile.TiffFile(path) as tiff:
                found = [tiff.pages[k] for k in pages]  # never tiff.series, which opens other files
                several = [_has_alpha(page, path) or page.photometric == RGB for page in found]
                deep = any(page.bitspersample > 8 for page in found)
                if deep and all(page.compression in PLAIN for page in found):
                    yield from (_from_tiff(page, path, lost, colour) for page in found)
                    return
                if deep and any(several):
                    raise UnreadableError(
                        f"{path} has channels of more than 8 bits in an unsupported compression: save it uncompressed"
                    )
        with _any_size():
            opened = Image.open(path, formats=FORMATS)
        with opened as image:
            image.filename = ""  # no memory map, which Pillow lays out wrongly for a TIFF with an orientation
            for k in pages:
                with _any_size():
                    image.seek(k)
                yield _from_pillow(image, path, lost, colour)


@contextmanager
def _any_size() -> Iterator[None]:
    """Lift Pillow's own limit on pixels: `allow` decides, before they are read."""
    from PIL import Image

    with LOCK:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def _has_alpha(page: Any, path: Path) -> bool:
    """Whether a page of a TIFF has an alpha channel; channels that are neither grey, RGB nor alpha are refused."""
    channels, in_colour = page.samplesperpixel, page.photometric == RGB
    alpha = channels == 4 if in_colour else channels == 2 and page.extrasamples[0] in ALPHA
    if page.photometric in (WHITE_IS_ZERO, BLACK_IS_ZERO, RGB) and channels - alpha != (3 if in_colour else 1):
        raise UnreadableError(f"{path} has {channels} channels: save them as pages, or give grey or RGB images")
    return bool(alpha)


def _from_tiff(page: Any, path: Path, lost: dict[str, None], colour: bool) -> Array:
    """A page that tifffile reads."""
    allow(path, page.nbytes + 16 * page.size)
    segment = max(page.nbytes, math.prod(page.chunks) * page.dtype.itemsize)  # a tile may be larger than the page
    if max(page.databytecounts, default=0) > 2 * segment + OVERHEAD:
        raise ValueError("it is damaged: a page has more compressed bytes than values")
    alpha, in_colour = _has_alpha(page, path), page.photometric == RGB
    if page.photometric > RGB:
        raise UnreadableError(f"{path} has pages of kind {page.photometric.name}: give grey or RGB images")
    values = page.asarray()
    if page.axes == "SYX":
        values = np.moveaxis(values, 0, -1)
    if alpha:
        values = values[:, :, :3] if in_colour else values[:, :, 0]
    if page.photometric == WHITE_IS_ZERO and values.dtype.kind == "u":
        values = np.iinfo(values.dtype).max - values
    _note(lost, alpha, in_colour and not colour)
    orientation = page.tags.valueof(274, default=1)
    return np.flip(values.swapaxes(0, 1) if orientation > 4 else values, FLIPS[orientation % 4])


def _from_pillow(image: Any, path: Path, lost: dict[str, None], colour: bool) -> Array:
    """The current page of an image that Pillow reads."""
    from PIL import ImageOps

    allow(path, (40 if colour else 16) * image.width * image.height)  # the image, its values, and these as floats
    in_colour = image.mode not in (*GREY, *DEEP)
    _note(lost, image.has_transparency_data, in_colour and not colour, ";16" in str(image.tile) and in_colour)
    with _any_size():
        image.load()  # turns a TIFF already
    ImageOps.exif_transpose(image, in_place=True)
    image.info.pop("transparency", None)  # Pillow warns that it is lost
    if image.mode in DEEP:
        values = np.asarray(image)
        return values.astype(np.uint16) if image.mode == "I" and image.format != "TIFF" else values  # 16-bit PNG, PGM
    return np.asarray(image.convert("RGB" if in_colour and colour else "L"))


def _note(lost: dict[str, None], alpha: bool, to_grey: bool, to_8_bits: bool = False) -> None:
    """Note what is lost of an image."""
    if to_grey:
        lost["colours are converted to grey (colour=True keeps them)"] = None
    if alpha:
        lost["transparency is ignored"] = None
    if to_8_bits:
        lost["colours of 16 bits are read at 8 bits (TIFF keeps them)"] = None
