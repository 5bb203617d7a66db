"""Pictures: data turned into pixels, every text escaped, nothing outside its picture."""

import dataclasses
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.report import charts
from calibrant.report.charts import Bar, Line, histogram, lines, planes, reliability, signed_bars
from calibrant.report.page import Page, PageFigure, PageTable, Section, Verdict, embedded
from calibrant.report.quoting import KeyNumber, Quoted, counted, listed, p_value, percent, points, quoted_p
from calibrant.report.svg import Plane, element, picture, ticks

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x>',
    "=cmd",
    "[/x]",
    "\u202eevil",
    "a" * 10_000,
    "\x1b[31m",
    "\ud800",
]


def parsed(markup):
    return ElementTree.fromstring(str(markup))


def inside(markup):
    """Every rectangle, circle and path lies in the picture, to half a pixel."""
    root = parsed(markup)
    width, height = (float(part) for part in root.get("viewBox").split()[2:])
    for shape in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(shape.get(name)) for name in ("x", "y", "width", "height"))
        assert -0.5 <= x <= x + w <= width + 0.5
        assert -0.5 <= y <= y + h <= height + 0.5
    for shape in root.iter(f"{SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", shape.get("d"))]
        assert all(-0.5 <= number <= max(width, height) + 0.5 for number in numbers)
    return root


# elements


@pytest.mark.parametrize("text", HOSTILE[:4])
def test_text_and_attributes_are_escaped(text):
    markup = str(element("text", text, title=text))
    assert "<script" not in markup
    assert "<img" not in markup
    root = ElementTree.fromstring(markup)
    assert (root.text, root.get("title")) == (text, text)


def test_attributes_that_are_none_are_left_out_and_numbers_are_short():
    assert str(element("rect", x=1 / 3, y=2.0, width=None, class_="a")) == '<rect x="0.33" y="2" class="a"></rect>'


def test_a_line_breaks_where_there_is_no_number():
    plane = Plane((0, 1), (0, 1), width=100, height=100, left=0, right=0, top=0, bottom=0)
    markup = plane.line([(0, 0), (0.25, 0.5), (0.5, float("nan")), (1, 1)])
    assert parsed(markup).get("d") == "M0 100L25 50M100 0"


def test_a_box_takes_its_corners_in_any_order():
    plane = Plane((0, 1), (0, 1), width=100, height=100, left=0, right=0, top=0, bottom=0)
    assert plane.box(0.2, 0.4, 0.1, 0.5) == plane.box(0.4, 0.2, 0.5, 0.1)
    assert parsed(plane.box(0.2, 0.4, 0.1, 0.5)).attrib == {"x": "20", "y": "50", "width": "20", "height": "40"}


def test_an_area_goes_forth_and_back():
    plane = Plane((0, 1), (0, 1), width=10, height=10, left=0, right=0, top=0, bottom=0)
    assert parsed(plane.area([0, 1], [0, 0.5], [0.5, 1])).get("points") == "0,5 10,0 10,5 0,10"


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_few_and_inside(low, length):
    marks = ticks(low, low + length)
    assert 1 <= len(marks) <= 7
    for value, text in marks:
        assert low - 1e-6 * length <= value <= low + length * (1 + 1e-6)
        assert float(text.replace(",", "")) == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_the_last_number_of_an_axis_ends_inside_the_picture():
    plane = Plane((0, 0.06), (0, 0.06))
    marks = [text for text in ElementTree.fromstring(f"<g>{plane.frame('x', 'y')}</g>") if text.text == "0.06"]
    assert (marks[0].get("class"), float(marks[0].get("x"))) == ("tick end", plane.width)


def test_a_picture_has_words_for_those_who_do_not_see_it():
    root = ElementTree.fromstring(str(picture("a", "Title", "What it shows.", 10, 20)))
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "a-title a-desc"
    assert [child.text for child in root] == ["Title", "What it shows."]


# bars


def test_wilson_intervals_by_hand():
    # n = 4, all right: from n / (n + z^2) to 1, with z^2 = 2.705543
    low, high = Bar(0, 1, 4, 0.5, 1.0).interval
    assert (round(low, 6), high) == (0.596521, 1.0)


def test_bands_are_those_of_the_forecast():
    low, high = Bar(0, 1, 100, 0.2, 0.5).band  # 0.2 -+ z sqrt(0.16 / 100)
    assert (low, high) == pytest.approx((0.2 - 0.0657941451, 0.2 + 0.0657941451))


