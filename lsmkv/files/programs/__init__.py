"""Stores of other programs: recognizing the program, and the meaning of keys and values.

:func:`guess` names the program by some keys, the order's name and the path.  A
:class:`Program` has a decoder, which gives keys and values as text.  The command line and the pages
use the same decoders.  :func:`in_hex` shows bytes that have no text.
"""

from __future__ import annotations

from lsmkv.engine.former_paths import keep_paths
from lsmkv.files.programs.known import LANDMARKS, PROGRAMS, Decoder, Program, guess, program_named
from lsmkv.files.programs.reading import in_hex

__all__ = ["LANDMARKS", "PROGRAMS", "Decoder", "Program", "guess", "in_hex", "program_named"]

keep_paths(*(globals()[name] for name in __all__))
