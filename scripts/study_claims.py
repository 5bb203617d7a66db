"""Claims that a study of networks can test, each with a rule over seeds and data under which it is false.

Of Kirchenbauer, Oaks & Heim (2022), Nixon et al. (2019) and Ao, Rueger & Siddharthan (2023).
"""

from __future__ import annotations

import study_false_data as false_data
import study_rules as rules
from study_records import Records

from calibrant.experiments.findings.claims import Claim, OutOfReach

MOST = 0.51
"""More than half."""
ALMOST_ALL = 0.8
OFTEN = 0.25
KIRCHENBAUER = "Kirchenbauer, Oaks & Heim (2022)"
NIXON = "Nixon et al. (2019)"
AO = "Ao, Rueger & Siddharthan (2023)"
NO_DIFFERENCE = "all methods are the base, drawn anew"
CALIBRATED = "calibrated forecasts, labels drawn from them"

CLAIMS: tuple[Claim[Records] | OutOfReach, ...] = (
    Claim(
        "All interventions but focal loss reduce the ECE of the top label",
        f"{KIRCHENBAUER}, section 5.1, figure 1 (ImageNet)", "base less intervention, every network",
        rules.ece_falls_without_focal, false_data.equal, NO_DIFFERENCE,
    ),
    Claim(
        "All interventions, focal loss too, reduce the ECE of the top label",
        f"{KIRCHENBAUER}, section 5.2, figure 3 (ETHEC), and appendix D.4.1 (CIFAR-100)",
        "base less intervention, every network", rules.ece_falls, false_data.equal, NO_DIFFERENCE,
    ),
    Claim(
        "At k = 5, and over all classes, almost all interventions improve the error very little, if at all",
        f"{KIRCHENBAUER}, section 5.1, figure 1 (ImageNet)",
        "at least nine tenths of the base's top-5 and full error are left, for 80 % of interventions and networks",
        rules.little_gain, false_data.shrunk, "all methods leave nine tenths of the base's errors", share=ALMOST_ALL,
    ),
    Claim(
        "ECE is a poor indicator: other errors often order two methods the other way round",
        f"{KIRCHENBAUER}, sections 1 and 5.1",
        "top-5, full, SCE, ACE and wsECE: clearly the other way round than ECE for a quarter of all pairs of methods "
        "(± is the difference over the smaller of both t statistics)",
        rules.orders_differ, false_data.no_order, "methods that are equal by ECE, and ordered by other errors",
        share=OFTEN,
    ),
    Claim(
        "Label smoothing is worse than the base by the errors of the top 2 to top 5 and of all classes",
        f"{KIRCHENBAUER}, section 5.1, figure 1 (ImageNet)", "top 2 to top 5 and full, label smoothing less base",
        rules.smoothing_harms, false_data.equal, NO_DIFFERENCE,
    ),
    Claim(
        "All interventions reduce the largest output",
        f"{KIRCHENBAUER}, section 5.1, figure 2",
        "base less intervention, mean largest output", rules.largest_output_falls, false_data.equal, NO_DIFFERENCE,
    ),
    Claim(
        "Interventions distribute the probability of other classes differently",
        f"{KIRCHENBAUER}, section 5.1, figure 2",
        "the mean second largest output is not that after temperature scaling, for most other interventions "
        "(two-sided, so it cannot be contradicted)",
        rules.mass_goes_elsewhere, false_data.equal, NO_DIFFERENCE, share=MOST,
    ),
    Claim(
        "Some interventions increase the error between groups of classes",
        f"{KIRCHENBAUER}, section 5.2, figure 3 (ETHEC)",
        "intervention less base, at least one of all", rules.groups_rise, false_data.equal, NO_DIFFERENCE, share=0.001,
    ),
    Claim(
        "All interventions reduce the error between groups of classes",
        f"{KIRCHENBAUER}, appendix D.4.2, figure 28 (CBIS-DDSM)",
        "base less intervention, every network and level", rules.groups_fall, false_data.equal, NO_DIFFERENCE,
    ),
    Claim(
        "Most interventions increase the error between groups where one group's samples are isolated",
        f"{KIRCHENBAUER}, appendix D.4.2, figure 28 (CBIS-DDSM)",
        "intervention less base, of most groups and interventions",
        rules.groups_alone_rise, false_data.equal, NO_DIFFERENCE, share=MOST,
    ),
    Claim(
        "All interventions but histogram binning increase the mean entropy",
        f"{KIRCHENBAUER}, appendix D.2.1, figure 11",
        "intervention less base", rules.entropy_rises, false_data.equal, NO_DIFFERENCE, unit="hundredths of a nat",
    ),
    Claim(
        "Interventions produce more outputs of medium confidence than the base",
        f"{KIRCHENBAUER}, section 5.3, figure 6",
        f"samples in {rules.MIDDLE}, intervention less base", rules.middle_grows, false_data.equal,
        NO_DIFFERENCE, unit="samples",
    ),
    OutOfReach(
        "All models output confidences in the medium interval less often than in the two extremes",
        f"{KIRCHENBAUER}, section 5.3, figure 6",
        "said of a binary task, where a forecast below 0.33 is as sure as one above 0.66; of classes it is not",
    ),
    Claim(
        "The full error stabilises around gamma = 1/16", f"{KIRCHENBAUER}, appendix B.2, figure 7",
        "from 1/2 to 1/4 and from 1/32 to 1/64 it moves more than around 1/16 (one seed, error of resamples of rows)",
        rules.stable_cells, false_data.steady_growth, "an error that grows by the same step at each halving of gamma",
    ),
    Claim(
        "The finer the groups of classes, the larger the error between them",
        f"{KIRCHENBAUER}, appendix D.2.2, figure 12",
        "error above its noise floor, each level less the coarser one, base (error of seeds and of resampled rows)",
        rules.finer_groups, false_data.calibrated, CALIBRATED,
    ),
    Claim(
        "In the medium category there is error by total variation, and none by the distance of categories",
        f"{KIRCHENBAUER}, appendix D.2.3, figure 13",
        "base: total variation, its rank among redrawn labels; the distance of categories less than "
        f"{100 * rules.NEARLY_NONE:g} points above its noise floor (error of seeds and of redrawn labels, "
        "which is mostly larger)",
        rules.middle_category, false_data.calibrated, CALIBRATED,
    ),
    Claim(
        "Vector scaling beats temperature scaling by SCE and ACE", f"{NIXON}, section 8.5, table 1",
        "temperature less vector, within seeds", rules.vector_by_classes, false_data.equal, NO_DIFFERENCE,
    ),
    Claim(
        "Temperature scaling is best by ECE among vector, matrix and isotonic", f"{NIXON}, section 8.5, table 1",
        "each of them less temperature, within seeds", rules.temperature_by_ece, false_data.equal, NO_DIFFERENCE,
    ),
    Claim(
        "On training rows the error goes to nearly zero", f"{NIXON}, section 8.1, figure 5",
        "the last ECE is below one point, of networks with at least "
        f"{rules.FITTED:.0%} of their training rows right", rules.training_error_vanishes,
        false_data.flat_curves, "curves that stay at a point",
    ),
    Claim(
        "On other rows the error grows while the network overfits", f"{NIXON}, section 8.1, figure 5",
        "validation ECE, last epoch less the middle one, of networks with at least "
        f"{rules.FITTED:.0%} of their training rows right", rules.validation_error_grows,
        false_data.flat_curves, "curves that stay at a point",
    ),
    Claim(
        "Calibration error is not uniform across classes", f"{NIXON}, section 8.2, figure 1",
        "range of the classes' TACE above their noise floors, its rank among redrawn labels", rules.classes_differ,
        false_data.calibrated, CALIBRATED,
    ),
    Claim(
        "Networks trained by cross-entropy are over-confident", f"{AO}, section 5.2, table 3",
        "MCS of the base, all networks but transformers (error of seeds and of test rows)", rules.over_confident,
        false_data.calibrated, CALIBRATED,
    ),
    Claim(
        "Focal loss and FLSD overshoot into under-confidence", f"{AO}, section 5.2, table 3",
        "MCS is below 0 (error of seeds and of test rows)", rules.focal_overshoots, false_data.calibrated,
        CALIBRATED,
    ),
    Claim(
        "After temperature scaling more than half of the classes are under-confident",
        f"{AO}, section 5.2 and appendix A, table 5 (whose CIFAR-10 rows have 30 to 40 %)",
        "the share of classes with a negative MCS less 50 % (error of seeds and of a toss for each class)",
        rules.temperature_overshoots,
        false_data.calibrated, CALIBRATED, unit="per cent of classes",
    ),
    Claim(
        "Class-wise temperatures (cwMCS) are better than one temperature in most experiments",
        f"{AO}, section 5.3, table 1",
        "temperature less cwMCS: ECE, wsECE and the size of wsMCS, within seeds, for most of these and networks",
        rules.class_wise_errors, false_data.equal, NO_DIFFERENCE, share=MOST,
    ),
    Claim(
        "Class-wise temperatures leave the accuracy unchanged", f"{AO}, section 5.3, table 1",
        f"its change is smaller than {rules.FINE_CHANGE:g} points", rules.class_wise_accuracy,
        false_data.less_accurate, f"an accuracy that is lower by {rules.FINE_CHANGE:g} points",
    ),
    Claim(
        "Class-wise temperatures find failures better than one temperature", f"{AO}, section 5.4, figure 2",
        "accuracy of the rest when 15 to 40 % are referred by entropy, cwMCS less temperature", rules.failures,
        false_data.equal, NO_DIFFERENCE,
    ),
    OutOfReach(
        "Results for networks of ImageNet's size", f"{KIRCHENBAUER}, section 5.1, figure 1; {AO}, table 1",
        "none was trained; such predictions enter a study as files",
    ),
)  # fmt: skip
"""Every claim, in the order of the papers."""
