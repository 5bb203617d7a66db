"""Spelling: metrics and selections as the command line writes them."""

import inspect
import json
import os

import pytest

import calibrant as cal
from calibrant import CalibrationInputError
from calibrant.errors.neighbour import forecasts_within
from calibrant.specification import spelling
from calibrant.specification.catalogue import find, names
from calibrant.specification.facts import facts_of


def _is_piece(name):
    known = find(name)
    if isinstance(known, cal.Metric):
        return True
    if inspect.isclass(known):
        return known is not cal.Metric and (issubclass(known, cal.Metric) or "facts" in dir(known))
    return facts_of(known).slot not in (None, "metrics")


PIECES = [name for name in names() if _is_piece(name) and name != "Pass"]  # passes are made by refine

WITH_ARGUMENTS = {
    "Above": ("above(classwise, 0.1)", cal.BinnedError(lens=cal.Above(cal.Classwise(), 0.1))),
    "Between": ("between(top_label, 0, 0.5)", cal.BinnedError(lens=cal.Between(cal.TopLabel(), 0, 0.5))),
    "ByLabel": ("by_label(top_label)", cal.CWECE),
    "ByPrediction": ("by_prediction(classwise)", cal.BinnedError(lens=cal.ByPrediction(cal.Classwise()))),
    "Edges": ("edges([0, 0.25, 1])", cal.BinnedError(binning=cal.Edges([0, 0.25, 1]))),
    "Groups": (
        "groups({'a': [0, 2], 'b': ['dog']})",
        cal.BinnedError(lens=cal.Groups({"a": [0, 2], "b": ["dog"]})),
    ),
    "InTopK": ("in_top_k(3)", cal.BinnedError(lens=cal.InTopK(3))),
    "OneClass": ("one_class('dog')", cal.BinnedError(lens=cal.OneClass("dog"))),
    "Ranked": ("ranked(2)", cal.BinnedError(lens=cal.Ranked(2))),
    "TopK": ("top_k(3)", cal.BinnedError(lens=cal.TopK(3))),
    "confidence_between": ("confidence_between(0.5, 1)", cal.BinnedError(select=cal.confidence_between(0.5, 1))),
    "forecasts_within": ("forecasts_within(0.1)", cal.NeighbourError(neighbours=forecasts_within(0.1))),
    "inter_interval": ("inter_interval(0.1, 0.2)", cal.BinnedError(distance=cal.inter_interval(0.1, 0.2))),
    "interval_tvd": ("interval_tvd(0.1, 0.2)", cal.BinnedError(distance=cal.interval_tvd(0.1, 0.2))),
    "label_in": ("label_in(3, 'dog')", cal.BinnedError(select=cal.label_in(3, "dog"))),
    "lp": ("lp(3)", cal.BinnedError(distance=cal.lp(3))),
    "mahalanobis": (
        "mahalanobis([[2, 0], [0, 1]])",
        cal.BinnedError(distance=cal.mahalanobis([[2, 0], [0, 1]])),
    ),
    "output_between": ("output_between(0, 0.5, of=1)", cal.BinnedError(select=cal.output_between(0, 0.5, of=1))),
    "power": ("power(3)", cal.BinnedError(distance=cal.power(3))),
    "predicted_in": ("predicted_in(0)", cal.BinnedError(select=cal.predicted_in(0))),
    "NetBenefit": ("net_benefit(0.2)", cal.NetBenefit(0.2)),
    "sample_quantile": ("ici/sample_quantile(0.5)", cal.E50),
    "root": ("root(3)", cal.BinnedError(aggregate=cal.root(3))),
    "weighted": ("weighted([1, 2])", cal.BinnedError(distance=cal.weighted([1, 2]))),
    "where": ("where(region='north')", cal.BinnedError(select=cal.where(region="north"))),
}

