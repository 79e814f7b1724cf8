"""Properties that COMMAND reports: keys, flags, categories, hints, release.

They are those of Redis 7.0, because clients decide by them: which arguments are keys, what may run
in a transaction, what goes to a replica.  ``tests/redis`` compares each with Redis' own.  A
subcommand is written ``OUTER|INNER``.

The positions of a command's keys follow Redis' key specifications.  Each has what is done with the
keys, and a place: ``1`` is the first argument, ``1..-1`` from there to the last one, ``1..-1/2``
every second of these, ``1#`` as many as the argument there says, ``STREAMS@1`` the first half of
what follows this word, which is looked for from there on, ``STORE+6`` the one after it, and ``?``
somewhere else.
"""

from __future__ import annotations

from typing import NamedTuple

_KEYS = """
RM delete 1..-1: DEL UNLINK
RO 1..-1: EXISTS TOUCH WATCH
RO 1: TYPE HEXISTS HSTRLEN HLEN SISMEMBER SCARD LLEN ZCARD STRLEN XLEN BF.INFO BF.CARD
RO access 1: TTL PTTL EXPIRETIME PEXPIRETIME HGET HMGET HKEYS HVALS HGETALL HSCAN HRANDFIELD
    SMISMEMBER SMEMBERS SSCAN SRANDMEMBER LRANGE LINDEX LPOS ZSCORE ZMSCORE ZRANK ZREVRANK ZREVRANGE
    ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX ZRANGE ZCOUNT ZLEXCOUNT ZRANDMEMBER
    ZSCAN GET GETRANGE SUBSTR XRANGE XREVRANGE XPENDING BF.EXISTS BF.MEXISTS GETBIT BITCOUNT BITPOS
    BITFIELD_RO
RO access 1..-1: SINTER SUNION SDIFF MGET
RO access 1#: SINTERCARD ZUNION ZINTER ZDIFF ZINTERCARD
RO access STREAMS@1: XREAD
RO access STREAMS@4: XREADGROUP
RO access 1..2: LCS
RO access 1: DUMP HTTL HPTTL HEXPIRETIME HPEXPIRETIME
RW update 1: HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST
OW update 1: RESTORE
RO access 2: XINFO|STREAM XINFO|GROUPS XINFO|CONSUMERS
RO 2: OBJECT|ENCODING OBJECT|FREQ OBJECT|REFCOUNT OBJECT|IDLETIME MEMORY|USAGE
RO access 1; RO access ?: SORT_RO
RO access 1; RO access ?; OW update ?: SORT
RO access 1; OW update 2: COPY
RW insert 1: HSETNX SADD LPUSH RPUSH LPUSHX RPUSHX LINSERT APPEND BF.ADD BF.MADD PFADD
RW insert 2: XGROUP|CREATE XGROUP|CREATECONSUMER
RW update 1: EXPIRE PEXPIRE EXPIREAT PEXPIREAT PERSIST HSET HMSET LSET ZADD SETRANGE XADD
    XSETID XACK XCLAIM
RW update 2: XGROUP|SETID
RW access update 1: MOVE HINCRBY HINCRBYFLOAT ZINCRBY GETSET GETEX INCR DECR INCRBY DECRBY
    INCRBYFLOAT SETBIT
RW access update variable_flags 1: SET BITFIELD
RW access 1..-1: PFCOUNT
RW access insert 1; RO access 2..-1: PFMERGE
RW delete 1: HDEL SREM LTRIM LREM ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX
    XDEL XTRIM XAUTOCLAIM
RW delete 2: XGROUP|DESTROY XGROUP|DELCONSUMER
RW access delete 1: SPOP LPOP RPOP ZPOPMIN ZPOPMAX GETDEL
RW access delete 1..-2: BLPOP BRPOP BZPOPMIN BZPOPMAX
RW access delete 1#: LMPOP ZMPOP
RW access delete 2#: BLMPOP BZMPOP
RW access delete 1; OW insert 2: RENAMENX
RW access delete 1; OW update 2: RENAME
RW access delete 1; RW insert 2: SMOVE LMOVE RPOPLPUSH BLMOVE BRPOPLPUSH
RW update 1; RO access 2..-1: SINTERSTORE
OW insert 1: SETNX BF.RESERVE
OW insert 1..-1/2: MSETNX
OW update 1: SETEX PSETEX
OW update 1..-1/2: MSET
OW update 1; RO access 2: ZRANGESTORE
OW update 1; RO access 2..-1: SUNIONSTORE SDIFFSTORE
OW update 2; RO access 3..-1: BITOP
OW update 1; RO access 2#: ZUNIONSTORE ZINTERSTORE ZDIFFSTORE
RW access update 2#: EVAL EVALSHA FCALL
RO access 2#: EVAL_RO EVALSHA_RO FCALL_RO
RO access 1: GEOPOS GEODIST GEOHASH GEOSEARCH GEORADIUS_RO GEORADIUSBYMEMBER_RO
RO access 1; OW update STORE+6; OW update STOREDIST+6: GEORADIUS
RO access 1; OW update STORE+5; OW update STOREDIST+5: GEORADIUSBYMEMBER
RW update 1: GEOADD
OW update 1; RO access 2: GEOSEARCHSTORE
not_key 1: SPUBLISH
not_key 1..-1: SSUBSCRIBE SUNSUBSCRIBE
"""
_FLAGS = """
allow_busy: SHUTDOWN QUIT RESET AUTH HELLO MULTI DISCARD WATCH UNWATCH SCRIPT|KILL
    FUNCTION|KILL FUNCTION|STATS
denyoom: COPY HSET HMSET HSETNX HINCRBY HINCRBYFLOAT SADD SINTERSTORE SUNIONSTORE SDIFFSTORE LPUSH
    RPUSH LPUSHX RPUSHX LSET LINSERT LMOVE RPOPLPUSH BLMOVE BRPOPLPUSH ZADD ZINCRBY ZRANGESTORE
    ZUNIONSTORE ZINTERSTORE ZDIFFSTORE SORT SET MSET MSETNX SETNX SETEX PSETEX GETSET APPEND
    SETRANGE INCR DECR INCRBY DECRBY INCRBYFLOAT XADD XSETID XGROUP|CREATE XGROUP|CREATECONSUMER
    BF.RESERVE BF.ADD BF.MADD SETBIT BITOP BITFIELD PFADD PFMERGE RESTORE GEOADD GEOSEARCHSTORE
    GEORADIUS GEORADIUSBYMEMBER HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT FUNCTION|LOAD FUNCTION|RESTORE
loading stale: ACL|* INFO CONFIG|* LATENCY|* SLOWLOG|* MONITOR LASTSAVE ROLE SHUTDOWN OBJECT|HELP
    MEMORY|HELP ECHO
    QUIT RESET SELECT AUTH HELLO TIME CLIENT|* COMMAND COMMAND|* SUBSCRIBE PSUBSCRIBE UNSUBSCRIBE
    PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE PUBLISH SPUBLISH PUBSUB|* MULTI EXEC DISCARD WATCH UNWATCH
    MODULE|HELP XGROUP|HELP
    XINFO|HELP SCRIPT|HELP FUNCTION|HELP
no_async_loading: SAVE BGSAVE BGREWRITEAOF
noscript: ACL|CAT ACL|LOAD ACL|DRYRUN ACL|GETUSER ACL|DELUSER ACL|GENPASS ACL|LIST ACL|LOG ACL|SAVE
    ACL|WHOAMI ACL|USERS ACL|SETUSER
    LATENCY|DOCTOR LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST LATENCY|RESET
    CONFIG|REWRITE CONFIG|GET CONFIG|RESETSTAT CONFIG|SET MONITOR SAVE BGSAVE BGREWRITEAOF
    WAIT ROLE SHUTDOWN QUIT RESET AUTH HELLO CLIENT|INFO CLIENT|SETNAME CLIENT|SETINFO CLIENT|KILL
    CLIENT|NO-EVICT CLIENT|NO-TOUCH CLIENT|GETNAME CLIENT|LIST CLIENT|UNBLOCK CLIENT|REPLY CLIENT|ID
    CLIENT|PAUSE CLIENT|UNPAUSE
    BLPOP BRPOP BLMOVE BRPOPLPUSH SUBSCRIBE PSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE
    SUNSUBSCRIBE MULTI EXEC DISCARD WATCH UNWATCH BZPOPMIN BZPOPMAX MODULE|LIST EVAL EVALSHA
    EVAL_RO EVALSHA_RO SCRIPT|LOAD SCRIPT|EXISTS SCRIPT|FLUSH SCRIPT|KILL FCALL FCALL_RO
    FUNCTION|LOAD FUNCTION|DELETE FUNCTION|FLUSH FUNCTION|LIST FUNCTION|STATS FUNCTION|KILL
    FUNCTION|DUMP FUNCTION|RESTORE
pubsub: SUBSCRIBE PSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE PUBLISH PUBSUB|NUMSUB PUBSUB|CHANNELS
    PUBSUB|NUMPAT PUBSUB|SHARDNUMSUB PUBSUB|SHARDCHANNELS SPUBLISH SSUBSCRIBE SUNSUBSCRIBE
no_mandatory_keys skip_monitor: EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO
skip_slowlog: EXEC
stale: EVAL EVALSHA EVAL_RO EVALSHA_RO SCRIPT|LOAD FCALL FCALL_RO
"""
_CATEGORIES = """
admin: LASTSAVE ROLE
connection: WAIT COMMAND COMMAND|*
dangerous: INFO LASTSAVE ROLE KEYS FLUSHDB FLUSHALL SWAPDB SORT SORT_RO RESTORE
keyspace: DBSIZE FLUSHDB FLUSHALL SWAPDB
list set sortedset: SORT SORT_RO
scripting: EVAL EVALSHA EVAL_RO EVALSHA_RO SCRIPT|* FCALL FCALL_RO FUNCTION|*
"""
"""The properties that do not follow from a command's flags and group."""
_GROUPS = {
    "bitmap": "bitmap",
    "bloom": "",
    "connection": "connection",
    "generic": "keyspace",
    "geo": "geo",
    "hash": "hash",
    "hyperloglog": "hyperloglog",
    "list": "list",
    "set": "set",
    "sorted-set": "sortedset",
    "stream": "stream",
    "string": "string",
    "transactions": "transaction",
}
"""The category of a group's commands, except those listed for another group."""
_NOT_OF_THEIR_GROUP = {"SORT", "SORT_RO", "WAIT", "CLIENT", "OBJECT", "XGROUP", "XINFO"}
_TIPS = """
nondeterministic_output: LATENCY|DOCTOR LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST
    MEMORY|DOCTOR MEMORY|MALLOC-STATS MEMORY|STATS DUMP INFO SLOWLOG|GET SLOWLOG|LEN LASTSAVE
    TTL PTTL SCAN RANDOMKEY
    OBJECT|ENCODING OBJECT|FREQ OBJECT|REFCOUNT OBJECT|IDLETIME TIME CLIENT|INFO CLIENT|LIST HSCAN
    HRANDFIELD SSCAN SPOP SRANDMEMBER ZRANDMEMBER ZSCAN XADD XTRIM XPENDING XCLAIM XAUTOCLAIM
    XINFO|CONSUMERS FUNCTION|STATS
nondeterministic_output_order: KEYS COMMAND COMMAND|LIST COMMAND|INFO COMMAND|DOCS HKEYS HVALS
    HGETALL SMEMBERS SINTER SUNION SDIFF MODULE|LIST FUNCTION|LIST
request_policy:all_nodes: LATENCY|DOCTOR LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST
    LATENCY|RESET CONFIG|SET SLOWLOG|GET SLOWLOG|RESET SLOWLOG|LEN SCRIPT|LOAD SCRIPT|FLUSH
request_policy:all_shards: MEMORY|DOCTOR MEMORY|MALLOC-STATS MEMORY|PURGE MEMORY|STATS INFO WAIT
    KEYS RANDOMKEY DBSIZE FLUSHDB FLUSHALL PING SCRIPT|EXISTS
    SCRIPT|KILL FUNCTION|LOAD FUNCTION|DELETE FUNCTION|FLUSH FUNCTION|KILL FUNCTION|STATS
    FUNCTION|RESTORE
request_policy:multi_shard: DEL UNLINK EXISTS TOUCH MGET MSET MSETNX
request_policy:special: SCAN
response_policy:agg_logical_and: SCRIPT|EXISTS
response_policy:agg_min: WAIT MSETNX
response_policy:agg_sum: SLOWLOG|LEN DEL UNLINK EXISTS TOUCH DBSIZE
response_policy:all_succeeded: LATENCY|RESET MEMORY|PURGE CONFIG|SET SLOWLOG|RESET FLUSHDB FLUSHALL
    PING MSET SCRIPT|LOAD
    SCRIPT|FLUSH FUNCTION|LOAD FUNCTION|DELETE FUNCTION|FLUSH FUNCTION|RESTORE
response_policy:one_succeeded: SCRIPT|KILL FUNCTION|KILL
response_policy:special: INFO LATENCY|DOCTOR LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST
    MEMORY|DOCTOR MEMORY|MALLOC-STATS MEMORY|STATS FUNCTION|STATS
"""
_SINCE = """
1.0.1: MSET MSETNX
1.0.5: ZRANGEBYSCORE
1.2.0: EXPIREAT RPOPLPUSH MULTI EXEC ZADD ZINCRBY ZREM ZCARD ZSCORE ZREVRANGE ZRANGE
    ZREMRANGEBYSCORE
2.0.0: CONFIG CONFIG|GET CONFIG|RESETSTAT CONFIG|SET HSET HMSET HSETNX HGET HMGET HEXISTS HLEN HDEL
    HKEYS HVALS HGETALL HINCRBY BLPOP BRPOP SUBSCRIBE PSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE PUBLISH
    DISCARD ZRANK ZREVRANK ZCOUNT ZREMRANGEBYRANK ZUNIONSTORE ZINTERSTORE SETEX APPEND
2.2.0: PERSIST LPUSHX RPUSHX LINSERT BRPOPLPUSH WATCH UNWATCH ZREVRANGEBYSCORE STRLEN SETRANGE
    SETBIT GETBIT
2.2.3: OBJECT OBJECT|ENCODING OBJECT|REFCOUNT OBJECT|IDLETIME
2.2.12: SLOWLOG SLOWLOG|GET SLOWLOG|RESET SLOWLOG|LEN
2.4.0: CLIENT CLIENT|KILL CLIENT|LIST GETRANGE
2.6.0: DUMP RESTORE PEXPIRE PEXPIREAT PTTL TIME HINCRBYFLOAT PSETEX INCRBYFLOAT EVAL EVALSHA
    SCRIPT SCRIPT|LOAD SCRIPT|EXISTS SCRIPT|FLUSH SCRIPT|KILL BITCOUNT BITOP
2.6.9: CLIENT|SETNAME CLIENT|GETNAME
2.8.0: CONFIG|REWRITE SCAN HSCAN SSCAN PUBSUB PUBSUB|NUMSUB PUBSUB|CHANNELS PUBSUB|NUMPAT ZSCAN
2.8.7: BITPOS
2.8.9: ZRANGEBYLEX ZREVRANGEBYLEX ZLEXCOUNT ZREMRANGEBYLEX PFADD PFCOUNT PFMERGE
2.8.12: ROLE
2.8.13: LATENCY LATENCY|DOCTOR LATENCY|HISTORY LATENCY|LATEST LATENCY|RESET LATENCY|HELP
    COMMAND COMMAND|INFO COMMAND|GETKEYS COMMAND|COUNT
2.9.50: CLIENT|PAUSE
3.0.0: WAIT
3.2.0: CLIENT|REPLY HSTRLEN BITFIELD GEOADD GEOPOS GEODIST GEOHASH GEORADIUS GEORADIUSBYMEMBER
3.2.10: GEORADIUS_RO GEORADIUSBYMEMBER_RO
3.2.1: TOUCH
4.0.0: MEMORY|DOCTOR MEMORY|MALLOC-STATS MEMORY|PURGE MEMORY|STATS UNLINK SWAPDB OBJECT|FREQ MEMORY
    MEMORY|USAGE MEMORY|HELP MODULE MODULE|LIST
5.0.0: XADD XLEN XRANGE XREVRANGE XREAD XDEL XTRIM XSETID XGROUP XGROUP|CREATE XGROUP|SETID
    XGROUP|DESTROY XGROUP|DELCONSUMER XGROUP|HELP XREADGROUP XACK XPENDING XCLAIM XINFO XINFO|STREAM
    XINFO|GROUPS XINFO|CONSUMERS XINFO|HELP CONFIG|HELP CLIENT|UNBLOCK CLIENT|ID CLIENT|HELP
    COMMAND|HELP ZPOPMIN ZPOPMAX BZPOPMIN BZPOPMAX MODULE|HELP SCRIPT|HELP
6.0.0: HELLO BITFIELD_RO ACL ACL|CAT ACL|LOAD ACL|GETUSER ACL|DELUSER ACL|HELP ACL|GENPASS ACL|LIST
    ACL|LOG ACL|SAVE ACL|WHOAMI ACL|USERS ACL|SETUSER
6.0.6: LPOS
6.2.0: XAUTOCLAIM XGROUP|CREATECONSUMER SLOWLOG|HELP COPY OBJECT|HELP RESET CLIENT|INFO HRANDFIELD
    SMISMEMBER LMOVE BLMOVE CLIENT|UNPAUSE GEOSEARCH GEOSEARCHSTORE
    PUBSUB|HELP ZMSCORE ZRANGESTORE ZRANDMEMBER ZUNION ZINTER ZDIFF ZDIFFSTORE GETDEL GETEX
7.0.0: ACL|DRYRUN LATENCY|HISTOGRAM EXPIRETIME PEXPIRETIME CLIENT|NO-EVICT COMMAND|LIST
    COMMAND|GETKEYSANDFLAGS COMMAND|DOCS
    SINTERCARD LMPOP BLMPOP ZMPOP BZMPOP ZINTERCARD LCS SORT_RO EVAL_RO EVALSHA_RO SPUBLISH
    SSUBSCRIBE SUNSUBSCRIBE PUBSUB|SHARDNUMSUB PUBSUB|SHARDCHANNELS FCALL FCALL_RO FUNCTION
    FUNCTION|LOAD FUNCTION|DELETE FUNCTION|FLUSH FUNCTION|LIST FUNCTION|STATS FUNCTION|KILL
    FUNCTION|DUMP FUNCTION|RESTORE FUNCTION|HELP
7.2.0: CLIENT|SETINFO CLIENT|NO-TOUCH
7.4.0: HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST HTTL HPTTL HEXPIRETIME HPEXPIRETIME
"""
"""The release of Redis that added a command; 1.0.0 for all others."""


