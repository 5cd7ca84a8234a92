"""Sound: a magnitude spectrogram, a frame a sample and a frequency a feature."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .table import Table, extra

WINDOW, HOP = 1024, 256


def read_sound(path: Path, inner: str = "", *, window: int = WINDOW, hop: int = HOP) -> Table:
    """|STFT| with a Hann window of so many samples, every ``hop`` samples; channels are averaged."""
    from scipy.signal import ShortTimeFFT
    from scipy.signal.windows import hann

    soundfile = extra("soundfile", "sound", "a sound file")
    try:
        sound, rate = soundfile.read(path, always_2d=True)
    except (soundfile.LibsndfileError, OSError, ValueError) as error:
        raise ValueError(f"{path} is not a sound file that can be read: {error}") from error
    for name, value in (("window", window), ("hop", hop)):
        if value < 1 or value > len(sound):
            raise ValueError(f"{name}={value}: {path} has {len(sound)} samples; give 1 to as many")
    stft = ShortTimeFFT(hann(window, sym=False), hop, rate)
    if len(sound) < stft.m_num_mid + 1:
        raise ValueError(f"window={window}: {path} has only {len(sound)} samples")
    X = np.ascontiguousarray(np.abs(stft.stft(sound.mean(axis=1))).T)
    times = stft.t(len(sound))
    kind = f"spectrogram at {rate} Hz, window {window}, hop {hop}"
    return Table(X, kind, str(path), tuple(f"{t:.4f} s" for t in times), tuple(f"{f:.1f} Hz" for f in stft.f.tolist()))
