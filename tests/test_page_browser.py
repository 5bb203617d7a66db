"""The page in a browser: what it shows, what the slider makes of it, and that it asks nobody for anything."""

import csv
import io
import os
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.predictions import Predictions
from calibrant.report import Report, charts, subject
from calibrant.report.quoting import Quoted
from calibrant.report.sections.reliability_diagram import HEADER, bars_of, row

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.access(CHROMIUM, os.X_OK), reason="chromium is not installed: apt install chromium"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of playwright's own pipes
]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = ["<script>alert(1)</script>", "=cmd|' /C calc'!A0", "[/x]", "\u202eevil\u2066", "a" * 10_000, '"><img src=x>']


def _predictions():
    rng = np.random.default_rng(7)
    p = rng.beta(2, 1, 25_000)
    tied = np.round(rng.random(400), 1)
    few = rng.random(7)
    rare = np.random.default_rng(3).beta(2, 5, 9000)
    probs = rng.dirichlet(np.full(6, 0.3), 240)
    labels = rng.integers(0, 6, 240)
    return {
        "many": Predictions.from_probs(rng.random(len(p)) < p**1.2, p),
        "tied": Predictions.from_probs(rng.random(400) < tied, tied),
        "few": Predictions.from_probs(rng.random(7) < few, few),
        "weighted": Predictions.from_probs(rng.random(400) < tied, tied, sample_weight=rng.integers(1, 9, 400)),
        "fractions": Predictions.from_probs(rng.random(400) < tied, tied, sample_weight=rng.random(400) + 0.1),
        "rare": Predictions.from_probs(rng.random(9000) < 0.05 * rare, 0.1 * rare),
        "groups": Predictions.from_probs(
            rng.integers(0, 4, 1400),
            rng.dirichlet(np.ones(4), 1400),
            topic=[f"subject {k % 56:02d}" for k in range(1400)],
        ),
        "hostile": Predictions.from_probs(
            labels, probs, classes=HOSTILE, who=np.array(HOSTILE)[rng.integers(0, 6, 240)]
        ),
    }


PREDICTIONS = _predictions()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Every page once, with few resamples: nothing here depends on them."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        for name, few in (("LEAST", 2), ("MOST", 4), ("MANY", 3)):
            patch.setattr(subject, name, few)
        reports = {name: Report.of(report, name=f"{name}.npz") for name, report in PREDICTIONS.items()}
        tied = PREDICTIONS["tied"]
        reports["models"] = Report.of({"tied": tied, HOSTILE[0]: Predictions.from_probs(tied.labels, tied.values**3)})
        reports["strangers"] = Report.of({name: PREDICTIONS[name] for name in ("tied", "weighted", "few")})
    return {name: report.save(folder / f"{name}.html") for name, report in reports.items()}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


