"""open: the page of a report, in the browser."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import click

from calibrant.cli.group import DATA, stop
from calibrant.cli.input_files import reading_options
from calibrant.cli.output_files import PAGES
from calibrant.cli.report import DEFAULT, report
from calibrant.text import inert


@click.command(name="open", short_help="Show a report in the browser.")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@reading_options
def open_page(files: tuple[str, ...], **keys: Any) -> None:
    """Show a report in the browser. FILE is a page, or predictions for which a new report is made.

    Without FILE, report.html in this folder is shown. A new report goes to a temporary folder. If there is no display,
    the path of the page is printed.

    \b
    Examples:
      calibrant open
      calibrant open report.html
      calibrant open predictions.csv

    \b
    Exit status: 0 the page is shown or its path printed, 2 wrong usage, 3 wrong input.
    """
    files = files or (DEFAULT,)
    if len(files) == 1 and files[0].lower().endswith(PAGES):
        page = Path(files[0]).resolve()
        if not page.is_file():
            stop(f"{files[0]}: there is no such page; calibrant report FILE writes one", DATA)
    else:
        page = Path(tempfile.mkdtemp(prefix="calibrant-"), DEFAULT)
        click.get_current_context().invoke(report, files=files, output=str(page), quiet=True, **keys)
    shown = has_display() and webbrowser.open(page.as_uri())
    click.echo(f"{'shown in the browser' if shown else 'open this page in a browser'}: {inert(str(page), 400)}")


def has_display() -> bool:
    """Whether a browser can open a window: elsewhere than on a desktop of Unix, the system knows."""
    desktop = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return desktop or sys.platform in ("darwin", "win32")
