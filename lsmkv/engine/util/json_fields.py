r"""Objects of JSON whose fields may hold any bytes.

A key or value that is valid UTF-8 is a string.  For other bytes, the field's name ends in
``_base64`` (or in ``_hex``): ``{"key_base64": "/w==", "value": ""}``.  So every bytes object can be
written, and no reader has to guess its form.
"""

from __future__ import annotations

import base64
import binascii
import json


def json_field(name: str, data: bytes, is_hex: bool = False) -> dict[str, str]:
    r"""A bytes object as a field of JSON.

    >>> json_field("key", b"ant"), json_field("key", b"\xff"), json_field("key", b"\xff", True)
    ({'key': 'ant'}, {'key_base64': '/w=='}, {'key_hex': 'ff'})
    """
    if is_hex:
        return {f"{name}_hex": data.hex()}
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


def parse_json_object(text: bytes) -> dict[str, object]:
    """The fields of an object in JSON; ``ValueError`` says what is wrong with it.

    >>> parse_json_object(b'{"key": "ant", "value": 6}')
    {'key': 'ant', 'value': 6}
    >>> parse_json_object(b'{"key": 1, "key": 2}')
    Traceback (most recent call last):
    ValueError: a field occurs twice
    """
    try:
        fields = _DECODER.decode(text.decode(json.detect_encoding(text), "surrogatepass"))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte {error.start + 1}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    return fields


def take_field(fields: dict[str, object], name: str) -> bytes:
    r"""Remove a field that :func:`json_field` made, and return its bytes; or ``ValueError``.

    >>> take_field({"key": "ant"}, "key"), take_field({"key_base64": "/w=="}, "key")
    (b'ant', b'\xff')
    """
    forms = [form for form in (name, f"{name}_base64", f"{name}_hex") if form in fields]
    if len(forms) != 1:
        found = "is missing" if not forms else "occurs in several forms"
        raise ValueError(f"the {name} {found}")
    (form,) = forms
    text = fields.pop(form)
    if not isinstance(text, str):
        raise ValueError(f"{form} is not a string")
    if form == name:
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(f"{form} is not Unicode text: half of a surrogate pair") from None
    try:
        if form.endswith("_hex"):
            return binascii.unhexlify(text)
        return base64.b64decode(text, validate=True)
    except ValueError:
        kind = "hexadecimal" if form.endswith("_hex") else "base64"
        raise ValueError(f"{form} is not {kind}") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field occurs twice")
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
"""Created once: ``json.loads`` would create a decoder for each call."""
