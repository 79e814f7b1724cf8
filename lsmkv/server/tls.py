"""TLS: certificates of the server and of its clients."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Literal

AuthClients = Literal["no", "optional", "yes"]


@dataclass(frozen=True)
class TLS:
    """The files of certificates, in PEM, and whether clients need one.

    Raises ``ValueError`` for settings that contradict each other.
    """

    certificate: str = ""
    """The server's certificate, and those between it and an authority."""
    key: str = ""
    """The certificate's private key; empty if the file of the certificate has it."""
    authorities: str = ""
    """The certificates of the authorities that have signed those of clients."""
    clients: AuthClients | None = None
    """Policy for client certificates: required, optional or none; required by default if
    ``authorities`` are given."""

    def __post_init__(self) -> None:
        if not self.certificate:
            raise ValueError("TLS needs a certificate: give tls_cert_file")
        if self.clients not in (None, "no", "optional", "yes"):
            raise ValueError(f"tls_auth_clients must be yes, no or optional, not {self.clients!r}")
        if self.clients in ("yes", "optional") and not self.authorities:
            raise ValueError("certificates of clients need an authority: give tls_ca_cert_file")

    @property
    def auth_clients(self) -> AuthClients:
        """The policy for client certificates: ``yes``, ``optional`` or ``no``."""
        return self.clients or ("yes" if self.authorities else "no")

    def context(self) -> ssl.SSLContext:
        """Return a context for asyncio; ``ValueError`` or ``OSError`` if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load(context)
        context.verify_mode = {
            "no": ssl.CERT_NONE,
            "optional": ssl.CERT_OPTIONAL,
            "yes": ssl.CERT_REQUIRED,
        }[self.auth_clients]
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Read the files into a context.  Raises what :meth:`context` does."""
        reading = self.certificate
        try:
            context.load_cert_chain(self.certificate, self.key or None, _no_password)
            if self.authorities:
                reading = self.authorities
                context.load_verify_locations(self.authorities)
        except ssl.SSLError as error:
            reason = getattr(error, "reason", None)  # which typeshed takes for a str
            raise ValueError(f"{reading}: {reason or error}") from None
        except FileNotFoundError as error:
            names = f"{self.certificate} or {self.key}" if self.key else self.certificate
            missing = reading if reading == self.authorities else names
            raise FileNotFoundError(error.errno, error.strerror, missing) from None


def _no_password() -> str:
    """A key with a password would ask for it at the terminal."""
    raise ValueError("the private key has a password: a server cannot ask for it")
