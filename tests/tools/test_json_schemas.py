"""docs/reference/json-schemas.json: what the commands print with --json, as JSON Schemas.

Each command is run on a small store.  Its output has to fit its schema, which allows no field that
it does not name: ``pytest tests/tools/test_json_schemas.py --rewrite`` adds what is new.
"""

from __future__ import annotations

import json
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
from commands import lsm_bytes as lsm
from jsonschema import Draft202012Validator

import lsmkv

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json-schemas.json"
_TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"}
Schema = dict[str, Any]
MAPS = ("dependencies", "extras")
"""Fields whose keys are names of packages and extras: those of the environment."""
SESSION = (
    ("put", "put {db} k v"),
    ("put", "put {db} ff 00 --hex"),
    ("get", "get {db} k"),
    ("get", "get {db} none"),
    ("scan", "scan {db}"),
    ("keys", "keys {db}"),
    ("count", "count {db}"),
    ("load", "load {db} {lines}"),
    ("export", "export {db} --output {copy}"),
    ("import", "import {other} {copy} --create"),
    ("approximate-sizes", "approximate-sizes {db} a z"),
    ("compact", "compact {db}"),
    ("stats", "stats {db}"),
    ("explain", "explain {db} k"),
    ("explain", "explain {db} nothing"),
    ("verify", "verify {db}"),
    ("diff", "diff {db} {other}"),
    ("checkpoint", "checkpoint {db} {checkpoint}"),
    ("rescue", "rescue {checkpoint} --into {rescued}"),
    ("repair", "repair {checkpoint} --plan"),
    ("doctor", "doctor"),
    ("owner status", "owner status {db}"),
    ("delete", "delete {db} k"),
    ("bulk build", "bulk build {copy} --into {set} --shards 2"),
    ("bulk build", "bulk build {copy} --into {set} --after 1"),
    ("bulk list", "bulk list {set}"),
    ("bulk diff", "bulk diff {set}"),
    ("bulk prune", "bulk prune {set} --keep 1 --grace 0"),
    ("demo", "demo --keys {lines} --lookups 3"),
    ("filter-lab", "filter-lab {other}"),
    ("destroy", "destroy {other} --yes"),
)


def schema_of(value: Any, maps: bool = False) -> Schema:
    """The shape of a value; ``maps`` says that the keys of its objects are data."""
    if isinstance(value, dict):
        if maps or (value and all(key.isdigit() for key in value)):  # levels, shards
            inner = [schema_of(one, maps) for one in value.values()]
            return {"type": "object", "additionalProperties": reduce(merged, inner, {})}
        properties = {key: schema_of(one, key in MAPS) for key, one in value.items()}
        return {
            "type": "object",
            "properties": properties,
            "required": sorted(properties),
            "additionalProperties": False,
        }
    if isinstance(value, list):
        items = reduce(merged, map(schema_of, value)) if value else {}
        return {"type": "array", "items": items}
    return {"type": _TYPES[type(value)]}


def types_of(schema: Schema) -> set[str]:
    found = schema.get("type", [])
    return {found} if isinstance(found, str) else set(found)


def merged(one: Schema, other: Schema) -> Schema:
    """A schema of what either allows."""
    if not one or not other:
        return one or other
    types = types_of(one) | types_of(other)
    if "number" in types:
        types.discard("integer")
    both: Schema = {"type": min(types) if len(types) == 1 else sorted(types)}
    shapes = [schema for schema in (one, other) if "properties" in schema]
    if shapes:
        properties: Schema = {}
        for schema in shapes:
            for name, inner in schema["properties"].items():
                properties[name] = merged(properties.get(name, {}), inner)
        required = set.intersection(*(set(schema["required"]) for schema in shapes))
        both |= {
            "properties": properties,
            "required": sorted(required),
            "additionalProperties": False,
        }
    elif "object" in types:
        inner = [
            schema["additionalProperties"]
            for schema in (one, other)
            if "additionalProperties" in schema
        ]
        both["additionalProperties"] = reduce(merged, inner)
    if "array" in types:
        both["items"] = merged(one.get("items", {}), other.get("items", {}))
    return both


@cache
def kept() -> dict[str, Schema]:
    return dict(json.loads(PAGE.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The values that each command printed."""
    place = tmp_path_factory.mktemp("session")
    names = ("db", "other", "copy", "lines", "checkpoint", "rescued", "set")
    paths = {name: str(place / name) for name in names}
    (place / "lines").write_bytes(b"".join(b"key%d\t%d\n" % (one, one) for one in range(50)))
    lsmkv.DB(place / "db", create_if_missing=True).close()
    found: dict[str, list[Any]] = {}
    for name, line in SESSION:
        done = lsm(*(word.format(**paths) for word in line.split()), "--json")
        assert done.status in (0, 1), (line, done.err)
        try:
            values = [json.loads(done.out)]
        except json.JSONDecodeError:
            values = [json.loads(one) for one in done.out.splitlines()]
        assert values, line
        found.setdefault(name, []).extend(values)
    return found


def test_what_is_printed_fits_its_schema(
    printed: dict[str, list[Any]], request: pytest.FixtureRequest
) -> None:
    if request.config.option.rewrite:
        schemas = kept() if PAGE.exists() else {}
        for name, values in printed.items():
            schemas[name] = reduce(merged, map(schema_of, values), schemas.get(name, {}))
        text = json.dumps(schemas, indent=1, sort_keys=True)
        PAGE.write_text(text + "\n", encoding="utf-8")
        kept.cache_clear()
    assert set(kept()) == set(printed)
    for name, values in printed.items():
        validator = Draft202012Validator(kept()[name])
        for value in values:
            problems = [
                f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)
            ]
            assert not problems, (name, problems[:3])


def test_a_field_that_is_new_is_noticed(printed: dict[str, list[Any]]) -> None:
    validator = Draft202012Validator(kept()["count"])
    (counted,) = printed["count"]
    assert validator.is_valid(counted)
    assert not validator.is_valid(counted | {"more": 1})
    assert not validator.is_valid({"path": "x"})
    assert not validator.is_valid(counted | {"keys": "many"})
