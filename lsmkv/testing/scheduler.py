"""A scheduler of real threads of which exactly one runs.

A simulated thread is a real one with a *baton*, a lock that it waits for.  The running thread calls
:meth:`Scheduler.step` at its switch points, and :meth:`Scheduler.wait` where it cannot continue.
Both ask the strategy which thread is next, hand that thread its baton, and wait for their own.  So
everything that happens depends on the strategy's answers only, not on the machine or the time.

*Time* is also simulated.  It passes only when no thread can run: then the thread whose wait ends
first continues.  If no thread can run and no time-out would change that, the run has found a
deadlock, or a lost wake-up.

This module and those that it imports know nothing about the engine.
"""

from __future__ import annotations

import _thread
import linecache
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple, Protocol

DEADLOCK = "deadlock"
LOST_WAKE_UP = "lost wake-up"
ENDLESS = "endless"
ERROR = "error"


class Unwind(BaseException):
    """Ends a thread at its next switch point, since its life or its process has ended."""


class Switch(NamedTuple):
    """A description of a change from one thread to another."""

    thread: str
    place: str
    """The file and line that the thread executes next."""
    source: str
    """The text of that line."""
    why: str
    """The reason for the switch: a step, a wait, or the thread's end."""
    to: str
    forced: bool
    """True if the strategy chose it; otherwise the thread could not continue."""


Forced = tuple[int, int, int]
"""One decision other than the usual one: at the n-th decision of the first thread, the second one
continues."""


class Group(Protocol):
    """Threads that end together: those of a simulated process."""

    pid: int
    """Its process id."""
    stopped: bool
    """True while none of them runs."""

    def step(self) -> None:
        """Pass a switch point of one of them: the others may be ended now, and this one also."""
        ...


class Thread:
    """A simulated thread."""

    def __init__(self, number: int, name: str, group: Group | None) -> None:
        self.number = number
        self.name = name
        self.group = group
        self.killed = False
        """True if it ends immediately, whatever it waits for."""
        self.baton: Any = _thread.allocate_lock()
        self.baton.acquire()
        self.ident = 0
        """The number that the operating system gave it."""
        self.decisions = 0
        """The number of decisions made while it ran."""
        self.can_run = True
        self.lock: Any = None
        """The lock that it waits for, if any."""
        self.until: float | None = None
        """The time at which its wait ends, if nothing else ends it."""
        self.only_signals = False
        """True if that end serves only to handle signals, so that the wake-up has to come in any
        case."""
        self.timed_out = False
        self.unwound = 0

    @property
    def is_able(self) -> bool:
        """True if it can run now."""
        return self.can_run and not self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """True if it belongs to a group that is stopped."""
        return self.group is not None and self.group.stopped

    def __repr__(self) -> str:
        return self.name


class Strategy(Protocol):
    """Chooses the thread that runs next."""

    def choose(self, thread: Thread, usual: Thread, able: list[Thread]) -> Thread:
        """One of ``able``, while ``thread`` runs or has just ended; ``usual`` is that thread or, if
        it cannot continue, the next one."""
        ...


@dataclass(frozen=True)
class Failure:
    """The reason for which a run was ended early."""

    kind: str
    """:data:`DEADLOCK`, :data:`LOST_WAKE_UP`, :data:`ENDLESS` or :data:`ERROR`."""
    text: str
    error: str = ""
    """The class of the error, if it was one: two failures are alike if this and ``kind`` are."""


