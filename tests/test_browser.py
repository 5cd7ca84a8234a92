"""The report and the explorer in a real browser: headless Chromium (Debian: chromium, chromium-driver)."""

import csv
import re
import shutil

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("selenium")

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from sklearn.datasets import load_digits

from partwise.engine.origins import Brain, Sound
from partwise.pages import explore, report

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTHS = (320, 375, 700, 768, 900, 960, 1000, 1050, 1100, 1200, 1600)
R, EVIL = 12, "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="Chromium is missing: the pages are seen in no browser (Debian: chromium-driver)"
)


def drawn_parts():
    rng = np.random.default_rng(0)
    parts = rng.random((R, 64)) * (rng.random((R, 64)) < rng.random((R, 1)))
    parts[4] = 0
    return parts


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A report of components with hostile names, one of them zero."""
    rng, parts = np.random.default_rng(1), drawn_parts()
    path = tmp_path_factory.mktemp("report") / "report.html"
    names = [f"{EVIL}{i}" for i in range(64)]
    settings = {"activations": rng.random((30, R)), "feature_names": names, "data": rng.random((30, 64))}
    report(parts, path, shape=(8, 8), title=EVIL, **settings)
    return path.as_uri()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in FLAGS:
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield running
    running.quit()


@pytest.fixture
def page(driver, address):
    """The page on a large screen with default settings."""
    seen_by(driver)
    driver.get(address)
    return driver


def seen_by(driver, width=1200, scheme="light"):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}  # smooth scrolling makes clicks miss
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def test_page_loads_without_errors(page):
    assert page.get_log("browser") == []
    assert page.title == EVIL
    assert page.find_element(By.TAG_NAME, "h1").text == EVIL
    assert page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)") == []


def test_gallery_shows_every_component(page):
    cards = page.find_elements(By.CSS_SELECTOR, ".gallery .card")
    assert len(cards) == R
    page.execute_script("document.querySelectorAll('img').forEach(image => { image.loading = 'eager'; })")
    for card in cards:
        assert card.is_displayed()
        image = card.find_element(By.TAG_NAME, "img")
        assert (image.get_property("naturalWidth"), image.get_property("naturalHeight")) == (8, 8)
        assert image.size["width"] > 50
    places = page.find_elements(By.CSS_SELECTOR, "tbody .thumb img")
    assert [image.get_attribute("alt") for image in places] == [f"part {j}" for j in range(R)]
    cards[6].find_element(By.TAG_NAME, "a").click()
    assert page.current_url.endswith("#part-6")


def column(page, k):
    cells = page.find_elements(By.CSS_SELECTOR, f"tbody tr > :nth-child({k + 1})")
    return [cell.get_attribute("data-key") for cell in cells]


def test_headings_sort_in_both_directions(page):
    headings = page.find_elements(By.CSS_SELECTOR, "thead th")
    assert headings[0].get_attribute("aria-sort") == "ascending"
    for k, heading in enumerate(headings):
        before = column(page, k)
        known = [key for key in before if key not in ("nan", "")]
        numbers = "<" not in known[0] and not known[0].startswith("sample")
        wanted = sorted(known, key=float) if numbers else None
        for direction in ("descending", "ascending") if k == 0 else ("ascending", "descending"):
            heading.find_element(By.TAG_NAME, "button").click()
            assert [h.get_attribute("aria-sort") for h in headings].count(direction) == 1
            assert heading.get_attribute("aria-sort") == direction
            after = column(page, k)
            assert sorted(after) == sorted(before)
            assert after[: len(known)].count("nan") == 0  # missing values come last in both orders
            if numbers:
                assert after[: len(known)] == (wanted if direction == "ascending" else wanted[::-1])
    names = column(page, len(headings) - 1)
    assert names == sorted(names, key=lambda name: int(name.split()[1]), reverse=True)


def test_headings_sort_by_keyboard(page):
    page.execute_script("document.querySelectorAll('thead button')[1].focus()")
    page.switch_to.active_element.send_keys("\ue007")
    numbers = [float(key) for key in column(page, 1) if key != "nan"]
    assert numbers == sorted(numbers)


def test_dark_mode_is_dark(page, address):
    def colours():
        script = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
        return [sum(map(int, c[4:-1].split(","))) / 765 for c in page.execute_script(script)]

    paper, ink = colours()
    assert paper > 0.9
    assert ink < 0.2
    seen_by(page, scheme="dark")
    paper, ink = colours()
    assert paper < 0.15
    assert ink > 0.8


@pytest.mark.parametrize("width", WIDTHS)
def test_page_fits_the_screen_width(page, width):
    seen_by(page, width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.find_elements(By.CSS_SELECTOR, "thead button")[0].is_displayed()


def test_print_shows_every_part_and_bar(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not [row for row in page.find_elements(By.CSS_SELECTOR, "tbody tr") if not row.is_displayed()]
        assert not page.find_element(By.CSS_SELECTOR, "thead button").is_displayed()
        script = (
            "return [...document.querySelectorAll('progress')].map((one) => getComputedStyle(one).printColorAdjust)"
        )
        assert set(page.execute_script(script)) == {"exact"}
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_pictures_are_enlarged_and_saved(page, tmp_path):
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.find_elements(By.CSS_SELECTOR, "tbody .thumb .zoom")[3].click()
    dialog = page.find_element(By.TAG_NAME, "dialog")
    assert dialog.is_displayed()
    for button in dialog.find_elements(By.TAG_NAME, "button")[:2]:
        button.click()
    WebDriverWait(page, 10).until(lambda _: {f.suffix for f in tmp_path.iterdir()} == {".csv", ".png"})
    with (tmp_path / "part-3.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    np.testing.assert_allclose([float(weight) for _, weight in rows[1:]], drawn_parts()[3], rtol=1e-6)
    assert rows[1][0] == f"{EVIL}0"
    dialog.find_elements(By.TAG_NAME, "button")[-1].click()
    assert not dialog.is_displayed()
    assert page.get_log("browser") == []


# the explorer

LEVELS = (0.3, 0.5, 0.7)


def explorations():
    """A page for each kind of data, with its X and its fits."""
    rng = np.random.default_rng(0)
    X = load_digits().data[:120]
    spots = rng.random((20, 3)) @ rng.random((3, 120))
    brain = Brain(np.diag([-2.0, 2, 2, 1]), (4, 5, 6), None)
    names = [f"{EVIL}{i}" for i in range(120)]
    yield "images", X, {"part_shape": (8, 8), "sample_names": names, "title": EVIL, "holdout": 0.1}
    yield "volumes", spots, {"origin": brain}
    yield "lines", rng.random((30, 33)), {"origin": Sound(8000, 64, 32)}
    yield "levels", X, {"part_shape": (8, 8), "sparsities": tuple(np.linspace(0.2, 0.9, 15))}
    yield "bars", spots, {"feature_names": names, "sample_names": names[:20]}
    gaps = X.copy()
    gaps[0] = 0
    gaps[1, :24] = np.nan
    yield "gaps", gaps, {"part_shape": (8, 8), "missing": "em"}


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored")
    return {
        kind: (
            X,
            explore(X, 4, path=folder / f"{kind}.html", random_state=0, **{"sparsities": LEVELS, **options}),
            folder / f"{kind}.html",
        )
        for kind, X, options in explorations()
    }


KINDS = ("images", "volumes", "lines", "bars")


def opened(driver, explored, kind, address="", **settings):
    """Open the explorer, and wait until it has drawn."""
    seen_by(driver, **settings)
    driver.get("about:blank")  # so that the address is read anew
    driver.get(explored[kind][2].as_uri() + address)
    WebDriverWait(driver, 20).until(lambda d: d.find_elements(By.CSS_SELECTOR, "#explorer .card"))
    return explored[kind][:2]


def quiet(driver):
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)") == []


def text(driver, selector):
    return driver.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def numbers(driver, name):
    """What elements with such an attribute show: its value, and the text, both as numbers."""
    elements = f"[...document.querySelectorAll('[data-{name}]')]"
    return driver.execute_script(f"return {elements}.map(e => [e.dataset.{name}, e.textContent].map(Number))")


@pytest.mark.parametrize("kind", KINDS)
def test_explorer_loads_and_is_quiet(driver, explored, kind):
    opened(driver, explored, kind, "#s=0.7&part=1&sample=3")
    assert len(driver.find_elements(By.CSS_SELECTOR, ".card")) == 4
    assert driver.title == (EVIL if kind == "images" else "Sparsity explorer")
    assert [panel.is_displayed() for panel in driver.find_elements(By.CSS_SELECTOR, ".panel")] == [True, True]
    quiet(driver)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_on_the_page_are_those_of_the_fits(driver, explored, kind):
    _, found = opened(driver, explored, kind)
    fits = {"free": found.free} | {str(s): fit for s, fit in zip(found.sparsities, found.results, strict=True)}
    for name, fit in fits.items():
        driver.execute_script("location.hash = arguments[0]", f"s={name}&part=2&sample=3")
        WebDriverWait(driver, 10).until(
            lambda d, s=fit.sparsity[2]: float(text(d, "[data-fact=sparsity]")) == pytest.approx(s, rel=1e-3)
        )
        assert float(text(driver, "[data-curve=error]")) == pytest.approx(fit.relative_error, rel=5e-4)
        assert float(text(driver, "[data-curve=explained]")[:-2]) == pytest.approx(
            100 * (1 - fit.relative_error**2), abs=0.051
        )
        counts = np.count_nonzero(fit.components, axis=1)
        assert float(text(driver, "[data-curve=nonzeros]")) == pytest.approx(counts.mean(), rel=5e-4)
        assert text(driver, "[data-fact=nonzeros]") == f"{counts[2]} of {fit.components.shape[1]}"
        values = dict(numbers(driver, "value"))
        for j, activation in enumerate(fit.activations[3]):
            assert values.get(j, 0) == pytest.approx(activation, rel=5.1e-4, abs=1e-30)
        for sample, activation in numbers(driver, "activation"):
            assert activation == pytest.approx(fit.activations[sample, 2], rel=5.1e-4)
    if found.heldout_errors is not None:
        driver.execute_script("location.hash = 's=0.5'")
        WebDriverWait(driver, 10).until(lambda d: "0.5" in text(d, "output"))
        assert float(text(driver, "[data-curve=heldout]")) == pytest.approx(found.heldout_errors[1], rel=5e-4)
    quiet(driver)


def drawn(driver, picture, channel=0):
    script = """const canvas = document.querySelector(`[data-picture=${arguments[0]}]`);
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return [...data].filter((_, i) => i % 4 === arguments[1])"""
    return np.array(driver.execute_script(script, picture, channel)) / 255


def test_sums_in_the_browser_are_those_of_numpy(driver, explored):
    X, found = opened(driver, explored, "images", "#s=0.7&sample=3")
    fit, off = found.results[2], set()
    np.testing.assert_allclose(drawn(driver, "Original"), X[3] / X[3].max(), atol=1 / 255)
    for box in [None, *driver.find_elements(By.CSS_SELECTOR, "[data-switch]")]:
        if box is not None:
            off.add(int(box.get_attribute("data-switch")))
            box.click()
        kept = [j for j in range(4) if j not in off]
        model = fit.activations[3, kept] @ fit.components[kept] / X[3].max()
        np.testing.assert_allclose(drawn(driver, "Model"), np.clip(model, 0, 1), atol=1 / 255)
    driver.find_element(By.XPATH, "//button[text()='All on']").click()
    whole = fit.activations[3] @ fit.components / X[3].max()
    np.testing.assert_allclose(drawn(driver, "Model"), np.clip(whole, 0, 1), atol=1 / 255)
    quiet(driver)


def test_missing_pixels_are_left_blank_and_have_no_residual(driver, explored):
    opened(driver, explored, "gaps", "#s=0.6&sample=1")
    for picture in ("Original", "Residual"):
        assert drawn(driver, picture, channel=3).tolist() == [0] * 24 + [1] * 40  # transparent, then opaque
    assert drawn(driver, "Model", channel=3).all()
    assert "Hatched or –: missing" in text(driver, "[aria-label=Sample]")
    quiet(driver)


def test_a_sample_of_zeros_says_that_it_uses_no_component(driver, explored):
    opened(driver, explored, "gaps", "#s=0.6&sample=0")
    assert driver.find_elements(By.CSS_SELECTOR, "[data-switch]") == []
    assert "It uses no component" in text(driver, "[aria-label=Sample]")
    quiet(driver)


def test_gallery_draws_the_weights(driver, explored):
    _, found = opened(driver, explored, "images", "#s=0.5")
    for j, part in enumerate(found.results[1].components):
        script = """const canvas = document.querySelectorAll('.card canvas')[arguments[0]];
            return [...canvas.getContext('2d').getImageData(0, 0, 8, 8).data].filter((_, i) => i % 4 === 0)"""
        np.testing.assert_allclose(
            1 - np.array(driver.execute_script(script, j)) / 255, part / part.max(), atol=1 / 255
        )


def test_a_link_leads_to_what_it_names(driver, explored):
    for address, k in (("#s=0.5&part=2", 0), ("#s=0.5&sample=3", 1)):
        opened(driver, explored, "images", address)
        top = "return document.querySelectorAll('.panel')[arguments[0]].getBoundingClientRect().top"
        assert 0 <= driver.execute_script(top, k) < 800


@pytest.mark.parametrize("width", [320, 1600])
def test_curves_have_the_resolution_in_which_they_are_shown(driver, explored, width):
    opened(driver, explored, "lines", "#s=0.7&part=1&sample=3", width=width)
    script = """const shown = [...document.querySelectorAll('#explorer canvas')].filter((one) => one.clientWidth);
        return shown.map((one) => [one.width, one.height, one.clientWidth, one.clientHeight])"""
    WebDriverWait(driver, 10).until(lambda d: all(size[:2] == size[2:] for size in d.execute_script(script)))
    assert len({width for width, *_ in driver.execute_script(script)}) > 2


def test_slices_are_named(driver, explored):
    opened(driver, explored, "volumes", "#s=0.7&part=1")
    assert re.fullmatch(
        r"Slices through the peak at \(.*\) mm: coronal, sagittal and axial", text(driver, ".detail figcaption")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_no_curve_counts_more_features_than_there_are(driver, explored, kind):
    X, _ = opened(driver, explored, kind)
    script = """const chart = document.querySelector('[data-curve=nonzeros]').closest('figure');
        return Number([...chart.querySelectorAll('text')].at(-2).textContent)"""
    assert 0 < driver.execute_script(script) <= X.shape[1]


def test_axes_have_round_numbers(driver, explored):
    opened(driver, explored, "lines", "#s=0.7&part=1")
    script = "return [...document.querySelectorAll('.detail .axis i')].map(i => i.textContent)"
    assert driver.execute_script(script) == ["0", "1000", "2000", "3000", "4000"]


def test_named_features_show_original_model_and_residual(driver, explored):
    X, found = opened(driver, explored, "bars", "#s=0.7&sample=3")
    model = found.results[2].activations[3] @ found.results[2].components
    script = """return [...document.querySelectorAll('.compared tbody tr')].map(
        r => [...r.querySelectorAll('td span')].map(s => Number(s.textContent)))"""
    shown = np.array(driver.execute_script(script))
    order = np.argsort(-np.maximum(X[3], model), kind="stable")[:16]
    np.testing.assert_allclose(shown, np.column_stack([X[3], model, X[3] - model])[order], rtol=6e-3, atol=2e-3)


def test_slider_keyboard_and_address(driver, explored):
    opened(driver, explored, "images", "#s=0.5")
    slider = driver.find_element(By.ID, "sparsity")
    slider.send_keys("\ue014")  # right
    WebDriverWait(driver, 5).until(lambda d: "#s=0.5" not in d.current_url)
    after = driver.current_url
    driver.execute_script("document.activeElement.blur()")
    driver.find_element(By.TAG_NAME, "body").send_keys("\ue012")
    assert driver.current_url.endswith("#s=0.5")
    assert driver.current_url != after
    driver.find_elements(By.CSS_SELECTOR, ".card")[2].send_keys("\ue007")
    assert driver.current_url.endswith("#s=0.5&part=2")
    assert text(driver, ".panel h3") == "Part 2"
    driver.find_elements(By.CSS_SELECTOR, ".life button")[0].click()
    assert "part=2" in driver.current_url
    assert "s=0.5&" not in driver.current_url
    driver.find_element(By.TAG_NAME, "body").send_keys("\ue00c")  # escape
    assert not driver.find_element(By.CSS_SELECTOR, ".panel").is_displayed()
    assert slider.get_attribute("aria-valuetext")
    elements = "[...document.querySelectorAll('button, input, canvas, svg, progress')]"
    name = "(e.textContent.trim() || e.ariaLabel || e.labels?.length)"
    assert driver.execute_script(f"return {elements}.filter(e => !{name}).length") == 0


@pytest.mark.parametrize(
    "address", ["#", "#s=abc&part=-1&sample=x", "#s=0.69&part=99&sample=1e9", "#part=1e0", "#s=free"]
)
def test_any_address_opens(driver, explored, address):
    opened(driver, explored, "images", address)
    assert ("0.7" in text(driver, "output")) == ("0.69" in address)
    quiet(driver)


@pytest.mark.parametrize("kind", KINDS)
def test_downloads(driver, explored, kind, tmp_path):
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    _, found = opened(driver, explored, kind, "#s=0.7&part=1")
    for button in driver.find_elements(By.CSS_SELECTOR, ".panel .buttons button")[:2]:
        button.click()
    WebDriverWait(driver, 10).until(
        lambda _: {f.name for f in tmp_path.iterdir()} == {"part-1-0.7.csv", "part-1-0.7.png"}
    )
    assert (tmp_path / "part-1-0.7.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "part-1-0.7.csv").open(encoding="utf-8", newline="") as file:
        _, head, *rows = csv.reader(file)
    assert head == ["feature", "weight"]
    weights, part = np.array([float(row[-1]) for row in rows]), found.results[2].components[1]
    if kind != "volumes":
        np.testing.assert_allclose(weights, part, atol=part.max() / 4000)
    quiet(driver)


@pytest.mark.parametrize("kind", [*KINDS, "levels"])
@pytest.mark.parametrize("width", WIDTHS)
def test_explorer_fits_the_screen_width(driver, explored, kind, width):
    opened(driver, explored, kind, "#s=0.7&part=1&sample=3", width=width, scheme="dark" if width % 3 else "light")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