class KeySpec(NamedTuple):
    """The positions of some keys of a command, and what is done with them."""

    flags: tuple[str, ...]
    """``RO``, ``RW``, ``OW`` or ``RM``, and ``access``, ``insert``, ``update``, ``delete``."""
    first: int
    """The position of the first key, or of their number; 0 if that depends on other arguments."""
    last: int = 0
    """The position of the last key; negative positions count from the end."""
    step: int = 1
    counted: bool = False
    """True if the argument at ``first`` is the number of keys that follow."""
    keyword: str = ""
    """A word before the keys, at ``first`` or after it.  One key follows it, or, with a negative
    ``last``, half of what follows are keys."""

    @property
    def is_keys(self) -> bool:
        """False for shard channels, which Redis spreads over a cluster as it does keys."""
        return "not_key" not in self.flags


class CommandProperties(NamedTuple):
    """The properties of a command, by its name."""

    keys: tuple[KeySpec, ...]
    flags: frozenset[str]
    categories: frozenset[str]
    tips: list[str]
    since: str


def _listed(table: str) -> dict[str, list[str]]:
    """The words before the colons, by the names after them."""
    found: dict[str, list[str]] = {}
    for line in table.strip().replace("\n    ", " ").splitlines():
        what, _, names = line.partition(": ")
        for name in names.split():
            found.setdefault(name, []).append(what)
    return found


