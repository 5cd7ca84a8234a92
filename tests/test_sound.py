"""Recordings: their spectrograms, and their components, which add up to them."""

import json
import re
import sys

import numpy as np
import pytest
import soundfile
from partwise.sound import separate, separate_with, spectrogram

import partwise as pw
from partwise.cli import main
from partwise.engine.origins import Sound
from partwise.io.sound import masked
from partwise.plotting import activations, gallery

RATE = 8000
SMALL = {"sparsity": 0.2, "rate": RATE, "window": 64, "hop": 16, "max_iter": 5, "tol": 0, "random_state": 0}
FLAGS = ["-r", "2", "-s", "0.2", "--window", "64", "--hop", "16", "--max-iter", "5", "--tol", "0", "--seed", "0"]

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def noise(rng):
    return rng.uniform(-0.5, 0.5, 2001)


def notes():
    """Three notes, alone and together: notes × samples."""
    time = np.arange(RATE // 2) / RATE
    pitches = np.array([261.6, 329.6, 392.0])
    tones = [sum(np.sin(2 * np.pi * p * k * time) / k for k in range(1, 6)) * np.exp(-4 * time) / 10 for p in pitches]
    score = np.array([[1, 0, 0, 1, 0, 1], [0, 1, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1]])
    return np.array([np.kron(row, tone) for row, tone in zip(score, tones, strict=True)])


def test_three_notes_come_back():
    truth = notes()
    found = separate(truth.sum(axis=0), 3, sparsity=0.8, rate=RATE, random_state=0)
    np.testing.assert_allclose(found.sounds.sum(axis=0), truth.sum(axis=0), atol=1e-14)
    match = np.corrcoef(truth, found.sounds)[:3, 3:]
    assert sorted(match.argmax(axis=1)) == [0, 1, 2]
    assert match.max(axis=1).min() > 0.98
    np.testing.assert_allclose(found.model.sparsity_, 0.8, atol=1e-9)


@pytest.mark.parametrize(("window", "hop"), [(64, 32), (64, 16), (63, 20), (65, 32), (8, 4), (501, 83)])
@pytest.mark.parametrize("channels", [(), (1,), (2,)])
def test_components_add_up_to_the_sound(rng, window, hop, channels):
    sound, origin = rng.normal(size=(501, *channels)), Sound(RATE, window, hop)
    gains, spectra = rng.random((501 // hop + 1, 3)), rng.random((3, origin.size))
    gains[rng.random(gains.shape) < 0.4] = spectra[rng.random(spectra.shape) < 0.4] = 0
    gains[3], gains[5], spectra[:, 1] = 0, [1e-320, 1e-323, 0], 0
    for case in ((gains, spectra), (0 * gains, spectra), (gains, 0 * spectra), (gains, spectra * [[0], [1], [0]])):
        sounds = masked(sound, origin, *case)
        assert sounds.shape == (3, *sound.shape)
        np.testing.assert_allclose(sounds.sum(axis=0), sound, atol=1e-12)


def test_unmodelled_frequencies_follow_their_frame(rng):
    sound, origin = rng.normal(size=2000), Sound(RATE, 64, 16)
    spectra, gains = np.zeros((2, 33)), np.zeros((126, 2))
    spectra[:, 5], gains[:, 0] = 1, 1
    np.testing.assert_allclose(masked(sound, origin, gains, spectra), [sound, 0 * sound], atol=1e-12)


def test_stereo_is_kept(noise):
    stereo = np.column_stack([noise, 0.3 * noise[::-1]])
    found = separate(stereo, 2, **SMALL)
    assert found.sounds.shape == (2, 2001, 2)
    np.testing.assert_allclose(found.sounds.sum(axis=0), stereo, atol=1e-14)
    alone = separate(stereo.mean(axis=1), 2, **SMALL)  # the shares are those of the average
    np.testing.assert_array_equal(found.model.activations_, alone.model.activations_)
    np.testing.assert_allclose(found.sounds.mean(axis=2), alone.sounds, atol=1e-14)


def test_a_model_with_a_factor_between_spectra_and_activations(noise):
    found = separate(noise, 2, **SMALL, activation_sparsity=0.2)
    np.testing.assert_allclose(found.sounds.sum(axis=0), noise, atol=1e-14)
    assert hasattr(found.model, "scaling_")


def test_silence():
    found = separate(np.zeros(500), 2, **SMALL)
    np.testing.assert_array_equal(found.sounds, np.zeros((2, 500)))


def test_integers_are_scaled(noise):
    whole = (noise * 2**15).astype(np.int16)
    np.testing.assert_array_equal(separate(whole, 2, **SMALL).sounds, separate(whole / 2**15, 2, **SMALL).sounds)


def test_another_recording_with_the_same_spectra(noise, tmp_path):
    found = separate(noise, 2, **SMALL)
    again = separate_with(found.model, noise, rate=RATE)
    np.testing.assert_allclose(again.sounds, found.sounds, atol=1e-6)
    soundfile.write(tmp_path / "x.wav", noise[:1000], RATE, subtype="DOUBLE")
    assert separate_with(found.model, tmp_path / "x.wav").sounds.shape == (2, 1000)
    with pytest.raises(ValueError, match="rate=44100, but the model has 8000: resample"):
        separate_with(found.model, noise, rate=44100)
    with pytest.raises(ValueError, match="give 126 frames × 2 components"):
        separate_with(found.model, noise, rate=RATE, activations=np.ones((100, 2)))
    (tmp_path / "y.wav").write_text("not sound")
    with pytest.raises(pw.UnreadableError, match=r"y\.wav cannot be read"):
        separate_with(found.model, tmp_path / "y.wav")
    with pytest.raises(ValueError, match="hop=40 is too large"):
        separate_with(found.model.keep(origin=Sound(RATE, 64, 40)), noise, rate=RATE)
    with pytest.raises(ValueError, match=r"model\.keep\(origin=table\.origin\)"):
        separate_with(pw.SparseNMF(2, max_iter=1, tol=0).fit(np.eye(33)), noise, rate=RATE)


@pytest.mark.parametrize(
    ("subtype", "channels"), [("PCM_16", 1), ("PCM_24", 1), ("PCM_24", 2), ("PCM_U8", 1), ("FLOAT", 2)]
)
def test_files(here, noise, subtype, channels, capsys):
    soundfile.write("x.wav", np.column_stack([noise, noise[::-1]][:channels]), 22050, subtype=subtype)
    sound, _ = soundfile.read("x.wav")
    assert main(["separate", "x.wav", *FLAGS, "--out-dir", "new/parts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"]["part_1"] == "new/parts/part_1.wav"
    parts = [soundfile.read(f"new/parts/part_{j}.wav") for j in range(2)]
    assert [rate for _, rate in parts] == [22050, 22050]
    assert parts[0][0].shape == sound.shape
    np.testing.assert_allclose(parts[0][0] + parts[1][0], sound, atol=1e-6 * np.abs(sound).max())
    found = separate("x.wav", 2, **SMALL | {"rate": None})
    np.testing.assert_allclose([part for part, _ in parts], found.sounds, atol=1e-6)
    assert [path.name for path in found.save("other")] == ["part_0.wav", "part_1.wav", "model.pw"]
    assert (here / "other/part_1.wav").read_bytes() == (here / "new/parts/part_1.wav").read_bytes()
    assert pw.load("other/model.pw").origin_ == pw.load("new/parts/model.pw").origin_ == Sound(22050, 64, 16)


def test_files_are_overwritten_only_by_force(here, noise, capsys):
    soundfile.write("x.wav", noise, RATE)
    found = separate("x.wav", 2, **SMALL)
    found.save("parts")
    before = (here / "parts/part_1.wav").read_bytes()
    command = ["separate", "x.wav", *FLAGS, "--out-dir", "parts", "-q"]
    assert main([*command, "--l2", "1"]) == 2
    assert "parts/part_0.wav exists" in capsys.readouterr().err
    with pytest.raises(FileExistsError, match="overwrite it with force=True"):
        found.save("parts")
    assert (here / "parts/part_1.wav").read_bytes() == before
    assert main([*command, "--l2", "1", "--force"]) == 0
    assert (here / "parts/part_1.wav").read_bytes() != before
    assert len(found.save("parts", force=True)) == 3
    assert (here / "parts/part_1.wav").read_bytes() == before
    soundfile.write("parts/part_1.wav", noise, RATE)
    assert main(["separate", "parts/part_1.wav", *FLAGS, "--out-dir", "parts", "--force", "-q"]) == 2
    assert "part_1.wav is an input and would be overwritten" in capsys.readouterr().err


def test_frames_are_centred_from_zero_on(rng):
    click = np.zeros(1000)
    click[640] = 1
    table = spectrogram(click, rate=RATE, window=64, hop=16)
    assert table.shape == (1000 // 16 + 1, 33)
    assert table.sample_names[:2] == ("0.0000 s", "0.0020 s")
    assert table.sample_names[table.X.sum(axis=1).argmax()] == "0.0800 s"
    sound = rng.normal(size=1000)
    padded = np.pad(sound, 32)  # as librosa.stft(pad_mode="constant") defines it
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(64) / 64)
    frames = [np.abs(np.fft.rfft(window * padded[k : k + 64])) for k in range(0, 1001, 16)]
    np.testing.assert_allclose(spectrogram(sound, rate=RATE, window=64, hop=16).X, frames, atol=1e-12)


def test_a_model_reads_more_sound_in_the_same_way(here, noise, capsys):
    soundfile.write("x.wav", noise, RATE)
    soundfile.write("fast.wav", noise, 2 * RATE)
    assert main(["fit", "x.wav", *FLAGS, "-q"]) == 0
    assert main(["transform", "x.pw", "x.wav", "--out", "when.csv", "-q"]) == 0
    model = pw.load("x.pw")
    table = pw.io.read("when.csv")
    np.testing.assert_allclose(table.X, model.activations_, atol=1e-9)
    assert table.sample_names[1] == "0.0020 s"
    again = pw.io.read("x.wav", **vars(model.origin_))
    assert again.origin == model.origin_ == Sound(RATE, 64, 16)
    np.testing.assert_allclose(model.transform(again.X), model.activations_, atol=1e-9)
    assert main(["transform", "x.pw", "x.wav", "--hop", "8", "--out", "finer.csv", "-q"]) == 0
    assert pw.io.read("finer.csv").shape == (2001 // 8 + 1, 2)
    np.save("x.npy", again.X)
    assert main(["transform", "x.pw", "x.npy", "--out", "array.csv", "-q"]) == 0
    assert main(["transform", "x.pw", "fast.wav", "--out", "fast.csv"]) == 1
    assert "fast.wav cannot be read: it has 16000 samples per second, not 8000: resample it" in capsys.readouterr().err
    assert main(["transform", "x.pw", "x.wav", "--window", "128", "--out", "wide.csv"]) == 1
    assert "x.wav has 65 features, but x.pw has 33" in capsys.readouterr().err


def test_pictures_are_over_hertz_and_seconds(here, noise):
    soundfile.write("x.wav", noise, RATE)
    assert main(["fit", "x.wav", *FLAGS, "-q", "--png", "fit.png"]) == 0
    model = pw.load("x.pw")
    for figure in (model.plot(), gallery(model)):
        (line,) = figure.axes[0].lines
        np.testing.assert_allclose(line.get_xdata(), np.arange(33) * 125)
        assert figure.axes[1].get_xlabel() == "frequency (Hz)"
    assert gallery(model, kind="bars").axes[0].get_yticklabels()[0].get_text().endswith(" Hz")
    assert gallery(model, x=np.arange(33), kind="lines").axes[0].get_xlabel() == "feature"
    axis = activations(model, labels=["hum", "hiss"]).axes[0]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("time (s)", "part")
    assert axis.get_xlim() == pytest.approx((-0.001, 0.251))  # frames at 0, 0.002, …, 0.25
    assert [label.get_text() for label in axis.get_yticklabels()] == ["hum", "hiss"]
    np.testing.assert_array_equal(axis.images[0].get_array(), model.activations_.T)
    assert activations(model, ordered=True).axes[0].get_ylabel() == "sample, by strongest part"
    assert main(["show", "x.pw", "--png", "show.png", "--html", "x.html"]) == 0
    assert (here / "show.png").read_bytes() == (here / "fit.png").read_bytes()
    page = (here / "x.html").read_text(encoding="utf-8")
    assert "Spectra from 0 to 4000 Hz" in page
    assert page.count('<svg class="line ') == 4  # the spectrum and the time course of each
    assert re.search(r"time \(s\)", page)
    assert re.search(r'data-label="Peaks, frequency \(Hz\)" data-key="\d+\.0"><div>\d+', page)


@pytest.mark.parametrize(
    ("sound", "changed", "message"),
    [
        (np.zeros(500), {"rate": None}, "rate is missing"),
        (np.zeros(500), {"rate": 44.1}, "rate=44.1: give a whole number"),
        (np.zeros(50), {}, "window=64 is outside 2 to 50, the number of samples"),
        (np.zeros(500), {"window": 1}, "window=1 is outside 2 to 500"),
        (np.zeros(500), {"hop": 0}, "hop=0: give a whole number of at least 1"),
        (np.zeros(500), {"hop": 33}, "hop=33 is too large to separate sound: give at most half of the window"),
        (np.zeros(0), {}, "shape"),
        (np.zeros((2, 500)), {}, "window=64 is outside 2 to 2"),
        (np.zeros((2, 2, 500)), {}, r"shape \(2, 2, 500\)"),
        (np.zeros(500, complex), {}, "dtype complex128"),
        (["a", "b"], {}, "dtype <U1"),
        (np.full(500, np.nan), {}, "the sound contains NaN or infinity"),
        ("missing.wav", {"rate": None}, "there is no file missing.wav"),
        ("empty.wav", {"rate": None}, "empty.wav is empty"),
        ("text.wav", {"rate": None}, "text.wav cannot be read"),
        ("table.csv", {"rate": None}, "applies only to sound"),
        ("no.wav", {"rate": None}, "no.wav cannot be read: window=64 is outside 2 to 0"),
        ("ok.wav", {"rate": 44100}, "ok.wav cannot be read: it has 8000 samples per second, not 44100"),
    ],
)
def test_what_cannot_be_separated(here, sound, changed, message):
    (here / "empty.wav").touch()
    (here / "text.wav").write_text("this is not sound" * 100)
    (here / "table.csv").write_text("a,b\n1,2\n")
    soundfile.write("no.wav", np.zeros(0), RATE)
    soundfile.write("ok.wav", np.zeros(500), RATE)
    with pytest.raises((ValueError, OSError), match=message):
        separate(sound, 2, **SMALL | changed)
    if isinstance(sound, str) and sound != "ok.wav":
        assert main(["separate", sound, *FLAGS, "--out-dir", "parts", "-q"]) == 1
        assert not (here / "parts").exists()


def test_without_soundfile(here, noise, monkeypatch, capsys):
    soundfile.write("x.wav", noise, RATE)
    monkeypatch.setitem(sys.modules, "soundfile", None)
    assert main(["separate", "x.wav", *FLAGS, "--out-dir", "parts"]) == 1
    assert "a sound file needs soundfile: pip install 'partwise[sound]'" in capsys.readouterr().err
    assert separate(noise, 2, **SMALL).sounds.shape == (2, 2001)  # arrays do not need it
