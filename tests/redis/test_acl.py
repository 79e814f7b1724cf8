"""Users of lsmkv may do what users of Redis with the same rules may.

``ACL DRYRUN`` of random requests goes to both, for users with random rules.
"""

from __future__ import annotations

import random
from collections import Counter

from redis_pair import Pair
from redis_requests import random_steps

_RULES = """
~k* ~l* ~z? ~x1 %R~s* %W~h* %RW~g* %W~s1 &news:* &c1 resetkeys resetchannels
+@all +@all +@read +@write +@stream +@scripting +@blocking +@transaction +@pubsub
-@dangerous -@hash -@write -get -mget -set +hget +set +mget +keys +publish
+select|0 +select|5 +config|get
"""
_REQUESTS = 300


def test_random_requests_are_permitted_alike(pair: Pair) -> None:
    choices = random.Random(7)
    sides = (pair.redis.control, pair.lsmkv.control)
    verdicts: Counter[bytes] = Counter()
    stricter: set[bytes] = set()
    for seed in range(12):
        rules = choices.choices(_RULES.split(), k=14)
        made = [side.ask("ACL", "SETUSER", f"u{seed}", *rules) for side in sides]
        assert made[0] == made[1], rules
        for _, request in random_steps(random.Random(seed), _REQUESTS, streams=seed % 2 == 1):
            if not request or request[0].upper().startswith(b"BF."):
                continue
            redis, lsmkv = (side.ask("ACL", "DRYRUN", f"u{seed}", *request) for side in sides)
            assert isinstance(lsmkv.value, bytes)
            assert isinstance(redis.value, bytes)
            if redis == lsmkv:
                verdicts[lsmkv.value.rpartition(b" ")[2]] += 1
            # Redis 7.0 may find all keys of a request that cannot work, none, or other keys.
            elif lsmkv.value == b"OK":
                assert pair.lsmkv.clients[0].ask(*request).mark == "-", (rules, request, redis)
            elif not lsmkv.value.endswith(b" key") or redis.value.endswith(b" command"):
                raise AssertionError((rules, request, redis, lsmkv))
            elif redis.value == b"OK":
                stricter.add(request[0].upper())
    assert min(verdicts[word] for word in (b"OK", b"command", b"key")) > 50
    assert stricter <= {b"PFMERGE", b"ZDIFFSTORE", b"ZINTERSTORE", b"ZUNIONSTORE"}
