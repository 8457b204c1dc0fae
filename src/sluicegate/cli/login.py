"""`sluicegate login`: sign in to a gateway and keep the session's token for the other commands."""

from __future__ import annotations

import argparse
import getpass
import sys

from sluicegate.cli.console import Console
from sluicegate.cli.credentials import Credentials, Kept, read_credentials, write_credentials
from sluicegate.cli.inputs import UsageError, add_json, recover
from sluicegate.cli.remote import clean_url, open_client

NAME = "login"
SUMMARY = "sign in to a gateway; the token is kept in a file that only you can read"
EXAMPLE = """\
  sluicegate login https://gateway.example --user paul
  sluicegate login https://gateway.example --user paul --role Doctor
  sluicegate login https://gateway.example --token < token.txt
  sluicegate login https://gateway.example --out paul"""
_LONGEST = 65_536


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "url", metavar="URL", type=recover, help="the gateway: https, or on this machine http"
    )
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--user", metavar="USER", type=recover, help="who you are; the password is asked for")
    how.add_argument(
        "--token", action="store_true", help="keep an API or access token, read from standard input"
    )
    how.add_argument(
        "--out", metavar="USER", type=recover, help="end the user's session and forget its token"
    )
    told = "activate this role only (may be repeated); else all that you have"
    parser.add_argument("--role", metavar="ROLE", dest="roles", action="append", type=recover, help=told)
    parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    add_json(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if (args.roles or args.password_stdin) and not args.user:
        raise UsageError("--role and --password-stdin belong to --user")
    url = clean_url(args.url) or ""
    credentials = read_credentials()
    if args.out:
        return _sign_out(url, args.out, credentials, console)
    kept = _check_token(url) if args.token else _sign_in(args, url)
    path = write_credentials(credentials.put(kept))
    if args.json:
        console.write_json({"url": url, "user": kept.user, "expires": kept.expires, "file": str(path)})
    else:
        console.write(f"signed in to {url} as {kept.user}, until {kept.expires}")
    return 0


def _sign_in(args: argparse.Namespace, url: str) -> Kept:
    with open_client(url, None) as client:
        password = _read_line() if args.password_stdin else _ask_password(args.user)
        session = client.sign_in(args.user, password, args.roles)
    return Kept(url, session.user, str(session.expires), session.token)


def _check_token(url: str) -> Kept:
    token = _read_line()
    with open_client(url, token) as client:
        me = client.me()
    return Kept(url, str(me.get("user", "")), str(me.get("expires", "")), token)


def _sign_out(url: str, user: str, credentials: Credentials, console: Console) -> int:
    kept = credentials.find(url, user)
    if kept is None:
        raise UsageError(f"not signed in to `{url}` as `{user}`")
    write_credentials(credentials.drop(url, user))
    with open_client(url, kept.token) as client:
        client.sign_out()
    console.write(f"signed out of {url} as {user}")
    return 0


def _read_line() -> str:
    line = sys.stdin.readline(_LONGEST).rstrip("\r\n")
    if not line:
        raise UsageError("standard input has nothing to sign in with")
    return line


def _ask_password(user: str) -> str:
    try:
        return getpass.getpass(f"password of {user}: ")
    except EOFError:
        raise UsageError("no password was given") from None
