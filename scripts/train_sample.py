"""Train a small network on Fashion-MNIST and write the sample predictions that calibrant ships.

The network is trained with plain cross-entropy, without augmentation or weight decay and for longer than
its accuracy needs, so that it ends up over-confident: the files are meant to have something to calibrate.

    python scripts/train_sample.py --data /usr/share/datasets/fashion-mnist
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn

from calibrant.experiments.training.datasets.idx import FASHION_CLASSES, read_idx

TRAINING_COUNT = 55_000  # the remaining 5,000 training pictures are the validation set
THREAD_COUNT = 1  # sums split over several threads round differently from one machine to the next
BATCH_SIZE = 128
LEARNING_RATE = 1e-3
BIN_COUNT = 15
INK_NAMES = ("light", "medium", "dark")


def read_pictures(folder: Path, prefix: str) -> tuple[np.ndarray, np.ndarray]:
    """Read the pictures and the labels of one half of the data set, "train" or "t10k"."""
    pictures = read_idx(folder / f"{prefix}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{prefix}-labels-idx1-ubyte.gz")
    if len(pictures) != len(labels):
        raise ValueError(f"{len(pictures)} pictures but {len(labels)} labels in {folder}")
    return pictures, labels


def to_tensor(pictures: np.ndarray) -> torch.Tensor:
    """Turn byte pictures into a (count, 1, height, width) tensor of values from 0 to 1."""
    return torch.from_numpy(pictures.astype(np.float32) / 255.0).unsqueeze(1)


def make_network() -> nn.Sequential:
    """Build the network: two convolutions with pooling, one hidden layer, ten logits."""
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, len(FASHION_CLASSES)),
    )


def train_epoch(
    network: nn.Module, optimizer: torch.optim.Optimizer, pictures: torch.Tensor, labels: torch.Tensor
) -> float:
    """Pass over the training pictures once in random order; return the mean loss per picture."""
    network.train()
    loss_sum = 0.0
    for rows in torch.randperm(len(labels)).split(BATCH_SIZE):
        loss = nn.functional.cross_entropy(network(pictures[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(rows)
    return loss_sum / len(labels)


def train(pictures: np.ndarray, labels: np.ndarray, epochs: int, seed: int) -> nn.Module:
    """Train a new network from the given seed."""
    torch.manual_seed(seed)
    torch.set_num_threads(THREAD_COUNT)
    torch.use_deterministic_algorithms(True)
    network = make_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    picture_tensor = to_tensor(pictures)
    label_tensor = torch.from_numpy(labels.astype(np.int64))
    for epoch in range(1, epochs + 1):
        loss = train_epoch(network, optimizer, picture_tensor, label_tensor)
        print(f"epoch {epoch}/{epochs}: training loss {loss:.4f}", flush=True)
    return network


def predict_logits(network: nn.Module, pictures: np.ndarray) -> np.ndarray:
    """Compute the float32 logits of all pictures, shape (count, 10)."""
    network.eval()
    with torch.inference_mode():
        batches = [network(batch) for batch in to_tensor(pictures).split(1_000)]
    return torch.cat(batches).numpy()


def mean_pixel(pictures: np.ndarray) -> np.ndarray:
    """Compute every picture's mean pixel value, from 0 (empty background) to 255 (full ink)."""
    return pictures.mean(axis=(1, 2))


def name_ink(pictures: np.ndarray, cut_points: np.ndarray) -> np.ndarray:
    """Name the tercile of every picture's mean pixel value; a value on a cut point goes to the lower one."""
    return np.array(INK_NAMES)[np.searchsorted(cut_points, mean_pixel(pictures), side="left")]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Compute log-probabilities in double precision."""
    # Subtracting the maximum first keeps exp from overflowing.
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def expected_calibration_error(confidence: np.ndarray, correct: np.ndarray) -> float:
    """Compute the top-label ECE over equal-width bins that are closed on the right."""
    edges = np.linspace(0.0, 1.0, BIN_COUNT + 1)
    bin_index = np.searchsorted(edges[1:-1], confidence, side="left")
    # A bin's weight times its gap is |sum of (confidence - correct)| / count, so no bin needs a mean and an
    # empty bin needs no special case.
    gap_sums = np.bincount(bin_index, weights=confidence - correct, minlength=BIN_COUNT)
    return float(np.abs(gap_sums).sum() / len(confidence))


def describe(logits: np.ndarray, labels: np.ndarray) -> str:
    """Say the accuracy, the negative log-likelihood and the ECE of one set of predictions."""
    log_probabilities = log_softmax(logits)
    correct = logits.argmax(axis=1) == labels
    likelihood_loss = -log_probabilities[np.arange(len(labels)), labels].mean()
    error = expected_calibration_error(np.exp(log_probabilities.max(axis=1)), correct)
    return f"accuracy {correct.mean():.2%}, NLL {likelihood_loss:.4f}, {BIN_COUNT}-bin ECE {error:.2%}"


def write_predictions(path: Path, logits: np.ndarray, labels: np.ndarray, ink: np.ndarray) -> None:
    """Write one file of predictions, all or nothing."""
    temporary = path.with_name(path.name + ".partial")
    # An open stream, because savez would add ".npz" to a name that does not end in it.
    with open(temporary, "wb") as stream:
        np.savez_compressed(
            stream, allow_pickle=False, logits=logits, labels=labels, classes=np.array(FASHION_CLASSES), ink=ink
        )
    os.replace(temporary, path)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    default_out = Path(__file__).resolve().parent.parent / "src" / "calibrant" / "data"
    parser = argparse.ArgumentParser(description="Train a small network and write the sample predictions.")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("/usr/share/datasets/fashion-mnist"),
        help="folder of the four gzip-compressed IDX files (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=default_out,
        help="folder to write to (default: src/calibrant/data of this repository)",
    )
    parser.add_argument("--epochs", type=int, default=30, help="passes over the data (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Train, predict, write both files and print how well calibrated they are."""
    arguments = parse_arguments()
    pictures, labels = read_pictures(arguments.data, "train")
    held_out = {
        "validation": (pictures[TRAINING_COUNT:], labels[TRAINING_COUNT:]),
        "test": read_pictures(arguments.data, "t10k"),
    }
    network = train(pictures[:TRAINING_COUNT], labels[:TRAINING_COUNT], arguments.epochs, arguments.seed)
    cut_points = np.quantile(mean_pixel(pictures[:TRAINING_COUNT]), [1 / 3, 2 / 3])
    print(f"ink cut points: {cut_points[0]:.2f} and {cut_points[1]:.2f}")

    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, (set_pictures, set_labels) in held_out.items():
        logits = predict_logits(network, set_pictures)
        path = arguments.out / f"fashion_mnist_{name}.npz"
        # The logits are stored unrounded: both files together stay well under 1 MB as they are.
        write_predictions(path, logits, set_labels, name_ink(set_pictures, cut_points))
        summary = describe(logits, set_labels)
        print(f"{name}: {len(set_labels)} pictures, {summary}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
