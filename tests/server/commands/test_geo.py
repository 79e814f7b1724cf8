"""GEOADD, GEOSEARCH and their family."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript


def test_places_are_doubles_in_resp3(client: Client) -> None:
    client("GEOADD g 13.361389 38.115556 palermo")
    client("HELLO 3")
    place = [13.36138933897018433, 38.11555639549629859]
    assert client("GEOPOS g palermo") == [place]
    assert client("GEOSEARCH g FROMMEMBER palermo BYRADIUS 1 m WITHCOORD") == [[b"palermo", place]]


@transcript("geo.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
