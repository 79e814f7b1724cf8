"""A consumer group against a plain dict, through its records."""

from __future__ import annotations

import random

from serving import Client, an_engine

from lsmkv.server.check import check
from lsmkv.server.consumer_group import Delivery, find_group, groups_of, make_group, remove_group
from lsmkv.server.encoding import STREAM, Entry
from lsmkv.server.stream_ids import NO_ID, to_id


def test_random_deliveries_agree_with_a_dict() -> None:
    choices = random.Random(2)
    with an_engine() as engine:
        space, entry = engine.space, Entry(STREAM, 1)
        make_group(space, entry, b"g", NO_ID, -1)
        pending: dict[bytes, Delivery] = {}
        for step in range(600):
            group = find_group(space.records, entry, b"g")
            assert group is not None
            id_ = to_id(step // 4 + choices.randrange(20), 0)
            old = group.delivery(id_)
            assert old == pending.get(id_)
            if choices.random() < 0.6:
                delivery = Delivery(choices.choice([b"a", b"b", b""]), step, step % 5)
                consumer = group.use_consumer(delivery.consumer, step)
                group.deliver(id_, consumer, delivery.time, delivery.deliveries, old)
                pending[id_] = delivery
            elif choices.random() < 0.02:
                name = choices.choice([b"a", b"b"])
                owned = [id_ for id_, one in pending.items() if one.consumer == name]
                consumer = group.use_consumer(name, step)
                assert group.remove_consumer(consumer) == len(owned)
                for one in owned:
                    del pending[one]
            else:
                for one in sorted(pending)[: choices.randrange(3)]:
                    group.acknowledge(one, pending.pop(one))
            group.save()
            if step % 5 == 0:
                space.records.commit()
            (group,) = groups_of(space.records, entry)
            assert [id_ for id_, _ in group.pending.walk()] == sorted(pending)
            assert group.pending.count == len(pending)
            for consumer in group.consumers():
                owned = [id_ for id_, one in pending.items() if one.consumer == consumer.name]
                assert [id_ for id_, _ in consumer.pending.walk()] == sorted(owned)
                assert consumer.pending.count == len(owned)
        assert group.pending.low > NO_ID  # it has moved behind what was acknowledged


def test_a_consumer_that_is_removed_and_made_again_is_new() -> None:
    with an_engine() as engine:
        client = Client(engine)
        client("XADD x 1-1 f v")
        client("XGROUP CREATE x g 0")
        client("XREADGROUP GROUP g c STREAMS x >")
        client.plays(
            ("XGROUP DELCONSUMER x g c", 1),
            ("XGROUP CREATECONSUMER x g c", 1),
            ("XPENDING x g", [0, None, None, None]),
        )


def test_a_group_is_removed_at_once_and_swept_later() -> None:
    with an_engine() as engine:
        client = Client(engine)
        for number in range(1, 1001):
            client(f"XADD x {number} f v")
        client("XGROUP CREATE x g 0")
        client("XREADGROUP GROUP g c STREAMS x >")
        before = len(engine.space.garbage)
        client.plays(("XGROUP DESTROY x g", 1), ("XGROUP CREATE x g 0", b"OK"))
        assert len(engine.space.garbage) == before + 1
        assert check(engine.db) == []
        client.plays(("XPENDING x g", [0, None, None, None]), ("DEL x", 1))
        assert check(engine.db) == []
        while engine.tidy_once():
            assert check(engine.db) == []
        engine.commit()
        assert not [name for name, _ in engine.db if name[:1] in b"es"]


def test_removing_gives_back_what_belongs_to_a_group() -> None:
    with an_engine() as engine:
        space, entry = engine.space, Entry(STREAM, 1)
        make_group(space, entry, b"g", NO_ID, 3)
        group = find_group(space.records, entry, b"g")
        assert group is not None
        assert (group.name, group.read, group.last) == (b"g", 3, NO_ID)
        remove_group(space, entry, group)
        assert find_group(space.records, entry, b"g") is None
