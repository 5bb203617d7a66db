"""Asks several libraries for the same calibration error of the same arrays and prints their answers.

    python scripts/why_libraries_disagree.py                                         # print every table
    python scripts/why_libraries_disagree.py --page docs/why_libraries_disagree.md   # and put them into the page

Libraries that are not installed are left out. For all of them:

    pip install torch torchmetrics netcal uncertainty-calibration relplot calzone-tool mapie scikit-learn
"""

import argparse
import json
import platform
import re
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import calibrant as cal

warnings.filterwarnings("ignore")  # what the libraries say about themselves is not what is compared

LEVELS = np.arange(11) / 10
HAPPENED = np.array([8, 4, 28, 22, 48, 58, 52, 78, 72, 96, 92])


def grid():
    """A hundred forecasts at each of 0, .1, .. 1; how many of them happened is in HAPPENED."""
    return np.repeat(LEVELS, 100), np.concatenate([np.arange(100) < count for count in HAPPENED]).astype(int)


# Every library's own function, with its own defaults, asked about one event with n_bins bins.


def by_calibrant(p, y, n_bins):
    return cal.BinnedError(binning=cal.EqualWidth(n_bins))(y, p).value


def by_torchmetrics(p, y, n_bins):
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    return float(binary_calibration_error(torch.from_numpy(p), torch.from_numpy(y), n_bins=n_bins))


def by_netcal(p, y, n_bins):
    from netcal.metrics import ECE

    return float(ECE(n_bins).measure(p, y))


def by_uncertainty_calibration(p, y, n_bins):
    from calibration import get_ece

    return float(get_ece(p, y, num_bins=n_bins))


def by_relplot(p, y, n_bins):
    from relplot.metrics import binnedECE

    return float(binnedECE(p, y, nbins=n_bins))


def by_calzone(p, y, n_bins):
    from calzone.metrics import calculate_ece_mce
    from calzone.utils import reliability_diagram

    both = np.column_stack([1 - p, p])
    rates, forecasts, _, counts = reliability_diagram(y, both, num_bins=n_bins, class_to_plot=1)
    return float(calculate_ece_mce(rates, forecasts, counts)[0])


def by_mapie(p, y, n_bins):
    from mapie.metrics.calibration import expected_calibration_error

    return expected_calibration_error(y, p, num_bins=n_bins, split_strategy="uniform")


ASKED = {
    "calibrant": by_calibrant,
    "torchmetrics": by_torchmetrics,
    "netcal": by_netcal,
    "uncertainty-calibration": by_uncertainty_calibration,
    "relplot": by_relplot,
    "calzone-tool": by_calzone,
    "mapie": by_mapie,
}
BESIDE = ("scikit-learn", "torch", "numpy")