class Scheduler:
    """One run, of one or several lives.  Call order: ``run*``, from outside any simulated thread;
    only the running thread calls the other methods."""

    def __init__(
        self, strategy: Strategy, most_steps: int, lines: Callable[[str], bool] | None = None
    ) -> None:
        """``lines`` decides for which files each line is a switch point; None means no file."""
        self._strategy = strategy
        self._most_steps = most_steps
        self._lines = lines
        self._threads: list[Thread] = []  # those that have not ended
        self._made = 0
        self._done: Any = _thread.allocate_lock()
        self.current: Thread | None = None
        """The running thread; None outside lives."""
        self.life = 0
        """The number of lives that have ended."""
        self.now = 1_700_000_000.0
        """Simulated seconds."""
        self.steps = 0
        """Switch points so far."""
        self.choices = 0
        """The number of the strategy's choices."""
        self.unwinding = False
        self.failure: Failure | None = None
        self.forced: list[Forced] = []
        """The decisions so far that were not the usual ones."""
        self.switches: list[Switch] | None = None
        """Descriptions of the switches, if requested."""
        self.at_step: Callable[[], bool] | None = None
        """Called at every switch point; True if this life ends here."""

    # Lives

    def run(self, function: Callable[[], object]) -> None:
        """Run one life: ``function`` as a thread, until all threads have ended."""
        self.unwinding = False
        self._done.acquire()
        first = self.start(function, (), "main")
        self.current = first
        first.baton.release()
        with self._done:
            pass
        self.current = None
        self.life += 1

    def end_life(self) -> None:
        """End all threads at their next switch points, this one here."""
        self.unwinding = True
        raise Unwind

    def fail(self, kind: str, text: str, error: str = "") -> None:
        """Note the first failure, and end the life."""
        if self.failure is None:
            self.failure = Failure(kind, text, error)
        self.unwinding = True

    # Threads

    def start(
        self,
        function: Callable[..., object],
        arguments: tuple[Any, ...],
        name: str,
        group: Group | None = None,
    ) -> Thread:
        """Add a new thread, which can run from now on.

        Without a ``group`` it belongs to that of the running thread.
        """
        self._made += 1
        if group is None and self.current is not None:
            group = self.current.group
        thread = Thread(self._made, f"{name} {self._made}" if name == "thread" else name, group)
        self._threads.append(thread)
        _thread.start_new_thread(self._body, (thread, function, arguments))
        return thread

    def kill(self, group: Group) -> None:
        """End the threads of a group, before any other thread continues.

        They do nothing more: each switch point in what they still execute, to unwind, ends them
        again.
        """
        for thread in self._threads:
            if thread.group is group:
                thread.killed = True
                self.wake(thread)

    def has_ended(self, thread: Thread) -> bool:
        """True if a thread has ended."""
        return thread not in self._threads

    def _body(
        self, thread: Thread, function: Callable[..., object], arguments: tuple[Any, ...]
    ) -> None:
        thread.ident = _thread.get_ident()
        thread.baton.acquire()
        try:
            if not self._is_over(thread):
                if self._lines is not None:
                    sys.settrace(self._trace_call)
                function(*arguments)
        except Unwind:
            pass
        except BaseException as error:
            if not self._is_over(thread):
                text = f"{thread.name} has raised {_in_words(error)}"
                self.fail(ERROR, text, type(error).__name__)
        finally:
            sys.settrace(None)
            del function, arguments
            self._end(thread)

    def _end(self, thread: Thread) -> None:
        self._threads.remove(thread)
        for other in self._threads:
            if other.lock is thread:
                self.wake(other)
        if not self._threads:
            self._done.release()
            return
        thread.can_run = False
        self._hand_over(thread, self._next(thread, "ends"))

    # Switch points

    def step(self, doing: str) -> None:
        """A switch point: the running thread could continue."""
        thread = self._begin()
        chosen = self._next(thread, doing)
        if chosen is not thread:
            self._hand_over(thread, chosen)
            thread.baton.acquire()
            if self._is_over(thread):
                self._unwind(thread)

    def wait(self, lock: Any, seconds: float | None, only_signals: bool, doing: str) -> bool:
        """Wait until :meth:`wake` is called for this thread; False after the time-out.

        ``lock`` is what the thread waits for, for reports; None is a pause.
        """
        thread = self._begin()
        thread.can_run = False
        thread.lock = lock
        thread.until = None if seconds is None else self.now + max(0.0, seconds)
        thread.only_signals = only_signals
        thread.timed_out = False
        chosen = self._next(thread, doing)
        if chosen is not thread:
            self._hand_over(thread, chosen)
            thread.baton.acquire()
        thread.lock = None
        thread.until = None
        if self._is_over(thread):
            self._unwind(thread)
        return not thread.timed_out

    def wake(self, thread: Thread) -> None:
        """Make the thread able to continue."""
        thread.can_run = True
        thread.until = None

    def wake_waiting_for(self, lock: object) -> None:
        """Wake the threads that wait for this."""
        for thread in self._threads:
            if thread.lock is lock:
                self.wake(thread)

    def _begin(self) -> Thread:
        thread = self.current
        assert thread is not None
        if self._is_over(thread):
            self._unwind(thread)
        self.steps += 1
        if self.steps > self._most_steps:
            text = f"unfinished after {self._most_steps} switch points\n{self._standing()}"
            self.fail(ENDLESS, text)
            raise Unwind
        if self.at_step is not None and self.at_step():
            self.end_life()
        if thread.group is not None:
            thread.group.step()
            if thread.killed:
                raise Unwind
        return thread

    @property
    def is_ending(self) -> bool:
        """True if the running thread has been ended, and unwinds."""
        return self.current is not None and self._is_over(self.current)

    def _is_over(self, thread: Thread) -> bool:
        """True if a thread, or the whole life, has been ended."""
        return self.unwinding or thread.killed

    def _unwind(self, thread: Thread) -> None:
        thread.unwound += 1
        if thread.unwound > 1000:  # it swallows every exception, so it is left where it is
            self._threads.remove(thread)
            if self._threads:
                self._hand_over(thread, self._next(thread, "ends"))
            else:
                self._done.release()
            thread.baton.acquire()
        raise Unwind

    def _hand_over(self, thread: Thread, chosen: Thread) -> None:
        self.current = chosen
        chosen.baton.release()

    def _next(self, thread: Thread, doing: str) -> Thread:
        """The thread that runs next, while ``thread`` runs or after its end."""
        if self.unwinding:
            return self._threads[0]
        for one in self._threads:
            if one.killed and one is not thread:
                return one
        thread.decisions += 1
        able = [one for one in self._threads if one.is_able]
        if not able:
            able = self._pass_time(thread)
            if not able:
                # The failure is noted; the thread itself unwinds if it has not ended.
                return thread if thread in self._threads else self._threads[0]
        if thread.is_able:
            usual = thread
        else:
            usual = next((one for one in able if one.number > thread.number), able[0])
        chosen = usual
        if len(able) > 1:
            self.choices += 1
            chosen = self._strategy.choose(thread, usual, able)
        if chosen is not usual:
            self.forced.append((thread.number, thread.decisions, chosen.number))
        if self.switches is not None and chosen is not thread:
            self._note_switch(thread, doing, chosen, chosen is not usual)
        return chosen

    def _pass_time(self, thread: Thread) -> list[Thread]:
        """Continue the thread whose wait ends first, since none can run; none after a failure."""
        waiting = [one for one in self._threads if one.until is not None and not one.is_stopped]
        if all(one.only_signals for one in waiting):
            kind = DEADLOCK if self._is_circle() else LOST_WAKE_UP
            self.fail(kind, f"no thread can run\n{self._standing()}")
            return []
        first = min(waiting, key=lambda one: (one.until, one.number))
        assert first.until is not None
        self.now = max(self.now, first.until)
        self.wake(first)
        first.timed_out = True
        return [first]

    def _is_circle(self) -> bool:
        """True if a thread waits for itself, through others that hold what it waits for."""
        for thread in self._threads:
            seen: list[Thread] = []
            at: Thread | None = thread
            while at is not None and at not in seen:
                seen.append(at)
                at = _holder(at)
            if at is not None and not (len(seen) == 1 and _is_ticket(thread)):
                return True
        return False

    # Every line

    def _trace_call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        wanted = self._lines is not None and self._lines(frame.f_code.co_filename)
        return self._trace_line if wanted else None

    def _trace_line(self, frame: FrameType, event: str, _argument: object) -> Any:
        thread = self.current
        if event == "line" and thread is not None and not self._is_over(thread):
            self.step("before this line")
        return self._trace_line

    # In words

    def _note_switch(self, thread: Thread, doing: str, chosen: Thread, forced: bool) -> None:
        assert self.switches is not None
        place, source = ("", "") if doing == "ends" else _place(sys._getframe(2))
        self.switches.append(Switch(thread.name, place, source, doing, chosen.name, forced))

    def _standing(self) -> str:
        """Describe the state of every thread, one line for each."""
        frames = sys._current_frames()
        lines = []
        for thread in self._threads:
            frame = frames.get(thread.ident)
            place, source = ("", "") if frame is None else _place(frame)
            what = "can run"
            if thread.lock is not None:
                holder = _holder(thread)
                by = "" if holder is None or holder is thread else f", which {holder.name} holds"
                what = f"waits for {thread.lock!r}{by}"
            elif not thread.can_run:
                what = "pauses"
            if thread.is_stopped:
                what += "; its process is stopped"
            lines.append(f"  {thread.name}  {place}  {source}  ({what})")
        return "\n".join(lines)


