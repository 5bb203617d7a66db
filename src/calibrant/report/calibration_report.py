"""Report: predictions in, a page out."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import calibrant
from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import write_text
from calibrant.inference.draws import check_seed, clusters
from calibrant.kernels.progress import shown
from calibrant.predictions import Predictions
from calibrant.report.charts import planes
from calibrant.report.page import Page, PageTable, Section
from calibrant.report.rebinning import RebinningCounts
from calibrant.report.sections.choices import choices_section
from calibrant.report.sections.classes_and_ranks import classes_section, ranks_section
from calibrant.report.sections.data_and_methods import card_section, methods_section
from calibrant.report.sections.failures import failures_section
from calibrant.report.sections.family import family_section
from calibrant.report.sections.groups_and_intervals import groups_section, likert_section
from calibrant.report.sections.models import models_section
from calibrant.report.sections.proper_scores import scores_section
from calibrant.report.sections.reliability_diagram import noise_section, reliability_section
from calibrant.report.sections.repair import repair_section
from calibrant.report.subject import Subject
from calibrant.report.verdict import Verdict, verdict
from calibrant.text import inert

_SECTIONS = (
    card_section, reliability_section, noise_section, family_section, classes_section, ranks_section, groups_section,
    likert_section, scores_section, repair_section, failures_section, choices_section,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Report:
    """A verdict and the page that supports it.

    >>> import numpy as np, calibrant as cal
    >>> from calibrant.report import Report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> report = Report.of(cal.Predictions.from_probs(rng.random(500) < p**2, p))
    >>> print(report.verdict.sentence[:37])
    Forecasts are too high by 16.3 points
    """

    page: Page
    verdict: Verdict

    @classmethod
    def of(
        cls,
        predictions: Predictions | Mapping[str, Predictions],
        *,
        name: str = "predictions",
        seed: int = 0,
        groups: str | None = None,
        command: str = "calibrant.report.Report.of(predictions)",
    ) -> Report:
        """The report of predictions, or of several models' by name: the first in full, then all side by side.

        `groups` names a column whose rows may depend on each other (pictures of one patient): tests, noise floors and
        intervals allow for that, and folds keep them together.
        """
        check_seed(seed)
        models = dict(predictions) if isinstance(predictions, Mapping) else {name: predictions}
        if not models or not all(isinstance(forecasts, Predictions) for forecasts in models.values()):
            got = repr(predictions)[:60]
            raise CalibrationInputError("predictions", "must be Predictions, or a dictionary of them", got=got)
        if not all(len(forecasts) for forecasts in models.values()):
            raise CalibrationInputError("predictions", "must not be empty", got="0 rows")
        for forecasts in models.values():
            clusters(forecasts, groups)  # refuses a column that is not there, or that has one value only
        subjects = [Subject(forecasts, model, seed, groups) for model, forecasts in models.items()]
        first = subjects[0]
        drafts = [section(first) for section in shown(_SECTIONS, len(_SECTIONS), "report")]
        sections: list[Section] = [section for section in drafts if section is not None]
        if len(subjects) > 1:
            sections.insert(1, models_section(subjects))
        conclusion = verdict(first, subjects[1:])
        page = Page(
            title=f"Calibration of {inert(first.name, 120)}",
            verdict=conclusion.sentence,
            supporting=conclusion.supporting,
            tone=conclusion.tone,
            sections=[*sections, methods_section(first, command)],
            footer=f"Made by calibrant {calibrant.__version__}. No row of the data is in this file.",
            data={"cells": RebinningCounts.of(first.event, first.table, first.squares).to_dict(), "planes": planes()},
        )
        return cls(page, conclusion)

    @property
    def numbers(self) -> list[dict[str, object]]:
        """The family of calibration numbers, a dictionary each, ready for JSON."""
        return self._family.to_dict()

    @property
    def _family(self) -> PageTable:
        return next(section for section in self.page.sections if section.identity == "family").grids[0]

    def to_html(self) -> str:
        """The page as text."""
        return self.page.to_html()

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, whole or not at all; the text "-" is standard output."""
        write_text(path, self.to_html())
        return Path(path)

    def to_markdown(self) -> str:
        """The verdict and the family of numbers as GitHub-flavoured Markdown, for a pull request."""
        family = self._family
        lines = [f"### {_plain(self.page.title)}", "", f"**{_plain(self.verdict.sentence)}**", ""]
        lines += [f"- {_plain(sentence)}" for sentence in self.verdict.supporting]
        lines += ["", _row(family.header), _row(["---"] * len(family.header))]
        lines += [_row([family.shown(cell) for cell in row]) for row in family.rows]
        return "\n".join([*lines, "", _plain(self.page.footer)])

    def __repr__(self) -> str:
        return f"Report({self.verdict.sentence!r})"

    def _repr_html_(self) -> str:
        """The page in a notebook, in a frame of its own."""
        page = html.escape(self.to_html())
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="report" width="100%" height="720"></iframe>'


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(text: str) -> str:
    """Text that Markdown takes as text: nothing in it is markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#" else letter for letter in inert(text, 400))
