"""Metrics of tensors on a GPU: the same totals as on the host, and how long they take beside one read of the matrix.

    python benchmarks/gpu.py [--rows 50000] [--classes 1000] [--tokens 4096] [--vocabulary 128000] [--json results.json]
        [--times-only]

First every lens is compared with the host, in all types; then tasks are timed. `stream` is the sum of the durations of
all kernels and copies of a call as the GPU's own clock has them (torch's profiler, the mean of ten calls): the time in
which the GPU was busy, without the gaps in which it waited for Python. `call` is the whole Python call by the clock of
the host, from an idle GPU to an idle GPU, the median of thirty. A read is the fastest of some reductions of the same
matrix in the same run and a copy is `clone`, both between two events of the stream, the median of thirty. With
`--device cpu` everything runs on tensors of the host that are treated as if they were on a device: a check of the
script, not a measurement.
"""

import argparse
import json
import platform
import statistics
import time
from importlib.util import find_spec

import numpy as np
import torch

import calibrant as cal
from calibrant.door import foreign
from calibrant.kernels import rowwise
from calibrant.kernels import torch as backend

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
LENSES = (
    cal.TopLabel(),
    cal.InTopK(2),
    cal.Ranked(2),
    cal.OneClass(1),
    cal.Classwise(),
    cal.Flat(),
    cal.ByLabel(cal.TopLabel()),
    cal.ByPrediction(cal.TopLabel()),
    cal.Above(cal.Classwise(), 0.01),
    cal.Between(cal.TopLabel(), 0.2, 0.6),
)
BINNINGS = (cal.EqualWidth(), cal.EqualWidth(10, closed="left"), cal.EqualWidth(200), cal.EqualMass())
SHAPES = ((1, 2), (1000, 2), (257, 17), (3000, 100), (500, 1000), (20, 5000))
SCORES = (cal.BRIER, cal.LOG_LOSS, cal.ACCURACY)
TIMES, PROFILED = 30, 10


def logits_of(rows, classes, device, dtype=torch.float32):
    """Logits of a network that is right about two times in three, and the labels."""
    generator = torch.Generator(device).manual_seed(rows + classes)
    z = torch.randn((rows, classes), generator=generator, device=device, dtype=torch.float32).mul_(2)
    y = torch.randint(classes, (rows,), generator=generator, device=device)
    z[torch.arange(rows, device=device), y] += 7.5
    return y, z.to(dtype)


def host_of(make, y, values):
    """The same predictions of arrays of NumPy."""
    stays, foreign.stays = foreign.stays, lambda tensor: False
    try:
        return make(y, values)
    finally:
        foreign.stays = stays


def differences(device):
    """What is not as on the host: a line each."""
    for rows, classes in SHAPES:
        for dtype in DTYPES:
            y, z = logits_of(rows, classes, device, dtype)
            p = torch.softmax(z.float(), dim=1).to(dtype)
            for make, values in ((cal.Predictions.from_probs, p), (cal.Predictions.from_logits, z)):
                there, host = make(y, values), host_of(make, y, values)
                exact = make == cal.Predictions.from_probs
                for line in unequal(there, host, exact):
                    yield f"{rows} x {classes} {dtype}: {line}"


def unequal(there, host, exact):
    """The metrics of which predictions on a device and on the host differ by more than is promised."""
    bound = 1e-12 if exact or there.values.dtype == np.float64 else 1e-6
    for lens in LENSES:
        for binning in BINNINGS:
            if binning == BINNINGS[-1] and there.n_classes > 100 and lens not in (cal.TopLabel(), cal.Classwise()):
                continue  # thousands of tables, one after the other
            metric = cal.BinnedError(lens=lens, binning=binning)
            first, second = metric.summarise(there), metric.summarise(host)
            if exact and not same_totals(first, second):
                yield f"{lens}, {binning}: other totals"
            elif not exact and abs(metric.conclude(first).value - metric.conclude(second).value) > bound:
                yield f"{lens}, {binning}: {metric.conclude(first).value} and {metric.conclude(second).value}"
    for metric in SCORES:
        first, second = metric(there).value, metric(host).value
        if abs(first - second) > bound * max(1.0, abs(second)):
            yield f"{metric.name}: {first} and {second}"


def same_totals(first, second):
    if isinstance(first, cal.Bins):
        return all(getattr(first, name).same(getattr(second, name)) for name in ("size", "outputs", "targets"))
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ("values", "counts", "targets"))


def synchronised(device):
    if device == "cuda":
        torch.cuda.synchronize()


def call_time(run, device):
    """The median of some calls, in milliseconds."""
    durations = []
    for _ in range(TIMES):
        synchronised(device)
        start = time.perf_counter()
        run()
        synchronised(device)
        durations.append((time.perf_counter() - start) * 1e3)
    return statistics.median(durations)


def event_time(run, device):
    """The time between two events of the stream, in milliseconds: the median of some runs without a wait on the way."""
    if device != "cuda":
        return call_time(run, device)
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(TIMES)]
    for start, end in events:
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in events)