class Window:
    """A page in an offline context, with all that it said and asked for."""

    def __init__(self, browser, path, **options):
        self.asked, self.said = [], []
        self.context = browser.new_context(offline=True, **options)
        self.context.route("**/*", self._route)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.goto(Path(path).as_uri())

    def _route(self, route):
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            self.asked.append(route.request.url)
            route.abort()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def set(self, bins, cut):
        """Move the slider and the switch as a reader would see them moved."""
        self.page.evaluate(
            """([bins, cut]) => {
              document.getElementById("bins").value = bins;
              document.querySelector(`[value=${cut}]`).checked = true;
              document.getElementById("bins").dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            [bins, cut],
        )

    def table(self):
        """The numbers of the reliability table, all digits."""
        cells = "rows => rows.map(row => [...row.cells].map(cell => Number(cell.dataset.value)))"
        return np.array(self.page.eval_on_selector_all("#reliability-table tbody tr", cells))

    def ece(self):
        return float(self.page.get_attribute("#ece-value", "data-value"))

    def rectangles(self):
        """The rectangles of the bars: class, x, y, width, height."""
        return self.page.eval_on_selector_all(
            "#reliability-picture .bars rect",
            """all => all.map(one => [one.getAttribute("class"),
              ...["x", "y", "width", "height"].map(key => Number(one.getAttribute(key)))])""",
        )


@pytest.mark.parametrize("name", [*PREDICTIONS, "models", "strangers"])
def test_the_page_says_nothing_and_asks_for_nothing(browser, pages, name):
    with Window(browser, pages[name]) as window:
        window.page.wait_for_selector("#card .tools:not([hidden])")
        assert window.page.locator(".controls:not([hidden])").count() == (name in PREDICTIONS)
        assert window.said == []
        assert window.asked == []
        assert window.page.title().startswith("Calibration of " if name in PREDICTIONS else "Comparison of ")
        assert pages[name].stat().st_size < 2_000_000


SETTINGS = [1, 2, 7, 10, 15, 33, 49, 50]


@pytest.mark.parametrize("name", ["many", "tied", "few", "weighted"])
def test_the_slider_shows_what_python_computes(browser, pages, name):
    event = PREDICTIONS[name]
    with Window(browser, pages[name]) as window:
        for cut, binning in (("width", cal.EqualWidth), ("mass", cal.EqualMass)):
            for bins in SETTINGS:
                window.set(bins, cut)
                result = cal.BinnedError(binning=binning(bins))(event)
                assert window.ece() == pytest.approx(result.value, abs=1e-9)
                assert window.page.inner_text("#ece-value") == f"{window.ece():.4f}"
                assert window.page.input_value("#bins") == window.page.inner_text("#bins-value") == str(bins)
                mine = window.table()
                held = result.bins.counts[0] > 0
                columns = [result.bins.low[0], result.bins.high[0], result.bins.counts[0]]
                columns += [result.bins.forecast[0, :, 0], result.bins.frequency[0, :, 0]]
                np.testing.assert_allclose(mine[:, :5], np.column_stack(columns)[held], rtol=1e-12, atol=1e-9)
                np.testing.assert_allclose(mine[:, 7], result.bins.gap[0, held, 0], atol=1e-9)


def _numbers(cells):
    return [cell.value if isinstance(cell, Quoted) else cell for cell in cells]


@pytest.mark.parametrize("name", ["many", "tied", "few", "weighted", "fractions"])
def test_the_script_draws_what_the_file_draws(browser, pages, name):
    event = PREDICTIONS[name]
    bars = bars_of(cal.ECE(event), event)
    with Window(browser, pages[name]) as window:
        table, picture = window.table(), window.rectangles()
        np.testing.assert_allclose(table, [_numbers(row(bar)) for bar in bars], atol=1e-12)
        counts = window.page.inner_html("#reliability-picture .most")
        window.set(4, "width")
        assert len(window.rectangles()) != len(picture) or name == "few"
        window.set(15, "width")
        np.testing.assert_allclose(window.table(), table, atol=1e-9)
        assert [rectangle[0] for rectangle in window.rectangles()] == [rectangle[0] for rectangle in picture]
        mine, theirs = (np.array([rectangle[1:] for rectangle in all_of]) for all_of in (window.rectangles(), picture))
        np.testing.assert_allclose(mine, theirs, atol=0.011)  # the file writes hundredths of a pixel
        assert window.page.inner_html("#reliability-picture .most") == counts
        assert window.page.eval_on_selector_all(
            "#reliability-table th", "all => all.map(th => th.textContent)"
        ) == list(HEADER)
        assert window.said == []


def test_a_bar_stands_where_its_numbers_say(browser, pages):
    with Window(browser, pages["many"]) as window:
        window.set(10, "mass")
        (plane, _), numbers = charts.reliability_planes(), window.table()
        frequency = [rectangle for rectangle in window.rectangles() if rectangle[0] == "frequency"]
        assert len(frequency) == len(numbers) == 10
        for (_, x, y, width, _), (low, high, _, _, share, *_) in zip(frequency, numbers, strict=True):
            assert x == pytest.approx(plane.across(low), abs=1e-6)  # the script writes pixels in full
            assert x + width == pytest.approx(plane.across(high), abs=1e-6)
            assert y == pytest.approx(plane.up(share), abs=1e-6)


def test_the_axes_of_a_rare_event_end_where_its_predictions_do_and_the_slider_draws_on_them(browser, pages):
    with Window(browser, pages["rare"]) as window:
        assert window.page.is_checked("[value=mass]")
        labels = window.page.eval_on_selector_all(
            "#reliability-picture > text.tick", "all => all.map(one => one.textContent)"
        )
        assert labels == ["0", "0.02", "0.04", "0.06", "0.08"] * 2
        table, picture = window.table(), np.array([rectangle[1:] for rectangle in window.rectangles()])
        assert len(table) == 15
        window.set(15, "mass")
        np.testing.assert_allclose(window.table(), table, atol=1e-9)
        np.testing.assert_allclose([rectangle[1:] for rectangle in window.rectangles()], picture, atol=0.011)
        plane, _ = charts.reliability_planes((0.0, 0.08))
        window.set(1, "width")
        _, x, y, width, _ = window.rectangles()[0]
        assert x == pytest.approx(plane.across(0.0), abs=1e-6)
        assert x + width == pytest.approx(plane.across(1.0), abs=1e-6)  # cut off at the edge of the picture
        assert y == pytest.approx(plane.up(window.table()[0, 4]), abs=1e-6)
        assert window.said == []


def test_fractional_weights_have_no_ranks_to_switch_to(browser, pages):
    with Window(browser, pages["fractions"]) as window:
        assert window.page.is_disabled("[value=mass]")
        assert "not with fractional weights" in window.page.inner_text(".controls")
        event = PREDICTIONS["fractions"]
        window.set(9, "width")
        assert window.ece() == pytest.approx(cal.BinnedError(binning=cal.EqualWidth(9))(event).value, abs=1e-9)


# by keyboard


def test_everything_is_reached_and_moved_by_keyboard(browser, pages):
    with Window(browser, pages["hostile"]) as window:
        page = window.page
        wanted = page.evaluate(
            """() => {
              const all = [...document.querySelectorAll("a, button, input, summary, .scroll")];
              all.forEach((one, index) => (one.dataset.stop = index));
              const stops = one => one.checkVisibility() && !(one.type === "radio" && !one.checked);
              return all.filter(stops).map(one => one.dataset.stop);
            }"""
        )
        seen = []
        for _ in range(len(wanted) + 3):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.dataset.stop"))
        assert set(wanted) <= set(seen)
        order = [control for control in dict.fromkeys(seen) if control in set(wanted)]
        assert order == sorted(order, key=int)


def test_the_slider_the_switch_and_the_tables_obey_the_keyboard(browser, pages):
    event = PREDICTIONS["tied"]
    with Window(browser, pages["tied"]) as window:
        page = window.page
        page.focus("#bins")
        page.keyboard.press("ArrowRight")
        assert window.ece() == pytest.approx(cal.BinnedError(binning=cal.EqualWidth(16))(event).value, abs=1e-9)
        page.keyboard.press("End")
        assert window.ece() == pytest.approx(cal.BinnedError(binning=cal.EqualWidth(50))(event).value, abs=1e-9)
        page.keyboard.press("Home")
        assert page.inner_text("#bins-value") == "1"
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        assert page.is_checked("[value=mass]")
        page.focus("#bins")
        for _ in range(6):
            page.keyboard.press("ArrowRight")
        assert window.ece() == pytest.approx(cal.BinnedError(binning=cal.EqualMass(7))(event).value, abs=1e-9)
        page.focus("#reliability summary")
        page.keyboard.press("Enter")
        assert page.is_visible("#reliability-table")
        page.keyboard.press("Enter")
        assert not page.is_visible("#reliability-table")
        page.focus(".skip")
        page.keyboard.press("Enter")
        page.wait_for_url("**#verdict")
        assert window.said == []


# for everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["hostile", "many", "models"])
def test_axe_finds_nothing(browser, pages, name, scheme):
    sync_playwright = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed: pip install axe-playwright-python"
    )
    size = {"width": 390 if scheme == "dark" else 1000, "height": 900}
    with Window(browser, pages[name], color_scheme=scheme, viewport=size, bypass_csp=True) as window:
        window.page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
        window.page.click("#card .copy")
        audit = sync_playwright.Axe().run(window.page)
        assert [
            (violation["id"], violation["nodes"][0]["html"][:200]) for violation in audit.response["violations"]
        ] == []


@pytest.mark.parametrize("width", [390, 1000])
def test_nothing_sticks_out_of_the_window(browser, pages, width):
    for name in ("hostile", "models", "rare", "groups"):
        with Window(browser, pages[name], viewport={"width": width, "height": 900}) as window:
            window.page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
            assert window.page.evaluate("document.documentElement.scrollWidth") <= width
            clipped = window.page.evaluate(
                """() => [...document.querySelectorAll("figure svg")].flatMap(svg => {
                  const frame = svg.getBoundingClientRect();
                  return [...svg.querySelectorAll("text")].filter(text => {
                    const box = text.getBoundingClientRect();
                    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
                  }).map(text => text.textContent);
                })"""
            )
            assert clipped == []


def test_without_scripts_everything_but_the_slider_is_there(browser, pages):
    with Window(browser, pages["hostile"], java_script_enabled=False) as window:
        page = window.page
        assert not page.is_visible(".controls")
        assert not page.locator(".tools").first.is_visible()
        for heading in ("Verdict", "Data", "Reliability", "Noise floor", "The calibration numbers", "Recalibration"):
            assert page.get_by_role("heading", name=heading, exact=True).is_visible()
        pictures = page.locator("figure svg")
        assert pictures.count() >= 6
        assert all(pictures.nth(index).is_visible() for index in range(pictures.count()))
        page.locator("#reliability summary").click()
        assert page.locator("#reliability-table").is_visible()
        assert page.locator("#reliability-table tbody tr").count() >= 5


@pytest.mark.parametrize("name", [*PREDICTIONS, "models"])
def test_the_first_screen_is_the_answer(browser, pages, name):
    with Window(browser, pages[name], viewport={"width": 1280, "height": 900}) as window:
        ends = window.page.evaluate(
            """() => Object.fromEntries([".sentence", ".action", ".answer svg", ".answer dl"].map(name =>
                 [name, document.querySelector(name).getBoundingClientRect().bottom]))"""
        )
        assert all(0 < end <= 900 for end in ends.values()), ends
        top = window.page.evaluate("document.getElementById('card').getBoundingClientRect().top")
        assert top > 900  # hashes are not for the first screen


def test_on_a_small_screen_wide_tables_say_that_they_scroll_and_p_values_are_seen(browser, pages):
    for name in ("many", "hostile", "models"):
        with Window(browser, pages[name], viewport={"width": 390, "height": 844}) as window:
            window.page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
            window.page.wait_for_timeout(50)
            wide = window.page.evaluate(
                """() => [...document.querySelectorAll(".scroll")].map(place => [
                     place.scrollWidth > place.clientWidth + 1,
                     getComputedStyle(place.querySelector("caption span"), "::after").content.includes("scroll")])"""
            )
            assert any(is_wide for is_wide, _ in wide)
            assert all(is_wide == says for is_wide, says in wide)
            ends = window.page.evaluate(
                """() => [...document.querySelectorAll("th")].filter(cell => cell.textContent.startsWith("p, "))
                     .map(cell => cell.getBoundingClientRect().right)"""
            )
            assert ends
            if name != "hostile":  # a name of 10,000 letters takes the whole width
                assert max(ends) <= 390


@pytest.mark.parametrize("name", ["many", "models"])
def test_the_answer_is_the_first_page_of_paper_and_the_appendix_begins_on_the_next(browser, pages, name):
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed: pip install pypdf")
    with Window(browser, pages[name]) as window:
        paper = pypdf.PdfReader(io.BytesIO(window.page.pdf(prefer_css_page_size=True)))
    first, second = (" ".join(page.extract_text().split()) for page in paper.pages[:2])
    for words in ("What to do:", "90% interval", "how often it happened"):
        assert words in first
    assert "Reliability by bin" not in first
    assert "Reliability by bin" in second
    assert [round(float(side)) for side in paper.pages[0].mediabox[2:]] == [595, 842]


def _sheets(window):
    """Of each printed sheet its lines, and the share of its height that is empty below them."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed: pip install pypdf")
    sheets = []
    for sheet in pypdf.PdfReader(io.BytesIO(window.page.pdf(prefer_css_page_size=True))).pages:
        heights = []

        def seen(text, matrix, place, *_, heights=heights):
            if text.strip():
                heights.append(place[4] * matrix[1] + place[5] * matrix[3] + matrix[5])

        text = unicodedata.normalize("NFKC", sheet.extract_text(visitor_text=seen))
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        sheets.append((lines, min(heights) / float(sheet.mediabox[3])))
    return sheets


