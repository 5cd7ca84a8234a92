"""Sound: a magnitude spectrogram; each time frame is a sample, each frequency a feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..engine.origins import Origin, Sound
from ..engine.validation import as_count
from ..runtime.untrusted import allow, reading
from ..statistics import Array
from .table import Table, extra

SOUNDS = (".wav", ".flac", ".ogg")
WINDOW, HOP = 1024, 256
SPECTRUM = 3 * WINDOW // 2 // HOP  # floats per sample of sound: a complex spectrum, and its magnitude


def read_sound(path: Path, inner: str = "", *, window: int = WINDOW, hop: int = HOP, rate: int | None = None) -> Table:
    """Compute the spectrogram of a file; a ``rate`` other than that of the file is refused."""
    sound, found = load_sound(path)
    if rate not in (None, found):
        raise ValueError(f"it has {found} samples per second, not {rate}: resample it (scipy.signal.resample_poly)")
    return spectrogram_of(sound, found, window, hop, str(path))


def load_sound(path: Path) -> tuple[Array, int]:
    """Samples (× channels, if there are several) from -1 to 1, and the rate."""
    soundfile = extra("soundfile", "sound", "a sound file")
    with reading(path):
        about = soundfile.info(path)
        allow(path, 8 * about.frames * (about.channels + SPECTRUM))
        sound, rate = soundfile.read(path)
    return sound, int(rate)


def write_sound(path: Path, sound: Array, rate: int) -> None:
    """Write a .wav file of 32-bit floats; equal sounds give equal bytes, as libsndfile's files do not."""
    from scipy.io import wavfile

    wavfile.write(path, rate, sound.astype(np.float32))


def spectrogram_of(sound: Array, rate: int, window: int, hop: int, source: str) -> Table:
    """Compute |STFT| with a Hann window of ``window`` samples, centred at 0, ``hop``, …; channels are averaged."""
    count = len(sound)
    origin = Sound(as_count(rate, "rate"), as_count(window, "window"), as_count(hop, "hop"))
    if not 2 <= origin.window <= count:
        raise ValueError(f"window={window} is outside 2 to {count}, the number of samples")
    if origin.hop > count:
        raise ValueError(f"hop={hop} is larger than {count}, the number of samples")
    if not np.isfinite(sound).all():
        raise ValueError("the sound contains NaN or infinity")
    frames = count // origin.hop + 1
    mono = sound.reshape(count, -1).mean(axis=1)
    X = np.ascontiguousarray(np.abs(transform_of(origin).stft(mono, p0=0, p1=frames)).T)
    kind = f"spectrogram at {rate} Hz, window {window}, hop {hop}"
    names = tuple(f"{t:.4f} s" for t in origin.times(frames).tolist())
    return Table(X, kind, source, names, origin.feature_names, origin=origin)


def transform_of(origin: Sound) -> Any:
    """The short-time Fourier transform of a spectrogram."""
    from scipy.signal import ShortTimeFFT
    from scipy.signal.windows import hann

    return ShortTimeFFT(hann(origin.window, sym=False), origin.hop, origin.rate)


def check_separable(origin: Origin | None, source: object) -> Sound:
    """Return the origin of a spectrogram if that can be turned back into sound; raise an error otherwise."""
    if not isinstance(origin, Sound):
        raise ValueError(f"{source} is not sound: give a file of type {' '.join(SOUNDS)}")
    if 2 * origin.hop > origin.window:
        raise ValueError(f"hop={origin.hop} is too large to separate sound: give at most half of the window")
    return origin


def masked(sound: Array, origin: Sound, activations: Array, spectra: Array) -> Array:
    """Separate a sound into components (components × samples, × channels if there are several) that add up to it.

    Each component gets its share of the model activations · spectra at every frame and frequency. Where the model is
    zero, it gets its share of the frame.
    """
    stft, count = transform_of(origin), len(sound)
    channels = stft.stft(sound.reshape(count, -1).T)
    # frames centred before the start or after the end complete the transform: they take the shares of their neighbour
    rows = np.arange(stft.p_min, stft.p_max(count)).clip(0, len(activations) - 1)
    loudness = (activations * spectra.sum(axis=1))[rows]
    loudness[~loudness.any(axis=1)] = 1  # silence: equal shares
    total = sum(np.outer(spectrum, gain[rows]) for spectrum, gain in zip(spectra, activations.T, strict=True))
    sounds = np.empty((len(spectra), count, len(channels)))
    for j, spectrum in enumerate(spectra):
        share = np.tile(loudness[:, j] / loudness.sum(axis=1), (len(spectrum), 1))
        np.divide(np.outer(spectrum, activations[rows, j]), total, where=total > 0, out=share)
        for k, channel in enumerate(channels):
            sounds[j, :, k] = stft.istft(channel * share, k1=count)
    return sounds.reshape(-1, *sound.shape)
