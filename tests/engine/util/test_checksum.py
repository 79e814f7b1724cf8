"""lsmkv.engine.util.checksum: published vectors, and all implementations side by side."""

from __future__ import annotations

import importlib.util
import random
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import run_python

from lsmkv.engine.util.checksum import (
    crc32c,
    is_sealed,
    mask,
    masked_crc32c,
    sealing_crc32c,
    typed_crc32c,
    unmask,
)

VECTORS = [  # RFC 3720, B.4, the last one an iSCSI read command; the first line by definition
    (b"", 0),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (
        bytes.fromhex(
            "01c00000000000000000000000000000"
            "14000000000004000000001400000018"
            "28000000000000000200000000000000"
        ),
        0xD9963A56,
    ),
]

LIBRARIES = {"google-crc32c": "google_crc32c", "crc32c": "crc32c", "crcmod": "crcmod"}
"""The modules of the libraries, by what they are called, in the order in which they are asked."""

# Libraries as they are where their C code is missing, and where they are not there at all.
WITHOUT = """
import sys, types, warnings
sys.path[:0] = sys.argv[3].split("|")
for name in sys.argv[2].split():
    sys.modules[name] = None
if sys.argv[1] == "slow":
    slow = types.ModuleType("google_crc32c")
    slow.implementation = "python"
    slow.value = slow.extend = lambda *_: 1 // 0
    sys.modules["google_crc32c"] = slow
    sys.modules["crcmod._crcfunext"] = None
from lsmkv.engine.util import checksum
"""


def run_without(names: list[str], how: str, program: str, *arguments: str) -> str:
    """What a program prints that begins by :data:`WITHOUT`."""
    whole = WITHOUT + textwrap.dedent(program)
    done = run_python("-c", whole, how, " ".join(names), "|".join(sys.path), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("data", "crc"), VECTORS)
