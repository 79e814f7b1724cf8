"""The configuration file of ``lsmkv serve``: read at the start and on SIGHUP, and rewritten."""

from __future__ import annotations

import os
import stat

from lsmkv.server.config_text import parse_config, rewrite_config
from lsmkv.server.resp import CommandError
from lsmkv.server.settings import ALIASES, Settings
from lsmkv.tools.output import open_output

_OPTIONS = {
    "aclfile": "acl_file",
    "appendfsync": "appendfsync",
    "bind": "host",
    "dir": "directory",
    "logfile": "logfile",
    "metrics-port": "metrics_port",
    "queues": "queues",
    "max-disk": "max_disk",
    "maxclients": "maxclients",
    "maxmemory": "max_disk",
    "maxmemory-policy": "maxmemory_policy",
    "port": "port",
    "protected-mode": "protected_mode",
    "requirepass": "password",
    "timeout": "timeout",
    "tls-auth-clients": "tls_auth_clients",
    "tls-ca-cert-file": "tls_ca_cert_file",
    "tls-cert-file": "tls_cert_file",
    "tls-key-file": "tls_key_file",
    "tls-port": "tls_port",
    "unixsocket": "unix_socket",
    "unixsocketperm": "unix_socket_mode",
}
"""The parameters of the command by the names in the file."""


class ConfigFile:
    """A configuration file, in redis.conf's syntax.

    Call order: ``options configure (reload | rewrite)*``.  Raises ``ValueError`` for a line that is
    invalid, and ``OSError`` if the file cannot be read or written.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._values = parse_config(self._text())

    def _text(self) -> str:
        with open(self.path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def options(self) -> dict[str, object]:
        """The file's values for options of the command that are not given there."""
        found: dict[str, object] = {
            _OPTIONS[name]: value for name, value in self._values.items() if name in _OPTIONS
        }
        if "host" in found:
            found["host"] = self._values["bind"].split()[0].lstrip("-")
        if found.get("port") == "0":
            found["port"] = "-1"
        if found.get("tls_port") == "0":
            del found["tls_port"]
        return found

    def configure(self, settings: Settings) -> list[str]:
        """Set what has no option of the command.  Returns remarks for the log."""
        settings.rewrite_config = lambda: self._rewrite(settings)
        settings.config_file = self.path
        others = {name: value for name, value in self._values.items() if name not in _OPTIONS}
        remarks, errors = _apply(settings, others)
        if errors:
            raise ValueError(f"{self.path}: {errors[0]}")
        more = self._values.get("bind", "").split()[1:]
        return remarks + [f"bind has no effect for {address}" for address in more]

    def reload(self, settings: Settings) -> list[str]:
        """Read the file again, and set what has changed in it.  Returns remarks for the log."""
        before, self._values = self._values, parse_config(self._text())
        changed = {name: value for name, value in self._values.items() if value != before.get(name)}
        remarks, errors = _apply(settings, changed)
        return remarks + errors

    def _rewrite(self, settings: Settings) -> None:
        values = settings.changeable()
        for alias, name in ALIASES.items():
            del values[name if alias in self._values else alias]
        text = rewrite_config(self._text(), values, Settings().changeable())
        mode = stat.S_IMODE(os.stat(self.path).st_mode)
        with open_output(self.path, force=True, mode=mode) as output:
            output.write(text.encode("utf-8", "surrogateescape"))
        self._values = parse_config(text)


def _apply(settings: Settings, values: dict[str, str]) -> tuple[list[str], list[str]]:
    """Set what may change while the server runs.  Returns remarks about the rest, and errors."""
    remarks, errors = [], []
    changeable = settings.changeable()
    for name, value in values.items():
        if name not in changeable:
            reason = "takes effect at the next start" if name in _OPTIONS else "has no effect"
            remarks.append(f"{name} {reason}")
            continue
        try:
            settings.change([(name, value)])
        except CommandError as error:
            errors.append(str(error).removeprefix("ERR "))
    return remarks, errors
