"""Everything for the first time: many threads or processes import and compile it at once."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from harden.lib.concurrency.apart import apart, in_cache, result
from harden.lib.concurrency.tally import Tally
from harden.lib.concurrency.tasks import TASKS, Answers, Sample, answers, hashed, short_answer
from tools.record import Row


def use_first(sample: Sample, expected: Answers, seed: int) -> dict[str, Any]:
    """Let 16 threads use everything for the first time in this process."""
    tally = Tally()
    barrier = threading.Barrier(16)
    names = list(TASKS)
    random.Random(seed).shuffle(names)

    def work(number: int) -> None:
        barrier.wait()
        for name in (names * 2)[number : number + 2]:
            tally.same(name, partial(short_answer, sample, sample.loaded(), name), expected[name])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    return {"tried": tally.tried, "failures": tally.failures}


def compile_all(sample: Sample, seed: int) -> Answers:
    """Do all tasks once, in an order that depends on the seed."""
    names = list(TASKS)
    random.Random(seed).shuffle(names)
    return hashed(answers(sample, sample.loaded(), names))


def first_use(sample: Sample, expected: Answers, n_processes: int) -> Iterator[Row]:
    """Import and compile everything from many threads at once, with kernels in the cache and without."""
    for is_empty in (False, True):
        tally = Tally()
        for seed in range(n_processes if not is_empty else max(1, n_processes // 4)):
            cache = sample.folder / f"first-{seed}" if is_empty else None
            process = apart(
                use_first, sample, environment=in_cache(cache), expected=hashed(expected), seed=seed
            )
            try:
                tally.add(result(process))
            except Exception as error:
                tally.check(False, f"{type(error).__name__}: {error}")
        yield tally.row(f"first use: 16 threads at once, {'an empty' if is_empty else 'a full'} cache")


def empty_cache(sample: Sample, expected: Answers, n_processes: int) -> Iterator[Row]:
    """Compile all kernels in several processes at once, and use what they left in one more."""
    tally = Tally()
    cache = sample.folder / "cache"
    short = hashed(expected)
    for together in (n_processes, 1):  # the last one finds the kernels of the others
        begun = [apart(compile_all, sample, environment=in_cache(cache), seed=seed) for seed in range(together)]
        for process in begun:
            try:
                found = result(process)
                for name in TASKS:
                    tally.check(found[name] == short[name], f"{name}: another answer")
            except Exception as error:
                tally.check(False, f"{type(error).__name__}: {error}")
    yield tally.row(
        f"empty cache: {n_processes} processes compile at once", kernels=len(list(cache.rglob("*.nbc")))
    )