def test_a_calibrated_bar_lies_in_its_own_band():
    bar = Bar(0.4, 0.6, 50, 0.5, 0.5)
    assert bar.band[0] < bar.frequency < bar.band[1]
    assert bar.kind == "under"
    assert Bar(0.4, 0.6, 50, 0.51, 0.5).kind == "over"


def test_heavy_weights_widen_what_is_uncertain():
    even, uneven = Bar(0, 1, 10, 0.5, 0.5, squares=10), Bar(0, 1, 10, 0.5, 0.5, squares=50)
    assert even.interval == Bar(0, 1, 10, 0.5, 0.5).interval
    assert uneven.effective == 2
    assert uneven.interval[0] < even.interval[0]
    assert uneven.band[1] > even.band[1]


BARS = [Bar(0.0, 0.1, 1, 0.04, 1.0), Bar(0.5, 0.6, 10_000, 0.55, 0.5), Bar(0.9, 1.0, 3, 1.0, 1.0)]


def test_a_reliability_diagram_draws_each_bin_once():
    root = inside(reliability("r", BARS, ("forecast", "how often"), "Title", "Words."))
    bars = next(child for child in root if child.get("class") == "bars")
    assert len(bars) == 3
    assert [child.get("class") for child in bars[1]][1:4] == ["frequency", "gap over", "band"]
    assert bars[1][0].text == "0.500 to 0.600: forecast 0.550, observed 0.500, 10,000 samples"
    plane, _ = charts.reliability_planes()
    gap = bars[1][2]
    assert float(gap.get("y")) == pytest.approx(plane.up(0.55), abs=0.01)  # pixels are written to a hundredth
    assert float(gap.get("height")) == pytest.approx(plane.up(0.5) - plane.up(0.55), abs=0.01)
    assert "fullest bin: 10,000" in "".join(root.itertext())


def test_the_script_draws_on_the_same_planes():
    bars, counts = charts.reliability_planes((0.0, 0.1))
    assert planes((0.0, 0.1)) == {"bars": dataclasses.asdict(bars), "counts": dataclasses.asdict(counts)}
    assert (bars.x, bars.y, counts.x, counts.y) == ((0.0, 0.1), (0.0, 0.1), (0.0, 0.1), (0, 1))


def test_a_diagram_without_bins_is_empty_not_wrong():
    inside(reliability("r", [], ("forecast", "how often"), "Title", "Words."))


# lines, signed bars, histograms


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1) | st.just(float("nan")), min_size=1, max_size=8), st.integers(1, 5))
def test_lines_stay_inside(values, count):
    xs = [float(x) for x in range(len(values))]
    series = [Line(f"line {index}", xs, values, values, values, marks=True) for index in range(count)]
    root = ElementTree.fromstring(str(lines("l", series, ("x", "y"), "Title", "Words.")))
    assert len([path for path in root.iter(f"{SVG}path") if "series" in path.get("class", "")]) == count * (
        1 + (count > 1)
    )


def test_no_band_covers_a_line():
    series = [Line(name, [0.0, 1.0], [0.2, 0.8], [0.1, 0.7], [0.3, 0.9], marks=True) for name in "ab"]
    picture = str(lines("l", series, ("x", "y"), "T", "W", span=(0, 1)))
    assert picture.rindex('class="area') < picture.index('class="series', picture.index("clip-path"))


def test_lines_over_one_point_or_none_are_drawn():
    inside(lines("l", [Line("a", [0.5], [0.5], marks=True)], ("x", "y"), "T", "W", span=(0, 1), diagonal=True))
    inside(lines("l", [Line("a", [1.0], [float("nan")])], ("x", "y"), "T", "W"))


@pytest.mark.parametrize("names", [["a", "b"], ["a long name that does not fit beside", "b"], HOSTILE])
def test_names_stand_inside_the_picture_and_are_inert(names):
    values = np.linspace(-0.5, 0.3, len(names)).tolist()
    low, high = ([value + shift for value in values] for shift in (-0.1, 0.1))
    markup = signed_bars("s", names, values, "T", "W", label="points", low=low, high=high, flagged=[True] * len(names))
    root = inside(markup)
    assert "\u202e" not in str(markup)
    assert "\x1b" not in str(markup)
    assert max(len(text) for text in root.itertext()) <= 60
    str(markup).encode("utf-8")


def test_over_is_right_and_under_is_left_of_nothing():
    markup = signed_bars(
        "s", ["a", "b"], [0.1, -0.2], "T", "W", label="p", low=[0, -0.3], high=[0.2, -0.1], flagged=[True, False]
    )
    over, under = (rectangle for rectangle in parsed(markup).iter(f"{SVG}rect"))
    assert (over.get("class"), under.get("class")) == ("gap over", "gap under")
    assert float(over.get("x")) == pytest.approx(float(under.get("x")) + float(under.get("width")), abs=0.02)


