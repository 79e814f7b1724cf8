"""A second index: people by their id, and by the city in which they live.

    python examples/second_index.py [DIRECTORY]

A person is one entry, and one more without a value stands for it in the index.  ``save`` writes
both at once, and takes away the index entry of the city that the person has left.  It reads that
city first, so it is a transaction: of two that change one person, the second begins again.
"""

from __future__ import annotations

import sys
import tempfile

import lsmkv

PEOPLE = b"people/"
CITIES = b"cities/"


def index_key(city: bytes, person: bytes = b"") -> bytes:
    """The key in the index; without a person, what all keys of the city begin with."""
    return CITIES + city + b"\0" + person


def save(db: lsmkv.DB | lsmkv.SharedDB, person: bytes, city: bytes | None) -> None:
    """Store the city of a person, in place of the one before; None removes the person.

    Ids and cities contain no byte 0, which is between them in a key of the index.
    """
    if b"\0" in person or (city is not None and b"\0" in city):
        raise ValueError(f"a byte 0 in {person!r} or {city!r}")

    def both(transaction: lsmkv.Transaction) -> None:
        before = transaction.get(PEOPLE + person)
        if before is not None:
            transaction.delete(index_key(before, person))
        if city is None:
            transaction.delete(PEOPLE + person)
        else:
            transaction.put(PEOPLE + person, city)
            transaction.put(index_key(city, person), b"")

    db.run(both)


def people_in(db: lsmkv.DB | lsmkv.SharedDB, city: bytes) -> list[bytes]:
    """The people of a city, in order: a scan over the keys of the index alone."""
    prefix = index_key(city)
    return [key[len(prefix) :] for key in db.iterator(prefix=prefix, include_value=False)]


def check(db: lsmkv.DB | lsmkv.SharedDB) -> list[bytes]:
    """The keys of the index that are missing or too many.  Reads people and index at one moment."""
    with db.snapshot() as seen:
        people = seen.iterator(prefix=PEOPLE)
        expected = {index_key(city, key[len(PEOPLE) :]) for key, city in people}
        return sorted(expected ^ set(seen.iterator(prefix=CITIES, include_value=False)))


def main(directory: str) -> None:
    """Let three people move in and one of them move on, and then break the index."""
    with lsmkv.DB(directory, create_if_missing=True) as db:
        for person, city in ((b"ada", b"Oslo"), (b"bo", b"Rome"), (b"cleo", b"Oslo")):
            save(db, person, city)
        print("Oslo:", people_in(db, b"Oslo"))
        save(db, b"ada", b"Rome")
        save(db, b"cleo", None)
        print("after a move and a removal, Oslo:", people_in(db, b"Oslo"))
        print("Rome:", people_in(db, b"Rome"))
        print("wrong in the index:", check(db))
        db.put(PEOPLE + b"bo", b"Bern")  # past the index
        print("wrong after a put past it:", check(db))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as place:
            main(place)