ALONE = {
    "Answered": cal.BinnedError(lens=cal.Answered()),
    "Classwise": cal.BinnedError(lens=cal.Classwise()),
    "EqualMass": cal.ADAPTIVE_ECE,
    "EqualWidth": cal.ECE,
    "Flat": cal.BinnedError(lens=cal.Flat()),
    "Full": cal.BinnedError(lens=cal.Full()),
    "Grid": cal.BinnedError(binning=cal.Grid()),
    "KDTree": cal.BinnedError(binning=cal.KDTree()),
    "Quantiles": cal.BinnedError(binning=cal.Quantiles()),
    "Sweep": cal.ECE_SWEEP,
    "TopLabel": cal.ECE,
    "brier_score": cal.MeanScore(score=cal.brier_score),
    "contraharmonic": cal.BinnedError(across=cal.contraharmonic),
    "debiased_squared": cal.BinnedError(distance=cal.debiased_squared),
    "everything": cal.ECE,
    "hit": cal.MeanScore(score=cal.hit),
    "loess": cal.ICI,
    "maximum": cal.MCE,
    "mean_of_all": cal.BinnedError(across=cal.mean_of_all),
    "root_mean": cal.BinnedError(aggregate=cal.root_mean),
    "root_mean_of": cal.BinnedError(across=cal.root_mean_of),
    "signed": cal.BinnedError(distance=cal.signed),
    "signed_balance": cal.BinnedError(across=cal.signed_balance),
    "skill": cal.BRIER_SKILL,
    "slope": cal.SLOPE,
    "uniform": cal.BinnedError(aggregate=cal.uniform),
    "weighted_by_size": cal.BinnedError(across=cal.weighted_by_size),
}


def spelled(text):
    """The one metric that a text spells."""
    ((name, metric),) = spelling.metrics(text).items()
    assert name == text
    return metric


@pytest.mark.parametrize("name", PIECES)
def test_every_public_piece_can_be_spelled(name):
    text = WITH_ARGUMENTS[name][0] if name in WITH_ARGUMENTS else name.lower()
    assert isinstance(spelled(text), cal.Metric)


@pytest.mark.parametrize(("text", "metric"), WITH_ARGUMENTS.values(), ids=list(WITH_ARGUMENTS))
def test_a_piece_with_arguments_goes_to_its_place(text, metric):
    assert spelled(text) == metric


@pytest.mark.parametrize("name", ALONE)
def test_a_piece_alone_stands_for_its_default(name):
    assert spelled(name.lower()) == ALONE[name]


@pytest.mark.parametrize("name", cal.RECIPES)
def test_a_recipe_is_spelled_in_capitals_in_small_letters_and_without_underscores(name):
    for text in (name, name.lower(), name.lower().replace("_", "")):
        assert spelled(text) == cal.RECIPES[name]


def test_names_stay_apart_in_small_letters_without_underscores():
    plain = [name.lower().replace("_", "") for name in [*PIECES, "likert"]]
    assert len(set(plain)) == len(plain)


@pytest.mark.parametrize("text", ["top_k(5)", "TopK(5)", "topk(5)", "TOP_K(5)", "top_k(k=5)", " top_k ( 5 ) "])
def test_capitals_underscores_and_spaces_do_not_matter(text):
    assert next(iter(spelling.metrics(text).values())) == cal.BinnedError(lens=cal.TopK(5))


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        (
            "top_k(5)/kdtree(0.1)/tvd",
            cal.BinnedError(lens=cal.TopK(5), binning=cal.KDTree(0.1), distance=cal.tvd),
        ),
        (
            "squared/root_mean/equal_mass(10)/classwise/mean_of_all",
            cal.BinnedError(
                lens=cal.Classwise(),
                binning=cal.EqualMass(10),
                distance=cal.squared,
                aggregate=cal.root_mean,
                across=cal.mean_of_all,
            ),
        ),
        (
            "label_in(0)/by_prediction(above(classwise, 0.1))/sweep(equal_width(closed='left'))",
            cal.BinnedError(
                select=cal.label_in(0),
                lens=cal.ByPrediction(cal.Above(cal.Classwise(), 0.1)),
                binning=cal.Sweep(cal.EqualWidth(closed="left")),
            ),
        ),
        ("in_top_k(5)/hit", cal.MeanScore(cal.InTopK(5), cal.hit)),
        (
            "binned_error(binning=equal_mass(3), distance=squared)",
            cal.BinnedError(binning=cal.EqualMass(3), distance=cal.squared),
        ),
        ("mean_score(full, log_score)", cal.LOG_LOSS),
        (
            "(label_in(3) & ~predicted_in(3))/ece",
            cal.BinnedError(select=cal.label_in(3) & ~cal.predicted_in(3)),
        ),
    ],
)
def test_a_composition_is_its_pieces_in_any_order(text, metric):
    assert spelled(text) == metric


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("ece/equal_mass(30)", cal.BinnedError(binning=cal.EqualMass(30))),
        ("equal_mass(30)/ece", cal.BinnedError(binning=cal.EqualMass(30))),
        ("sce/equal_mass", cal.ACE),
        ("ece/maximum", cal.MCE),
        ("cwece/contraharmonic", cal.CECE),
        ("ece_lb/equal_mass(5)", cal.LabelBinnedError(binning=cal.EqualMass(5))),
        ("accuracy/in_top_k(5)", cal.MeanScore(cal.InTopK(5), cal.hit)),
    ],
)
def test_a_recipe_with_a_piece_is_the_recipe_with_that_piece_replaced(text, metric):
    assert spelled(text) == metric