def installed(name):
    """The version of a library, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def asked():
    return {name: ask for name, ask in ASKED.items() if installed(name)}


def answer(ask, *given):
    """The number with four digits, or the error that was raised instead."""
    try:
        return f"{ask(*given):.4f}"
    except Exception as error:
        return f"raises {type(error).__name__}"


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def versions():
    """What was compared."""
    rows = [[name, installed(name)] for name in (*ASKED, *BESIDE) if installed(name)]
    return markdown(["library", "version"], [*rows, ["Python", platform.python_version()]])


def on_a_grid():
    """The same eleven levels in 10 bins, as float64 and as float32."""
    p, y = grid()
    kinds = (p, p.astype(np.float32))
    rows = [[name, *(answer(ask, values, y, 10) for values in kinds)] for name, ask in asked().items()]
    return markdown(["ECE of the grid, 10 bins", "float64", "float32"], rows)


def pools():
    """Which levels share a bin, found by asking about one level and about two neighbours; (in brackets): lost."""
    rows = []
    for name, ask in asked().items():
        rows += [[name, kind.__name__, _pools(ask, kind)] for kind in (np.float64, np.float32)]
    return markdown(["library", "forecasts", "levels that share a bin, of ten"], rows)


def _pools(ask, kind):
    shown = [f"{level:g}".replace("0.", ".") for level in LEVELS]
    lost = [not abs(ask(np.array([level], kind), np.array([1]), 10) - (1 - level)) < 1e-6 for level in LEVELS]
    text = f"({shown[0]})" if lost[0] else shown[0]
    for k in range(1, 11):
        low, high = LEVELS[k - 1], LEVELS[k]
        found = ask(np.array([low, high], kind), np.array([1, 0]), 10)
        together = not lost[k] and not lost[k - 1] and abs(found - abs(low + high - 1) / 2) < 1e-6
        text += (" " if together else " / ") + (f"({shown[k]})" if lost[k] else shown[k])
    return text


SMALL = {
    "0.2 and 0.25": ([0.2, 0.25], [1, 0]),
    "0.3 and 0.35": ([0.3, 0.35], [1, 0]),
    "0 and 0.05": ([0.0, 0.05], [1, 0]),
    "0.95 and 1": ([0.95, 1.0], [1, 0]),
}


def one_at_a_time():
    """Two forecasts each, the first happened and the second did not: are they in one bin of ten, or in two?"""
    header = ["ECE, 10 bins", *SMALL]
    return markdown(
        header,
        [
            [name, *(answer(ask, np.array(p), np.array(y), 10) for p, y in SMALL.values())]
            for name, ask in asked().items()
        ],
    )


def edges():
    """Where linspace and k/n part, and what becomes of decimals in float32."""
    rows = []
    for k in range(1, 10):
        line, single = float(np.linspace(0, 1, 11)[k]), float(np.float32(k / 10))
        rows.append([k / 10, line, _against(line, k / 10), single, _against(single, k / 10)])
    return markdown(["k/10", "NumPy's linspace(0, 1, 11)[k]", "is", "float32(k/10)", "is"], rows)


def _against(value, edge):
    return "above" if value > edge else "below" if value < edge else "equal"


def many_rows():
    """How float32 totals fare: one forecast of 0.7 many times over, 70% of which happen."""
    rows = []
    for count in (10_000, 1_000_000, 10_000_000, 50_000_000):
        p = np.full(count, 0.7, np.float32)
        y = np.zeros(count, np.int64)
        y[: count * 7 // 10] = 1
        names = [name for name in ("calibrant", "torchmetrics") if name in asked()]
        rows.append([f"{count:,}", *(answer(ASKED[name], p, y, 15) for name in names)])
    return markdown(["rows, float32", *names], rows)


def guessed_logits():
    """Probabilities, and the same with one of them a rounding error above 1."""
    p, y = grid()
    p = np.clip(p, 0.05, 0.95).astype(np.float32)
    above = p.copy()
    p[-1], above[-1] = 1.0, 1.0000001
    names = [name for name in ("calibrant", "torchmetrics") if name in asked()]
    rows = [[name, *(answer(ASKED[name], values, y, 10) for values in (p, above))] for name in names]
    return markdown(["ECE, 10 bins", "largest value 1", "largest value 1.0000001"], rows)


def bad_rows():
    """Three classes with a NaN in one row, and with a label that does not exist."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 200)
    y = np.array([rng.choice(3, p=row) for row in p])
    hole, beyond = p.copy(), y.copy()
    hole[7] = np.nan
    beyond[7] = 5
    cases = {"clean": (p, y), "one row NaN": (hole, y), "one label 5 of 3": (p, beyond)}
    top = {name: ask for name, ask in _TOP_LABEL.items() if installed(name)}
    rows = [[name, *(answer(ask, *case) for case in cases.values())] for name, ask in top.items()]
    return markdown(["top-label ECE, 10 bins", *cases], rows)


def _top_calibrant(p, y):
    return by_calibrant(p, y, 10)


def _top_torchmetrics(p, y):
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error

    return float(multiclass_calibration_error(torch.from_numpy(p), torch.from_numpy(y), num_classes=3, n_bins=10))


def _top_netcal(p, y):
    return by_netcal(p, y, 10)


def _top_uncertainty_calibration(p, y):
    return by_uncertainty_calibration(p, y, 10)


_TOP_LABEL = {
    "calibrant": _top_calibrant,
    "torchmetrics": _top_torchmetrics,
    "netcal": _top_netcal,
    "uncertainty-calibration": _top_uncertainty_calibration,
}


def row_order():
    """Equal-mass bins of data with ties: the rows as they are, sorted by label, and reversed."""
    rng = np.random.default_rng(0)
    p = rng.integers(0, 6, 60) / 5
    y = (rng.random(60) < p).astype(int)
    orders = {"as drawn": np.arange(60), "by label": np.argsort(y, kind="stable"), "reversed": np.arange(60)[::-1]}
    ways = {name: ask for name, ask in _EQUAL_MASS.items() if installed(name)}
    rows = [[name, *(answer(ask, p[order], y[order]) for order in orders.values())] for name, ask in ways.items()]
    return markdown(["equal-mass error, 5 bins", *orders], rows)


def _mass_calibrant(p, y):
    return cal.BinnedError(binning=cal.EqualMass(5))(y, p).value


