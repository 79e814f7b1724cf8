"""Geohashes: places as scores, and the cells around a shape."""

from __future__ import annotations

import math
import random

import pytest

from lsmkv.server.geohash import Place, Shape, cells_around, distance, geohash, place_of, score_of

PALERMO, CATANIA = Place(13.361389, 38.115556), Place(15.087269, 37.502669)


def test_places_and_scores_of_redis() -> None:
    assert (score_of(PALERMO), score_of(CATANIA)) == (3479099956230698, 3479447370796909)
    assert place_of(3479099956230698) == Place(13.36138933897018433, 38.11555639549629859)
    assert geohash(place_of(3479447370796909)) == "sqdtr74hyu0"
    assert f"{distance(place_of(score_of(PALERMO)), place_of(score_of(CATANIA))):.4f}" == (
        "166274.1516"
    )


def test_a_place_is_found_again_within_a_meter() -> None:
    choices = random.Random(0)
    for _ in range(500):
        place = Place(choices.uniform(-180, 180), choices.uniform(-85, 85))
        assert distance(place, place_of(score_of(place))) < 1


@pytest.mark.parametrize("score", [math.inf, -math.inf, 1e300, -1e300, -1.5, 2.0**64, 2.0**63])
def test_any_score_is_a_place(score: float) -> None:
    longitude, latitude = place_of(score)
    assert -180 <= longitude <= 180
    assert -85.06 < latitude < 85.06


def test_cells_cover_their_shape() -> None:
    """Compared with all places, in shapes of all sizes that do not reach a pole."""
    choices = random.Random(0)
    for _ in range(300):
        center = Place(choices.uniform(-170, 170), choices.uniform(-60, 60))
        size = 10 ** choices.uniform(1, 6)
        shape = Shape(center, size, size * choices.uniform(0.1, 1), choices.random() < 0.5)
        cells = [cell.scores() for cell in cells_around(shape)]
        reach = math.degrees(2 * size / 6_000_000)
        for _ in range(50):
            longitude = center.longitude + choices.uniform(-reach, reach)
            place = Place(longitude, center.latitude + choices.uniform(-reach, reach))
            if abs(place.longitude) < 180 and shape.distance_within(place) is not None:
                score = score_of(place)
                assert sum(low <= score < high for low, high in cells) == 1


@pytest.mark.parametrize("size", [0.0, 1e308, math.inf])
@pytest.mark.parametrize("latitude", [0.0, 85.05112878, -85.05112878])
def test_a_shape_of_any_size_has_cells(size: float, latitude: float) -> None:
    for is_box in (False, True):
        shape = Shape(Place(180.0, latitude), size, size, is_box)
        assert 1 <= len(cells_around(shape)) <= 9
