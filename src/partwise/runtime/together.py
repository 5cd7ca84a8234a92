"""Coroutines that run side by side and are answered together.

A job awaits a `Request` wherever it needs something that is cheaper for several jobs at once, and goes on with the
answer. Nothing runs at the same time, so that results do not depend on timing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Hashable, Iterable, Iterator, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeAlias, TypeVar, cast

from .compiled import AWAY, seconds
from .interrupts import interrupts
from .threads import one_blas_thread

P = ParamSpec("P")
T = TypeVar("T")
Job: TypeAlias = Coroutine["Request", Any, T]


class Request(ABC):
    """What a job awaits. Requests of the same ``kind`` can be answered together."""

    @property
    def kind(self) -> Hashable:
        """By default, every request is answered alone."""
        return id(self)

    @property
    def cost(self) -> float:
        """What an answer costs. The cheapest requests are answered first."""
        return 0.0

    @abstractmethod
    def answers(self, requests: Sequence[Self]) -> list[Any]:
        """The answers to several requests of this kind."""

    def __await__(self) -> Generator[Request, Any, Any]:
        return (yield self)


@dataclass(eq=False)
class Running(Generic[T]):
    """A job, its context variables, what it waits for, and its seconds: its own, and its shares of common answers."""

    number: int
    job: Job[T]
    context: Context
    entered: float
    request: Request = field(init=False)
    used: float = 0.0

    def advance(self, answer: Any = None) -> tuple[int, T] | None:
        """Run the job to its next request. Returns its number and result if it has ended."""
        now = seconds()
        self.context.run(AWAY.set, AWAY.get() + now - self.entered - self.used)
        try:
            self.request = self.context.run(self.job.send, answer)
        except StopIteration as end:
            return self.number, end.value
        finally:
            self.used += seconds() - now
        return None


def together(jobs: Iterable[Job[T]], most: int) -> Iterator[tuple[int, T]]:
    """Run jobs side by side, at most ``most`` at once, and yield the number and the result of each as it ends.

    The kind that costs least is answered first and, of equal ones, that which most jobs wait for: the others can then
    join them. A job is taken from ``jobs`` when there is room for it, and runs to its first request before the next is
    taken.
    """
    left, running = enumerate(jobs), list[Running[T]]()
    try:
        while True:
            for number, job in left if len(running) < most else ():
                running.append(Running(number, job, copy_context(), seconds()))
                if (ended := running[-1].advance()) is not None:
                    running.pop()
                    yield ended
                if len(running) == most:
                    break
            if not running:
                return
            served = next_group(running)
            for one, answer in zip(served, answered(served), strict=True):
                if (ended := one.advance(answer)) is not None:
                    running.remove(one)
                    yield ended
    finally:
        for one in running:
            one.context.run(one.job.close)


def next_group(running: Sequence[Running[T]]) -> list[Running[T]]:
    """The largest of the cheapest groups of jobs that can be answered together; of equal ones, that of the first job.

    Jobs that share nothing and cost the same are therefore run one after another. Jobs with work of their own before
    they share costly answers, as short fits for their starts, do all of it before the first of these.
    """
    if len(running) == 1:
        return [*running]
    least = min(one.request.cost for one in running)
    kinds = [(one.request.cost, one.request.kind) for one in running]
    ((kind, _),) = Counter(kind for kind in kinds if kind[0] == least).most_common(1)
    return [one for one, its in zip(running, kinds, strict=True) if its == kind]


def answered(served: Sequence[Running[T]]) -> list[Any]:
    """The answers to these jobs, computed in the context of the first. They share the time that it takes."""
    now, first = seconds(), served[0]
    answers = first.context.run(first.request.answers, [one.request for one in served])
    for one in served:
        one.used += (seconds() - now) / len(served)
    return answers


def alone(job: Job[T]) -> T:
    """Run a single job."""
    ((_, result),) = together([job], 1)
    return result


def side_by_side(
    starts: Iterable[Callable[[], Job[T]]], most: int, done: Callable[[int, T], None] | None = None
) -> list[T]:
    """Run fits side by side, at most ``most`` at once, and return their results in order.

    ``done`` is called with the number and the result of each as it ends. After Ctrl-C, no further one is started.
    """
    results: dict[int, T] = {}

    def jobs(interrupted: Sequence[int]) -> Iterator[Job[T]]:
        for number, start in enumerate(starts):
            if number and interrupted:
                return
            yield start()

    with interrupts() as interrupted, one_blas_thread():
        for number, result in together(jobs(interrupted), most):
            results[number] = result
            if done is not None:
                done(number, result)
    return [results[number] for number in sorted(results)]


def single(start: Callable[P, Job[T]]) -> Callable[P, T]:
    """Make a coroutine function one that runs its job to the end. ``job_of`` gives the coroutine function back."""

    @wraps(start)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return alone(start(*args, **kwargs))

    return run


def job_of(run: Callable[P, T]) -> Callable[P, Job[T]]:
    """The coroutine function that `single` was given."""
    return cast(Callable[P, Job[T]], run.__wrapped__)  # type: ignore[attr-defined]
