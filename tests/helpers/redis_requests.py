"""Random requests of Redis' commands: right ones and wrong ones, over a few keys.

``TEMPLATES`` says what requests look like.  Words in capitals stand for themselves, words in small
letters for a random word out of ``WORDS``; ``[ ]`` is there or not, ``( | )`` is one of several,
``{ }`` comes once to three times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

Request = list[bytes]
_MEMBERS = [
    *(
        b"1 2 3 4 10 -5 1.5 m n o p abc abd aaa ABC 0 -1 inf 1e3 nan 0x10 -0 01 5. .5 w_1"
        b" lo\xc3\xa9 9223372036854775807 -9223372036854775808 9223372036854775806"
        b" 9223372036854775808"
    ).split(),
    b"",
    b" 5",
    b"5 ",
    b"\0",
    b"a\0b",
    b"\xff\xfe",
    b"\r\n",
    b"x" * 100,
    b"*",
    b"y" * 50,
]
_INTEGERS = [
    *(
        b"0 1 -1 2 -2 3 4 5 7 10 -3 -10 100 -100 0 1 2 3 -1 1 2 0 1 9223372036854775807 abc 1.5 +1"
        b" 01 -0 -9223372036854775808 9223372036854775808 -9223372036854775809 4611686018427387904"
        b" 1e2 -4611686018427387905 4294967296 2147483648"
    ).split(),
    b"",
    b" 1",
    b"1 ",
    b"1\0",
]
_PAST_AND_WRONG = b"1 1000 0 -1 1000000000 abc 9223372036854775808 1.5 -".split()
_POSITIONS = b"0 1 -1 2 -2 3 -3 5 10 -10 100 0 -1 1 -100 1 2".split()
_SCORES = (
    b"0 1 -1 2 3 1.5 -2.5 0.5 100 -0.0 0.1 0.2 3.14 1e3 1 2 3 1e17 123456789 5 7 1e300 -1e300"
    b" 17.000000001 0.30000000000000004 -inf +inf inf 1e-5 12345678901234567890 1e-310 5e-324"
).split()
_BAD_SCORES = [
    *b"nan abc 1e400 1_000 1,5 -nan 0x 1e (1 ++1 1..2 in infi - + . e5".split(),
    b"",
    b" 1",
    b"1 ",
    b"1\0",
]
_ODD_SCORES = b"0x10 0x1p3 0x1.8 infinity +Infinity 5. .5 +1 1E3 -INF 00012 1e-400".split()
_KEYS = {
    kind: tuple(f"{kind}{number}".encode() for number in (1, 2, 3))
    for kind in ("s", "h", "l", "t", "z", "y", "x")
}
_ODD_KEYS = (b"", b"\xff\0\r\n", b"w_1", b"w_2", b"w_3", b"o_1", b"o_2", b"none", b"k" * 200)
_GROUPS = [b"g1", b"g2"]
_CONSUMERS = [b"c1", b"c2", b"c3"]
_IDS = b"1-1 2 3-1 3-2 4-0 5-5 7 7-1 9 12-3 20 50-1 100".split()
_ODD_IDS = [
    *b"0 0-0 0-1 18446744073709551615-18446744073709551615 18446744073709551614 abc 1-".split(),
    *b"-1 1-1-1 18446744073709551616".split(),
    *b"+5 05-01 * 1-* - + $ > ( (5 1.5 5-18446744073709551615".split(),
    b"",
    b" 5",
    b"5\0",
    b"9" * 130,
]
_JUNK = [
    *(
        b"NX XX GT LT CH INCR GET KEEPTTL EX PX PERSIST WITHSCORES WITHVALUES LIMIT COUNT MATCH BY"
        b" REV BYSCORE BYLEX STORE ALPHA LEFT RIGHT MIN MAX WEIGHTS AGGREGATE REPLACE DB abc 0 -1 1"
        b" 1.5 [a (1 - + RANK MAXLEN SUM foo TYPE ASC DESC EXAT NOW 9223372036854775808"
    ).split(),
    b"",
    b"\xff",
]

Maker = Callable[[random.Random], Request]


def _key(kind: str) -> Maker:
    """A key that as a rule is of this kind."""
    everything = [key for keys in _KEYS.values() for key in keys]

    def make(choices: random.Random) -> Request:
        luck = choices.random()
        if luck < 0.03:
            return [choices.choice(_ODD_KEYS)]
        if luck < 0.12 or kind not in _KEYS:
            return [choices.choice(everything)]
        return [choices.choice(_KEYS[kind])]

    return make


def _one_of(usual: tuple[bytes, ...] | list[bytes], seldom: list[bytes], chance: float) -> Maker:
    def make(choices: random.Random) -> Request:
        return [choices.choice(seldom if choices.random() < chance else usual)]

    return make


def _keys(kind: str, weights: bool = False, limit: bool = False) -> Maker:
    """The number of keys, the keys; perhaps a weight for each."""

    def make(choices: random.Random) -> Request:
        count = choices.choice((1, 1, 2, 2, 3))
        shown = b"%d" % count
        if choices.random() < 0.05:
            shown = choices.choice(_INTEGERS)
        words = [shown]
        for _ in range(count):
            words += _key(kind if choices.random() < 0.8 else "t")(choices)
        if weights and choices.random() < 0.4:
            wrong = choices.random() < 0.1
            words.append(b"WEIGHTS")
            words += [WORDS["score"](choices)[0] for _ in range(count - wrong)]
        return words

    return make


def _milliseconds(choices: random.Random) -> Request:
    """A time to live that is far off, and that no other key has."""
    if choices.random() < 0.15:
        return [choices.choice([*_INTEGERS[23:], b"0", b"-1", b"-100"])]
    return [b"%d" % choices.randrange(10**6, 10**10)]


def _far_off(unit: int) -> Maker:
    def make(choices: random.Random) -> Request:
        if choices.random() < 0.15:
            return [choices.choice(_PAST_AND_WRONG)]
        return [b"%d" % (choices.choice((3 * 10**9, 4 * 10**9, 5 * 10**9, 6 * 10**9)) * unit)]

    return make


def _new_id(choices: random.Random) -> Request:
    """An id that as a rule is above those before it."""
    if choices.random() < 0.1:
        return WORDS["id"](choices)
    return [b"%d-%d" % (choices.randrange(1, 60), choices.randrange(3))]


def _streams(after: list[bytes]) -> Maker:
    """Some keys, and an id for each."""

    def make(choices: random.Random) -> Request:
        count = choices.choice((1, 1, 1, 2, 3))
        keys = [word for _ in range(count) for word in _key("x")(choices)]
        if choices.random() < 0.1:
            after.append(WORDS["id"](choices)[0])
        return [*keys, *(choices.choice(after) for _ in keys)]

    return make


def _bit_offset(choices: random.Random) -> Request:
    """The position of a bit, not so far off that a string gets large."""
    if choices.random() < 0.1:
        return [choices.choice([*_INTEGERS[23:28], b"-1", b"4294967296", b"abc", b"", b"#1"])]
    return [b"%d" % choices.randrange(200)]


def _field(choices: random.Random) -> Request:
    """The type and the position of a number in bits."""
    if choices.random() < 0.1:
        kind = choices.choice(b"u64 i65 u0 i0 i-1 x8 8 u u8x i+1 U8".split())
    else:
        kind = b"%c%d" % (choices.choice(b"iu"), choices.choice((1, 2, 3, 5, 8, 13, 16, 32, 63)))
        kind = choices.choice((kind, kind, kind, b"i64"))
    mark = b"#" if choices.random() < 0.3 else b""
    return [kind, mark + (b"%d" % choices.randrange(9) if mark else _bit_offset(choices)[0])]


def _field_number(choices: random.Random) -> Request:
    if choices.random() < 0.5:
        return WORDS["int"](choices)
    return [b"%d" % choices.choice((1, -1, 7, 127, 128, -128, -129, 255, 256, 1 << 15, -1 << 31))]


def _place(choices: random.Random) -> Request:
    """A longitude and a latitude: near others, near a pole, where east meets west, or wrong."""
    luck = choices.random()
    if luck < 0.05:
        wrong = b"180.1 -181 90 -90 85.06 abc nan inf 1e400".split()
        return [choices.choice([*wrong, b"1"]), choices.choice([*wrong, b"1"])]
    if luck < 0.5:
        return [b"%.6f" % choices.uniform(12, 16), b"%.6f" % choices.uniform(36, 39)]
    longitude = choices.choice([choices.uniform(-180, 180), 180, -180, 179.99, -179.99, 0])
    latitude = choices.choice([choices.uniform(-85, 85), 85.05112878, -85.05, 66.5, -81.5, 0])
    return [b"%.8f" % longitude, b"%.8f" % latitude]


def _lex(choices: random.Random) -> Request:
    if choices.random() < 0.08:
        return [choices.choice([b"a", b"", b"1", b"++", b"-1"])]
    start = choices.choice([b"[", b"(", b"-", b"+", b"-", b"+"])
    return [start if start in b"-+" else start + choices.choice(_MEMBERS)]


def _bound(choices: random.Random) -> Request:
    score = WORDS["score"](choices)[0]
    return [b"(" + score if choices.random() < 0.25 else score]


def _many(pairs: bool) -> Maker:
    """More elements than one step of a walk returns, and than Redis keeps in a small collection."""

    def make(choices: random.Random) -> Request:
        first = choices.randrange(1000)
        numbers = range(first, first + choices.randrange(20, 200))
        if pairs:
            return [word for one in numbers for word in (b"%d" % (one * 7 % 50), b"e%d" % one)]
        return [b"e%d" % one for one in numbers]

    return make


WORDS: dict[str, Maker] = {
    "s": _key("s"),
    "h": _key("h"),
    "l": _key("l"),
    "t": _key("t"),
    "z": _key("z"),
    "y": _key("y"),
    "x": _key("x"),
    "group": _one_of(_GROUPS, [b"", b"none", b"g\0\r\n", b"g3"], 0.1),
    "consumer": _one_of(_CONSUMERS, [b"", b"none", b"c\0\xff"], 0.1),
    "id": _one_of(_IDS, _ODD_IDS, 0.12),
    "new-id": _new_id,
    "from": _one_of([b"-", b"-", b"(3-1", b"0", *_IDS], [*_ODD_IDS, b"(-", b"(0"], 0.12),
    "to": _one_of([b"+", b"+", b"(5-5", *_IDS], [*_ODD_IDS, b"(0-0", b"(0"], 0.12),
    "streams": _streams([b"0", b"$", b"0-0", b"3-1", b"5"]),
    "group-streams": _streams([b">", b">", b">", b">", b"0", b"3-1", b"$"]),
    "idle": _one_of([b"0", b"0", b"0", b"100000000"], [b"-1", b"abc", b""], 0.1),
    "size": _one_of([b"0", b"1", b"2", b"3", b"5", b"1000"], _INTEGERS, 0.1),
    "k": _key("any"),
    "keys:l": _keys("l"),
    "keys:t": _keys("t"),
    "keys:z": _keys("z"),
    "weighted": _keys("z", weights=True),
    "many": _many(pairs=False),
    "pairs": _many(pairs=True),
    "member": _one_of(_MEMBERS[:12], _MEMBERS, 0.35),
    "value": _one_of(_MEMBERS, _MEMBERS[:5], 0.3),
    "int": _one_of(_INTEGERS[:23], _INTEGERS, 0.25),
    "pos": _one_of(_POSITIONS, _INTEGERS, 0.08),
    "score": _one_of(_SCORES, _BAD_SCORES + _ODD_SCORES, 0.08),
    "bound": _bound,
    "lex": _lex,
    "dyadic": _one_of([b"0.5", b"1", b"-1", b"1.5", b"-0.25", b"3e3", b"0"], _BAD_SCORES, 0.15),
    "bit": _one_of([b"0", b"1"], _INTEGERS, 0.08),
    "bit-offset": _bit_offset,
    "field": _field,
    "field-number": _field_number,
    "hll": _one_of((b"p1", b"p2", b"p3"), [b"s1", b"l1", b"p4"], 0.08),
    "g": _one_of((b"g1", b"g2", b"g3"), [b"z1", b"l1", b"g4", b""], 0.06),
    "place": _place,
    "far": _one_of(
        b"0 1 100 500 200000 50 1000 5000 9000 20000000 5.5".split(),
        [*b"-1 abc 1e308 inf 1e-300 nan 40000000".split(), b""],
        0.08,
    ),
    "unit": _one_of([b"m", b"km", b"mi", b"ft", b"KM"], [b"mm", b"", b"meters"], 0.05),
    "ttl": _milliseconds,
    "at": _far_off(1),
    "at-ms": _far_off(1000),
    "db": _one_of([b"0", b"0", b"0", b"1", b"2"], [b"16", b"-1", b"abc", b"15", b""], 0.06),
    "glob": _one_of(
        [b"*", b"s*", b"?1", b"[hl]2", b"*1", b"m*", b"[^m]", b"[a-m]*", b"\\*", b"*\xff*", b"a?*"],
        [b"", b"[", b"[a", b"\\", b"[^", b"[]", b"[a-", b"***", b"[z-a]*", b"[\\]]", b"?"],
        0.15,
    ),
    "by": _one_of(
        [b"w_*", b"o_*->f", b"nosort", b"nosort"], [b"*", b"w_*->", b"*->f", b"->*"], 0.1
    ),
    "get": _one_of([b"#", b"w_*", b"o_*->f", b"w_1"], [b"*", b"", b"*->", b"o_*->*"], 0.1),
    "ms": _one_of([b"1", b"0"], [b"-1", b"abc", b"1.5"], 0.1),
    "seconds": _one_of([b"0.01", b"0"], [b"-1", b"abc", b"nan", b"", b"1e400", b"-0.1"], 0.1),
    "kind": _one_of(
        [b"string", b"list", b"set", b"zset", b"hash", b"stream"], [b"ZSET", b"x", b""], 0.2
    ),
}

TEMPLATES = """
SET s value
SET s value [(NX|XX)] [GET] [(EX ttl|PX ttl|EXAT at|PXAT at-ms|KEEPTTL)]
GET s
MGET {k}
MSET {s value}
MSETNX {k value}
SETNX s value
SETEX s ttl value
PSETEX s ttl value
GETSET s value
GETDEL s
GETEX s [(EX ttl|PX ttl|EXAT at|PXAT at-ms|PERSIST)]
APPEND s value
STRLEN s
GETRANGE s pos pos
SUBSTR s pos pos
SETRANGE s pos value
LCS s s [LEN] [IDX] [MINMATCHLEN pos] [WITHMATCHLEN]
LCS s s IDX [MINMATCHLEN pos]
INCR s
DECR s
INCRBY s int
DECRBY s int
INCRBYFLOAT s dyadic
SETBIT s bit-offset bit
SETBIT s bit-offset bit
GETBIT s bit-offset
BITCOUNT s [pos pos [(BIT|BYTE)]]
BITCOUNT s pos pos (BIT|BYTE)
BITPOS s bit [pos [pos [(BIT|BYTE)]]]
BITPOS s bit pos pos (BIT|BYTE)
BITOP (AND|OR|XOR|NOT) s {s}
BITOP NOT s s
BITFIELD s {(GET field|SET field field-number|INCRBY field field-number|OVERFLOW (WRAP|SAT|FAIL))}
BITFIELD s OVERFLOW (SAT|FAIL) {(SET field field-number|INCRBY field field-number)}
BITFIELD_RO s {GET field}
BITFIELD_RO s GET field [SET field field-number]
PFADD hll {member}
PFADD hll {value}
PFADD hll many
PFADD hll many
PFCOUNT {hll}
PFCOUNT hll
PFMERGE hll {hll}
DEL {hll}
DEL {k}
UNLINK k
EXISTS {k}
TOUCH {k}
TYPE k
EXPIRE k ttl [NX]
EXPIRE k ttl [(NX|XX|GT|LT)] [(XX|GT)]
PEXPIRE k ttl [(NX|XX|GT|LT)]
EXPIREAT k at [(NX|XX|GT|LT)] [(XX|LT)]
PEXPIREAT k at-ms [(NX|XX|GT|LT)]
TTL k
PTTL k
EXPIRETIME k
PEXPIRETIME k
PERSIST k
RENAME k k
RENAMENX k k
COPY k k [DB db] [REPLACE]
COPY k k [REPLACE] [DB db]
MOVE k db
KEYS glob
SCAN 0 [MATCH glob] [COUNT int] [TYPE kind]
SCAN int
RANDOMKEY
DBSIZE
OBJECT REFCOUNT none
OBJECT FREQ k
OBJECT IDLETIME none
OBJECT ENCODING none
MEMORY USAGE none [SAMPLES int] [SAMPLES pos]
SORT (l|t|z) [BY by] [LIMIT pos pos] [GET get] [GET get] [(ASC|DESC)] [ALPHA] [STORE l]
SORT_RO (l|t|z) [ALPHA] [LIMIT pos pos] [DESC]
SORT (l|t|z) ALPHA [GET get] [STORE l]
HSET h {member value}
HSET h {member value}
HSET h pairs
HMSET h {member value}
HSETNX h member value
HGET h member
HMGET h {member}
HEXISTS h member
HSTRLEN h member
HLEN h
HDEL h {member}
HKEYS h
HVALS h
HGETALL h
HINCRBY h member int
HINCRBYFLOAT h member dyadic
HSCAN h 0 [MATCH glob] [COUNT int]
HRANDFIELD h [int [WITHVALUES]]
LPUSH l {value}
RPUSH l {value}
RPUSH l {value}
RPUSH l many
LPUSHX l {value}
RPUSHX l {value}
LPOP l [pos]
RPOP l [pos]
LLEN l
LRANGE l pos pos
LINDEX l pos
LSET l pos value
LTRIM l pos pos
LINSERT l (BEFORE|AFTER) value value
LREM l pos value
LPOS l value [RANK pos] [COUNT pos] [MAXLEN pos]
LMOVE l l (LEFT|RIGHT) (LEFT|RIGHT)
RPOPLPUSH l l
BLPOP {l} seconds
BRPOP {l} seconds
BLMOVE l l (LEFT|RIGHT) (LEFT|RIGHT) seconds
BRPOPLPUSH l l seconds
LMPOP keys:l (LEFT|RIGHT) [COUNT pos]
BLMPOP seconds keys:l (LEFT|RIGHT) [COUNT pos]
SADD t {member}
SADD t {member}
SADD t {value}
SADD t many
SREM t {member}
SISMEMBER t member
SMISMEMBER t {member}
SCARD t
SMEMBERS t
SSCAN t 0 [MATCH glob] [COUNT int]
SMOVE t t member
SPOP t [pos]
SRANDMEMBER t [pos]
SINTER t {t}
SUNION t {t}
SDIFF t {t}
SINTERSTORE t {t}
SUNIONSTORE t {t}
SDIFFSTORE t {t}
SINTERCARD keys:t [LIMIT pos]
ZADD z {score member}
ZADD z {score member}
ZADD z [(NX|XX)] [(GT|LT)] [CH] {score member}
ZADD z pairs
ZADD y {0 member}
ZADD y {0 value}
ZADD z [(NX|XX)] [(GT|LT)] [CH] INCR score member
ZINCRBY z score member
ZREM z {member}
ZCARD z
ZSCORE z member
ZMSCORE z {member}
ZRANK z member
ZREVRANK z member
ZRANGE z pos pos [REV] [WITHSCORES]
ZRANGE z bound bound BYSCORE [REV] [LIMIT pos pos] [WITHSCORES]
ZRANGE y lex lex BYLEX [REV] [LIMIT pos pos]
ZREVRANGE z pos pos [WITHSCORES]
ZRANGEBYSCORE z bound bound [WITHSCORES] [LIMIT pos pos]
ZREVRANGEBYSCORE z bound bound [LIMIT pos pos] [WITHSCORES]
ZRANGESTORE z z pos pos [REV]
ZRANGESTORE z z bound bound BYSCORE [REV] [LIMIT pos pos]
ZRANGESTORE y y lex lex BYLEX [LIMIT pos pos]
ZCOUNT z bound bound
ZRANGEBYLEX y lex lex [LIMIT pos pos]
ZREVRANGEBYLEX y lex lex [LIMIT pos pos]
ZLEXCOUNT y lex lex
ZREMRANGEBYRANK z pos pos
ZREMRANGEBYSCORE z bound bound
ZREMRANGEBYLEX y lex lex
ZPOPMIN z [pos]
ZPOPMAX z [pos]
BZPOPMIN {z} seconds
BZPOPMAX {z} seconds
ZMPOP keys:z (MIN|MAX) [COUNT pos]
BZMPOP seconds keys:z (MIN|MAX) [COUNT pos]
ZRANDMEMBER z [pos [WITHSCORES]]
ZSCAN z 0 [MATCH glob] [COUNT int]
ZUNION weighted [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]
ZINTER weighted [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]
ZDIFF keys:z [WITHSCORES]
ZUNIONSTORE z weighted [AGGREGATE (SUM|MIN|MAX)]
ZINTERSTORE z weighted [AGGREGATE (SUM|MIN|MAX)]
ZDIFFSTORE z keys:z
ZINTERCARD keys:z [LIMIT pos]
GEOADD g [(NX|XX)] [CH] {place member}
GEOADD g {place member}
GEOADD g {place member}
GEOADD g place member place value place value place value place value
ZADD g score member
GEOPOS g {member}
GEOHASH g {member}
GEODIST g member member [unit]
GEOSEARCH g FROMLONLAT place BYRADIUS far unit [(ASC|DESC)] [COUNT pos [ANY]] [WITHDIST] [WITHCOORD]
GEOSEARCH g FROMMEMBER member BYBOX far far unit [ASC] [WITHHASH] [WITHDIST] [COUNT size]
GEOSEARCH g FROMLONLAT place BYBOX far far unit [(ASC|DESC)] [COUNT size ANY]
GEOSEARCH g [FROMMEMBER member] [FROMLONLAT place] [BYRADIUS far unit] [BYBOX far far unit] [ANY]
GEOSEARCHSTORE g g FROMLONLAT place BYRADIUS far unit [DESC] [COUNT pos [ANY]] [STOREDIST]
GEOSEARCHSTORE g g FROMLONLAT place BYRADIUS far unit [WITHDIST] [ASC]
GEOSEARCHSTORE g g FROMMEMBER member BYBOX far far unit [STOREDIST]
GEORADIUS g place far unit [(ASC|DESC)] [WITHCOORD] [WITHHASH] [COUNT size [ANY]]
GEORADIUS g place far unit [DESC] [COUNT size] [(STORE|STOREDIST) g]
GEORADIUS_RO g place far unit [WITHDIST] [STORE g]
GEORADIUSBYMEMBER g member far unit [(ASC|DESC)] [WITHDIST] [COUNT size] [STORE g] [STOREDIST g]
GEORADIUSBYMEMBER_RO g member far unit [DESC] [WITHCOORD]
SET w_1 value
SET w_2 value
MSET w_3 5 w_1 2 w_2 1
HSET o_1 f value
HSET o_2 f value
SELECT db
PING [value]
ECHO value
PUBLISH value value
WAIT 0 1
HELLO 3
HELLO 2
CLIENT SETNAME value
CLIENT GETNAME
WATCH {k}
UNWATCH
NOSUCH {value}
OBJECT NOSUCH k
CLIENT NOSUCH
"""
STREAM_TEMPLATES = """
XADD x new-id {member value}
XADD x new-id {member value}
XADD x new-id {member value}
XADD x id {value}
XADD x * {member value}
XADD x [NOMKSTREAM] [(MAXLEN|MINID) [(=|~)] size [LIMIT pos]] new-id {member value}
XADD x MAXLEN size new-id member value
XADD x 100000-1 many
XLEN x
XRANGE x from to [COUNT pos]
XRANGE x - + [COUNT pos]
XREVRANGE x to from [COUNT pos]
XREAD [COUNT pos] [BLOCK ms] STREAMS streams
XREAD [COUNT pos] STREAMS streams
XDEL x {id}
XDEL x {id}
XTRIM x (MAXLEN|MINID) [(=|~)] size [LIMIT pos]
XTRIM x MINID [=] id
XSETID x id [ENTRIESADDED pos] [MAXDELETEDID id]
XGROUP CREATE x group id [MKSTREAM] [ENTRIESREAD pos]
XGROUP CREATE x group (0|$) MKSTREAM
XGROUP CREATE x group (0|$) MKSTREAM
XGROUP SETID x group (id|$|from) [ENTRIESREAD pos]
XGROUP DESTROY x group
XGROUP CREATECONSUMER x group consumer
XGROUP DELCONSUMER x group consumer
XGROUP NOSUCH x group
XREADGROUP GROUP group consumer [COUNT pos] [BLOCK ms] [NOACK] STREAMS group-streams
XREADGROUP GROUP group consumer [COUNT pos] STREAMS group-streams
XREADGROUP GROUP group consumer [COUNT 2] STREAMS x >
XREADGROUP GROUP group consumer [COUNT 2] STREAMS x >
XREADGROUP GROUP group consumer [COUNT 2] STREAMS x 0
XACK x group {id}
XACK x group {id}
XPENDING x group
XPENDING x group [IDLE idle] from to size [consumer]
XPENDING x group - + 10 [consumer]
XCLAIM x group consumer idle {id} [IDLE pos] [RETRYCOUNT pos] [FORCE] [JUSTID] [LASTID id]
XCLAIM x group consumer idle {id} [TIME pos] [JUSTID]
XCLAIM x group consumer idle {id} [FORCE]
XAUTOCLAIM x group consumer idle from [COUNT size] [JUSTID]
XINFO STREAM x [FULL [COUNT pos]]
XINFO GROUPS x
XINFO CONSUMERS x group
XINFO NOSUCH x
"""
RARE_TEMPLATES = """
FLUSHDB [(ASYNC|SYNC)]
FLUSHALL [(ASYNC|SYNC)]
SWAPDB db db
MULTI
EXEC
DISCARD
RESET
HELLO pos
AUTH value
AUTH default value
"""

WAITING_TEMPLATES = """
BLPOP {l} 0
BRPOP {l} 0
BLMOVE l l (LEFT|RIGHT) (LEFT|RIGHT) 0
BRPOPLPUSH l l 0
BLMPOP 0 1 l (LEFT|RIGHT) [COUNT 2]
BLMPOP 0 2 l l (LEFT|RIGHT) [COUNT 3]
BZPOPMIN {z} 0
BZPOPMAX {z} 0
BZMPOP 0 2 z z (MIN|MAX) [COUNT 2]
XREAD BLOCK 0 STREAMS x $
XREAD COUNT 1 BLOCK 0 STREAMS x 3-1
XREAD BLOCK 0 STREAMS x x $ $
XREADGROUP GROUP group consumer BLOCK 0 STREAMS x >
XREADGROUP GROUP group consumer COUNT 1 BLOCK 0 NOACK STREAMS x >
XREADGROUP GROUP group consumer BLOCK 0 STREAMS x >
"""
FEEDING_TEMPLATES = """
RPUSH l {value}
LPUSH l {value}
RPUSH l value value value
LPUSHX l value
LMOVE l l LEFT RIGHT
LINSERT l BEFORE a b
ZADD z {score member}
ZADD z 1 a 2 b 3 c
ZINCRBY z 1 member
ZUNIONSTORE z 2 z t
SORT t ALPHA STORE l
SADD t {member}
SET l value
DEL l z
DEL l
XADD x new-id {member value}
XADD x new-id {member value}
XADD x new-id member value
XGROUP CREATE x1 group 0 MKSTREAM
XGROUP CREATE x group $ MKSTREAM
XGROUP DESTROY x group
XDEL x id
XTRIM x MAXLEN 0
EXPIRE x 1000000
DEL x
SET x value
RENAME x x
COPY x x REPLACE
MOVE x 1
FLUSHDB
RENAME l l
RENAME t z
COPY l l REPLACE
COPY z z REPLACE
MOVE l 1
SWAPDB 0 1
SELECT db
MULTI
EXEC
EXEC
"""

_Node = str | tuple[str, list["_Node"]]


def _parse(template: str) -> list[_Node]:
    for mark in "[](){}|":
        template = template.replace(mark, f" {mark} ")
    words = iter(template.split())

    def sequence(end: str) -> list[_Node]:
        alternatives: list[list[_Node]] = [[]]
        for word in words:
            if word == end:
                break
            if word == "|":
                alternatives.append([])
            elif word in "[({":
                alternatives[-1].append((word, sequence({"[": "]", "(": ")", "{": "}"}[word])))
            else:
                alternatives[-1].append(word)
        if end == ")":
            return [("|", one) for one in alternatives]
        return alternatives[0]

    return sequence("")


def fill(
    nodes: list[_Node], choices: random.Random, makers: dict[str, Maker] = WORDS
) -> Iterator[bytes]:
    """The words of a request that a template allows."""
    for node in nodes:
        if isinstance(node, str):
            yield from makers[node](choices) if node in makers else [node.encode()]
            continue
        mark, inner = node
        if mark == "(":
            yield from fill([choices.choice(inner)], choices, makers)
        elif mark == "[":
            if choices.random() < 0.35:
                yield from fill(inner, choices, makers)
        else:
            for _ in range(choices.choice((1, 1, 2, 3)) if mark == "{" else 1):
                yield from fill(inner, choices, makers)


def parsed_templates(lines: str) -> list[list[_Node]]:
    """Templates, one a line: words; ``[may be left out]``, ``(one|of)``, ``{once or more}``."""
    return [_parse(line) for line in lines.strip().splitlines()]


_USUAL = parsed_templates(TEMPLATES) + parsed_templates(STREAM_TEMPLATES)
_STREAMS = parsed_templates(STREAM_TEMPLATES) * 3
_STREAMS += parsed_templates("RENAME x x\nCOPY x x REPLACE\nDEL x\nTYPE x")
_RARE = parsed_templates(RARE_TEMPLATES)
_WAITING = parsed_templates(WAITING_TEMPLATES)
_FEEDING = parsed_templates(FEEDING_TEMPLATES)
NAMES = {
    line.split()[0]
    for lines in (TEMPLATES, STREAM_TEMPLATES, RARE_TEMPLATES)
    for line in lines.strip().splitlines()
    if line
} | {"EVAL"}


def random_request(choices: random.Random, streams: bool = False) -> Request:
    """A request, perhaps about streams alone; one in ten or so is wrong in some way."""
    usual = _STREAMS if streams else _USUAL
    words = list(fill(choices.choice(_RARE if choices.random() < 0.015 else usual), choices))
    luck = choices.random()
    if luck < 0.025 and len(words) > 1:
        del words[choices.randrange(1, len(words))]
    elif luck < 0.05:
        words.insert(choices.randrange(1, len(words) + 1), choices.choice(_JUNK))
    elif luck < 0.075 and len(words) > 1:
        words[choices.randrange(1, len(words))] = choices.choice(_JUNK)
    elif luck < 0.10:
        words[choices.randrange(len(words))] = words[0].lower()
    elif luck < 0.13:
        words = [word.lower() if word in _JUNK else word for word in words]
        words[0] = words[0].lower()
    elif luck < 0.135:
        words = words[:1]
    return words


SCRIPTS = (
    b"return redis.call(unpack(ARGV))",
    b"return redis.pcall(unpack(ARGV))",
    b"redis.setresp(3) return redis.call(unpack(ARGV))",
    b"local reply = redis.call(unpack(ARGV)) redis.call('exists', 'none') return reply",
)
"""Scripts that run the command in their arguments."""


def in_a_script(choices: random.Random, request: Request) -> Request:
    """A request that as a script makes it."""
    return [b"EVAL", choices.choice(SCRIPTS), b"0", *request]


Step = tuple[int, Request]
"""The number of a client, and a request."""


def random_steps(choices: random.Random, count: int, streams: bool = False) -> Iterator[Step]:
    """Requests of two clients, some in transactions, while the other goes on; perhaps about streams
    alone."""
    transaction = [0, 0]
    made = 0
    while made < count:
        made += 1
        client = int(choices.random() < 0.3)
        if transaction[client]:
            transaction[client] -= 1
            if not transaction[client]:
                yield client, [choices.choice([b"EXEC"] * 5 + [b"DISCARD"])]
                continue
        elif choices.random() < 0.02:
            if choices.random() < 0.4:
                yield client, [b"WATCH", *WORDS["k"](choices), *WORDS["k"](choices)]
            yield client, [b"MULTI"]
            transaction[client] = choices.randrange(1, 8)
            continue
        request = random_request(choices, streams)
        if choices.random() < 0.1 and not request[0].upper().startswith(b"FLUSH"):
            request = in_a_script(choices, request)
        yield client, request


def waiting_request(choices: random.Random) -> Request:
    """A request that blocks until there is something."""
    return list(fill(choices.choice(_WAITING), choices))


def feeding_request(choices: random.Random) -> Request:
    """A request that as a rule makes something for one that waits."""
    return list(fill(choices.choice(_FEEDING), choices))
