"""Two machines with a slow link between them, on one: what training over them costs, and what --accumulate gives back.

    sudo python benchmarks/slow_link.py PAIRS.tsv [--rates 0 100] [--accumulate 2 8 16] [OPTIONS OF vidrio train]

Two network namespaces are two machines, a pair of virtual cards is the cable, `tc` slows both of its ends down to so
many megabits a second (0: as it is). In each runs `torchrun` with one process and one thread. Told are tokens of source
and target in a second, the median of the steps after the first third, for one process alone and for two together, with
so many batches to a step in all; and how many bytes a step sends. First: how long gradients take to be summed, which
hardly depends on what else the machine does. Needs Linux, root, iproute2.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

NAMES = (f"vidrio-{os.getpid()}-one", f"vidrio-{os.getpid()}-two")
CARDS, ADDRESSES = ("vidrio-a", "vidrio-b"), ("10.77.0.1", "10.77.0.2")
PORT = "29511"
SIZES = ("--d-model", "128", "--d-ff", "512", "--vocabulary", "2000", "--batch-tokens", "1024")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def two_machines(rate: int) -> Iterator[None]:
    """As long as they are there."""
    try:
        for name in NAMES:
            ip("netns", "add", name)
        ip("link", "add", CARDS[0], "netns", NAMES[0], "type", "veth", "peer", "name", CARDS[1], "netns", NAMES[1])
        for name, card, address in zip(NAMES, CARDS, ADDRESSES, strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", card)
            ip("-n", name, "link", "set", card, "up")
            ip("-n", name, "link", "set", "lo", "up")
            if rate:
                limit = ("rate", f"{rate}mbit", "burst", "256kb", "latency", "50ms")
                subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", card, "root", "tbf", *limit], check=True)
        yield
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def sent(name: str, card: str) -> int:
    told = subprocess.run(["ip", "-n", name, "-s", "-j", "link", "show", card], check=True, capture_output=True)
    return int(json.loads(told.stdout)[0]["stats64"]["tx"]["bytes"])


def command(folder: Path, pairs: Path, accumulate: int, steps: int, more: Sequence[str]) -> list[str]:
    limits = ("--steps", str(steps), "--accumulate", str(accumulate), "--validations", "1", "--threads", "1")
    return ["-m", "vidrio", "train", str(pairs), "--to", str(folder), "--seed", "1", *limits, *SIZES, *more]


def alone(*arguments: object) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, *command(Path(folder) / "run", *arguments)],  # type: ignore[arg-type]
            check=True, capture_output=True,
        )  # fmt: skip
        return speed(Path(folder) / "run")


def together(rate: int, *arguments: object) -> dict[str, float]:
    with two_machines(rate), tempfile.TemporaryDirectory() as folder:
        runs = [command(Path(folder) / f"run-{rank}", *arguments) for rank in (0, 1)]  # type: ignore[arg-type]
        on_both(runs)
        steps = float(arguments[2])  # type: ignore[arg-type]
        return speed(Path(folder) / "run-0") | {"megabytes": sent(NAMES[0], CARDS[0]) / steps / 1e6}


def on_both(runs: Sequence[Sequence[str]]) -> str:
    """One process on each machine; what the first one says."""
    processes = []
    for rank, (name, card, run) in enumerate(zip(NAMES, CARDS, runs, strict=True)):
        launcher = ["-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(rank), "--nproc-per-node", "1"]
        launcher += ["--master-addr", ADDRESSES[0], "--master-port", PORT]
        processes.append(
            subprocess.Popen(
                ["ip", "netns", "exec", name, sys.executable, *launcher, *run],
                env=os.environ | {"GLOO_SOCKET_IFNAME": card},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    told = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit("\n".join(told))
    return told[0]


SUM = """
import statistics, sys, time, torch
from torch import distributed
distributed.init_process_group("gloo")
numbers, times = torch.zeros(int(sys.argv[1])), []
for _ in range(4):
    distributed.barrier()
    began = time.perf_counter()
    distributed.all_reduce(numbers)
    times.append(time.perf_counter() - began)
print("seconds", statistics.median(times[1:]), flush=True)
distributed.destroy_process_group()
"""


def summing(rate: int, millions: int) -> float:
    """Seconds that the gradients of so many million parameters take to be summed: what a step waits for the link."""
    with two_machines(rate), tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "sum.py"
        script.write_text(SUM)
        told = on_both([[str(script), str(millions * 1_000_000)]] * 2)
        return float(told.partition("seconds ")[2].split()[0])


def speed(run: Path) -> dict[str, float]:
    records = [json.loads(line) for line in (run / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    rates = [record["tokens_per_second"] for record in records if record["kind"] == "step"]
    return {"tokens": statistics.median(rates[len(rates) // 3 :])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--rates", type=int, nargs="+", default=[0, 100], help="Mbit/s; 0 is no limit")
    parser.add_argument("--accumulate", type=int, nargs="+", default=[2, 8, 16], help="batches to a step, of both")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--millions", type=int, nargs="*", default=[1, 9, 60], help="parameters whose sums are timed")
    given, more = parser.parse_known_args()
    for millions in given.millions:
        times = {rate: summing(rate, millions) for rate in given.rates}
        told = "  ".join(f"{time:.2f} s at {f'{rate} Mbit/s' if rate else 'no limit'}" for rate, time in times.items())
        print(f"gradients of {millions} million parameters: {told}", flush=True)
    print(f"{'':24}{'batches a step':>16}{'tokens/s':>12}{'of one':>8}{'MB sent a step':>16}")
    for accumulate in given.accumulate:
        rest = (given.pairs.absolute(), accumulate, given.steps, more)
        one = alone(*rest)["tokens"]
        print(f"{'one process':24}{accumulate:16}{one:12,.0f}{1:8.2f}", flush=True)
        for rate in given.rates:
            two = together(rate, *rest)
            name = f"two, {rate} Mbit/s" if rate else "two, no limit"
            row = f"{name:24}{accumulate:16}{two['tokens']:12,.0f}{two['tokens'] / one:8.2f}{two['megabytes']:16.1f}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
