"""Tokens that `sluicegate login` keeps: one file that only its user can read."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sluicegate.cli.inputs import UsageError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Kept:
    """Who one is at a gateway; the token is not shown."""

    url: str
    user: str
    expires: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where one is signed in, the last first."""

    kept: tuple[Kept, ...] = ()

    def find(self, url: str | None, user: str | None) -> Kept | None:
        """The last one of this gateway and user, as far as they are said."""
        wanted = (each for each in self.kept if url in (None, each.url) and user in (None, each.user))
        return next(wanted, None)

    def put(self, kept: Kept) -> Credentials:
        return Credentials((kept, *self.drop(kept.url, kept.user).kept))

    def drop(self, url: str, user: str) -> Credentials:
        return Credentials(tuple(each for each in self.kept if (each.url, each.user) != (url, user)))


def find_file() -> Path:
    """Under `$XDG_CONFIG_HOME`, else `~/.config`."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    # a relative one counts as unset, so that no folder that one happens to be in is written to
    root = Path(given) if given.startswith("/") else Path.home() / ".config"
    return root / "sluicegate" / "credentials.json"


def read_credentials() -> Credentials:
    """What is kept; nothing where there is no file. One that others can read is refused."""
    path = find_file()
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                raise UsageError(f"others can read `{path}`: remove it and sign in again")
            content = json.load(file)
        return Credentials(tuple(_read_kept(each) for each in content["kept"]))
    except FileNotFoundError:
        return Credentials()
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"`{path}` cannot be read: remove it and sign in again") from None


def _read_kept(content: dict[str, Any]) -> Kept:
    found = [content[name] for name in ("url", "user", "expires", "token")]
    if not all(isinstance(each, str) for each in found):
        raise ValueError
    return Kept(*found)


def write_credentials(credentials: Credentials) -> Path:
    """In one step, into a file that has never been readable by others."""
    path = find_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"kept": [asdict(each) for each in credentials.kept]}, file, indent=1)
    fresh.replace(path)
    return path
