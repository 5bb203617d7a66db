"""Claims that simulation can test: of Roelofs et al. (2022) and Nixon et al. (2019), and data that make them false."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import simulation_rules as rules
from simulation_world import (
    CALIBRATED,
    CLASS_METRICS,
    ESTIMATORS,
    LOGISTIC,
    PUBLISHED,
    ROOTED,
    UNIFORM,
    Simulation,
)

import calibrant as cal
from calibrant.experiments.findings.claims import Claim, OutOfReach

FALSE_SEEDS = 1_000_000
"""Seeds from here on are those of false data."""


def drawn(**changes: Any) -> Callable[[int], Simulation]:
    """From a seed, a small simulation in which something is otherwise; of one fit and one size unless said."""
    small = {"seeds": 6, "replicates": 10, "class_replicates": 5, "fits": PUBLISHED[:1], "sizes": (200,), **changes}
    return lambda seed: Simulation(first=FALSE_SEEDS + 100 * seed, **small)


def one_estimator(name: str, *aliases: str) -> Mapping[str, cal.Metric]:
    """The estimators, some of which are in truth one and the same."""
    return {**ESTIMATORS, **dict.fromkeys(aliases, ESTIMATORS[name])}


def shuffled_data_sets(seed: int) -> Simulation:
    names = np.random.default_rng(seed).permutation([fit.name for fit in PUBLISHED])
    fits = tuple(fit._replace(name=name) for fit, name in zip(PUBLISHED, names, strict=True))
    return drawn(fits=fits, seeds=2)(seed)


NOT_EQUAL_MASS = drawn(estimators={**one_estimator("EW", "EM"), "EMsweep": ESTIMATORS["EWsweep"]}, apart=True)
ALL_EM = drawn(estimators=dict.fromkeys(ESTIMATORS, ESTIMATORS["EM"]), apart=True)
STEADY = tuple(fit for fit in PUBLISHED if fit.name == "resnet_wide32_c100")
"""A fit of which the deviation of EW does not depend on the number of bins."""
ROELOFS, NIXON = "Roelofs et al. (2022)", "Nixon et al. (2019)"

CLAIMS: tuple[Claim[Simulation] | OutOfReach, ...] = (
    Claim(
        "Of a perfectly calibrated model, the binned error systematically shows large errors",
        f"{ROELOFS}, figure 1",
        f"the mean of EW (15 bins) exceeds {rules.LARGE:g} at n = 200",
        rules.figure_1, drawn(calibrated_size=10_000), "10,000 samples, whose mean is below 2",
    ),
    Claim(
        "With finite samples the binned error can under- and overestimate the true error",
        f"{ROELOFS}, section 3, figure 4",
        "at n = 200 the bias with 2 bins is below 0 and with 64 bins above it",
        rules.over_and_under,
        drawn(fits=(CALIBRATED,)), "a calibrated model, whose error cannot be underestimated",
    ),
    Claim(
        "The best number of bins grows with the number of samples",
        f"{ROELOFS}, section 3, figure 4",
        "the number of equal-width bins of least bias, found for each seed, is larger at n = 6400 than at 200",
        rules.growing_number, drawn(extremes=(400, 401)), "n = 401 against n = 400",
        unit="doublings",
    ),
    Claim(
        "Overall, equal mass is less biased than equal width",
        f"{ROELOFS}, section 5.2",
        "mean size of the bias over ten fits and five sizes: EW above EM, and EWsweep above EMsweep",
        rules.equal_mass_overall, NOT_EQUAL_MASS, "EM is EW and EMsweep is EWsweep, drawn anew",
    ),
    Claim(
        "Equal mass consistently outperforms equal width",
        f"{ROELOFS}, figure 6 (caption)",
        "the same for every one of the ten fits, mean over five sizes",
        rules.equal_mass_consistently, NOT_EQUAL_MASS, "EM is EW and EMsweep is EWsweep, drawn anew",
    ),
    Claim(
        "EMsweep has similar or less bias than the alternatives",
        f"{ROELOFS}, section 5.2",
        f"its bias exceeds that of EW, EM, EMdebias and EWsweep by less than {rules.SIMILAR:g} in every fit and size",
        rules.similar_or_less,
        drawn(estimators={**ESTIMATORS, "EMsweep": cal.BinnedError(binning=cal.EqualWidth(8), **ROOTED)}),
        "EMsweep is an error of eight bins of equal width",
    ),
    Claim(
        "At low sample sizes EMsweep is consistently less biased than all other metrics",
        f"{ROELOFS}, section 5.2",
        "at n = 200, in every fit, its bias is smaller than that of EW, EM, EMdebias and EWsweep",
        rules.less_at_low_n, ALL_EM, "all estimators are EM, drawn anew",
    ),
    Claim(
        "With equal width, the sweep does not improve on other metrics",
        f"{ROELOFS}, section 5.2",
        "mean size of the bias over fits and sizes: EWsweep above EW, EM and EMdebias",
        rules.no_gain_of_equal_width,
        drawn(estimators=one_estimator("EW", "EWsweep"), apart=True, sizes=(3200,)), "EWsweep is EW, drawn anew",
    ),
    Claim(
        "KDE is much more biased than all other metrics",
        f"{ROELOFS}, section 5.2",
        "in the three reference fits, at n = 200 and 3200, its bias is larger than that of each of the five others",
        rules.kde_most_biased, ALL_EM, "all estimators are EM, drawn anew",
    ),
    Claim(
        "After EMsweep, EMdebias is the most competitive metric",
        f"{ROELOFS}, section 5.2",
        "mean size of the bias over fits and sizes: EW, EM and EWsweep above EMdebias",
        rules.debiased_second, ALL_EM, "all estimators are EM, drawn anew",
    ),
    Claim(
        "EMsweep outperforms EMdebias for low sample sizes",
        f"{ROELOFS}, section 5.2",
        "mean size of the bias over the ten fits, at n = 200 and at 400: EMdebias above EMsweep",
        rules.sweep_before_debiased,
        drawn(estimators=one_estimator("EMsweep", "EMdebias"), apart=True, sizes=(200, 400)),
        "EMdebias is EMsweep, drawn anew",
    ),
    Claim(
        "EMdebias varies more than EMsweep when it has more than 4 bins",
        f"{ROELOFS}, section 5.2, figures 12-14",
        "standard deviation at n = 200 in the three reference fits, with 8, 16, 32 and 64 bins",
        rules.debiased_varies_more,
        drawn(estimators=one_estimator("EM", "EMdebias", "EMsweep"), apart=True, replicates=30),
        "both are EM, drawn anew",
    ),
    Claim(
        "The variance does not clearly depend on the number of bins",
        f"{ROELOFS}, appendix B.2, figures 12-14",
        "in the three reference fits, the trend of log sd from 2 to 64 bins (EW, EM; n = 200) is less than a quarter",
        rules.spread_by_bins,
        drawn(estimators=one_estimator("EMdebias", "EM"), replicates=30, fits=STEADY),
        "EM is EMdebias, whose sd nearly doubles",
        unit="per cent",
    ),
    Claim(
        "The bias of EW and EWsweep on CIFAR-10, and of EW on CIFAR-100, grows with the number of samples",
        f"{ROELOFS}, section 5.2",
        "size of the bias at n = 3200 less that at 200, in each of these twelve cases",
        rules.growing_bias,
        drawn(fits=(PUBLISHED[0],), sizes=(400, 401)), "n = 401 against n = 400",
    ),
    Claim(
        "The data set influences the bias more than the architecture",
        f"{ROELOFS}, section 5.2, figure 6",
        "n = 200, EW, EM, EMsweep: biases differ more between data sets than within, against 999 random assignments",
        rules.data_set_matters, shuffled_data_sets, "fits assigned to data sets at random",
    ),
    Claim(
        "The bias is highest for perfectly calibrated models and falls as the true error grows",
        f"{ROELOFS}, section 5.3, figure 7",
        "n = 200, two distributions, EW and EMsweep: it falls at each step from a truth of 0 over 2, 3, 5 and 8 to 10",
        rules.falling_bias,
        drawn(errors=(0.05, 0.05), apart=True), "the same truth twice, drawn anew",
    ),
    Claim(
        "At n = 200 an EW of 12 can stand for a truth of 5 or of 8, depending on the scores",
        f"{ROELOFS}, figure 7 (caption)",
        f"uniform scores, truth 5, and Beta(1.1, 0.1), truth 8: the mean of EW lies within {rules.SIMILAR:g} of 12",
        rules.twelve_points, drawn(twelve=(0.08, 0.05), replicates=30), "the two truths exchanged",
    ),
    Claim(
        "With 5,000 samples of a calibrated model, EW can still be off by 2",
        f"{ROELOFS}, section 5.3, figure 7",
        f"its mean exceeds {rules.LARGE:g} for one of the two distributions of scores",
        rules.still_off, drawn(calibrated_sizes=(200, 7000)), "7,000 samples", share=0.5,
    ),
    Claim(
        "EMsweep significantly reduces the bias of calibrated models",
        f"{ROELOFS}, section 5.3, figure 7",
        "EW less EMsweep, two distributions of scores, n = 200 and 5000",
        rules.sweep_reduces,
        drawn(estimators=one_estimator("EW", "EMsweep"), apart=True, calibrated_sizes=(200, 300)),
        "EMsweep is EW, drawn anew",
    ),
    Claim(
        "EMsweep misses miscalibration less often than EW, below 10,000 samples",
        f"{ROELOFS}, section 5.4, figure 8",
        "share of cases missed, mean over truths of 2, 3, 5, 8 and 10, at n = 200, 500 and 2,000",
        rules.sweep_misses_less,
        drawn(estimators=one_estimator("EW", "EMsweep"), apart=True, detected=(200,), detectable=(0.08,)),
        "EMsweep is EW, drawn anew",
        unit="per cent",
    ),
    Claim(
        "Below 500 samples an error must exceed 10 to be detected reliably",
        f"{ROELOFS}, section 5.4",
        "an error of 10 is missed by EMsweep in more than 5 % of the cases at n = 200, 300, 400 and 499",
        rules.below_500, drawn(few=(400, 499)), "400 and 499 samples alone", unit="per cent",
    ),
    Claim(
        "It takes over 10,000 samples to detect an error of 2",
        f"{ROELOFS}, section 5.4",
        "at n = 10,000 EW and EMsweep miss it in more than 5 % of the cases",
        rules.over_10000, drawn(hard=(0.05, 2500)), "an error of 5 and 2,500 samples", unit="per cent",
    ),
    Claim(
        "Of an uncalibrated model, the sweep chooses a number of bins close to the best",
        f"{ROELOFS}, figure 15 (left)",
        "uniform scores, logistic curve, judged by the effect of the choice: the bias of EMsweep is smaller than "
        f"{rules.SIMILAR:g} at each of five sizes",
        rules.near_best_bins, drawn(chosen=(UNIFORM, UNIFORM)), "a calibrated model",
    ),
    Claim(
        "Of a calibrated model the best number of bins is at most 4, and the sweep misses it",
        f"{ROELOFS}, figure 15 (right)",
        "at each of five sizes: more than 4 bins are chosen, and 5 bins are more biased than 4",
        rules.too_many_bins, drawn(chosen=(LOGISTIC, LOGISTIC)), "an uncalibrated model",
        unit="bins and points",
    ),
    OutOfReach(
        "The choice between ECE and ECE sweep changes which recalibration method is preferred",
        f"{ROELOFS}, figure 2, tables 4-7",
        "it needs the logits of ten networks, which are not here; the recalibration study asks it of others",
    ),
    OutOfReach(
        "The average ECE is above the averages of ACE and TACE",
        f"{NIXON}, section 8.3, figure 7",
        "it follows from the definitions: ACE and TACE are means over classes, most of whose forecasts are near 0",
    ),
    Claim(
        "ACE and TACE come nearer to the true calibration error than ECE, at every number of samples",
        f"{NIXON}, section 8.3, figure 7",
        "distance from one truth: the mean distance of forecasts from true class probabilities, at temperature 2",
        rules.nearer_truth,
        drawn(temperatures=(1.0, 1.0), class_sizes=(1000,)), "calibrated forecasts, of which TACE is the larger",
    ),
    Claim(
        "ACE and TACE vary less than ECE",
        f"{NIXON}, section 8.3, figure 7",
        "standard deviation relative to the mean, at each of five sizes",
        rules.varies_less,
        drawn(class_metrics=dict.fromkeys(CLASS_METRICS, cal.ECE), apart=True, class_sizes=(200,)),
        "ACE and TACE are ECE, drawn anew", unit="per cent of the mean",
    ),
    Claim(
        "As label noise grows, ACE and TACE outperform ECE",
        f"{NIXON}, figure 8",
        "distance from the one truth at n = 1000, temperatures of 1.5, 2, 4 and infinity",
        rules.outperformed, drawn(temperatures=(1.0,)), "calibrated forecasts",
    ),
    Claim(
        "As label noise grows beyond that of calibrated forecasts, ECE approximates the true calibration error worse",
        f"{NIXON}, figure 8 (caption)",
        "its distance from the one truth grows from temperature 1.5 over 2 and 4 to infinity, n = 1000",
        rules.worse_with_noise,
        drawn(temperatures=(0.0, 0.5, 1.0)), "noise that brings forecasts nearer to the truth (temperatures 0, 0.5, 1)",
    ),
)  # fmt: skip
"""Every claim, in the order of the papers."""