def test_gaps_that_are_no_number_are_left_out():
    nan = [float("nan")]
    assert not list(
        parsed(signed_bars("s", ["a"], nan, "T", "W", label="p", low=nan, high=nan, flagged=[False])).iter(f"{SVG}rect")
    )
    inside(signed_bars("s", [], [], "T", "W", label="p", low=[], high=[], flagged=[]))


@pytest.mark.parametrize("values", [np.zeros(3), np.array([0.1]), np.linspace(0, 0.2, 50)])
def test_histograms_mark_what_was_observed(values):
    markup = histogram("h", values, 0.15, ("x", "y"), "T", "W")
    inside(markup)
    assert "observed 0.1500" in str(markup)


# words and tables


def test_p_values_are_never_smaller_than_their_redraws_can_tell():
    for n in (19, 20, 25, 50, 99, 100, 159, 160, 199, 200, 999):
        least = 1 / (n + 1)
        quoted = p_value(least, n)
        assert quoted.startswith("p < ")
        bound = float(quoted.removeprefix("p < "))
        assert least < bound <= 2 * least + 1e-12
    assert p_value(0.05, 200) == "p = 0.05"
    assert p_value(float("nan"), 200) == "p unknown"


def test_computed_p_values_stop_at_a_ten_thousandth():
    assert p_value(0.0) == "p < 0.001"
    assert quoted_p(0.0) == Quoted(0.0, "< 0.001")
    assert quoted_p(float("nan")).text == "–"


def test_key_numbers_are_quoted_in_their_unit():
    shown = [KeyNumber("x", value, low, high, unit, "") for value, low, high, unit in (
        (-0.0004, -0.012, 0.034, "points"), (0.99, 0.98, 1.0, "%"), (1.2345, 1.0, 1.5, ""),
        (math.inf, math.nan, math.nan, ""), (math.nan, math.nan, math.nan, ""),
    )]  # fmt: skip
    assert [number.shown for number in shown] == ["0.0 points", "99.0%", "1.234", "infinite", "unknown"]
    assert shown[0].between == "90% interval −1.2 to 3.4"
    assert shown[3].between == "no interval of an infinite value"
    assert shown[4].between == "no 90% interval is known to cover"


def test_words_for_numbers():
    assert points(-0.0123) == "-1.2 points"
    assert [percent(value) for value in (0.0, 1e-5, 0.5, 0.9996, 1.0)] == [
        "0%",
        "under 0.1%",
        "50.0%",
        "over 99.9%",
        "100%",
    ]
    assert listed([]) == ""
    assert listed(["one"]) == "one"
    assert counted(0, "row") == "0 rows"


def test_tables_show_few_digits_and_copy_all():
    grid = PageTable(("name", "x"), [("a", 1 / 3), ("b", 12_345.0), ("c", float("nan")), ("d", float("inf"))], "Table")
    assert [grid.shown(row[1]) for row in grid.rows] == ["0.3333", "12,345", "–", "∞"]
    assert [grid.exact(row[1]) for row in grid.rows] == [str(1 / 3), "12345.0", "nan", "inf"]
    assert grid.shown(Quoted(0.0, "< 0.01")) == "< 0.01"
    assert grid.exact(Quoted(0.25, "a quarter")) == "0.25"
    assert grid.shown(-1e-9) == "0.0000"
    assert grid.is_number(1)
    assert not grid.is_number(0)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_with_hostile_text_is_still_one_page(text):
    grid = PageTable((text, "x"), [(text, 1.0)], text)
    figure = PageFigure("f", picture("p", text[:50].replace("\ud800", ""), "W", 10, 10), "caption", grid, controls=True)
    section = Section("a", "A", ("said",), (figure,), (grid,))
    page = Page("title", Verdict("verdict", (), "good"), [section], {"x": text[:9]})
    html = page.to_html()
    assert html.count("<script") == 2
    assert "<img" not in html
    assert embedded({"a": "</script><!--"}).count("<") == 0


def test_numbers_that_json_does_not_know_are_refused_in_data():
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded({"x": float("nan")})


def test_the_policy_names_what_is_inline_and_nothing_unsafe():
    import base64
    import hashlib

    html = Page("t", Verdict("v", (), "good"), []).to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1].replace("&#39;", "'")
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)[-1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"(src|href)=\"(?!#)", html)
    assert " style=" not in html
    assert not re.search(r" on\w+=", html)
