"""cNMF's files: their names, and data frames in them, read without running any code that a file may hold."""

from __future__ import annotations

import csv
import io
import os
import pickle
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.io import read
from partwise.runtime.files import replacing
from partwise.runtime.untrusted import UnreadableError, allow, reading
from partwise.statistics import Array

if TYPE_CHECKING:
    import pandas as pd

FILES = {  # name: (folder, ending); %d is the rank, %s the threshold
    "normalized_counts": ("cnmf_tmp", "norm_counts.h5ad"),
    "nmf_replicate_parameters": ("cnmf_tmp", "nmf_params.df.npz"),
    "nmf_run_parameters": ("cnmf_tmp", "nmf_idvrun_params.yaml"),
    "nmf_genes_list": ("", "overdispersed_genes.txt"),
    "tpm": ("cnmf_tmp", "tpm.h5ad"),
    "tpm_stats": ("cnmf_tmp", "tpm_stats.df.npz"),
    "iter_spectra": ("cnmf_tmp", "spectra.k_%d.iter_%d.df.npz"),
    "merged_spectra": ("cnmf_tmp", "spectra.k_%d.merged.df.npz"),
    "local_density_cache": ("cnmf_tmp", "local_density_cache.k_%d.merged.df.npz"),
    "consensus_spectra": ("cnmf_tmp", "spectra.k_%d.dt_%s.consensus.df.npz"),
    "consensus_spectra__txt": ("", "spectra.k_%d.dt_%s.consensus.txt"),
    "consensus_usages": ("cnmf_tmp", "usages.k_%d.dt_%s.consensus.df.npz"),
    "consensus_usages__txt": ("", "usages.k_%d.dt_%s.consensus.txt"),
    "gene_spectra_score": ("cnmf_tmp", "gene_spectra_score.k_%d.dt_%s.df.npz"),
    "gene_spectra_score__txt": ("", "gene_spectra_score.k_%d.dt_%s.txt"),
    "gene_spectra_tpm": ("cnmf_tmp", "gene_spectra_tpm.k_%d.dt_%s.df.npz"),
    "gene_spectra_tpm__txt": ("", "gene_spectra_tpm.k_%d.dt_%s.txt"),
    "starcat_spectra": ("cnmf_tmp", "starcat_spectra.k_%d.dt_%s.df.npz"),
    "starcat_spectra__txt": ("", "starcat_spectra.k_%d.dt_%s.txt"),
    "clustering_plot": ("", "clustering.k_%d.dt_%s.png"),
    "k_selection_plot": ("", "k_selection.png"),
    "k_selection_stats": ("", "k_selection_stats.df.npz"),
}
MEMBERS = ("data", "index", "columns")
HARMLESS = {  # all that a pickled array of names needs
    *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
    *((f"numpy.{core}.multiarray", "scalar") for core in ("core", "_core")),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class NamesOnly(pickle.Unpickler):
    """Reads pickled arrays of strings and numbers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Only what arrays consist of."""
        if (module, name) not in HARMLESS:
            raise ValueError(f"it holds a {module}.{name}, which is not read")
        return super().find_class(module, name)


@dataclass(frozen=True)
class Frame:
    """What a data frame holds. pandas itself takes 40 MB, and is imported only where a user gets its objects."""

    data: Array
    index: Array
    columns: Array

    def __post_init__(self) -> None:
        if self.data.shape != (len(self.index), len(self.columns)):
            raise ValueError(f"it has {len(self.index)} × {len(self.columns)} names for shape {self.data.shape}")

    def pandas(self) -> pd.DataFrame:
        """The data frame."""
        from pandas import DataFrame

        return DataFrame(self.data, self.index, self.columns)


def write_frame(frame: Frame, path: str | os.PathLike[str]) -> None:
    """Write a data frame as cNMF does, except that names are not pickled and nothing is compressed.

    Spectra hardly shrink by it, and compressing them would take longer than reading and writing.
    """
    with replacing(path) as fresh, open(fresh, "xb") as file:
        np.savez(file, data=frame.data, index=plain(frame.index), columns=plain(frame.columns))


def plain(names: Array) -> Array:
    """Names as an array that needs no pickle."""
    return names.astype(str) if names.dtype.kind == "O" else names


def read_frame(path: str | os.PathLike[str]) -> Frame:
    """Read a data frame that cNMF or `write_frame` wrote."""
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"there is no file {name!r}: has the step before been run?")
    with reading(name), zipfile.ZipFile(name) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if set(sizes) != {f"{member}.npy" for member in MEMBERS}:
            raise UnreadableError(f"{name} is not a data frame of cNMF: it has {', '.join(sizes)}")
        allow(name, 2 * sum(sizes.values()))
        return Frame(*(read_member(archive.read(f"{member}.npy")) for member in MEMBERS))


def read_member(content: bytes) -> Array:
    """An array in .npy format, whose objects may be strings and numbers."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.kind != "O":
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    found = np.asarray(NamesOnly(file).load())
    if found.shape != shape:
        raise ValueError(f"an array has shape {found.shape} instead of {shape}")
    return found


def threshold_text(value: float) -> str:
    """A threshold as file names have it: 0_5 for 0.5."""
    return str(value).replace(".", "_")


def write_text(frame: Frame, path: str) -> None:
    """Write a table as tab-separated text."""
    with replacing(path) as fresh, open(fresh, "x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator=os.linesep)
        writer.writerow(["", *frame.columns])
        writer.writerows([name, *map(str, row)] for name, row in zip(frame.index, frame.data, strict=True))


def read_text(path: str) -> pd.DataFrame:
    """Read a table of `write_text`."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {path!r}: run consensus with this K and density_threshold first")
    from pandas import read_csv

    return read_csv(path, sep="\t", index_col=0)


def counts_of(source: Any) -> tuple[Any, Any, Any]:
    """The matrix, the names of the cells and the names of the genes, of a file or an AnnData."""
    if hasattr(source, "obs_names"):
        return source.X, np.asarray(source.obs_names), np.asarray(source.var_names)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"counts are of type {type(source).__name__}: give the path of a file, or an AnnData")
    name = os.fspath(source)
    if name.endswith(".npz"):
        frame = read_frame(source)
        return frame.data, frame.index, frame.columns
    table = read(source, whole=True if ".h5ad" in name.lower() else None)
    return table.X, np.array(table.samples, dtype=object), np.array(table.features, dtype=object)
