"""Commands: all that `calibrant` can be told to do."""

from calibrant.cli.about import demo, info
from calibrant.cli.experimenting import experiment
from calibrant.cli.group import group, run
from calibrant.cli.measuring import measure
from calibrant.cli.recalibrating import recalibrate
from calibrant.cli.reporting import compare_models, report
from calibrant.cli.simulating import simulate

for command in (measure, report, compare_models, recalibrate, simulate, experiment, demo, info):
    group.add_command(command)

__all__ = ["group", "run"]
