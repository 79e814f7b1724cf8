"""Users and their rules."""

from __future__ import annotations

import random

import pytest

from lsmkv.server.acl import CATEGORIES, Denial, RuleError, User, has_space
from lsmkv.server.commands import COMMANDS
from lsmkv.server.commands.raw import RAW_COMMANDS

EVERY = [inner for one in COMMANDS.values() for inner in (one, *one.subcommands.values())]

FREE = {one.name for one in EVERY if "no_auth" in one.flags}
"""What everybody may run."""


def a_user(*rules: str) -> User:
    user = User(b"u", COMMANDS)
    for rule in rules:
        user.apply(rule.encode())
    return user


def rules_of(user: User) -> str:
    return b" ".join(user.words()).decode()


def permitted(user: User) -> set[str]:
    """The commands that a user may run without an argument."""
    return {one.name for one in EVERY if user.denial(one, [one.name.encode()]) is None}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", "off resetchannels -@all"),
        ("on, nopass, allkeys, allchannels, allcommands", "on nopass ~* &* +@all"),
        ("~a, %R~b, %w~c, %WR~d, %R~e, %W~e", "off ~a %R~b %W~c ~d ~e resetchannels -@all"),
        ("%RW~*", "off ~* resetchannels -@all"),
        ("%R~*, %W~*", "off ~* resetchannels -@all"),
        ("~*, resetkeys, ~a", "off ~a resetchannels -@all"),
        ("&*, resetchannels, &a, &b, &a", "off resetchannels &a &b -@all"),
        ("+GET, +get, -get, +get", "off resetchannels -@all +get"),
        ("+config|get, +config", "off resetchannels -@all +config"),
        ("-get, +@all, +get", "off resetchannels +@all"),
        ("+@read, -get, +@read", "off resetchannels -@all +@read"),
        ("+@geo, -fcall, +client|caching",
         "off resetchannels -@all +@geo -fcall +client|caching"),
        ("~a, (+get ~b), reset", "off sanitize-payload resetchannels -@all"),
        ("(+get  ~b), on, ( )",
         "on resetchannels -@all (~b resetchannels -@all +get) (resetchannels -@all)"),
    ],
)  # fmt: skip
def test_rules_are_kept_without_those_that_later_ones_override(given: str, kept: str) -> None:
    user = a_user(*given.split(", "))
    assert rules_of(user) == kept
    assert rules_of(a_user(*(rule.decode() for rule in user.words()))) == kept


def meant(what: str) -> set[str]:
    """The commands that a rule is about."""
    found = {
        one.name
        for one in EVERY
        if what in {"@all", one.full_name, *(f"@{name}" for name in one.properties.categories)}
    }
    return found | {one.name for one in EVERY if one.name.split()[0] in found}


def test_kept_rules_permit_what_the_given_ones_did() -> None:
    choices = random.Random(5)
    targets = ["get", "set", "config", "config|get", "config|set", "client|id", "client", "acl"]
    targets += [f"@{one}" for one in ("read", "admin", "slow", "connection", "all")]
    for _ in range(300):
        given = [
            choices.choice("+-") + choices.choice(targets) for _ in range(choices.randrange(9))
        ]
        user = a_user(*given)
        allowed: set[str] = set()
        for rule in given:
            if rule[0] == "+":
                allowed |= meant(rule[1:])
            else:
                allowed -= meant(rule[1:])
        assert permitted(user) == allowed | FREE, given
        again = a_user(*(rule.decode() for rule in user.words()))
        assert permitted(again) == permitted(user), given


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_category_can_be_permitted_and_taken(category: str) -> None:
    members = {one.name for one in EVERY if category in one.properties.categories}
    with_all = a_user("+@all", f"-@{category}")
    assert rules_of(with_all).endswith(f"+@all -@{category}")
    assert not (permitted(with_all) - FREE) & members
    alone = a_user(f"+@{category.upper()}")
    assert rules_of(alone).endswith(f"-@all +@{category}")
    assert permitted(alone) >= members


def test_a_command_may_be_permitted_with_one_first_argument() -> None:
    user = a_user("+select|0", "+select|1")
    select = COMMANDS[b"SELECT"]
    assert user.denial(select, [b"SELECT", b"1"]) is None
    assert user.denial(select, [b"SELECT", b"2"]) == Denial(1, 0, b"select")
    user.apply(b"-select")
    assert user.denial(select, [b"SELECT", b"1"]) == Denial(1, 0, b"select")


def test_who_may_do_everything_is_not_limited() -> None:
    assert a_user("~*", "&*", "+@all").unlimited
    assert a_user("~*", "&*", "+@all", "-debug").unlimited  # which is not there
    assert a_user("(~* &* +@all)").unlimited
    for taken in ("resetkeys", "resetchannels", "-get", "-@all", "-@slow"):
        assert not a_user("~*", "&*", "+@all", taken).unlimited
    assert not a_user("~*", "(&* +@all)").unlimited


def test_every_key_is_checked_that_a_request_names_though_others_make_no_sense() -> None:
    user = a_user("+@all", "~a")
    merge = COMMANDS[b"PFMERGE"]
    assert user.denial(merge, [b"PFMERGE", b"a"]) is None
    assert user.denial(merge, [b"PFMERGE", b"b"]) == Denial(2, 0, b"b")  # Redis 7.0 permits it


def test_only_commands_about_a_whole_database_or_libraries_name_no_keys() -> None:
    """Any other command would escape the rules of keys: it needs a line in command_properties."""
    about_data = [one for one in EVERY if one.flags & {"readonly", "write"}]
    assert {one.name for one in about_data if not one.properties.keys} == {
        *("DBSIZE", "FLUSHALL", "FLUSHDB", "KEYS", "RANDOMKEY", "SCAN", "SWAPDB"),
        *("FUNCTION DELETE", "FUNCTION FLUSH", "FUNCTION LOAD", "FUNCTION RESTORE"),
    }
    raw = [one for one in RAW_COMMANDS.values() if one.flags & {"readonly", "write"}]
    assert {one.name for one in raw if not one.properties.keys} == {
        *("DBSIZE", "KEYS", "LSMKV.RANGE", "SCAN")
    }


def test_the_denial_of_the_selector_that_permits_most_is_reported() -> None:
    user = a_user("(+mget ~key)", "(+mget ~key ~other)", "(+get ~*)")
    mget = COMMANDS[b"MGET"]
    assert user.denial(mget, [b"MGET", b"key", b"other", b"third"]) == Denial(2, 2, b"third")
    assert user.denial(mget, [b"MGET", b"other"]) is None
    assert Denial(3, 0, b"").reason == "channel"


def test_passwords() -> None:
    user = a_user("on", ">one", ">two")
    assert [user.accepts(word) for word in (b"one", b"two", b"three", b"")] == [
        *(True, True, False, False)
    ]
    user.apply(b"off")
    assert not user.accepts(b"one")
    user.apply(b"nopass")
    assert not user.open
    user.apply(b"on")
    assert user.open
    assert user.accepts(b"any")
    user.apply(b">one")
    assert not user.accepts(b"any")
    assert len(user.passwords) == 1


@pytest.mark.parametrize("rule", ["%~a", "%R", "%", "~a\x00", "&a b", "nonsense", "@read", "()x"])
def test_a_rule_that_makes_no_sense(rule: str) -> None:
    with pytest.raises(RuleError, match="Syntax error"):
        a_user(rule)
    assert has_space(b"a\x0b")