def _key_spec(text: str) -> KeySpec:
    *flags, place = text.split()
    if place == "?":
        return KeySpec(tuple(flags), 0)
    keyword, mark, first = place.partition("@")
    if mark:
        return KeySpec(tuple(flags), int(first), -1, keyword=keyword)
    keyword, mark, first = place.partition("+")
    if mark:
        return KeySpec(tuple(flags), int(first), int(first), keyword=keyword)
    if place.endswith("#"):
        return KeySpec(tuple(flags), int(place[:-1]), counted=True)
    places, _, step = place.partition("/")
    first, _, last = places.partition("..")
    return KeySpec(tuple(flags), int(first), int(last or first), int(step or 1))


_KEYS_OF = {
    name: tuple(map(_key_spec, specs[0].split("; "))) for name, specs in _listed(_KEYS).items()
}
_FLAGS_OF = _listed(_FLAGS)
_CATEGORIES_OF = _listed(_CATEGORIES)
_TIPS_OF = _listed(_TIPS)
_SINCE_OF = _listed(_SINCE)


def _words(table: dict[str, list[str]], name: str) -> set[str]:
    outer, mark, _ = name.partition("|")
    entries = table.get(name, []) + (table.get(f"{outer}|*", []) if mark else [])
    return {word for entry in entries for word in entry.split()}


def properties_of(name: str, flags: frozenset[str], group: str) -> CommandProperties:
    """The properties of a command, of its name, the flags in the table of commands, and its group.

    >>> properties = properties_of("SET", frozenset({"write"}), "string")
    >>> sorted(properties.flags), sorted(properties.categories)
    (['denyoom', 'write'], ['slow', 'string', 'write'])
    """
    keys = _KEYS_OF.get(name, ())
    known = set(flags) | _words(_FLAGS_OF, name)
    if any(spec.counted or spec.keyword or not spec.first for spec in keys):
        known.add("movablekeys")
    categories = _words(_CATEGORIES_OF, name)
    if group in _GROUPS and name not in _NOT_OF_THEIR_GROUP:
        categories.add(_GROUPS[group])
    categories.add("fast" if "fast" in known else "slow")
    categories |= {"write", "admin", "pubsub", "blocking"} & known
    if "readonly" in known and group != "scripting":
        categories.add("read")
    if "admin" in known:
        categories.add("dangerous")
    categories.discard("")
    since = _SINCE_OF.get(name, ["1.0.0"])[0]
    tips = sorted(_TIPS_OF.get(name, []))
    return CommandProperties(keys, frozenset(known), frozenset(categories), tips, since)
