"""The report in a real browser: headless Chromium, as Debian packages it (chromium, chromium-driver)."""

import shutil

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("selenium")

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from partwise.pages import report

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
R, EVIL = 12, "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="Chromium is missing: the report is seen in no browser (Debian: chromium-driver)"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A report of components with hostile names, one of them zero."""
    rng = np.random.default_rng(0)
    parts = rng.random((R, 64)) * (rng.random((R, 64)) < rng.random((R, 1)))
    parts[4] = 0
    path = tmp_path_factory.mktemp("report") / "report.html"
    names = [f"{EVIL}{i}" for i in range(64)]
    report(parts, path, shape=(8, 8), title=EVIL, activations=rng.random((30, R)), feature_names=names)
    return path.as_uri()


@pytest.fixture(scope="module")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
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


@pytest.mark.parametrize("width", [320, 375, 700, 1200])
def test_page_fits_the_screen_width(page, width):
    seen_by(page, width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.find_elements(By.CSS_SELECTOR, "thead button")[0].is_displayed()
