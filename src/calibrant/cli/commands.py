"""Commands: all that `calibrant` can be told to do."""

from calibrant.cli.compare import compare_models
from calibrant.cli.demo import demo
from calibrant.cli.experiment import experiment
from calibrant.cli.explain import explain_libraries
from calibrant.cli.group import group, quiet_option, run
from calibrant.cli.info import info
from calibrant.cli.measure import measure
from calibrant.cli.open import open_page
from calibrant.cli.recalibrate import recalibrate
from calibrant.cli.report import report
from calibrant.cli.simulate import simulate
from calibrant.cli.states import merge, state, unmerge
from calibrant.cli.watch import watch

for command in (
    measure, report, open_page, compare_models, explain_libraries, recalibrate, simulate, experiment, state, merge,
    unmerge, watch, demo, info,
):  # fmt: skip
    group.add_command(command)
    quiet_option(command)

__all__ = ["group", "run"]
