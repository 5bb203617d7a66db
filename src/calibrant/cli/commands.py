"""Commands: all that `calibrant` can be told to do."""

from calibrant.cli.compare import compare_models
from calibrant.cli.demo import demo
from calibrant.cli.experiment import experiment
from calibrant.cli.explain import explain_libraries
from calibrant.cli.group import group, run
from calibrant.cli.info import info
from calibrant.cli.measure import measure
from calibrant.cli.recalibrate import recalibrate
from calibrant.cli.report import report
from calibrant.cli.simulate import simulate
from calibrant.cli.states import merge, state, unmerge
from calibrant.cli.watch import watch

for command in (
    measure, report, compare_models, explain_libraries, recalibrate, simulate, experiment, state, merge, unmerge,
    watch, demo, info,
):  # fmt: skip
    group.add_command(command)

__all__ = ["group", "run"]