def _mass_uncertainty_calibration(p, y):
    from calibration import get_ece_em

    return float(get_ece_em(p, y, num_bins=5))


def _mass_netcal(p, y):
    from netcal.metrics import ECE

    return float(ECE(5, equal_intervals=False).measure(p, y))


def _mass_mapie(p, y):
    from mapie.metrics.calibration import expected_calibration_error

    return expected_calibration_error(y, p, num_bins=5, split_strategy="array split")


_EQUAL_MASS = {
    "calibrant": _mass_calibrant,
    "uncertainty-calibration": _mass_uncertainty_calibration,
    "netcal": _mass_netcal,
    "mapie": _mass_mapie,
}


def temperature():
    """A temperature far from 1: which one is found, and at what log loss on the rows it was fitted on."""
    rng = np.random.default_rng(0)
    true = 3 * rng.standard_normal((2000, 10))
    y = np.array([rng.choice(10, p=row) for row in _softmax(true)])
    logits = 20 * true
    rows = [["nothing", "1", _loss(y, logits)], ["the truth", "20", _loss(y, true)]]
    for name, fit in _TEMPERATURES.items():
        if installed(name):
            found, probs = fit(logits, y)
            loss = cal.LOG_LOSS(cal.Predictions.from_probs(y, probs, normalize=True))
            rows.append([name, f"{found:.3f}", f"{loss.value:.4f}"])
    return markdown(["fitted by", "temperature", "log loss"], rows)


def _softmax(logits):
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


def _loss(y, logits):
    return f"{cal.LOG_LOSS(cal.Predictions.from_logits(y, logits)).value:.4f}"


def _fit_calibrant(logits, y):
    scaling = cal.TemperatureScaling().fit(logits, y)
    plain = np.array(scaling.predict_proba(logits).tolist())  # measured where it was fitted, here on purpose
    return scaling.temperature_, plain


def _fit_netcal(logits, y):
    from netcal.scaling import TemperatureScaling

    p = _softmax(logits)
    scaling = TemperatureScaling()
    scaling.fit(p, y)
    return 1 / float(np.ravel(scaling.temperature)[0]), scaling.transform(p)


def _fit_sklearn(logits, y):
    scaling = _calibrated("decision_function", np.arange(10), lambda rows: rows, "temperature").fit(logits, y)
    return 1 / float(scaling.calibrated_classifiers_[0].calibrators[0].beta_), scaling.predict_proba(logits)


