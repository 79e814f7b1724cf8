"""Values of the standard library, as programs keep them in caches and sessions."""

from __future__ import annotations

import datetime
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

NOON = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
PLAIN: dict[str, Any] = {
    "login": NOON,
    "naive": datetime.datetime(2026, 11, 30, 12, 0, 0, 5),
    "day": datetime.date(2026, 11, 30),
    "time": datetime.time(12, tzinfo=datetime.UTC),
    "age": datetime.timedelta(days=3),
    "zone": NOON.tzinfo,
    "roles": {"admin", "editor"},
    "frozen": frozenset({1, ("a", NOON)}),
    "price": Decimal("9.90"),
    "share": Fraction(1, 3),
    "id": UUID(int=7),
    "buffer": bytearray(b"abc"),
    "pages": range(1, 9, 2),
    "signal": 1 + 2j,
}