def stream_time(run, device):
    """How long the GPU is busy with a call, in milliseconds: kernels and copies by its own clock, a mean.

    Between two events, where torch's profiler sees nothing.
    """
    if device != "cuda":
        return float("nan")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(PROFILED):
            run()
        torch.cuda.synchronize()
    busy = sum(event.self_device_time_total for event in profile.key_averages())
    return busy / PROFILED / 1e3 if busy else event_time(run, device)


def in_plain_operations(run):
    """The same run without Triton's kernels."""

    def plain():
        serving, backend.serving = backend.serving, lambda tensor, **_: rowwise
        try:
            return run()
        finally:
            backend.serving = serving

    return plain


def tasks(y, p, z):
    """What is timed, by name."""
    checked, scores = cal.Predictions.from_probs(y, p), cal.Predictions.from_logits(y, z)
    runs = {
        "checks alone": lambda: cal.Predictions.from_probs(y, p),
        "ECE with all checks": lambda: cal.ECE(y, p),
        "the same in torch's operations": in_plain_operations(lambda: cal.ECE(y, p)),
        "ECE after the checks": lambda: cal.ECE(checked),
        "ECE of logits with all checks": lambda: cal.ECE(cal.Predictions.from_logits(y, z)),
        "Brier and log loss": lambda: (cal.BRIER(checked), cal.LOG_LOSS(checked)),
        "Brier and log loss of logits, with checks": lambda: [
            metric(each) for each in [cal.Predictions.from_logits(y, z)] for metric in (cal.BRIER, cal.LOG_LOSS)
        ],
        "SCE": lambda: cal.SCE(checked),
        "SCE in torch's operations": in_plain_operations(lambda: cal.SCE(checked)),
        "ECE of equal mass": lambda: cal.ADAPTIVE_ECE(checked),
        "ECE by the sweep": lambda: cal.ECE_SWEEP(checked),
        "KS": lambda: cal.RECIPES["ECCE_MAD"](checked),
        "ACE": lambda: cal.ACE(checked),
        "temperature": lambda: cal.TemperatureScaling().fit(scores),
    }
    if find_spec("torchmetrics"):
        from torchmetrics.functional.classification import multiclass_calibration_error

        runs["torchmetrics, ECE"] = lambda: multiclass_calibration_error(p, y, p.shape[1], n_bins=15).item()
    return runs


def timed(name, run, device, read):
    """One line of the table."""
    run()
    run()
    call = call_time(run, device)
    stream = stream_time(run, device)
    return {"task": name, "stream_ms": stream, "reads": stream / read, "call_ms": call}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, number in (("rows", 50_000), ("classes", 1_000), ("tokens", 4_096), ("vocabulary", 128_000)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--times-only", action="store_true", help="no comparison with the host, which takes minutes")
    options = parser.parse_args()
    device = options.device
    if device == "cpu":
        foreign.stays = lambda tensor: True
    name = torch.cuda.get_device_name() if device == "cuda" else "the host"
    print(f"calibrant {cal.__version__}, torch {torch.__version__}, Python {platform.python_version()}, {name}")
    wrong = None
    if not options.times_only:
        wrong = [*differences(device), *in_plain_operations(lambda: list(differences(device)))()]
        print(*wrong, f"{len(wrong)} differences from the host", sep="\n")
    print()

    y, z = logits_of(options.rows, options.classes, device)
    p = torch.softmax(z, dim=1)
    read = min(event_time(walk, device) for walk in (p.sum, p.amax, lambda: p.sum(dim=1)))
    lines = [timed(task, run, device, read) for task, run in tasks(y, p, z).items()]
    print(f"{options.rows} x {options.classes} float32: one read takes {read:.3f} ms; `stream` is the GPU's busy time")
    print(f"{'task':44s} {'stream ms':>10s} {'reads':>8s} {'call ms':>10s}")
    for line in lines:
        print(f"{line['task']:44s} {line['stream_ms']:10.3f} {line['reads']:8.2f} {line['call_ms']:10.3f}")

    y, z = logits_of(options.tokens, options.vocabulary, device, torch.bfloat16)
    size = z.numel() * z.element_size()
    copy = 2 * size / event_time(z.clone, device)
    words = timed("ECE of language-model logits", lambda: cal.ECE(cal.Predictions.from_logits(y, z)), device, 1.0)
    share = size / words["stream_ms"] / copy
    print(
        f"\n{options.tokens} x {options.vocabulary} bfloat16 logits, ECE with all checks: {words['stream_ms']:.3f} ms "
        f"of stream, {words['call_ms']:.3f} ms a call; {share:.0%} of the bandwidth of a copy ({copy / 1e9:.2f} TB/s)"
    )
    if options.json:
        results = {"device": name, "differences": wrong, "read_ms": read, "lines": lines}
        results |= {"words": words | {"share_of_copy": share, "copy_bytes_per_ms": copy}}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
