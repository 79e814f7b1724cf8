"""A stream against a plain list; and what its record promises about those that are gone."""

from __future__ import annotations

import random

from serving import an_engine

from lsmkv.server.encoding import STREAM, Entry
from lsmkv.server.engine import Engine
from lsmkv.server.stream import Stream, decode_words, encode_words, is_entry
from lsmkv.server.stream_ids import NO_ID, to_id


class Model:
    """A stream, and the ids that should be in it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.stream = Stream(engine.space.records, Entry(STREAM, 1))
        self.ids: list[bytes] = []
        self.added = 0

    def add(self) -> None:
        id_ = to_id(self.added + 1, self.added % 3)
        self.stream.add(id_, [b"f", b"%d" % self.added])
        self.ids.append(id_)
        self.added += 1

    def commit(self) -> None:
        """What is pending goes into the store; the record goes through its bytes."""
        self.engine.space.records.commit()
        entry = Entry.decode(self.stream.store().encode())
        self.stream = Stream(self.engine.space.records, entry)

    def check(self) -> None:
        stream = self.stream
        assert (stream.entry.size, stream.added) == (len(self.ids), self.added)
        assert [id_ for id_, _ in stream.slice(NO_ID)] == self.ids
        assert [id_ for id_, _ in stream.slice(NO_ID, reverse=True)] == self.ids[::-1]
        assert stream.first == (self.ids[0] if self.ids else NO_ID)
        assert stream.top() == (self.ids[-1] if self.ids else NO_ID)


def test_random_changes_agree_with_a_list() -> None:
    choices = random.Random(1)
    with an_engine() as engine:
        model = Model(engine)
        for step in range(400):
            match choices.randrange(6):
                case 0 | 1 | 2:
                    for _ in range(choices.randrange(8)):
                        model.add()
                case 3:
                    gone = choices.sample(model.ids, min(len(model.ids), choices.randrange(5)))
                    assert model.stream.delete([*gone, to_id(10**6, 0)]) == len(gone)
                    model.ids = [id_ for id_ in model.ids if id_ not in gone]
                case 4:
                    most = choices.randrange(60)
                    surplus = max(0, len(model.ids) - most)
                    assert model.stream.trim_to_size(most) == surplus
                    model.ids = model.ids[surplus:]
                case _:
                    before = to_id(choices.randrange(model.added + 1), 0)
                    kept = [id_ for id_ in model.ids if id_ >= before]
                    removed = len(model.ids) - len(kept)
                    assert model.stream.trim_before(before) == removed
                    model.ids = kept
            if step % 3 == 0:
                model.commit()
            model.check()


def test_whole_nodes_are_trimmed() -> None:
    with an_engine() as engine:
        model = Model(engine)
        for _ in range(450):
            model.add()
        stream = model.stream
        assert stream.trim_to_size(360, 100) == 0
        assert stream.trim_to_size(240, 100) == 200
        assert stream.trim_to_size(0, 100, limit=99) == 0
        assert stream.trim_to_size(0, 100, limit=150) == 100
        assert stream.trim_before(to_id(380, 0), 100) == 0
        assert stream.trim_before(to_id(420, 0), 100) == 100
        assert stream.trim_before(to_id(1000, 0), 100) == 50  # all that are left
        assert (stream.entry.size, stream.first) == (0, NO_ID)


def test_a_node_that_was_cut_ends_where_it_would_have_ended() -> None:
    with an_engine() as engine:
        model = Model(engine)
        for _ in range(1000):
            model.add()
        stream = model.stream
        assert stream.trim_to_size(555) == 445
        assert stream.trim_to_size(444, 100) == 55
        assert stream.entry.size == 500


def test_reading_begins_behind_what_was_trimmed() -> None:
    """No scan passes over trimmed entries: the bound is the first entry."""
    with an_engine() as engine:
        model = Model(engine)
        for _ in range(5000):
            model.add()
        model.commit()
        engine.db.flush()
        model.stream.trim_to_size(1)
        model.commit()
        engine.db.flush()
        before = engine.db.stats().blocks_read
        assert len(model.stream.slice(NO_ID)) == 1
        assert engine.db.stats().blocks_read - before <= 4  # of the two tables' forty or so


def test_words_of_an_entry() -> None:
    words = [b"", b"\0", b"x" * 1000, b"\xff"]
    record = encode_words(words)
    assert decode_words(record) == words
    assert is_entry(record)
    assert not any(is_entry(record[:end]) for end in range(len(record)))
    assert not is_entry(record + b"x")
    assert record.startswith(b"\0\0\0\4\0\0\0\0\0\0\0\1\0\0\x03\xe8\0\0\0\1\0")
