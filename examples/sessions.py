"""Sessions of a web site, in a store behind Redis' protocol: they expire, and outlive a restart.

    python examples/sessions.py [PORT]

With a port it uses the server there (``lsmkv serve --port 6379 data``, or a Redis); without one it
starts its own server, and restarts it, to show what survives.

A token is random, and only its hash is a key: who reads the store cannot log in.  A session is a
hash that expires once it has not been used for a while.  A set has the sessions of each user, to
end all of them at once.  It needs lsmkv's extra ``server``, and redis-py.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
import tempfile
import time

import redis

from lsmkv.testing import serving


class Sessions:
    """Sessions that end after so many milliseconds without use."""

    def __init__(self, client: redis.Redis, lifetime: int = 30 * 60 * 1000) -> None:
        self._client = client
        self._lifetime = lifetime

    def begin(self, user: str) -> str:
        """A new session's token, for a cookie."""
        token = secrets.token_urlsafe()
        name = key(token)
        over = [one for one in self._client.smembers(of(user)) if not self._client.exists(one)]
        with self._client.pipeline(transaction=True) as both:
            both.hset(name, "user", user)
            both.pexpire(name, self._lifetime)
            both.sadd(of(user), name)
            if over:  # what expired is still in the set
                both.srem(of(user), *over)
            both.execute()
        return token

    def load(self, token: str) -> dict[str, str]:
        """The content of a session, whose time starts again; empty if it has expired."""
        with self._client.pipeline(transaction=True) as both:
            both.pexpire(key(token), self._lifetime)
            both.hgetall(key(token))
            _, kept = both.execute()
        return dict(kept)

    def keep(self, token: str, field: str, value: str) -> bool:
        """Set a field of a session; False if it has expired.  (A plain HSET would restore it.)"""
        name = key(token)
        while True:
            with self._client.pipeline() as both:
                try:
                    both.watch(name)
                    there = bool(both.exists(name))
                    both.multi()
                    if there:
                        both.hset(name, field, value)
                    both.execute()
                    return there
                except redis.WatchError:
                    continue  # it changed, or ended, meanwhile: look again

    def end_all(self, user: str) -> int:
        """Log a user out everywhere; how many sessions had not expired."""
        names = self._client.smembers(of(user))
        if not names:
            return 0
        with self._client.pipeline(transaction=True) as both:
            both.delete(*names)
            both.srem(of(user), *names)
            ended, _ = both.execute()
        return int(ended)


def key(token: str) -> str:
    return "session:" + hashlib.sha256(token.encode()).hexdigest()


def of(user: str) -> str:
    return f"sessions of {user}"


def log_in(port: int) -> tuple[str, str]:
    """Ann logs in twice, and puts something into a cart; Bob does not come back."""
    with redis.Redis(port=port, decode_responses=True) as client:
        sessions = Sessions(client)
        ann, phone = sessions.begin("ann"), sessions.begin("ann")
        print("kept:", sessions.keep(ann, "cart", "3 apples"))
        bob = Sessions(client, lifetime=20).begin("bob")
        time.sleep(0.1)
        print("bob:", sessions.load(bob), "- kept:", sessions.keep(bob, "cart", "1 pear"))
        return ann, phone


def come_back(port: int, ann: str, phone: str) -> None:
    """What Ann finds after a restart of the server."""
    with redis.Redis(port=port, decode_responses=True) as client:
        sessions = Sessions(client)
        print("ann:", sessions.load(ann))
        print("a wrong token:", sessions.load(ann + "x"))
        print("sessions ended:", sessions.end_all("ann"))
        print("on the phone:", sessions.load(phone))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        port = int(sys.argv[1])
        come_back(port, *log_in(port))
    else:
        with tempfile.TemporaryDirectory() as directory:
            with serving(directory) as server:
                tokens = log_in(server.port)
            with serving(directory) as server:
                print("the server was restarted")
                come_back(server.port, *tokens)