def test_likert_spells_one_metric_a_category():
    text = "likert([0, 0.5, 1], binning=equal_mass(5))"
    made = spelling.metrics(text)
    scale = cal.likert([0, 0.5, 1], binning=cal.EqualMass(5))
    assert made == {f"{text} {name}": metric for name, metric in scale.items()}


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("label_in(3, 5)", cal.label_in(3, 5)),
        ("label_in(3) & ~where(region='north')", cal.label_in(3) & ~cal.where(region="north")),
        ("predicted_in('dog') | confidence_between(0.5, 1)", cal.predicted_in("dog") | cal.confidence_between(0.5, 1)),
        ("where(age=-1, seen=True)", cal.where(age=-1, seen=True)),
        ("everything", cal.everything),
    ],
)
def test_selections_combine_by_and_or_and_not(text, selection):
    assert spelling.selection(text) == selection


@pytest.mark.parametrize("text", ["where(mail='a@b.example')", "label_in('@home')", "where(mail='@SUM(A1)')"])
def test_an_at_sign_inside_quotes_is_text(text):
    assert repr(spelling.selection(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "__import__('os').getcwd()",
        "ece.__class__",
        "ece.binning",
        "().__class__.__mro__",
        "'a'.join(['b'])",
        "(lambda: ece)()",
        "lambda: ece",
        "[piece for piece in [ece]][0]",
        "[top_k(k) for k in [1]]",
        "{name for name in [1]}",
        "{name: ece for name in [1]}",
        "(name := ece)",
        "ece if True else sce",
        "f'{ece}'",
        "ece[0]",
        "ece == sce",
        "ece and sce",
        "ece + sce",
        "equal_width(2 ** 20)",
        "equal_width(*[15])",
        "equal_width(**{'n_bins': 15})",
        "open('somewhere')",
        "eval('ece')",
        "print(1)",
        "await ece",
        "...",
        "1j",
        "b'ece'",
        "ece; sce",
        "import os",
        "",
        "\x00",
        pytest.param("(" * 5000, id="5000 brackets"),
        pytest.param("-" * 50000 + "1", id="50000 signs"),
    ],
)
@pytest.mark.parametrize("read", [spelling.metrics, spelling.selection])
def test_what_is_no_name_number_or_call_of_a_piece_is_refused(read, text):
    with pytest.raises(CalibrationInputError):
        read(text)


def test_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "__import__('pathlib').Path('trace').touch()"
    for attempt in (text, f"equal_width({text})", f"ece/{text}", f"[{text}]", f"{{'a': {text}}}"):
        with pytest.raises(CalibrationInputError):
            spelling.metrics(attempt)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "table(1, 2)",
        "tvd(3)",
        "mean(1, 2)",
        "hit(1)",
        "weighted_by_size(1, 2)",
        "-ece",
        "~ece",
        "-'a'",
        "ece & sce",
        "3 & everything",
        "everything & 3",
        "everything & ece",
        "label_in(3) & predicted_in(3)/ece",
        "groups({[1]: 2})",
        "groups([[0], [1, 2]])",
        "groups({'a': 0, 'b': 1})",
        "edges('abc')",
        "edges([0, 'a', 1])",
        "mahalanobis('a')",
        "mahalanobis([[1, 2], [3]])",
        "weighted(['a'])",
        "classwise/brier_score/equal_mass(3)",
        "hit/tvd",
        "between(3, 0, 0.5)",
        "by_label(3)",
        "by_label(ece)",
        "above(classwise, 'a')",
        "one_class([1])",
        "one_class(1.5)",
        "label_in([1, 2])",
        "label_in(1.5)",
        "label_in(None)",
        "likert([0, 0.5, 1], lens=3)",
        "binned_error(lens=3)",
        "binned_error(ece)",
        "{'a': 3}",
    ],
)
def test_pieces_that_do_not_fit_are_refused_when_they_are_read(text):
    with pytest.raises(CalibrationInputError):
        spelling.metrics(text)


