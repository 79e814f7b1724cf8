"""Power cuts, full disks and failing syncs under the engine, without sockets."""

from __future__ import annotations

import time

from ticks import FULL, Clients, agrees, engine_of, open_store, refused, tick

from lsmkv.server.check import check
from lsmkv.testing import CrashState, FaultyEnv, RecordingEnv, explore


def test_every_state_after_a_crash_is_consistent() -> None:
    ticks = [
        ("SET a 0", "HSET h f 0", "ZADD z 1 m0", "RPUSH l 0 1 2", "SET n 0"),
        ("MULTI", "INCR n", "ZADD z 5 m1", "LPOP l", "DEL h", "EXEC"),
        ("RENAME z y", "EXPIRE y 100000", "SADD s a b c", "INCR n"),
        ("FLUSHDB", "SET n 3", "BF.ADD b x", "ZADD z 1 a 2 b"),
        ("ZPOPMIN z", "SET n 4", "XADD x 1 f v", "XADD x 2 f v", "XGROUP CREATE x g 0"),
        ("XREADGROUP GROUP g c STREAMS x >", "SET n 5", "XACK x g 1", "XADD x MAXLEN 2 3 f v"),
        ("MULTI", "XGROUP CREATE x other 0", "XREADGROUP GROUP other c STREAMS x >", "EXEC"),
        ("XGROUP DESTROY x other", "DEL x", "SET n 7"),
        ("EVAL redis.call('rpush','l',9)redis.call('set','n',8)error('x') 0", "DEL b"),
    ]

    def workload(env: RecordingEnv) -> None:
        with open_store(env, write_buffer_size=4096) as db:
            engine = engine_of(db)
            for number, lines in enumerate(ticks):
                tick(engine, *lines)
                engine.tidy_once(1)
                engine.commit()
                if number % 2:
                    db.sync()
                    env.note(number)

    def look(state: CrashState) -> None:
        with open_store(state.env) as db:
            engine = engine_of(db)
            assert check(db) == []
            number = tick(engine, "GET n").split()[-1]
            assert (number == b"8") == (tick(engine, "LINDEX l -1").split()[-1] == b"9")
            least = max((int(str(note)) for note in state.notes), default=-1)
            assert least <= (-1 if number == b"$-1" else int(number))
            while engine.tidy_once():
                engine.commit()
            engine.commit()
            assert check(db) == []

    report = explore(workload, look, points=40)
    assert report.states > 100
    assert report.violations == [], str(report)


def test_a_full_disk_refuses_the_tick_and_changes_nothing() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        tick(engine, "SET kept 1", "HSET h a 1", "ZADD z 1 m", "SET old 1 EX 100000")
        before = dict(db)
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        lines = ["SET new 1", "DEL h", "FLUSHDB", "SADD s a", "EXPIRE s 100000"]
        answers = tick(engine, *lines, "GET kept", "DBSIZE")
        assert answers.count(b"-MISCONF") == len(lines)
        assert answers.count(b"\r\n") == len(lines) + 3
        assert answers.endswith(b"$1\r\n1\r\n:4\r\n")
        assert dict(db) == before
        assert engine.failure
        agrees(engine)
        assert check(db) == []
        env.heal()
        assert tick(engine, "GET kept") == b"$1\r\n1\r\n"
        assert tick(engine, "SADD s a", "DBSIZE") == b":1\r\n:5\r\n"
        assert engine.failure == ""
        agrees(engine)
        assert check(db) == []


def test_a_transaction_that_is_not_written_has_one_answer() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        clients = Clients(engine_of(db), 2)
        clients.tick((0, "SET k old"))
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        (answers, other) = clients.tick(
            (0, "MULTI"),
            *((0, line) for line in ("GET k", "SET k new", "GET k", "SUBSCRIBE c", "ECHO x")),
            (0, "EXEC"),
            (0, "PING"),
            (1, "GET k"),
        )
        assert answers[:6] == [b"OK", *([b"QUEUED"] * 5)]
        assert refused(answers[6])
        assert answers[7:] == [[b"pong", b""]]
        assert other == [b"old"]
        clients.tick((0, "UNSUBSCRIBE"))
        answers, _ = clients.tick((1, "SET k new"), (0, "MULTI"), (0, "GET k"), (0, "EXEC"))
        assert answers == [b"OK", b"QUEUED", [b"old"]]


