"""lsmkv.util.checksum: published vectors, and both implementations side by side."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsmkv.util.checksum import crc32c, mask, masked_crc32c, sealing_crc32c, typed_crc32c, unmask

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

# google_crc32c as it is where its C implementation is missing, or not there at all.
WITHOUT_C = """
import sys, types, warnings
if sys.argv[1] == "missing":
    sys.modules["google_crc32c"] = None
else:
    slow = types.ModuleType("google_crc32c")
    slow.implementation = "python"
    slow.value = slow.extend = lambda *_: 1 // 0
    sys.modules["google_crc32c"] = slow
sys.path[:0] = sys.argv[2].split("|")
from lsmkv.util import checksum
assert checksum.CRC32C_IMPLEMENTATION == "lsmkv"
"""


def run_without_c(google: str, program: str, *arguments: str) -> str:
    """What a program prints that begins by :data:`WITHOUT_C`."""
    whole = WITHOUT_C + textwrap.dedent(program)
    command = [sys.executable, "-c", whole, google, "|".join(sys.path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
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


@pytest.mark.parametrize("google", ["missing", "slow"])
def test_without_the_c_of_google_crc32c_the_tables_give_the_same(
    google: str, tmp_path: Path
) -> None:
    given = tmp_path / "samples"
    given.write_text("\n".join(map(bytes.hex, samples())))
    found = run_without_c(
        google,
        """
        for line in open(sys.argv[3]):
            data = bytes.fromhex(line)
            print(checksum.crc32c(data), checksum.masked_crc32c(data), end=" ")
            print(checksum.typed_crc32c(4, data), checksum.sealing_crc32c(data, 200))
        """,
        str(given),
    )
    expected = [
        f"{crc32c(data)} {masked_crc32c(data)} {typed_crc32c(4, data)} {sealing_crc32c(data, 200)}"
        for data in samples()
    ]
    assert found.splitlines() == expected


def test_a_google_crc32c_without_c_is_passed_over_in_silence(tmp_path: Path) -> None:
    package = tmp_path / "google_crc32c"
    package.mkdir()
    source = "import warnings\nwarnings.warn('slow', RuntimeWarning)\nimplementation = 'python'\n"
    (package / "__init__.py").write_text(source)
    program = """
    import sys
    sys.path[:0] = sys.argv[1].split("|")
    from lsmkv.util.checksum import CRC32C_IMPLEMENTATION
    print(CRC32C_IMPLEMENTATION)
    """
    path = "|".join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program), path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("lsmkv", "")