@pytest.mark.parametrize("name", ["many", "groups", "hostile", "models"])
def test_no_sheet_is_left_half_empty_and_no_title_stands_alone_at_its_end(browser, pages, name):
    with Window(browser, pages[name]) as window:
        sheets = _sheets(window)
        titles = window.page.eval_on_selector_all(
            "h2, caption span, thead tr",
            "all => all.map(one => [...(one.cells ?? [one])].map(part => part.textContent.trim()).join(' '))",
        )
    assert len(titles) > 5
    assert [empty for _, empty in sheets[1:-1] if empty > 0.33] == []  # the first is the answer, and ends where it ends
    last = [lines[-1] for lines, _ in sheets[:-1]]
    assert [line for line in last if any(title.endswith(line) for title in titles)] == []


@pytest.mark.parametrize("scripts", [True, False])
def test_on_paper_it_is_complete(browser, pages, scripts):
    with Window(browser, pages["tied"], java_script_enabled=scripts, color_scheme="dark") as window:
        paper = window.page.pdf()
        assert paper.startswith(b"%PDF")
        assert len(paper) > 60_000
        pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed: pip install pypdf")
        pieces = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(paper)).pages]
        text = unicodedata.normalize("NFKC", " ".join(" ".join(pieces).split()))  # without ligatures
        for words in ("Verdict", "Noise floor", "Recalibration", "too high", "Broecker", "how often it happened"):
            assert words in text
        for table in ("Reliability by bin", "ECE under calibration", "Definitions", "ECE by number of bins"):
            assert table in text  # tables are folded on the screen, not on paper
        assert "0.9333" in text
        assert "Copy as CSV" not in text
        assert "equal mass ECE" not in text