def test_answers_that_are_turned_off_stay_off_when_reads_are_run_again() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        clients = Clients(engine_of(db), 2)
        clients.tick((0, "SET k old"))
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        assert clients.tick(
            (1, "SET k new"),
            (0, "CLIENT REPLY SKIP"),
            (0, "GET k"),
            (0, "GET k"),
            (0, "CLIENT REPLY OFF"),
            *((0, line) for line in ("GET k", "SET k x", "MULTI", "SET k x", "GET k", "EXEC")),
            (0, "CLIENT REPLY ON"),
            (0, "STRLEN k"),
            (1, "GET k"),
        )[0] == [b"old", b"OK", 3]


def test_a_blocked_client_whose_element_is_not_written_is_refused() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        clients = Clients(engine_of(db), 3)
        clients.tick((0, "BLPOP l 0"))
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        blocked, pushing, reading = clients.tick((1, "RPUSH l a"), (2, "EXISTS l"), (2, "PING"))
        assert refused(blocked[0])
        assert refused(pushing[0])
        assert reading == [0, b"PONG"]


def test_scans_go_on_while_the_disk_is_full() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        client = Clients(engine, 1)
        client.tick(*((0, f"SET k{number:03} v") for number in range(100)))
        client.tick((0, "SADD s " + " ".join(f"m{number:03}" for number in range(50))))
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})

        def walk(command: str, heal_at: int) -> list[bytes]:
            cursor, found, steps = b"0", [], 0
            while True:
                steps += 1
                if steps == heal_at:
                    env.heal()
                ((reply,),) = client.tick((0, f"{command} {cursor.decode()} COUNT 7"))
                assert isinstance(reply, list), reply
                cursor, page = reply
                found += page
                if cursor == b"0":
                    return found

        keys = [*(b"k%03d" % number for number in range(100)), b"s"]
        assert walk("SCAN", 0) == keys
        assert walk("SSCAN s", 0) == [b"m%03d" % number for number in range(50)]
        assert walk("SCAN", 5) == keys


def test_a_key_that_expires_while_the_disk_is_full_is_gone() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        clients = Clients(engine_of(db), 1)
        clients.tick((0, "SET k v PX 1"), (0, "SET l v PX 1"))
        time.sleep(0.002)
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        assert clients.tick((0, "GET k"), (0, "GET l")) == [[None, None]]
        assert clients.tick((0, "EXISTS k")) == [[0]]
        (reply,) = clients.tick((0, "APPEND k x"))[0]
        assert refused(reply)
        env.heal()
        assert clients.tick((0, "APPEND k x"), (0, "DBSIZE")) == [[1, 2]]
        assert clients.tick((0, "EXISTS l"), (0, "DBSIZE")) == [[0, 1]]
        assert check(db) == []


def test_a_store_that_cannot_be_read_either_is_read_again_later() -> None:
    env = FaultyEnv()
    with open_store(env, lru_cache_size=0) as db:
        engine = engine_of(db)
        clients = Clients(engine, 1)
        clients.tick((0, "SET k v"), (0, "ZADD z 1 m"))
        db.flush()
        engine.run(clients.sessions[0], [b"SET", b"k", b"w"])
        env.fail_at(1, sticky=True, calls={"append", "create", "reserve", "read"})
        ((reply,),) = clients.tick()
        assert refused(reply)
        assert engine.space.stale
        ((reply,),) = clients.tick((0, "GET k"))
        assert str(reply).startswith("ERR IOError")
        env.heal()
        assert clients.tick((0, "GET k"), (0, "DBSIZE"), (0, "SET l v")) == [[b"v", 2, b"OK"]]
        agrees(engine)
        assert check(db) == []


def test_a_subscriber_gets_no_error_for_a_message_of_a_tick_that_fails() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        sent: list[bytes] = []
        listener = engine.open_session()
        listener.send = sent.append
        for line in (b"HELLO 3", b"SUBSCRIBE c"):
            engine.run(listener, line.split())
        engine.commit()
        sent.clear()
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        engine.run(listener, [b"PING"])
        transaction = ("MULTI", "SET b 1", "PUBLISH c no", "EXEC")
        answers = tick(engine, "SET a 1", "PUBLISH c hi", *transaction).splitlines()
        assert [answer[:8] for answer in answers] == [
            *(b"-MISCONF", b":1", b"+OK", b"+QUEUED", b"+QUEUED", b"-MISCONF")
        ]
        env.heal()
        assert b"".join(sent) == b"+PONG\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n"
        sent.clear()
        assert tick(engine, "SET a 1", "PUBLISH c hi") == b"+OK\r\n:1\r\n"
        assert sent == [b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n"]
