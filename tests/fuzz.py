"""Try damaged files and random fits for some time: ``make fuzz SECONDS=600``, or ``python tests/fuzz.py``.

A case is a function of a seed and an empty folder. It counts what it saw, or raises an error: a failure. Cases run in a
process of limited memory, so that a crash and a case without end are failures, too. A failure is printed with the
command that repeats it, and the folder is saved under ``--found``.
"""

import argparse
import io
import multiprocessing
import secrets
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path

CASES = {"files": "fuzz_files:case", "fits": "fuzz_fits:case"}
ADDRESSES = 2**33  # bytes that a process may allocate; more than 4 GiB, which Pillow asks for, but does not use
RESIDENT = 2**31  # bytes that it may use
PATIENCE = 120  # seconds for a case; the first one compiles kernels
CASES_OF_A_PROCESS = 1000  # so that memory leaks of libraries do not add up


def limit_addresses(size):
    if sys.platform == "linux":  # Windows has no such limit, and macOS does not enforce it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def used():
    """The most bytes of memory that this process has used so far; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def work(pipe, addresses, resident):
    """Run the cases that come through a pipe."""
    sys.stderr = io.StringIO()  # libraries warn of damaged files
    limit_addresses(addresses)
    while (asked := pipe.recv()) is not None:
        case, seed, folder = asked
        try:
            module, name = case.split(":")
            counted = Counter(getattr(import_module(module), name)(seed, Path(folder)))
            assert used() < resident, f"it takes too much memory: {used()} bytes"
        except Exception:
            pipe.send((Counter(), traceback.format_exc()))
        else:
            pipe.send((counted, ""))


class Worker:
    """A process that runs cases. After a failure, and after many cases, a new one takes its place."""

    def __init__(self, addresses=ADDRESSES, resident=RESIDENT, patience=PATIENCE):
        self.limits, self.patience, self.process = (addresses, resident), patience, None

    def __call__(self, case, seed, folder):
        """What the case counted, and why it failed, if it did."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, there = context.Pipe()
            self.process = context.Process(target=work, args=(there, *self.limits), daemon=True)
            self.process.start()
            there.close()
            self.left = CASES_OF_A_PROCESS
        self.left -= 1
        self.pipe.send((case, seed, str(folder)))
        if not self.pipe.poll(self.patience):
            self.process.kill()
            self.stop()
            return Counter(), f"it took more than {self.patience} seconds"
        try:
            answer = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code, self.process = self.process.exitcode, None
            return Counter(), f"the process ended with exit code {code}"
        if answer[1] or not self.left:
            self.stop()
        return answer

    def stop(self):
        if self.process is not None:
            with suppress(BrokenPipeError):
                self.pipe.send(None)
            self.process.join()
            self.process = None


def run(cases, seeds, seconds, found, worker, most=20):
    """Run cases in turn, the one that had the least time first. Returns the counts of each, and the failures."""
    spent, counts, failures = dict.fromkeys(cases, 0.0), {name: Counter() for name in cases}, []
    end = time.monotonic() + seconds
    for seed in seeds:
        name, started = min(spent, key=spent.get), time.monotonic()
        if started > end or len(failures) == most:
            break
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            counted, reason = worker(cases[name], seed, home)
            counts[name] += counted
            if reason:
                failures.append((name, seed, reason))
                print(
                    f"{name}, seed {seed}: {reason}\nto repeat it: python tests/fuzz.py --kind {name} --seed {seed}\n"
                )
                shutil.copytree(home, Path(found, f"{name}-{seed}"), dirs_exist_ok=True)
                Path(found, f"{name}-{seed}", "failure.txt").write_text(reason, "utf-8")
        spent[name] += time.monotonic() - started
    worker.stop()
    return counts, failures


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--found", help="folder for what fails (default: a temporary folder)")
    parser.add_argument("--kind", choices=CASES, help="only this kind")
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--first", type=int, help="the first seed (default: at random)")
    asked = parser.parse_args(arguments)
    found = asked.found or tempfile.mkdtemp(prefix="partwise-fuzz-")
    first = secrets.randbelow(2**32) if asked.first is None else asked.first
    seeds = range(first, first + 2**32) if asked.seed is None else [asked.seed]
    cases = CASES if asked.kind is None else {asked.kind: CASES[asked.kind]}
    counts, failures = run(cases, seeds, asked.seconds, found, Worker())
    for name, counted in counts.items():
        print(f"{name}: {counted.total()} tried,", ", ".join(f"{count} {what}" for what, count in counted.items()))
    print(f"failures: {len(failures)}" + (f", saved in {found}" if failures else ""))
    if not failures and asked.found is None:
        Path(found).rmdir()
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
