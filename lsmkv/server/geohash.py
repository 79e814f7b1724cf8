"""Places on Earth as scores of a sorted set: the geohashes of Redis, and what is near a place.

A score has 52 bits: 26 each of longitude and latitude in turn, longitude first.  Places that begin
with the same bits lie in one cell, so a cell is a range of scores.  A search looks at the cell of
its center and at the eight around it, of a size that covers its shape.

The order of the cells and every formula are those of Redis, because they decide in which order
places are found, and which of them lie at the edge of a shape.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MAX_LONGITUDE: Final = 180.0
MAX_LATITUDE: Final = 85.05112878
_STEPS: Final = 26
"""Bits of each of longitude and latitude in a score."""
_EARTH_RADIUS: Final = 6372797.560856
_HALF_EQUATOR: Final = 20037726.37
_DIGITS: Final = "0123456789bcdefghjkmnpqrstuvwxyz"
_TOP: Final = float(1 << 63)
_EVEN: Final = 0x5555555555555555


class Place(NamedTuple):
    """A place, in degrees."""

    longitude: float
    latitude: float


class Shape(NamedTuple):
    """A circle or a rectangle around a place, in meters."""

    center: Place
    width: float
    """The width of the whole rectangle, or the radius of the circle."""
    height: float
    is_box: bool

    def distance_within(self, place: Place) -> float | None:
        """The distance of a place from the center; None if it is outside."""
        center = self.center
        if self.is_box:
            if _latitude_distance(place, center) > self.height / 2:
                return None
            if distance(place, Place(center.longitude, place.latitude)) > self.width / 2:
                return None
            return distance(center, place)
        found = distance(center, place)
        return None if found > self.width else found

    def bounds(self) -> tuple[float, float, float, float]:
        """The lowest longitude and latitude, and the highest ones; NaN for an infinite shape."""
        longitude, latitude = self.center
        height, width = (self.height / 2, self.width / 2) if self.is_box else (self.width,) * 2
        up = math.degrees(height / _EARTH_RADIUS)
        if not math.isfinite(up) or not math.isfinite(width):
            return (math.nan,) * 4
        edge = latitude - up if latitude < 0 else latitude + up
        aside = math.degrees(width / _EARTH_RADIUS / math.cos(math.radians(edge)))
        return longitude - aside, latitude - up, longitude + aside, latitude + up

    @property
    def reach(self) -> float:
        """The distance from the center to the farthest point."""
        return math.hypot(self.width / 2, self.height / 2) if self.is_box else self.width


class Cell(NamedTuple):
    """All places whose longitude and latitude begin with these bits."""

    column: int
    row: int
    steps: int
    """The number of bits of each."""

    def beside(self, columns: int, rows: int) -> Cell:
        """A cell next to this one: east for a positive number of columns, north of rows.

        The northernmost latitude is a separate row, which as in Redis stays one to the east.
        """
        wrap = (1 << self.steps) - 1
        column = self.column + columns & wrap if columns else self.column
        return Cell(column, self.row + rows & wrap if rows else self.row, self.steps)

    def bounds(self) -> tuple[float, float, float, float]:
        """The lowest longitude and latitude, and the highest ones."""
        size = 1.0 / (1 << self.steps)
        low, wide = -MAX_LONGITUDE, 2 * MAX_LONGITUDE
        south, tall = -MAX_LATITUDE, 2 * MAX_LATITUDE
        return (
            low + self.column * size * wide,
            south + self.row * size * tall,
            low + (self.column + 1) * size * wide,
            south + (self.row + 1) * size * tall,
        )

    def scores(self) -> tuple[float, float]:
        """The lowest score of its places, and the first one after them."""
        bits = _interleaved(self.row, self.column)
        shift = 52 - 2 * self.steps
        return float(bits << shift), float((bits + 1) << shift)


def _interleaved(even: int, odd: int) -> int:
    return _spread(even) | _spread(odd) << 1


def _spread(number: int) -> int:
    """A number of 32 bits with a zero before each bit."""
    for shift, mask in _MASKS:
        number = (number | number << shift) & mask
    return number


def _gathered(number: int) -> int:
    """Every second bit of a number, from the lowest on."""
    number &= _EVEN  # of a negative number, its lowest 64 bits
    for shift, mask in _GATHERING:
        number = (number | number >> shift) & mask
    return number


_MASKS: Final = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, _EVEN),
)
_GATHERING: Final = (
    (1, 0x3333333333333333),
    (2, 0x0F0F0F0F0F0F0F0F),
    (4, 0x00FF00FF00FF00FF),
    (8, 0x0000FFFF0000FFFF),
    (16, 0x00000000FFFFFFFF),
)


def cell_of(place: Place, steps: int = _STEPS, most: float = MAX_LATITUDE) -> Cell:
    """The cell of a place, for latitudes from ``-most`` to ``most``."""
    size = 1 << steps
    column = (place.longitude + MAX_LONGITUDE) / (2 * MAX_LONGITUDE) * size
    row = (place.latitude + most) / (2 * most) * size
    return Cell(int(column) & 0xFFFFFFFF, int(row) & 0xFFFFFFFF, steps)


def score_of(place: Place) -> int:
    """The score that stands for a place.

    >>> score_of(Place(13.361389, 38.115556))
    3479099956230698
    """
    cell = cell_of(place)
    return _interleaved(cell.row, cell.column)


def place_of(score: float) -> Place:
    """The place that a score stands for: the middle of its cell.

    ZADD takes any number.  One beyond 64 bits is 0 or 2^63, as in C on x86.
    """
    bits = 1 << 63 if score < -_TOP else 0 if score >= 2 * _TOP else int(score)
    low, south, high, north = Cell(_gathered(bits >> 1), _gathered(bits), _STEPS).bounds()
    longitude, latitude = (low + high) / 2, (south + north) / 2
    return Place(
        max(-MAX_LONGITUDE, min(longitude, MAX_LONGITUDE)),
        max(-MAX_LATITUDE, min(latitude, MAX_LATITUDE)),
    )


def geohash(place: Place) -> str:
    """The standard geohash of a place, in 11 characters.  As in Redis, the last one says nothing.

    >>> geohash(place_of(3479099956230698))
    'sqc8b49rny0'
    """
    cell = cell_of(place, most=90.0)
    bits = _interleaved(cell.row, cell.column)
    return "".join(_DIGITS[bits >> 52 - 5 * at & 31] for at in range(1, 11)) + "0"


def distance(one: Place, other: Place) -> float:
    """The distance of two places, in meters, on a sphere."""
    east = math.sin((math.radians(other.longitude) - math.radians(one.longitude)) / 2)
    if east == 0.0:
        return _latitude_distance(one, other)
    first, second = math.radians(one.latitude), math.radians(other.latitude)
    north = math.sin((second - first) / 2)
    part = north * north + math.cos(first) * math.cos(second) * east * east
    return 2.0 * _EARTH_RADIUS * math.asin(min(1.0, math.sqrt(part)))


def _latitude_distance(one: Place, other: Place) -> float:
    return _EARTH_RADIUS * abs(math.radians(other.latitude) - math.radians(one.latitude))


def cells_around(shape: Shape) -> list[Cell]:
    """The cells that cover a shape, its own first; cells at its other side are left out."""
    steps = _steps_for(shape.reach, shape.center.latitude)
    west, south, east, north = shape.bounds()
    center = cell_of(shape.center, steps)
    if steps > 1 and (
        center.beside(0, 1).bounds()[3] < north
        or center.beside(0, -1).bounds()[1] > south
        or center.beside(1, 0).bounds()[2] < east
        or center.beside(-1, 0).bounds()[0] > west
    ):
        steps -= 1
        center = cell_of(shape.center, steps)
    low, bottom, high, top = center.bounds()
    cells: list[Cell] = [center]
    last: Cell | None = None  # as in Redis, the first neighbor may be the center again
    for columns, rows in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)):
        if steps >= 2 and (
            (rows < 0 and bottom < south)
            or (rows > 0 and top > north)
            or (columns < 0 and low < west)
            or (columns > 0 and high > east)
        ):
            continue
        cell = center.beside(columns, rows)
        if cell != last:
            cells.append(cell)
            last = cell
    return cells


def _steps_for(reach: float, latitude: float) -> int:
    """The number of steps of cells that are not smaller than a shape."""
    if reach == 0:
        return _STEPS
    steps = 1
    while reach < _HALF_EQUATOR:
        reach *= 2
        steps += 1
    steps -= 2  # so that the shape is covered where it is at the edge of a cell
    if abs(latitude) > 66:  # near the poles cells are narrow
        steps -= 1
        if abs(latitude) > 80:
            steps -= 1
    return max(1, min(steps, _STEPS))