def _calibrated(method, classes, scores, map_by):
    """scikit-learn's calibration of a fitted classifier that has this one method."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    parts = {
        "classes_": classes,
        "fit": lambda self, rows, labels: self,
        "__sklearn_is_fitted__": lambda self: True,
        "predict": lambda self, rows: np.zeros(len(rows), int),
        method: lambda self, rows: scores(rows),
    }
    parts[method].__name__ = method
    fitted = type("Fitted", (ClassifierMixin, BaseEstimator), parts)()
    return CalibratedClassifierCV(FrozenEstimator(fitted), method=map_by)


_TEMPERATURES = {"calibrant": _fit_calibrant, "scikit-learn": _fit_sklearn, "netcal": _fit_netcal}


def sigmoid():
    """A calibrated event, mapped by a sigmoid of its probabilities and by a sigmoid of its logits."""
    rng = np.random.default_rng(0)
    logits = rng.logistic(size=100_000) * 2
    p = 1 / (1 + np.exp(-logits))
    y = (rng.random(len(p)) < p).astype(int)
    fitting, rest = slice(0, 50_000), slice(50_000, None)
    platt = cal.PlattScaling().fit(logits[fitting], y[fitting])
    rows = [["unchanged", _ece(y[rest], p[rest])]]
    rows.append(["calibrant, PlattScaling of logits", _ece(y[rest], platt.predict_proba(logits[rest]))])
    if installed("scikit-learn"):
        mapped = _sklearn_sigmoid(p[fitting], y[fitting], p[rest])
        rows.append(['scikit-learn, method="sigmoid" of predict_proba', _ece(y[rest], mapped)])
    return markdown(["50,000 forecasts of a calibrated event", "ECE"], rows)


def _ece(y, p):
    return f"{cal.ECE(y, p).value:.4f}"


def _sklearn_sigmoid(p, y, others):
    def both(rows):
        return np.column_stack([1 - rows[:, 0], rows[:, 0]])

    mapped = _calibrated("predict_proba", np.arange(2), both, "sigmoid").fit(p[:, None], y)
    return mapped.predict_proba(others[:, None])[:, 1]


def ends():
    """Half of the forecasts at one end: the smooth error unchanged, and with everything between the ends doubled."""
    p, y = piled(at=1.0)
    weight = np.where(p == 1, 1, 2)
    rows = []
    for at in (1.0, 0.99):
        p, y = piled(at)
        cells = [f"{cal.SMECE(y, p).value:.3f}", f"{cal.SMECE(y, p, sample_weight=weight).value:.3f}"]
        rows.append([f"{at:g}", *cells, *([f"{_smooth_relplot(p, y):.3f}"] if installed("relplot") else [])])
    return markdown(["500 forecasts at", "calibrant", "calibrant, the others doubled", "relplot"][: len(rows[0])], rows)


def piled(at):
    """500 forecasts at one place, of which 450 happen, and 500 from .05 to .85, of which every other one happens."""
    p = np.concatenate([np.full(500, at), np.linspace(0.05, 0.85, 500)])
    return p, np.concatenate([np.arange(500) % 10 > 0, np.arange(500) % 2 == 0]).astype(int)


def _smooth_relplot(p, y):
    from relplot.metrics import smECE

    return float(smECE(p, y))


def levels():
    """What "90%" means: the ends of an interval from 100 resamples, by the names of the level."""
    p, y = grid()
    p = np.clip(p + np.random.default_rng(0).uniform(-0.04, 0.04, len(p)), 0, 1)
    rows = [["calibrant, level=0.9", *_ends(*_ours(p, y))]]
    if installed("uncertainty-calibration"):
        rows += [[f"uncertainty-calibration, alpha={alpha}", *_ends(*_theirs(p, y, alpha))] for alpha in (0.1, 10)]
    return markdown(["interval of the equal-mass error, 15 bins", "low", "high", "width"], rows)


def _ours(p, y):
    interval = cal.ADAPTIVE_ECE(y, p, interval=cal.Bootstrap(100, seed=0)).interval
    return interval.low, interval.high


def _theirs(p, y, alpha):
    from calibration import get_calibration_error_uncertainties

    np.random.seed(0)  # noqa: NPY002 - theirs is the global generator
    low, _, high = get_calibration_error_uncertainties(p, y, p=1, alpha=alpha)
    return low, high


def _ends(low, high):
    return f"{low:.4f}", f"{high:.4f}", f"{high - low:.4f}"


def explained():
    """What calibrant.explain says of the grid as float32, for 10 bins: no library needs to be installed."""
    p, y = grid()
    explanation = cal.explain(y, p.astype(np.float32), n_bins=10)
    header, rows = explanation.table()
    return markdown(header, [[cell.replace("|", "\\|") for cell in row] for row in rows])


def agreement():
    """How far calibrant.explain is from what the libraries say themselves, as scripts/explained_libraries.py found."""
    kept = json.loads((Path(__file__).parents[1] / "tests" / "explained.json").read_text(encoding="utf-8"))
    rows = [
        [
            library,
            kept["versions"][library],
            counts["exact"],
            f"{counts['farthest']:.0e}",
            counts["on edges"],
            counts["raises"],
        ]
        for library, counts in kept["agreement"].items()
    ]
    header = [
        "library",
        "version",
        "numbers to 1e-6",
        "farthest apart",
        "on edges, not decided",
        "raises, as predicted",
    ]
    return markdown(header, rows)


TABLES = {
    "versions": versions,
    "explained": explained,
    "agreement": agreement,
    "grid": on_a_grid,
    "pools": pools,
    "one-at-a-time": one_at_a_time,
    "edges": edges,
    "many-rows": many_rows,
    "logits": guessed_logits,
    "bad-rows": bad_rows,
    "row-order": row_order,
    "temperature": temperature,
    "sigmoid": sigmoid,
    "ends": ends,
    "levels": levels,
}


def into(page, name, table):
    """The page with the table of this name between its marks."""
    marks = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    text, count = marks.subn(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page)
    if count != 1:
        raise SystemExit(f"the page needs one place for the table {name!r}, and has {count}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="a Markdown page with a place for every table")
    parser.add_argument("--only", choices=TABLES, help="one table alone")
    given = parser.parse_args()
    text = given.page.read_text(encoding="utf-8") if given.page else None
    for name in [given.only] if given.only else TABLES:
        table = TABLES[name]()
        print(f"{name}: {TABLES[name].__doc__}\n\n{table}\n", flush=True)
        if text is not None:
            text = into(text, name, table)
    if given.page:
        given.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