@pytest.mark.parametrize("text", ["~ece", "3 & label_in(3)", "label_in(3) & 3", "label_in(3) & ece", "label_in(1.5)"])
def test_what_is_no_selection_is_refused_when_it_is_read(text):
    with pytest.raises(CalibrationInputError):
        spelling.selection(text)


@pytest.mark.parametrize("text", ["ece/sce", "ece/ece", "ece,sce", "[ece, sce]", "ece,"])
def test_two_recipes_in_one_word_are_refused_rather_than_one_forgotten(text):
    with pytest.raises(CalibrationInputError):
        spelling.metrics(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("tvd/squared", "one distance"),
        ("equal_mass/equal_width", "one binning"),
        ("ece/label_in(1)/label_in(2)", "one select"),
        ("brier/equal_mass(5)", "no binning to replace"),
        ("ece_lb/tvd", "no distance to replace"),
        ("top_k", "needs arguments for TopK"),
        ("ece(3)", "takes no arguments"),
        ("equal_width(0)", "whole number"),
        ("equal_width('15')", "whole number"),
        ("equal_width(bins=3)", "bins"),
        ("kdtree(2)", "gamma"),
    ],
)
def test_a_refusal_says_what_is_wrong(text, part):
    with pytest.raises(CalibrationInputError, match=part):
        spelling.metrics(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [("ecee", "ece"), ("equal_mas(3)", "equal_mass"), ("topk_(5)/kdtre(0.1)", "kdtree"), ("class_wise/tvdd", "tvd")],
)
def test_an_unknown_name_brings_up_the_nearest(text, near):
    with pytest.raises(CalibrationInputError, match=f"did you mean '{near}'"):
        spelling.metrics(text)


@pytest.mark.parametrize(
    ("text", "content", "metric"),
    [
        ("mahalanobis(@{path})", [[2, 0], [0, 1]], cal.BinnedError(distance=cal.mahalanobis([[2, 0], [0, 1]]))),
        (
            "groups(@{path})/kdtree(0.2)",
            {"pet": ["cat", "dog"], "bird": ["owl"]},
            cal.BinnedError(lens=cal.Groups({"pet": ["cat", "dog"], "bird": ["owl"]}), binning=cal.KDTree(0.2)),
        ),
        ("ece/edges(@{path})", [0, 0.5, 1], cal.BinnedError(binning=cal.Edges([0, 0.5, 1]))),
        ("weighted(@{path})", [1, 2], cal.BinnedError(distance=cal.weighted([1, 2]))),
    ],
)
def test_a_file_after_an_at_sign_stands_for_its_json(tmp_path, text, content, metric):
    path = tmp_path / "M.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert spelled(text.format(path=path)) == metric


def test_a_missing_file_is_no_misspelling():
    with pytest.raises(FileNotFoundError):
        spelling.metrics("mahalanobis(@missing.json)")


@pytest.mark.parametrize(
    "content", [b"", b"[[1, 0]", b"not json", b"[[NaN]]", b"\xff", b'{"a": [0], "b": [1], "a": [2]}']
)
def test_a_file_that_is_no_json_is_refused_by_name(tmp_path, content):
    path = tmp_path / "M.json"
    path.write_bytes(content)
    piece = "groups" if content.startswith(b"{") else "mahalanobis"
    with pytest.raises(CalibrationInputError, match=r"M\.json"):
        spelling.metrics(f"{piece}(@{path})")


def test_a_file_is_read_only_after_an_at_sign(tmp_path):
    path = tmp_path / "M.json"
    path.write_text("[[2, 0], [0, 1]]", encoding="utf-8")
    with pytest.raises(CalibrationInputError):
        spelling.metrics(f"mahalanobis(_file('{path}'))")
