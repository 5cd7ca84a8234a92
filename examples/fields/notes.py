"""
Sound separated into notes
==========================

Three notes sound alone, in pairs, and all together. :func:`partwise.sound.separate` factorizes the magnitude
spectrogram into spectra of the given sparsity, and gives each its share of the recording. The sum of the separated
sounds is the recording. ``save`` writes them as part_0.wav, part_1.wav and part_2.wav.
"""

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

rate = 8000
time = np.arange(rate // 2) / rate


def note(pitch):
    overtones = sum(np.sin(2 * np.pi * pitch * k * time) / k for k in range(1, 6))
    return 0.1 * overtones * np.exp(-4 * time)


c, e, g = note(261.6), note(329.6), note(392.0)
tune = np.concatenate([c, e, g, c + e, e + g, c + e + g])
notes = pw.sound.separate(tune, 3, sparsity=0.9, rate=rate, random_state=0)
print(f"largest difference between the recording and the sum: {abs(notes.sounds.sum(axis=0) - tune).max():.0e}")
print("written:", *notes.save("notes", force=True))

# %%
# The recording and its notes. Each sounds when it should, also within the chords.

peaks = notes.model.origin_.frequencies[notes.model.components_.argmax(axis=1)]
seconds = np.arange(len(tune)) / rate
figure = plt.figure(figsize=(10, 4.6), layout="constrained")
axes = figure.subplots(4, 1, sharex=True, sharey=True)
axes[0].plot(seconds, tune, color="0.3", linewidth=0.4)
axes[0].set_title("recording", fontsize=10, loc="left")
for axis, j in zip(axes[1:], np.argsort(peaks), strict=True):
    axis.plot(seconds, notes.sounds[j], color="#0072b2", linewidth=0.4)
    axis.set_title(f"note with its peak at {peaks[j]:.0f} Hz", fontsize=10, loc="left")
axes[-1].set_xlabel("time (s)")
for axis in axes:
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
