"""Separation of recordings into components that add up to them (``pip install 'partwise[sound]'``)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partwise.engine.origins import Sound
from partwise.estimators import SparseNMF
from partwise.io import Table, check_target, read
from partwise.io.formats import files_of
from partwise.io.sound import HOP, WINDOW, check_separable, load_sound, masked, spectrogram_of, write_sound
from partwise.io.table import part_names
from partwise.runtime.files import replacing
from partwise.statistics import Array

__all__ = ["Separation", "separate", "separate_with", "spectrogram"]


@dataclass(frozen=True)
class Separation:
    """A recording, separated into components.

    Attributes
    ----------
    sounds : array of shape (components, samples) or (components, samples, channels)
        Their sum is the recording.
    rate : int
        Samples per second.
    model : estimator
        The model of the spectrogram: spectra in ``components_``.
    """

    sounds: Array
    rate: int
    model: Any

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write part_0.wav, part_1.wav, … and model.pw to a folder, and return their paths.

        The .wav files hold 32-bit floats, so that their sum is the recording to within 1e-6 of its largest sample.
        Existing files are overwritten only with ``force=True``.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        *paths, model = separated_files(folder, len(self.sounds))
        for path in (*paths, model):
            if check_target(path).exists() and not force:
                raise FileExistsError(f"{path} exists: choose another folder, or overwrite it with force=True")
        self.model.save(model)
        for path, sound in zip(paths, self.sounds, strict=True):
            with replacing(path) as fresh:
                write_sound(fresh, sound, self.rate)
        return [*paths, model]


def separate(
    sound: Any,
    n_components: int,
    *,
    sparsity: Any,
    rate: int | None = None,
    window: int = WINDOW,
    hop: int = HOP,
    **options: Any,
) -> Separation:
    """Separate a recording into components that add up to it, each with a spectrum of the sparsity you specify.

    The model is fitted to the magnitude spectrogram. Each component then gets its share of the complex spectrogram, in
    every frame and at every frequency, in proportion to its share of the model. Where the model is zero, it gets its
    share of the frame. The channels of a stereo recording are averaged for the fit, and separated with the same shares.

    Parameters
    ----------
    sound : path or array of shape (samples,) or (samples, channels)
        A .wav, .flac or .ogg file, or samples. Integers are scaled to the range from -1 to 1.
    n_components : int
    sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity of each spectrum; see `partwise.SparseNMF`.
    rate : int, optional
        Samples per second; needed for arrays. A file with another rate is refused.
    window, hop : int
        Samples per frame, and between frames; at most ``window / 2`` between frames.
    **options
        Other parameters of `partwise.SparseNMF`.

    Returns
    -------
    Separation

    Examples
    --------
    >>> time = np.arange(4000) / 8000
    >>> low, high = np.sin(2 * np.pi * 250 * time), np.sin(2 * np.pi * 2000 * time)
    >>> sound = np.concatenate([low, high, low + high])
    >>> parts = separate(sound, 2, sparsity=0.3, rate=8000, window=64, hop=16, random_state=0)
    >>> parts.sounds.shape, bool(np.allclose(parts.sounds.sum(axis=0), sound))
    ((2, 12000), True)
    """
    model = SparseNMF(n_components, sparsity=sparsity, **options)
    table = spectrogram(sound, rate=rate, window=window, hop=hop)
    check_separable(table.origin, table.source)
    activations = model.fit_transform(table.X)
    model.keep(activations, table.sample_names, origin=table.origin)
    return separate_with(model, sound, rate=rate, activations=activations)


def separate_with(model: Any, sound: Any, *, rate: int | None = None, activations: Any = None) -> Separation:
    """Separate a recording with the spectra of a fitted model, such as one of another recording.

    Parameters
    ----------
    model : estimator
        From `separate`, or fitted to a spectrogram and given its origin: ``model.keep(origin=table.origin)``.
    sound, rate
        As in `separate`. The recording must have the rate of the model.
    activations : array of shape (frames, n_components), optional
        By default ``model.transform`` of the spectrogram.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=4000)
    >>> model = separate(noise, 2, sparsity=0.1, rate=8000, window=64, hop=16, random_state=0).model
    >>> separate_with(model, noise[:2000], rate=8000).sounds.shape
    (2, 2000)
    """
    origin = getattr(model, "origin_", None)
    if not isinstance(origin, Sound):
        raise ValueError("the model does not know how its spectrogram was made: call model.keep(origin=table.origin)")
    check_separable(origin, "the model")
    if isinstance(sound, str | os.PathLike):
        samples, rate = load_sound(files_of(sound)[0])
    else:
        samples = as_samples(sound)
    if rate != origin.rate:
        raise ValueError(f"the sound has rate={rate}, but the model has {origin.rate}: resample the sound")
    if activations is None:
        activations = model.transform(spectrogram(samples, **vars(origin)).X)
    frames = len(samples) // origin.hop + 1
    if np.shape(activations) != (frames, model.n_components_):
        raise ValueError(
            f"activations have shape {np.shape(activations)}: give {frames} frames × {model.n_components_} components"
        )
    spectra = model.inverse_transform(np.eye(model.n_components_))
    return Separation(masked(samples, origin, np.asarray(activations), spectra), origin.rate, model)


def spectrogram(sound: Any, *, rate: int | None = None, window: int = WINDOW, hop: int = HOP) -> Table:
    """Magnitude spectrogram of a recording, averaged over channels, as `partwise.io.read` returns it.

    Frames are centred at 0, ``hop``, 2 ``hop``, … samples, with zeros before and after the recording, as in librosa:
    ``table.X`` is ``np.abs(librosa.stft(y, n_fft=window, hop_length=hop)).T``. Parameters are those of `separate`.

    Examples
    --------
    >>> table = spectrogram(np.sin(np.arange(4000)), rate=8000)
    >>> table.X.shape, table.sample_names[:2], table.feature_names[:2]
    ((16, 513), ('0.0000 s', '0.0320 s'), ('0.0 Hz', '7.8 Hz'))
    """
    if isinstance(sound, str | os.PathLike):
        return read(sound, rate=rate, window=window, hop=hop)
    if rate is None:
        raise ValueError("rate is missing: give the samples per second of an array")
    return spectrogram_of(as_samples(sound), rate, window, hop, "the sound")


def as_samples(sound: Any) -> Array:
    """An array of samples as floats, validated."""
    samples = np.asarray(sound)
    if samples.dtype.kind == "i":
        samples = samples / -float(np.iinfo(samples.dtype).min)
    if samples.dtype.kind != "f" or samples.ndim not in (1, 2) or not samples.size:
        raise ValueError(
            f"the sound has shape {samples.shape} and dtype {samples.dtype}: give floats or signed integers, as an "
            "array of samples, or of samples × channels"
        )
    return samples.astype(float)


def separated_files(folder: str | os.PathLike[str], count: int) -> list[Path]:
    """The files of a separation into ``count`` components: their sounds, and the model."""
    return [*(Path(folder, f"{name}.wav") for name in part_names(count)), Path(folder, "model.pw")]
