"""One request for all readers that want the same bytes at the same time.

Many readers of a store that was just opened miss the same block at the same time.  The first makes
the request, and the others wait for its result.  Results are not kept: a cache does that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Event, Lock

from lsmkv.engine.errors import CorruptionError


class _Flight:
    """A request under way.  If it ends with neither data nor error, its thread was interrupted."""

    def __init__(self) -> None:
        self.landed = Event()
        self.data: bytes | None = None
        self.error: OSError | CorruptionError | None = None


class Flights:
    """The requests under way.  Any thread may call it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._flights: dict[Hashable, _Flight] = {}

    def share(self, key: Hashable, request: Callable[[], bytes]) -> tuple[bytes, bool]:
        """The result of ``request``, and True if this call made it rather than another with the
        same key.

        ``OSError`` and ``CorruptionError`` are raised in all waiting calls.  If anything else ends
        the request (Ctrl-C in its thread), one of the waiting calls makes it again.
        """
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    mine = self._flights[key] = _Flight()
            if flight is None:
                return self._make(key, mine, request), True
            flight.landed.wait()
            if flight.data is not None:
                return flight.data, False
            if flight.error is not None:
                raise _renewed(flight.error)

    def _make(self, key: Hashable, flight: _Flight, request: Callable[[], bytes]) -> bytes:
        try:
            data = flight.data = request()
        except (OSError, CorruptionError) as error:
            flight.error = _renewed(error)
            raise
        finally:
            with self._lock:
                del self._flights[key]
            flight.landed.set()
        return data


def _renewed(error: OSError | CorruptionError) -> OSError | CorruptionError:
    """A copy of the error, because threads must not share a traceback."""
    if isinstance(error, CorruptionError):
        return CorruptionError(error.reason, error.path, error.offset)
    if error.errno is None:
        return OSError(*error.args)
    return OSError(error.errno, error.strerror, error.filename)
