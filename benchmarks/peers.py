"""How long calibrant and other libraries take for the same questions; writes benchmarks/RESULTS.md.

    python benchmarks/peers.py [--environment .venv-peers] [--rows 50000] [--classes 1000] [--events 10000000]

The libraries of peers.txt are installed in an environment of their own (torch as pip chooses it, unless it is there
already), which then runs the comparison. One thread each. Libraries take turns, each call in a process of its own that
holds the same arrays; every process calls twice, and the second call counts (the first stands beside it). A call of
more than five seconds is made once. Memory is what the process held at its peak beyond what it held before the call.
"""

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
import venv
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
LONG = 5.0
"""Seconds beyond which a call is made once."""
CLOSE = 1e-5
MODULES = ("torchmetrics.functional.classification", "netcal.metrics", "netcal.scaling", "mapie.metrics.calibration")
MODULES += ("calibration", "calzone.metrics", "relplot.metrics", "probmetrics.calibrators", "sklearn.calibration")
MODULES += ("sklearn.isotonic", "sklearn.metrics", "scipy.special")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environment", type=Path, default=Path(".venv-peers"))
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    inside = options.environment / "bin" / "python"
    if not inside.exists():
        venv.create(options.environment, with_pip=True)
        subprocess.run([inside, "-m", "pip", "install", "--quiet", "-r", HERE / "peers.txt", HERE.parent], check=True)
    if Path(sys.prefix) != options.environment.resolve():
        again = [inside, __file__, *sys.argv[1:]]
        raise SystemExit(subprocess.run(again, env=os.environ | ONE_THREAD | {"TF_CPP_MIN_LOG_LEVEL": "3"}).returncode)
    options.out.write_text(page(options), encoding="utf-8")


def page(options):
    """The text of RESULTS.md."""
    from competitors import tasks

    import calibrant

    for module in MODULES:  # so that no first call waits for an import
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    asked, reads = tasks(options.rows, options.classes, options.events)
    floors, measured = {}, {}
    for turn in range(options.rounds):
        for data, read in reads.items():
            floors[data] = min(floors.get(data, float("inf")), in_a_process(read)["second"])
        for task in asked:
            for library, call in task.calls.items():
                key = task.data, task.name, library
                if turn == 0 or measured[key].get("first", LONG) < LONG:
                    measured[key] = shorter(measured.get(key), in_a_process(call))
                print(*key, measured[key], file=sys.stderr, flush=True)
    sizes = {
        "matrix": f"{options.rows:,} x {options.classes:,} float32",
        "event": f"{options.events:,} float32, one event",
    }
    lines = [HEAD, f"calibrant {calibrant.__version__}; " + ", ".join(versions()), ""]
    for data, size in sizes.items():
        lines += [f"## {size}; one read takes {1e3 * floors[data]:.1f} ms", "", *COLUMNS]
        for task in (task for task in asked if task.data == data):
            lines += rows(task, measured, floors[data])
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


HEAD = """# calibrant beside other libraries

Written by `benchmarks/peers.py`; do not edit. One thread each; libraries take turns in the same run. The fastest of
the others stands first among them; *times* is its time divided by calibrant's. *Reads* is the time in units of one
read of the input. calibrant checks its input in every call. Memory is what was added at the peak.
"""
COLUMNS = [
    "| task | library | ms | first call | reads | times calibrant | memory, MB | answer |",
    "|---|---|---|---|---|---|---|---|",
]


def rows(task, measured, floor):
    """Lines of a task: calibrant, then the others, the fastest first."""
    of_libraries = {library: measured[task.data, task.name, library] for library in task.calls}
    ours = of_libraries.pop("calibrant")
    lines = [line(task.name, "calibrant", ours, floor, "", f"{ours['answer']:.7f}")]
    for library, theirs in sorted(of_libraries.items(), key=lambda item: item[1].get("second", float("inf"))):
        if "second" not in theirs:
            lines.append(f"| | {library} | | | | | | fails: {theirs['error']} |")
            continue
        apart = abs(theirs["answer"] - ours["answer"])
        answer = "the same" if apart < CLOSE else f"{theirs['answer']:.7f}"
        reason = task.reasons.get(library, "") if apart >= CLOSE else ""
        times = f"{theirs['second'] / ours['second']:.1f}"
        lines.append(line("", library, theirs, floor, times, f"{answer}: {reason}" if reason else answer))
    return lines


def line(task, library, taken, floor, times, answer):
    cells = [task, library, f"{1e3 * taken['second']:.1f}", f"{1e3 * taken['first']:.1f}"]
    cells += [f"{taken['second'] / floor:.2f}", times, f"{taken['memory'] / 1e6:.0f}", answer]
    return "| " + " | ".join(cells) + " |"


def versions():
    """The libraries and their versions, as far as they are installed."""
    for name in (line.split(">")[0] for line in (HERE / "peers.txt").read_text(encoding="utf-8").split()):
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} not installed"


def shorter(before, now):
    """The shorter times of two turns."""
    if before is None or "error" in now:
        return now
    return now | {part: min(before[part], now[part]) for part in ("first", "second")}


def in_a_process(call):
    """Times, memory and answer of a call, made twice in a forked process that holds the same arrays."""
    receiving, sending = os.pipe()
    if (child := os.fork()) == 0:
        os.close(receiving)
        with os.fdopen(sending, "w") as file:
            json.dump(measured_call(call), file)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"error": "the process ended"}


def measured_call(call):
    try:
        held = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        answer, first = timed(call)
        taken = {"memory": memory("VmHWM") - held, "first": first, "answer": number(answer)}
        return taken | {"second": first if first > LONG else timed(call)[1]}
    except Exception as problem:  # a library that fails is a line of the page
        return {"error": f"{type(problem).__name__}: {problem}"[:200]}


def timed(call):
    started = time.process_time()
    answer = call()
    return answer, time.process_time() - started


def number(answer):
    value = getattr(answer, "value", answer)
    return float(value) if isinstance(value, float) or getattr(value, "ndim", 1) == 0 else 0.0


def memory(field):
    """A field of the process's status, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


if __name__ == "__main__":
    main()
