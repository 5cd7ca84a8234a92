"""Sound: a magnitude spectrogram; each time frame is a sample, each frequency a feature."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..runtime.untrusted import UnreadableError, allow
from .table import Table, extra

WINDOW, HOP = 1024, 256
SPECTRUM = 3 * WINDOW // 2 // HOP  # floats per sample of sound: a complex spectrum, and its magnitude


def read_sound(path: Path, inner: str = "", *, window: int = WINDOW, hop: int = HOP) -> Table:
    """Compute |STFT| with a Hann window of ``window`` samples, every ``hop`` samples; channels are averaged."""
    from scipy.signal import ShortTimeFFT
    from scipy.signal.windows import hann

    soundfile = extra("soundfile", "sound", "a sound file")
    about = soundfile.info(path)
    allow(path, 8 * about.frames * (about.channels + SPECTRUM))
    sound, rate = soundfile.read(path, always_2d=True)
    for name, value in (("window", window), ("hop", hop)):
        if value < 1 or value > len(sound):
            raise UnreadableError(f"{name}={value} is outside 1 to {len(sound)}, the number of samples in {path}")
    stft = ShortTimeFFT(hann(window, sym=False), hop, rate)
    if len(sound) < stft.m_num_mid + 1:
        raise UnreadableError(f"window={window} is too long for the {len(sound)} samples of {path}: give a shorter one")
    X = np.ascontiguousarray(np.abs(stft.stft(sound.mean(axis=1))).T)
    times = stft.t(len(sound))
    kind = f"spectrogram at {rate} Hz, window {window}, hop {hop}"
    return Table(X, kind, str(path), tuple(f"{t:.4f} s" for t in times), tuple(f"{f:.1f} Hz" for f in stft.f.tolist()))