# names that mean harm


def test_hostile_names_are_text(browser, pages):
    with Window(browser, pages["hostile"]) as window:
        page = window.page
        assert page.locator("script").count() == 2
        assert page.locator("img").count() == 0
        assert "<script>alert(1)</script>" in page.inner_text("#groups")
        text = page.evaluate("document.documentElement.outerHTML")
        assert "\u202e" not in text
        assert "\u2066" not in text
        assert len(text) < 500_000
        assert "a" * 500 not in page.evaluate("document.body.innerText")
        assert window.said == []


def test_copied_tables_run_nothing_and_lose_no_digit(browser, pages):
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    with Window(browser, pages["hostile"], **options) as window:
        page = window.page
        page.locator("#groups-figure summary").click()
        page.locator("#groups-figure .copy").click()
        page.wait_for_function("document.querySelector('#groups-figure [role=status]').textContent === 'Copied.'")
        rows = list(csv.reader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
        assert rows[0][0] == "group"
        assert len({len(row) for row in rows}) == 1
        assert not [cell for row in rows[1:] for cell in (row[0], row[3]) if cell[:1] in tuple("=+-@\t\r")]
        page.locator("#classes .copy").first.click() if page.locator("#classes .copy").first.is_visible() else None
        assert all(float(row[1]) == pytest.approx(float(row[7]) - float(row[8]), abs=1e-15) for row in rows[1:])


def test_a_class_that_looks_like_a_formula_is_quoted(browser, pages):
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    with Window(browser, pages["hostile"], **options) as window:
        page = window.page
        page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
        button = page.locator("#classes .copy").first
        button.click()
        page.wait_for_function(
            "[...document.querySelectorAll('#classes [role=status]')].some(one => one.textContent === 'Copied.')"
        )
        rows = list(csv.reader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
        names = [row[0] for row in rows[1:]]
        assert "'=cmd|' /C calc'!A0" in names
        assert "<script>alert(1)</script>" in names
        assert max(map(len, names)) <= 1000


def test_where_there_is_no_clipboard_the_text_can_be_selected(browser, pages):
    with Window(browser, pages["tied"]) as window:
        page = window.page
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.locator("#card .copy").click()
        area = page.locator("#card textarea")
        assert area.input_value().startswith("what,value\npredictions,tied.npz\n")
        assert page.evaluate("getSelection().toString() || document.activeElement.value").startswith("what,value")
        assert page.inner_text("#card [role=status]") == "Select and copy:"


def test_the_copied_bins_are_those_of_the_slider(browser, pages):
    with Window(browser, pages["tied"], permissions=["clipboard-read", "clipboard-write"]) as window:
        page = window.page
        window.set(3, "mass")
        page.locator("#reliability summary").click()
        page.locator("#reliability .copy").click()
        page.wait_for_function("document.querySelector('#reliability [role=status]').textContent === 'Copied.'")
        rows = list(csv.reader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
        assert rows[0] == list(HEADER)
        np.testing.assert_allclose(np.array(rows[1:], float), window.table(), atol=0)
