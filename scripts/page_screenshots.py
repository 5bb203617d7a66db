"""Screenshots of report pages, for people to look at: on wide and narrow screens, light and dark, and on paper.

    python scripts/page_screenshots.py FOLDER [NAME ...]

Pages: the shipped network, an event, a rare event, 1,000 classes, 56 groups, two models and five. Each is written as
NAME.html, as PNG of the first screen and of the whole page (1280 and 390 pixels wide, light and dark), and as NAME.pdf.
The number of violations that axe finds on each is printed. Needs playwright, axe-playwright-python and Chromium.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from calibrant.files import SHIPPED, read
from calibrant.predictions import Predictions
from calibrant.recipes import ECE
from calibrant.report import Report

SCREENS = {"1280": (1280, 900), "390": (390, 844)}


def network():
    """The network whose predictions come with calibrant, with a limit that it passes."""
    predictions = read(SHIPPED / "fashion_mnist_test.npz")
    return Report.of(predictions, name="Fashion-MNIST network", limits={ECE: 0.1}, about=["Test set, 10,000 pictures"])


def event(rows=6000):
    """A clinical model whose predictions are too extreme, with columns."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=rows)
    happened = rng.random(rows) < 1 / (1 + np.exp(1.6 - 1.2 * z))
    sex, age = np.where(rng.random(rows) < 0.5, "female", "male"), rng.integers(20, 90, rows)
    columns = {"sex": sex, "age": age, "patient_id": np.arange(rows)}
    predictions = Predictions.from_probs(happened, 1 / (1 + np.exp(1.9 - 2 * z)), **columns)
    return Report.of(predictions, name="Readmission within 30 days", limits={ECE: 0.05})


def rare_event(rows=20_000):
    """A model of an event that happens to one in a hundred, and whose predictions all are below 0.15."""
    rng = np.random.default_rng(2)
    probabilities = 0.15 * rng.beta(1.2, 12, rows)
    return Report.of(
        Predictions.from_probs(rng.random(rows) < 0.7 * probabilities, probabilities), name="Fraud within a day"
    )


def drawn(rows, classes):
    """Logits, and labels drawn from them."""
    rng = np.random.default_rng(0)
    logits = 2.5 * rng.normal(size=(rows, classes))
    gumbel = -np.log(rng.exponential(size=logits.shape))
    return (logits + gumbel).argmax(axis=1), logits


def thousand_classes():
    """An over-confident model of 1,000 classes."""
    labels, logits = drawn(4000, 1000)
    return Report.of(Predictions.from_logits(labels, 1.4 * logits.astype(np.float32)), name="1,000 classes")


def groups(rows=11_200):
    """A model of four answers to questions about 56 subjects, on some of which it is over-confident."""
    labels, logits = drawn(rows, 4)
    subject = np.arange(rows) % 56
    sharp = 1 + 0.5 * (subject % 7 == 0)[:, None]
    names = np.array([f"subject {index:02d}" for index in range(56)])[subject]
    return Report.of(Predictions.from_logits(labels, sharp * logits, subject=names), name="Four answers, 56 subjects")


def models(count):
    """Models of the same rows, the first calibrated, the others the more over-confident."""
    labels, logits = drawn(3000, 10)
    return Report.of(
        {
            f"model {'abcde'[index]}": Predictions.from_logits(labels, (1 + 0.2 * index) * logits)
            for index in range(count)
        }
    )


PAGES = {
    "network": network,
    "event": event,
    "rare_event": rare_event,
    "classes": thousand_classes,
    "groups": groups,
    "two_models": lambda: models(2),
    "five_models": lambda: models(5),
}


def photographed(browser, page_file):
    """The page on every screen and on paper, as files beside it; how many violations axe finds."""
    stem, violations = page_file.with_suffix(""), 0
    for scheme in ("light", "dark"):
        for name, (width, height) in SCREENS.items():
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True
            )
            page = context.new_page()
            page.goto(page_file.resolve().as_uri())
            page.screenshot(path=f"{stem}_{name}_{scheme}.png")
            page.screenshot(path=f"{stem}_{name}_{scheme}_whole.png", full_page=True)
            page.evaluate("document.querySelectorAll('details').forEach(each => (each.open = true))")
            violations += Axe().run(page).violations_count
            context.close()
    page = browser.new_page()
    page.goto(page_file.resolve().as_uri())
    page.pdf(path=f"{stem}.pdf", prefer_css_page_size=True)
    page.close()
    return violations


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help=f"pages to make [default: all]: {', '.join(PAGES)}")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in options.names or PAGES:
            violations = photographed(browser, PAGES[name]().save(options.folder / f"{name}.html"))
            print(f"{name}: axe finds {violations} violations", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