def _holder(thread: Thread) -> Thread | None:
    """The thread that has the lock that this thread waits for."""
    holder = getattr(thread.lock, "holder", None)
    return holder if isinstance(holder, Thread) else None


def _is_ticket(thread: Thread) -> bool:
    """True if it waits for a plain lock that it has taken itself and that another thread
    releases."""
    return bool(getattr(thread.lock, "plain", False))


OWN_FILES: set[str] = {__file__}
"""Files whose frames do not interest a reader."""


def _place(frame: FrameType | None) -> tuple[str, str]:
    """File and line of the innermost frame outside the simulation, and the line itself."""
    while frame is not None and frame.f_code.co_filename in OWN_FILES:
        frame = frame.f_back
    if frame is None:
        return "", ""
    path = frame.f_code.co_filename
    source = linecache.getline(path, frame.f_lineno, frame.f_globals).strip()
    return f"{short_path(path)}:{frame.f_lineno}", source


def short_path(path: str) -> str:
    """A path relative to the package's parent, or a file's name."""
    parts = path.replace("\\", "/").split("/")
    if "lsmkv" in parts:
        at = len(parts) - 1 - parts[::-1].index("lsmkv")
        return "/".join(parts[at:])
    return parts[-1]


def _in_words(error: BaseException) -> str:
    """An error with its traceback, the innermost lines last."""
    steps = [
        f"  {short_path(step.filename)}:{step.lineno}  {step.line}"
        for step in traceback.extract_tb(error.__traceback__)
        if step.filename not in OWN_FILES
    ]
    return "\n".join([f"{type(error).__name__}: {error}", *steps[-8:]])
