"""A door for readers and type checkers: when it runs, ``lsmkv.programs`` is
``lsmkv.files.programs``.
"""

from __future__ import annotations

from lsmkv.files.programs import LANDMARKS, PROGRAMS, Decoder, Program, guess, in_hex, program_named

__all__ = ["LANDMARKS", "PROGRAMS", "Decoder", "Program", "guess", "in_hex", "program_named"]
