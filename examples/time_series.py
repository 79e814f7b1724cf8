"""A time-series store: a sensor is one range, prefix filters skip tables, old readings go.

    python examples/time_series.py [DIRECTORY]

A key is a sensor, a colon and a time, so a sensor's readings are neighbors, in order.  Here a
sensor reports on one day of five, and each day's readings become a table.  A scan of one sensor
asks every table's prefix filter, and reads blocks of those tables alone that have the sensor.  The
program counts that, then removes what is older than two days and compacts.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import lsmkv

DAY = 24 * 60 * 60
DAYS, SENSORS, EVERY = 5, 200, 600  # a reading every ten minutes

Reading = tuple[int, float]


def key(sensor: str, time: int) -> bytes:
    """Ten digits, so that keys sort as times do."""
    return b"%b:%010d" % (sensor.encode(), time)


def readings(db: lsmkv.DB, sensor: str, start: int, stop: int) -> Iterator[Reading]:
    """A sensor's readings from one time up to another one."""
    with db.iterator(start=key(sensor, start), stop=key(sensor, stop)) as pairs:
        for name, value in pairs:
            yield int(name.rpartition(b":")[2]), struct.unpack("<d", value)[0]


def sensors(db: lsmkv.DB) -> Iterator[str]:
    """Every sensor, by one seek for each: its readings are jumped over."""
    with db.iterator(include_value=False) as keys:
        for name in keys:
            sensor = name.partition(b":")[0]
            yield sensor.decode()
            keys.seek(sensor + b";")  # the byte that comes after the colon


def remove_before(db: lsmkv.DB, time: int) -> int:
    """Remove older readings, and free their room; how many there were."""
    removed = 0
    for sensor in sensors(db):
        with (
            db.iterator(start=key(sensor, 0), stop=key(sensor, time), include_value=False) as old,
            db.write_batch() as batch,
        ):
            for name in old:
                batch.delete(name)
            removed += len(batch)
    db.compact_range()  # until then a deletion takes room too
    return removed


def fill(path: Path) -> None:
    """Five days.  Each sensor is awake on one of them: number 7 on day 2, 8 on day 3, and so on."""
    with lsmkv.DB(path, create_if_missing=True, error_if_exists=True, prefix_extractor=b":") as db:
        for day in range(DAYS):
            with db.write_batch() as batch:
                for number in range(day, SENSORS, DAYS):
                    for time in range(day * DAY, (day + 1) * DAY, EVERY):
                        batch.put(key(f"sensor-{number:03d}", time), struct.pack("<d", time % 97))
            db.flush()


def count(path: Path, prefix_extractor: bytes | None) -> tuple[int, lsmkv.Stats]:
    """Scan each sensor, and a few that do not exist; how many readings, and what it took."""
    with lsmkv.DB(path, prefix_extractor=prefix_extractor, lru_cache_size=0) as db:
        found = 0
        for number in range(SENSORS + 20):
            found += sum(1 for _ in readings(db, f"sensor-{number:03d}", 0, DAYS * DAY))
        return found, db.stats()


def size(path: Path) -> int:
    return sum(table.stat().st_size for table in path.glob("*.ldb"))


def main(path: Path) -> None:
    fill(path)
    for what, extractor in (("without prefix filters", None), ("with prefix filters", b":")):
        found, stats = count(path, extractor)
        blocks = f"{stats.blocks_read:,} blocks read, {stats.filter_negatives:,} tables skipped"
        print(f"{what}: {found:,} readings, {blocks}")
    before = size(path)
    with lsmkv.DB(path, prefix_extractor=b":") as db:
        removed = remove_before(db, 3 * DAY)
        print(f"removed {removed:,} readings of the first three days")
        print(f"sensors left: {sum(1 for _ in sensors(db))}, the first", next(sensors(db)))
        last = list(readings(db, "sensor-004", 0, DAYS * DAY))
        print(f"sensor-004: {len(last)} readings, the last {last[-1]}")
    print(f"the tables' size is {size(path) / before:.0%} of what it was")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory, "readings"))
