"""Settings that all tests share."""

import pytest
from hypothesis import HealthCheck, settings

# Derandomised: the examples are the same in every run, so that no run fails by chance; no time limits, either.
settings.register_profile(
    "calibrant", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("calibrant"), max_examples=5)


def pytest_configure(config: pytest.Config) -> None:
    """Fewer examples of each law where slow tests are left out."""
    settings.load_profile("quick" if config.option.markexpr == "not slow" else "calibrant")
