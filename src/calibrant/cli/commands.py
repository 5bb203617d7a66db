"""Commands: all that `calibrant` can be told to do."""

from calibrant.cli import about, measuring
from calibrant.cli.group import group, run

for command in (measuring.measure, about.demo, about.info):
    group.add_command(command)

__all__ = ["group", "run"]
