"""Do simulations repeat the published ones, and do the papers' claims hold? Writes docs/simulation_study.md.

    python scripts/simulation_study.py [--replicates 1000] [--jobs 2]

Printed numbers are those of Roelofs et al. (2022). Errors are L2 unless said, in points (hundredths); equal-width bins
are left-closed, as in their program.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant import simulate

SEED = 0
SIZES = (200, 400, 800, 1600, 3200, 6400)
FIGURE_4 = {
    2: (-4.34, -4.52, -4.65, -4.72, -4.78, -4.82),
    4: (-3.28, -3.71, -4.02, -4.21, -4.34, -4.42),
    8: (-1.43, -2.14, -2.69, -3.04, -3.26, -3.40),
    16: (0.62, -0.37, -1.12, -1.67, -2.01, -2.24),
    32: (2.66, 1.50, 0.52, -0.26, -0.83, -1.22),
    64: (4.54, 3.32, 2.14, 1.13, 0.30, -0.30),
}
"""Bias in points by number of bins, for each of the sizes."""
REFERENCE = ("resnet110_c10", "resnet_wide32_c100", "resnet152_imgnet")
ROOTED = {"distance": cal.squared, "aggregate": cal.root_mean}
LEFT = cal.EqualWidth(15, closed="left")
METRICS = {
    "EW": cal.BinnedError(binning=LEFT, **ROOTED),
    "EM": cal.BinnedError(binning=cal.EqualMass(15), **ROOTED),
    "EMdebias": cal.ECE_DEBIASED,
    "EWsweep": cal.BinnedError(binning=cal.Sweep(LEFT), **ROOTED),
    "EMsweep": cal.BinnedError(binning=cal.Sweep(), **ROOTED),
}
KDE = {"KDE": cal.KDEError(order=2)}
BINS = (2, 4, 8, 16, 32, 64)
ERRORS = (0.02, 0.03, 0.05, 0.08, 0.10)
DETECTED = (200, 500, 2000, 10_000, 20_000)


def table(header, rows):
    """Markdown rows."""
    lines = ["| " + " | ".join(map(str, header)) + " |", "|" + "---|" * len(header)]
    return [*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def verdict(share):
    """In words: how far a claim holds."""
    return "holds" if share == 1 else "mostly" if share >= 0.8 else "does not hold"


def points(value, signed=True):
    return f"{100 * value:+.2f}" if signed else f"{100 * value:.2f}"


def stated(needed):
    """How many samples, and from where to where simulation leaves it open."""
    return f"{needed.n:,} [{needed.low:,}, {needed.high:,}]"


class Study:
    """The experiments, each run once and looked up by every section that needs it."""

    def __init__(self, replicates, jobs):
        self.replicates, self.jobs = replicates, jobs
        self.run = {"replicates": replicates, "seed": SEED, "n_jobs": jobs}
        self.fewer = {**self.run, "replicates": max(1, replicates * 3 // 10)}
        self.claims = []

    def claim(self, words, holds, evidence):
        """A claim of the paper, the share of the cases in which it holds here, and what shows it."""
        self.claims.append((words, float(holds), evidence))

    # ---- Roelofs et al. -------------------------------------------------------------------------------------------

    def figure_4(self):
        fit = simulate.PUBLISHED["resnet110_c10"]
        grid = simulate.bias_grid({"EW": METRICS["EW"]}, fit.scores, fit.curve, SIZES, BINS, **self.run)
        self.binned = grid
        ours = {bins: [100 * grid[f"EW {bins}", n].bias for n in SIZES] for bins in BINS}
        differences = np.array([np.subtract(ours[bins], FIGURE_4[bins]) for bins in BINS])
        error = max(cell.mc_error for cell in grid.cells.values())
        best = [min(BINS, key=lambda bins, n=n: abs(grid[f"EW {bins}", n].bias)) for n in SIZES]
        both = [ours[bins][0] for bins in BINS]
        self.claim(
            "The binned error can over- and underestimate the truth",
            min(both) < 0 < max(both),
            f"at n = 200 from {min(both):+.2f} (2 bins) to {max(both):+.2f} (64 bins)",
        )
        self.claim(
            "The best number of bins grows with the number of samples",
            best == sorted(best) and best[-1] > best[0],
            f"best of {BINS}: {', '.join(f'{b} at n = {n}' for n, b in zip(SIZES, best, strict=True))}",
        )
        rows = [
            [bins, *(f"{printed:+.2f} / {own:+.2f}" for printed, own in zip(FIGURE_4[bins], ours[bins], strict=True))]
            for bins in BINS
        ]
        truth = grid["EW 2", 200].truth
        return [
            "## Figure 4: bias of the equal-width error, printed / ours",
            "",
            f"Scores Beta(2.7752, 0.0478), curve logflip_logflip(-0.24, 0.30), true error {points(truth, False)}; "
            f"{self.replicates} replicates, seed {SEED}, Monte Carlo error at most {100 * error:.2f}.",
            "",
            *table(["bins", *(f"n = {n}" for n in SIZES)], rows),
            f"Difference over the 36 cells: mean {np.abs(differences).mean():.3f}, largest "
            f"{np.abs(differences).max():.3f} points.",
            "",
        ]

    def figure_1(self):
        run = {**self.run, "replicates": 10 * self.replicates}
        found = simulate.bias({"EW": METRICS["EW"]}, simulate.BetaScores(2.8, 0.05), simulate.IDENTITY, 200, **run)[
            "EW"
        ]
        self.claim(
            "The binned error of a perfectly calibrated model is systematically far from 0",
            found.mean > 3 * found.sd / 2,
            f"mean {points(found.mean, False)}, sd {points(found.sd, False)} at n = 200",
        )
        return [
            "## Figure 1: a calibrated model",
            "",
            f"Beta(2.8, 0.05), calibrated, n = 200, EW of 15 bins, {run['replicates']} replicates: mean "
            f"{points(found.mean, False)}, sd {points(found.sd, False)} (Monte Carlo error {100 * found.mc_error:.2f}) "
            "where the truth is 0. The figure prints no number.",
            "",
        ]

    def figure_6(self):
        rows, self.bias, self.squares = [], {}, {}
        for name, fit in simulate.PUBLISHED.items():
            grid = simulate.bias_grid(METRICS, fit.scores, fit.curve, SIZES[:5], **self.run)
            self.bias[name] = {(metric, n): grid[metric, n] for metric in METRICS for n in SIZES[:5]}
            if name in REFERENCE:
                kde = simulate.bias_grid(KDE, fit.scores, fit.curve, (200, 3200), **self.fewer)
                self.bias[name].update({("KDE", n): kde["KDE", n] for n in (200, 3200)})
                for n in (200, 3200):
                    cell = kde["KDE", n]
                    self.squares[name, n] = cell.mean**2 + cell.sd**2 - cell.truth
        for name in simulate.PUBLISHED:
            for n in (200, 3200):
                cells = [self.bias[name].get((metric, n)) for metric in (*METRICS, "KDE")]
                shown = ["-" if cell is None else f"{points(cell.bias)} ({points(cell.sd, False)})" for cell in cells]
                rows.append([name, n, points(self.bias[name]["EW", n].truth, False), *shown])
        self._claims_of_figure_6()
        return [
            "## Figures 6 and 9-14: bias (and standard deviation) of six estimators",
            "",
            f"{self.replicates} replicates (KDE: {self.fewer['replicates']}, the three reference fits only); laws and "
            "curves as printed in tables 1 and 2.",
            "",
            *table(["fit", "n", "truth", *METRICS, "KDE"], rows),
            "The estimators in order of their bias, least first:",
            "",
            *table(
                ["fit", "n = 200", "n = 3200"],
                [[name, *(", ".join(self.ranked(name, n)) for n in (200, 3200))] for name in REFERENCE],
            ),
        ]

    def ranked(self, name, n):
        """Estimators by |bias|; those within two Monte Carlo errors of each other are not told apart by it."""
        there = [metric for metric in (*METRICS, "KDE") if (metric, n) in self.bias[name]]
        return sorted(there, key=lambda metric: abs(self.bias[name][metric, n].bias))

    def _count(self, holds, n):
        """How many of the ten fits a statement of |bias| holds for, at one n."""
        return sum(holds({metric: abs(self.bias[name][metric, n].bias) for metric in METRICS}) for name in self.bias)

    def _claims_of_figure_6(self):
        fits = len(self.bias)
        for n in (200, 3200):
            count = self._count(lambda bias: bias["EM"] < bias["EW"], n)
            self.claim(
                f"Equal mass is less biased than equal width (n = {n})",
                count / fits,
                f"EM against EW: {count} of {fits} fits",
            )
            count = self._count(lambda bias: bias["EMsweep"] < bias["EWsweep"], n)
            self.claim(
                f"The sweep over equal mass is less biased than over equal width (n = {n})",
                count / fits,
                f"{count} of {fits} fits",
            )
            count = self._count(lambda bias: bias["EMsweep"] <= min(bias.values()), n)
            words = "At low n" if n == 200 else "At large n, too,"
            self.claim(
                f"{words} EMsweep is less biased than every other estimator (n = {n})",
                count / fits,
                f"least bias of the five in {count} of {fits} fits",
            )
        count = self._count(lambda bias: bias["EMsweep"] < bias["EMdebias"], 200)
        self.claim("EMsweep is less biased than EMdebias at low n", count / fits, f"n = 200: {count} of {fits} fits")
        count = self._count(lambda bias: bias["EMdebias"] < min(bias["EW"], bias["EM"], bias["EWsweep"]), 200)
        self.claim("After EMsweep, EMdebias is the least biased", count / fits, f"n = 200: {count} of {fits} fits")
        wider = sum(one["EMdebias", 200].sd > one["EMsweep", 200].sd for one in self.bias.values())
        self.claim("EMdebias varies more than EMsweep", wider / fits, f"n = 200: {wider} of {fits} fits")
        for kind, metric in (("_c10", "EW"), ("_c10", "EWsweep"), ("_c100", "EW")):
            names = [name for name in self.bias if name.endswith(kind)]
            grown = sum(
                abs(self.bias[name][metric, 3200].bias) > abs(self.bias[name][metric, 200].bias) for name in names
            )
            self.claim(
                f"The bias of {metric} grows with n on CIFAR{kind.replace('_c', '-')}",
                grown / len(names),
                f"from n = 200 to 3200 in {grown} of {len(names)} fits",
            )
        cells = [(name, n) for name in REFERENCE for n in (200, 3200)]
        worst = sum(self.ranked(name, n)[-1] == "KDE" for name, n in cells)
        rooted = ", ".join(points(self.bias[name]["KDE", n].bias) for name, n in cells)
        without = ", ".join(points(self.squares[name, n]) for name, n in cells)
        self.claim(
            "KDE is much more biased than all others",
            worst / len(cells),
            f"largest bias of six in {worst} of {len(cells)} cells of the reference fits; its bias {rooted}; had no "
            f"root been taken, as in that estimator's program, it would be {without}",
        )

    def variance(self):
        rows = []
        for name in REFERENCE:
            fit = simulate.PUBLISHED[name]
            chosen = {"EM": METRICS["EM"], "EMdebias": METRICS["EMdebias"]}
            grid = simulate.bias_grid(chosen, fit.scores, fit.curve, (200,), BINS, **self.run)
            sweep = self.bias[name]["EMsweep", 200]
            for metric in chosen:
                rows.append([name, metric, *(points(grid[f"{metric} {bins}", 200].sd, False) for bins in BINS)])
            wider = [bins for bins in BINS if grid[f"EMdebias {bins}", 200].sd > sweep.sd]
            self.claim(
                f"EMdebias varies more than EMsweep unless it has at most 4 bins ({name})",
                set(wider) == {8, 16, 32, 64},
                f"more with {wider} bins (EMsweep {points(sweep.sd, False)})",
            )
            spread = [grid[f"EM {bins}", 200].sd for bins in BINS]
            self.claim(
                f"Variance does not clearly depend on the number of bins ({name}; sd within a factor of 1.25)",
                max(spread) < 1.25 * min(spread),
                f"sd of EM at n = 200 from {points(min(spread), False)} to {points(max(spread), False)}",
            )
        return [
            "## Figures 12-14: standard deviation by number of bins, n = 200",
            "",
            *table(["fit", "estimator", *(f"{bins} bins" for bins in BINS)], rows),
        ]

    def figure_7(self):
        rows, means = [], {}
        for law, scores in (("uniform", simulate.UNIFORM), ("Beta(1.1, 0.1)", simulate.BetaScores(1.1, 0.1))):
            chosen = {name: METRICS[name] for name in ("EW", "EMsweep")}
            for n in (200, 5000):
                for error in (0.0, *ERRORS):
                    curve = simulate.curve_with_error(scores, error)
                    found = simulate.bias(chosen, scores, curve, n, **self.run)
                    means[law, n, error] = {name: found[name].mean for name in chosen}
                    rows.append([law, n, points(error, False), *(points(found[name].mean, False) for name in chosen)])
        five, eight = means["uniform", 200, 0.05]["EW"], means["Beta(1.1, 0.1)", 200, 0.08]["EW"]
        self.claim(
            "At n = 200, an EW of 12 may stand for a truth of 5 or of 8, by the law of the scores",
            abs(five - 0.12) < 0.005 and abs(eight - 0.12) < 0.005,
            f"uniform, truth 5: {points(five, False)}; Beta(1.1, 0.1), truth 8: {points(eight, False)}",
        )
        for name in ("EW", "EMsweep"):
            excess = [
                [means[law, 200, error][name] - error for error in (0.0, *ERRORS)]
                for law in ("uniform", "Beta(1.1, 0.1)")
            ]
            falls = all(all(np.diff(one) < 0) for one in excess)
            shown = "; ".join(" ".join(points(value) for value in one) for one in excess)
            self.claim(f"The better calibrated, the larger the bias ({name}, n = 200)", falls, shown)
        off = [means[law, 5000, 0.0]["EW"] for law in ("uniform", "Beta(1.1, 0.1)")]
        self.claim(
            "With 5,000 samples of a calibrated model, EW is still off by 2",
            all(0.015 < value < 0.025 for value in off),
            " and ".join(points(value, False) for value in off),
        )
        cut = [
            1 - means[law, n, 0.0]["EMsweep"] / means[law, n, 0.0]["EW"]
            for law in ("uniform", "Beta(1.1, 0.1)")
            for n in (200, 5000)
        ]
        self.claim(
            "EMsweep reduces the bias of calibrated models significantly (by a quarter or more)",
            np.mean([value > 0.25 for value in cut]),
            "by " + ", ".join(f"{value:.0%}" for value in cut) + " (uniform and beta, n = 200 and 5000)",
        )
        return [
            "## Figure 7: mean estimates along s^d",
            "",
            *table(["scores", "n", "truth", "EW", "EMsweep"], rows),
        ]

    def figure_8(self):
        chosen = {name: METRICS[name] for name in ("EW", "EMsweep")}
        rows, missed, errors = [], {}, []
        for n in DETECTED:
            row = [n]
            for error in ERRORS:
                curve = simulate.curve_with_error(simulate.UNIFORM, error)
                found = simulate.power(chosen, simulate.UNIFORM, curve, n, **self.run)
                missed[n, error] = {name: found[name].type_two for name in chosen}
                errors += [one.mc_error for one in found.values()]
                row.append(" / ".join(f"{found[name].type_two:.2f}" for name in chosen))
            rows.append(row)
        lower = all(one["EMsweep"] <= one["EW"] + 0.06 for one in missed.values())
        gains = [missed[n, e]["EW"] - missed[n, e]["EMsweep"] for n in DETECTED if n < 10_000 for e in ERRORS]
        self.claim(
            "EMsweep misses less than EW, above all below 10,000 samples (never more by 0.06, less by 0.1 somewhere)",
            lower and max(gains) > 0.1,
            f"by up to {max(gains):.2f} below 10,000",
        )
        self.claim(
            "Below 500 samples an error must exceed 10 to be noticed reliably (missed at most 0.05)",
            min(missed[200, 0.10].values()) > 0.05,
            f"n = 200, truth 10: EMsweep misses {missed[200, 0.10]['EMsweep']:.2f}, EW {missed[200, 0.10]['EW']:.2f}",
        )
        needed = {
            name: simulate.samples_needed(metric, simulate.UNIFORM, 0.02, wanted=0.95, seed=SEED, n_jobs=self.jobs)
            for name, metric in chosen.items()
        }
        self.claim(
            "It takes over 10,000 samples to notice an error of 2 reliably (missed at most 0.05)",
            all(one.low > 10_000 for one in needed.values()),
            f"{stated(needed['EW'])} (EW), {stated(needed['EMsweep'])} (EMsweep); see below for a miss rate of 0.2",
        )
        asked = [
            [
                points(error, False),
                *(
                    stated(simulate.samples_needed(metric, simulate.UNIFORM, error, n_jobs=self.jobs))
                    for metric in chosen.values()
                ),
            ]
            for error in ERRORS
        ]
        return [
            "## Figure 8: how often miscalibration is missed, EW / EMsweep",
            "",
            f"Uniform scores, s^d, type I error 0.05, {self.replicates} replicates, as many for the critical value "
            f"(Monte Carlo error at most {max(errors):.3f}).",
            "",
            *table(["n", *(f"truth {points(error, False)}" for error in ERRORS)], rows),
            "Samples that it takes to notice an error with power 0.8, and their 90% intervals (`samples_needed`):",
            "",
            *table(["truth", *chosen], asked),
        ]

    def figure_15(self):
        rows = []
        sizes = SIZES[:5]
        for words, curve in (
            ("logistic(10 s - 5)", simulate.logistic_curve(10, -5)),
            ("calibrated", simulate.IDENTITY),
        ):
            sweep = simulate.bias_grid({"EMsweep": METRICS["EMsweep"]}, simulate.UNIFORM, curve, sizes, **self.run)
            bins = simulate.bias_grid({"EM": METRICS["EM"]}, simulate.UNIFORM, curve, sizes, range(1, 41), **self.fewer)
            best = [min(range(1, 41), key=lambda b, n=n: abs(bins[f"EM {b}", n].bias)) for n in sizes]
            chosen = [sweep["EMsweep", n].n_bins for n in sizes]
            rows.append([words, "chosen", *(f"{one:.1f}" for one in chosen)])
            rows.append([words, "least biased", *best])
            if words == "calibrated":
                self.claim(
                    "Calibrated, the best number of bins is at most 4 and the sweep misses it",
                    max(best) <= 4 < min(chosen),
                    f"best {best}, chosen {min(chosen):.1f} to {max(chosen):.1f}",
                )
            else:
                self.claim(
                    "Miscalibrated, the sweep chooses nearly the best number of bins (its bias stays below 1)",
                    all(abs(sweep["EMsweep", n].bias) < 0.01 for n in sizes),
                    f"chosen {min(chosen):.1f} to {max(chosen):.1f}, best {best}; bias of EMsweep at most "
                    f"{max(abs(100 * sweep['EMsweep', n].bias) for n in sizes):.2f}",
                )
        return [
            "## Figure 15: how many bins the sweep chooses, and how many are least biased (of 1 to 40)",
            "",
            *table(["curve", "bins", *(f"n = {n}" for n in sizes)], rows),
        ]

    def table_3(self):
        rows, differences = [], []
        for name, fit in simulate.PUBLISHED.items():
            found = simulate.bias({"EW": METRICS["EW"]}, fit.scores, fit.curve, 1000, **self.run)["EW"]
            one = simulate.true_calibration_error(fit.scores, fit.curve, p=1)
            differences.append(100 * (found.mean - fit.simulated))
            rows.append(
                [
                    name,
                    *(points(value, False) for value in (one, found.truth, fit.simulated, found.mean)),
                    f"{differences[-1]:+.2f}",
                ]
            )
        return [
            "## Table 3: the simulated binned error",
            "",
            "n = 1000, EW of 15 bins, curves of table 2. The printed column came from curves fitted to other data (the "
            "validation fold), so only nearness can be asked for.",
            "",
            *table(["fit", "true L1", "true L2", "printed", "ours", "difference"], rows),
            f"Mean difference {np.abs(differences).mean():.2f} points.",
            "",
        ]

    # ---- Nixon et al. ---------------------------------------------------------------------------------------------

    def classes(self):
        scores = simulate.SoftmaxScores(10, 3.0)
        metrics = {"ECE": cal.ECE, "SCE": cal.SCE, "ACE": cal.ACE, "TACE": cal.TACE}
        run = {**self.run, "replicates": max(1, self.replicates // 10)}
        sizes = (200, 500, 1000, 2000, 5000)
        grid = simulate.bias_grid(metrics, scores, simulate.Tempered(2.0), sizes, **run)
        noise = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0, np.inf)
        noisy = simulate.label_noise(metrics, scores, noise, n=1000, **run)
        rows = [
            [name, points(grid[name, 200].truth, False)]
            + [f"{points(grid[name, n].bias)} ({points(grid[name, n].sd, False)})" for n in sizes]
            for name in metrics
        ]
        relative = {name: [abs(grid[name, n].bias) / grid[name, n].truth for n in sizes] for name in metrics}
        spread = {name: grid[name, 1000].sd / grid[name, 1000].truth for name in metrics}
        higher = all(grid["ECE", n].mean > grid["ACE", n].mean for n in sizes)
        self.claim(
            "The average ECE is above the average ACE (Nixon et al., figure 7)",
            higher,
            f"n = 1000: ECE {points(grid['ECE', 1000].mean, False)}, ACE {points(grid['ACE', 1000].mean, False)}",
        )
        self.claim(
            "The average ECE is above the average TACE (Nixon et al., figure 7)",
            all(grid["ECE", n].mean > grid["TACE", n].mean for n in sizes),
            f"n = 1000: TACE {points(grid['TACE', 1000].mean, False)}",
        )
        self.claim(
            "ACE and TACE converge to the truth faster (relative bias at n = 1000)",
            max(relative["ACE"][2], relative["TACE"][2]) < relative["ECE"][2],
            ", ".join(f"{name} {relative[name][2]:.1%}" for name in metrics),
        )
        self.claim(
            "ACE and TACE vary less (sd relative to the truth at n = 1000)",
            max(spread["ACE"], spread["TACE"]) < spread["ECE"],
            ", ".join(f"{name} {spread[name]:.1%}" for name in metrics),
        )
        truth = [[name, *(points(noisy[name, tau].truth, False) for tau in noise)] for name in metrics]
        biases = [[name, *(points(noisy[name, tau].bias) for tau in noise)] for name in metrics]
        ratio = {name: [abs(noisy[name, tau].bias) / noisy[name, tau].truth for tau in noise[-3:]] for name in metrics}
        self.claim(
            "As label noise grows, ECE does worse than ACE and TACE (relative bias; Nixon et al., figure 8)",
            all(ratio["ECE"][k] > max(ratio["ACE"][k], ratio["TACE"][k]) for k in range(3)),
            "at temperatures 2, 4, infinite: "
            + "; ".join(f"{name} " + " ".join(f"{value:.1%}" for value in ratio[name]) for name in metrics),
        )
        return [
            "## Classes (Nixon et al., figures 7-8)",
            "",
            "The paper does not say how its simulations were made; this is one reading. "
            f"Forecasts are the softmax of ten normal logits of standard deviation {scores.spread:g}; the truth is the "
            f"same at temperature 2; {run['replicates']} replicates. The truth of each metric is its own limit. Bias "
            "(and standard deviation), L1, in points:",
            "",
            *table(["metric", "truth", *(f"n = {n}" for n in sizes)], rows),
            "By label noise (temperature of the truth: 0 certain, 1 calibrated, inf uniform), n = 1000. The truth:",
            "",
            *table(["metric", *(f"{tau:g}" for tau in noise)], truth),
            "The bias:",
            "",
            *table(["metric", *(f"{tau:g}" for tau in noise)], biases),
        ]

    def closed_forms(self):
        rows = []
        for a, b in ((1.0, 1.0), (1.1, 0.1), (2.8, 0.05)):
            scores = simulate.BetaScores(a, b)
            curve = simulate.power_curve(2)
            closed = simulate.true_calibration_error(scores, curve)
            integral = np.sqrt(scores.mean_of(lambda x, q, c=curve: (x - c.at(x, q)) ** 2))
            rows.append([f"Beta({a:g}, {b:g})", f"{closed:.10f}", f"{integral:.10f}", f"{abs(closed - integral):.0e}"])
        return [
            "## True errors of s^2: closed form and quadrature",
            "",
            *table(["scores", "closed", "integral", "off"], rows),
        ]

    def verdicts(self):
        said = [(words, verdict(share), evidence) for words, share, evidence in self.claims]
        counts = {word: sum(one[1] == word for one in said) for word in ("holds", "mostly", "does not hold")}
        return [
            "## The papers' claims, one by one",
            "",
            f"Of {len(said)} claims, {counts['holds']} hold, {counts['mostly']} mostly (in at least 80% of the fits "
            f"they speak of), and {counts['does not hold']} do not. Where the paper gives no measure, the one taken is "
            "in brackets. Differences of the order of the Monte Carlo error decide nothing.",
            "",
            *table(["claim", "verdict", "what was found (points)"], said),
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "simulation_study.md")
    options = parser.parse_args()
    study = Study(options.replicates, options.jobs)
    body = []
    for section in (
        study.figure_4,
        study.figure_1,
        study.figure_6,
        study.variance,
        study.figure_7,
        study.figure_8,
        study.figure_15,
        study.table_3,
        study.classes,
        study.closed_forms,
    ):
        start = time.perf_counter()
        body += section()
        print(f"{section.__name__}: {time.perf_counter() - start:.1f} s")
    lines = [
        "# Do simulations repeat the published ones, and do the claims hold?",
        "",
        "Written by `scripts/simulation_study.py`; do not edit. Printed numbers are those of Roelofs et al. (2022), "
        f"*Mitigating bias in calibration error estimation*. Errors are L2 unless said, in points (hundredths); seed "
        f"{SEED}; {options.replicates} replicates unless said.",
        "",
        *study.verdicts(),
        *body,
    ]
    options.out.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
