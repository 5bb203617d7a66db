"""Metrics of torchmetrics in Lightning, and the guide to training loops: what is logged is the number of all rows."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torchmetrics")
pytest.importorskip("pytorch_lightning")

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Lightning's own imports
    import pytorch_lightning as lightning

from torchmetrics import MetricCollection

import calibrant as cal
from calibrant.integrations.torchmetrics import Calibration

METRICS = {"ece": cal.ECE, "sce": cal.SCE, "log_loss": cal.LOG_LOSS}


class Classifier(lightning.LightningModule):
    """Three classes of five numbers; all that is validated in an epoch is kept, too."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 3)
        self.seen, self.epochs = [], []
        self.ece = Calibration(cal.ECE, cal.Predictions.from_logits)
        self.several = MetricCollection(
            {name: Calibration(metric, cal.Predictions.from_logits) for name, metric in METRICS.items()}
        )
        self.during = Calibration(cal.BRIER, cal.Predictions.from_logits)

    def training_step(self, batch):
        logits = self.layer(batch[0])
        self.log("during", self.during(logits, batch[1]))
        return torch.nn.functional.cross_entropy(logits, batch[1])

    def validation_step(self, batch):
        logits = self.layer(batch[0])
        self.ece.update(logits, batch[1])
        self.several(logits, batch[1])
        self.log("ece", self.ece)
        self.log_dict({f"several/{name}": metric for name, metric in self.several.items()})
        self.seen.append((logits, batch[1]))

    def on_validation_epoch_end(self):
        self.epochs.append([torch.cat(part) for part in zip(*self.seen, strict=True)])
        self.seen.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


@pytest.mark.filterwarnings("ignore")  # of Lightning, about workers and steps
def test_what_is_logged_is_the_number_of_all_rows_of_the_epoch(tmp_path):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(90, 5, generator=generator)
    rows = torch.utils.data.TensorDataset(inputs, inputs[:, :3].argmax(1))
    loader = torch.utils.data.DataLoader(rows, batch_size=32)  # the last batch is smaller
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", default_root_dir=tmp_path, **quiet)
    model = Classifier()
    logged = []

    class Keep(lightning.Callback):
        def on_validation_end(self, trainer, _):
            if not trainer.sanity_checking:
                logged.append({name: float(value) for name, value in trainer.callback_metrics.items()})

    trainer.callbacks.append(Keep())
    trainer.fit(model, loader, loader)
    assert len(logged) == 2
    assert logged[0]["ece"] != logged[1]["ece"]
    for numbers, (logits, labels) in zip(logged, model.epochs[1:], strict=True):  # the first epoch is a sanity check
        predictions = cal.Predictions.from_logits(labels, logits)
        assert numbers["ece"] == cal.ECE(predictions).value
        for name, metric in METRICS.items():
            assert numbers[f"several/{name}"] == metric(predictions).value


GUIDE = Path(__file__).parents[1] / "docs" / "training_loops.md"


def test_the_guide_runs_as_it_stands_and_its_trainer_gets_the_number_of_all_rows(capsys):
    """The Trainer calls `compute_metrics` as it does here: after each batch, and for the result after the last."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    session = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), session)
    logits, labels = session["model"](session["inputs"]), session["labels"]
    whole = cal.ECE(cal.Predictions.from_logits(labels, logits)).value
    assert capsys.readouterr().out.startswith(f"{whole}\nECE {whole:.4f} (n=600")
    for _ in range(2):
        for rows in torch.arange(600).split(128):
            batch = SimpleNamespace(predictions=logits[rows], label_ids=labels[rows])
            numbers = session["compute_metrics"](batch, compute_result=rows[-1] == 599)
        assert numbers == {"ece": whole}
