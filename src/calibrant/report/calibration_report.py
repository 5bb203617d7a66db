"""Report: predictions in, a page out."""

from __future__ import annotations

import dataclasses
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import calibrant
from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import write_text
from calibrant.inference.confidence import Confidence
from calibrant.inference.draws import check_seed, clusters
from calibrant.kernels.progress import shown
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.report.charts import planes
from calibrant.report.comparison_page import comparison_page
from calibrant.report.key_numbers import key_numbers
from calibrant.report.limit_checks import checked_limits
from calibrant.report.page import Page, PageTable, Section, Verdict
from calibrant.report.sections.choices import choices_section
from calibrant.report.sections.classes_and_ranks import classes_section, ranks_section
from calibrant.report.sections.data_and_methods import card_section, methods_section
from calibrant.report.sections.event_curves import curves_section, decisions_section
from calibrant.report.sections.failures import failures_section
from calibrant.report.sections.family import family_section
from calibrant.report.sections.groups_and_intervals import groups_section, likert_section
from calibrant.report.sections.proper_scores import scores_section
from calibrant.report.sections.reliability_diagram import noise_section, reliability_figure
from calibrant.report.sections.repair import repair_section
from calibrant.report.subject import Subject
from calibrant.report.verdict import verdict
from calibrant.text import inert

_SECTIONS = (
    family_section, noise_section, curves_section, classes_section, ranks_section, groups_section, likert_section,
    scores_section, decisions_section, repair_section, failures_section, choices_section, card_section,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Report:
    """A verdict and the page that supports it.

    >>> import numpy as np, calibrant as cal
    >>> from calibrant.report import Report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> report = Report.of(cal.Predictions.from_probs(rng.random(500) < p**2, p), limits={cal.ECE: 0.05})
    >>> print(report.verdict.sentence[:37], "|", report.page.checks[0].status)
    Forecasts are too high by 16.3 points | fail
    """

    page: Page

    @classmethod
    def of(
        cls,
        predictions: Predictions | Mapping[str, Predictions],
        *,
        name: str = "predictions",
        seed: int = 0,
        groups: str | None = None,
        by: Sequence[str] | None = None,
        limits: Mapping[Metric, float] | None = None,
        confident: bool = False,
        title: str = "",
        about: Sequence[str] = (),
        command: str = "calibrant.report.Report.of(predictions)",
    ) -> Report:
        """The report of predictions; of several models by name, the page that compares them.

        `groups` names a column whose rows may depend on each other (pictures of one patient): tests, noise floors and
        intervals allow for that, and folds keep them together. `by` names the columns whose values are looked at as
        groups; without it, all columns that do not look like row numbers are. `limits` are held against the first
        model, with `confident` by its intervals. `about` are lines under the title: author, date, a note.
        """
        check_seed(seed)
        models = _models(predictions, name)
        for forecasts in models.values():
            clusters(forecasts, groups)  # refuses a column that is not there, or that has one value only
            for column in by or ():
                forecasts.column(column)
        columns = None if by is None else tuple(by)
        subjects = [Subject(forecasts, model, seed, groups, columns) for model, forecasts in models.items()]
        page = _page(subjects[0], command) if len(subjects) == 1 else comparison_page(subjects, command)
        first, interval = subjects[0].predictions, Confidence(seed=seed, groups=groups)
        checks = checked_limits(first, limits or {}, interval, confident=confident)
        if len(subjects) > 1:
            checks = [dataclasses.replace(check, model=inert(subjects[0].name)) for check in checks]
        page = dataclasses.replace(
            page,
            title=inert(title, 200) if title else page.title,
            about=[inert(line, 400) for line in about if line],
            checks=checks,
        )
        return cls(page)

    @property
    def verdict(self) -> Verdict:
        """What the page says in a sentence, and what supports it."""
        return self.page.verdict

    @property
    def numbers(self) -> list[dict[str, object]]:
        """The family of calibration numbers, a dictionary each, ready for JSON."""
        return self._family.to_dict()

    @property
    def _family(self) -> PageTable:
        parts = [*self.page.sections, *([] if self.page.answer is None else [self.page.answer])]
        return next(part for part in parts if part.identity in ("family", "models")).grids[0]

    def to_dict(self) -> dict[str, object]:
        """All that is on the page but its pictures, ready for JSON: verdict, action, limits, every table.

        `numbers` is the table of calibration numbers, or of models and their numbers.
        """
        return {"calibrant": calibrant.__version__, "numbers": self.numbers, **self.page.to_dict()}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1)

    @property
    def sentences(self) -> list[str]:
        """The first screen in words: the verdict, what to do, limits, the key numbers."""
        page = self.page
        return [
            self.verdict.sentence,
            *([f"What to do: {self.verdict.action}"] if self.verdict.action else []),
            *(f"{check.status.capitalize()}: {check.sentence}" for check in page.checks),
            *(f"{number.name}: {number.shown}, {number.between}. {number.meaning}" for number in page.key_numbers),
            *self.verdict.supporting,
        ]

    def to_html(self) -> str:
        """The page as text."""
        return self.page.to_html()

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, whole or not at all; the text "-" is standard output."""
        write_text(path, self.to_html())
        return Path(path)

    def to_markdown(self) -> str:
        """The first screen and the table of numbers as GitHub-flavoured Markdown, for a pull request."""
        family = self._family
        lines = [f"### {_plain(self.page.title)}", "", f"**{_plain(self.verdict.sentence)}**", ""]
        lines += [f"- {_plain(sentence)}" for sentence in self.sentences[1:]]
        lines += ["", _row(family.header), _row(["---"] * len(family.header))]
        lines += [_row([family.shown(cell) for cell in row]) for row in family.rows]
        return "\n".join([*lines, "", _plain(self.page.footer)])

    def __repr__(self) -> str:
        return f"Report({self.verdict.sentence!r})"

    def _repr_html_(self) -> str:
        """The page in a notebook, in a frame of its own."""
        page = html.escape(self.to_html())
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="report" width="100%" height="720"></iframe>'


def _models(predictions: object, name: str) -> dict[str, Predictions]:
    """The models of a page by name; refused where there are none, or where one has no rows."""
    models: dict[str, Any] = dict(predictions) if isinstance(predictions, Mapping) else {name: predictions}
    if not models or not all(isinstance(forecasts, Predictions) for forecasts in models.values()):
        got = repr(predictions)[:60]
        raise CalibrationInputError("predictions", "must be Predictions, or a dictionary of them", got=got)
    if not all(len(forecasts) for forecasts in models.values()):
        raise CalibrationInputError("predictions", "must not be empty", got="0 rows")
    return models


def _page(subject: Subject, command: str) -> Page:
    """The page of one model."""
    steps = [partial(getattr, subject, "test"), partial(getattr, subject, "choice")]  # what takes longest
    steps += [partial(section, subject) for section in _SECTIONS]
    _, _, *drafts = [step() for step in shown(steps, len(steps), "report")]
    answer = reliability_figure(subject)
    return Page(
        title=f"Calibration of {inert(subject.name, 120)}",
        verdict=verdict(subject),
        answer=Section("reliability", "Reliability", (), (answer,)),
        key_numbers=key_numbers(subject),
        sections=[*(section for section in drafts if section is not None), methods_section(subject, command)],
        data={"cells": subject.cells.to_dict(), "planes": planes(answer.span)},
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(text: str) -> str:
    """Text that Markdown takes as text: nothing in it is markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#" else letter for letter in inert(text, 400))