def test_published_vectors(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc


def test_the_order_of_bytes_matters() -> None:
    assert crc32c(b"a") != crc32c(b"foo")
    assert crc32c(b"ab") != crc32c(b"ba")


def test_mask_by_its_definition() -> None:
    crc = crc32c(b"foo")
    rotated = int(f"{crc:032b}"[-15:] + f"{crc:032b}"[:-15], 2)
    assert mask(crc) == (rotated + 0xA282EAD8) % 2**32
    assert mask(0) == 0xA282EAD8
    assert len({crc, mask(crc), mask(mask(crc))}) == 3
    assert unmask(unmask(mask(mask(crc)))) == crc


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_mask_is_undone_by_unmask(crc: int) -> None:
    assert unmask(mask(crc)) == crc
    assert mask(unmask(crc)) == crc
    assert 0 <= mask(crc) < 2**32


@pytest.mark.parametrize("crc", [0, 1, 2**15, 2**17, 2**31, 2**32 - 1, 0x5D7D1528, 0x5D7D1527])
def test_mask_at_the_boundaries(crc: int) -> None:
    assert unmask(mask(crc)) == crc


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_masked_in_one_step(data: bytes) -> None:
    assert masked_crc32c(data) == mask(crc32c(data))


@settings(deadline=None)
@given(st.binary(max_size=400), st.integers(0, 255))
def test_sealing_crc32c_is_that_of_the_data_and_the_type_byte(data: bytes, kind: int) -> None:
    assert sealing_crc32c(data, kind) == masked_crc32c(data + bytes([kind]))


def test_typed_crc32c_is_that_of_the_type_byte_and_the_data() -> None:
    for size in range(1100):
        for kind in range(5):
            data = bytes([size % 251]) * size
            assert typed_crc32c(kind, data) == masked_crc32c(bytes([kind]) + data)


@settings(deadline=None)
@given(st.binary(max_size=5000))
def test_google_crc32c_agrees(data: bytes) -> None:
    google_crc32c = pytest.importorskip("google_crc32c")
    assert crc32c(data) == google_crc32c.value(data)


def samples() -> list[bytes]:
    """The vectors, every length up to some steps of the tables, and whole blocks of random data."""
    source = random.Random(34)
    lengths = [*range(70), 100, 4096, 4097, 65539]
    return [data for data, _ in VECTORS] + [source.randbytes(length) for length in lengths]


PRINT = """
print(checksum.CRC32C_IMPLEMENTATION)
for line in open(sys.argv[4]):
    data = bytes.fromhex(line)
    print(checksum.crc32c(data), checksum.masked_crc32c(data), end=" ")
    print(checksum.typed_crc32c(4, data), checksum.sealing_crc32c(data, 200))
"""


@pytest.mark.parametrize("used", [*LIBRARIES, "lsmkv"])
def test_each_implementation_gives_the_same(used: str, tmp_path: Path) -> None:
    if used in LIBRARIES:
        pytest.importorskip(LIBRARIES[used])
    before = [module for name, module in LIBRARIES.items() if name != used]
    assert_the_same(used, before, "missing", tmp_path)


def test_libraries_without_c_are_passed_over(tmp_path: Path) -> None:
    assert_the_same("lsmkv", ["crc32c"], "slow", tmp_path)


def assert_the_same(used: str, without: list[str], how: str, tmp_path: Path) -> None:
    given = tmp_path / "samples"
    given.write_text("\n".join(map(bytes.hex, samples())))
    expected = [
        f"{crc32c(data)} {masked_crc32c(data)} {typed_crc32c(4, data)} {sealing_crc32c(data, 200)}"
        for data in samples()
    ]
    found = run_without(without, how, PRINT, str(given))
    assert found.splitlines() == [used, *expected]


def test_the_first_library_that_is_there_is_used() -> None:
    there = [name for name, module in LIBRARIES.items() if importlib.util.find_spec(module)]
    for at, name in enumerate(there):
        before = [LIBRARIES[other] for other in there[:at]]
        found = run_without(before, "missing", "print(checksum.CRC32C_IMPLEMENTATION)")
        assert found == name


def test_a_half_removed_crcmod_is_passed_over(tmp_path: Path) -> None:
    """What is left of crcmod-plus where crcmod was installed as well, and removed."""
    (tmp_path / "crcmod").mkdir()
    (tmp_path / "crcmod" / "types.py").write_text("")
    program = f"""
    import sys
    sys.modules["google_crc32c"] = sys.modules["crc32c"] = None
    sys.path[:0] = [{str(tmp_path)!r}, *sys.argv[1].split("|")]
    from lsmkv.engine.util.checksum import CRC32C_IMPLEMENTATION, crc32c
    print(CRC32C_IMPLEMENTATION, crc32c(bytes(32)) == 0x8A9136AA)
    """
    (tmp_path / "crcmod" / "__init__.py").write_text("")
    done = run_python("-c", textwrap.dedent(program), "|".join(sys.path))
    assert (done.stdout.strip(), done.stderr) == ("lsmkv True", "")


def test_a_google_crc32c_without_c_is_passed_over_in_silence(tmp_path: Path) -> None:
    package = tmp_path / "google_crc32c"
    package.mkdir()
    source = "import warnings\nwarnings.warn('slow', RuntimeWarning)\nimplementation = 'python'\n"
    (package / "__init__.py").write_text(source)
    program = """
    import sys
    sys.modules["crc32c"] = sys.modules["crcmod"] = None
    sys.path[:0] = sys.argv[1].split("|")
    from lsmkv.engine.util.checksum import CRC32C_IMPLEMENTATION
    print(CRC32C_IMPLEMENTATION)
    """
    path = "|".join([str(tmp_path), *sys.path])
    done = run_python("-W", "error", "-c", textwrap.dedent(program), path)
    assert (done.stdout.strip(), done.stderr) == ("lsmkv", "")


@given(st.binary(max_size=300), st.integers(0, 2**32 - 1))
def test_bytes_that_end_in_their_crc(content: bytes, other: int) -> None:
    right = masked_crc32c(content)
    assert is_sealed(content + right.to_bytes(4, "little"))
    assert is_sealed(content + other.to_bytes(4, "little")) == (other == right)
