"""Homes: where pieces live that fit one estimator only, so that JSON and the command line find them by name."""

MOVED = {
    "errors.cumulative": ("ks", "kuiper"),
    "errors.isotonic": ("logarithmic", "quadratic"),
    "errors.kernel": ("biased", "unbiased", "unbiased_blocks"),
    "errors.local": ("by_count", "halves"),
    "errors.neighbour": ("forecasts_within", "nearest_forecasts"),
    "errors.similarity": ("exponential", "gaussian"),
}
"""Options of one estimator that were public once, by the module where they live with it."""
OF_ONE_ESTIMATOR = {
    "errors.asking": ("Pass",),
    "aggregates": ("sample_quantile",),
    "errors.curve": ("loess",),
    "errors.isotonic": ("isotonic_curve",),
    "errors.logistic": ("fitted_intercept", "fitted_slope", "offset_intercept"),
    "errors.platt_excess": ("platt_excess",),
    "errors.risk": ("excess_risk", "mean_generalised_risk", "mean_risk"),
    "errors.roc": ("area_under_roc",),
    "errors.statistic": ("observed_over_expected", "skill"),
    "explanation.edge_rules": (
        *("between_values", "middles", "numpy_linspace", "percentiles", "quotients"),
        *("reached_by_division", "reached_by_product", "row_groups", "torch_linspace"),
    ),
    "explanation.library_bins": ("LibraryBins", "mean_of_filled", "mean_or_zero"),
    "explanation.mesh_smooth": ("MeshSmoothError",),
}
"""Those that never were public, and what `refine` gives."""
HOMES = {name: module for homes in (MOVED, OF_ONE_ESTIMATOR) for module, names in homes.items() for name in names}
"""The module of each."""
