"""Certificates for tests: an authority's, and those that it signs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


class Certificates:
    """Files in PEM: ``ca``, ``server``, ``client``, each with a key, and a ``stranger``'s."""

    def __init__(self, directory: Path) -> None:
        found = shutil.which("openssl")
        if found is None:
            pytest.skip("openssl is not installed")
        self._openssl: str = found
        self._directory = directory
        self._make("ca", "-x509")
        self._make("stranger", "-x509")
        for name in ("server", "client"):
            self._make(name, "-x509", "-CA", str(self.certificate("ca")), "-CAkey",
                       str(self.key("ca")))  # fmt: skip

    def certificate(self, name: str) -> Path:
        return self._directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self._directory / f"{name}.key"

    def _make(self, name: str, *options: str) -> None:
        words = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        words += ["-keyout", str(self.key(name)), "-out", str(self.certificate(name))]
        words += ["-days", "3650", "-subj", f"/CN={name}"]
        words += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        # Python 3.13 wants the usage of each key to be stated.
        words += ["-addext", "keyUsage=critical,digitalSignature,keyCertSign", *options]
        subprocess.run([self._openssl, *words], check=True, capture_output=True)
