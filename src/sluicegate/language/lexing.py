"""Text to tokens, and the cursor that every parser of the language reads them with.

A token carries its exact place, so that a diagnostic underlines exactly the text it is about. What cannot be read
safely (binary, bidirectional controls, too large, nested too deeply) is a diagnostic here, before any parser runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.source import SourceText, Span

NAME, QUOTED, STRING, NUMBER, CLOCK, QUANTITY, OP, END = (
    "name",
    "quoted name",
    "string",
    "number",
    "clock time",
    "duration",
    "symbol",
    "end of text",
)

MAX_FILE_SIZE = 4 * 1024 * 1024
MAX_QUERY_SIZE = 1024 * 1024
MAX_NESTING = 100
MAX_PROBLEMS = 20

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n\f]+ | --[^\n]* | /\*(?!\+)[^*]*\*+(?:[^/*][^*]*\*+)*/)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*+(?!\w))
    | (?P<clock>\d{1,2}:\d{2}(?::\d{2})?(?:[aA]|[pP])[mM]\b)
    | (?P<quantity>\d+(?:us|ms|s|sec|min|h|hr|hrs)\b)
    | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:[LD](?![A-Za-z0-9_]))?(?![A-Za-z0-9_]))
    | (?P<string>'[^']*(?:''[^']*)*')
    | (?P<quoted>"[^"]*(?:""[^"]*)*")
    | (?P<op><=>|<>|!=|<=|>=|==|\|\||::|->|=>|/(?!\*)|[-+*%=<>()\[\]{},.;:|&!?@$^~])
    """,
    re.VERBOSE,
)
_KINDS = {"clock": CLOCK, "quantity": QUANTITY, "number": NUMBER}
_UNSAFE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
# What cannot be seen has no place in a name: two names would look the same.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)


class Token(NamedTuple):
    """A word of the text. `text` is its value (unquoted); `key` is what keywords and symbols are matched by."""

    kind: str
    text: str
    start: int
    end: int
    key: str


def tokenize(
    source: SourceText, start: int = 0, end: int | None = None, *, limit: int = MAX_FILE_SIZE
) -> list[Token]:
    """The tokens of `source.text[start:end]`, ended by one of kind END; raises all lexical problems together."""
    text = source.text
    stop = len(text) if end is None else end
    check_text(source, start, stop, limit)
    tokens: list[Token] = []
    problems: list[Diagnostic] = []
    at, depth, scan = start, 0, _TOKEN.match
    while at < stop and len(problems) < MAX_PROBLEMS:
        found = scan(text, at, stop)
        if found is None:
            problem, at = _explain(source, at, stop)
            problems.append(problem)
            continue
        here, at, group = at, found.end(), found.lastgroup
        if group == "space":
            continue
        word = found.group()
        if group == "name":
            tokens.append(Token(NAME, word, here, at, word.upper()))
        elif group == "op":
            depth = _next_depth(word, depth)
            if depth > MAX_NESTING:
                problems.append(_too_deep(Span(source, here, at)))
                break
            tokens.append(Token(OP, word, here, at, word))
        elif group == "string":
            tokens.append(Token(STRING, word[1:-1].replace("''", "'"), here, at, ""))
        elif group == "quoted":
            tokens.append(Token(QUOTED, word[1:-1].replace('""', '"'), here, at, ""))
            problems.extend(check_name(Span(source, here, at), tokens[-1].text))
        else:
            tokens.append(Token(_KINDS[str(group)], word, here, at, ""))
    if problems:
        raise DiagnosticError(problems)
    tokens.append(Token(END, "", stop, stop, ""))
    return tokens


def check_text(
    source: SourceText, start: int = 0, end: int | None = None, limit: int = MAX_FILE_SIZE
) -> None:
    """Refuse a text that is too large, or has a character that hides or reorders what is read."""
    stop = len(source.text) if end is None else end
    if stop - start > limit:
        message = f"the text has {stop - start:,} characters, more than the {limit:,} that are read"
        raise DiagnosticError([Diagnostic("text-too-large", message, Span(source, start, start))])
    unsafe = _UNSAFE.search(source.text, start, stop)
    if unsafe is not None:
        code = f"U+{ord(unsafe.group()):04X}"
        message = f"the character {code} is not allowed in a text"
        help_ = "binary data, control characters and characters that reorder text are refused"
        raise DiagnosticError([Diagnostic("unsafe-character", message, Span(source, *unsafe.span()), help_)])


def _next_depth(word: str, depth: int) -> int:
    if word in "([{":
        return depth + 1
    if word in ")]}":
        return max(0, depth - 1)
    return 0 if word == ";" else depth


def _too_deep(span: Span) -> Diagnostic:
    return Diagnostic("too-deep", f"brackets are nested more than {MAX_NESTING} deep", span)


def check_name(span: Span, name: str) -> list[Diagnostic]:
    """What keeps a text from being a name, wherever it is written."""
    if not name:
        return [Diagnostic("empty-name", "a quoted name is empty", span)]
    if _INVISIBLE.search(name):
        return [Diagnostic("unsafe-character", "a name has a character that cannot be seen", span)]
    if name.startswith("#"):
        return [Diagnostic("reserved-name", "a name cannot begin with `#`", span)]
    return []


def _explain(source: SourceText, at: int, stop: int) -> tuple[Diagnostic, int]:
    """What is wrong at a place where no token begins, and where to read on."""
    text, rest = source.text, source.text[at : at + 3]
    if rest[0] in "'\"":
        what = "string" if rest[0] == "'" else "quoted name"
        help_ = f"close it with {rest[0]}; inside it, write {rest[0]} twice"
        return Diagnostic("unterminated", f"a {what} is not closed", Span(source, at, at + 1), help_), stop
    if rest == "/*+":
        return _refuse_hint(source, at, stop)
    if rest.startswith("/*"):
        return Diagnostic("unterminated", "a comment is not closed", Span(source, at, at + 2)), stop
    word = re.compile(r"\w+|.", re.DOTALL).match(text, at, stop)
    end = word.end() if word else at + 1
    shown = text[at : min(end, at + 60)]
    if Span(source, at, end).shown != text[at:end]:
        message = "a value of an option stands in single quotes"
        return Diagnostic("unexpected-character", message, Span(source, at, end)), end
    if shown[0].isdigit():
        return Diagnostic(
            "bad-number", f"`{shown}` is neither a number nor a name", Span(source, at, end)
        ), end
    if shown[0].isalpha():
        help_ = f'write it in double quotes: "{shown}"'
        return Diagnostic(
            "unquoted-name", f"the name `{shown}` needs quotes", Span(source, at, end), help_
        ), end
    visible = f"`{shown}` " if shown.isprintable() else ""
    message = f"unexpected character {visible}(U+{ord(shown[0]):04X})"
    return Diagnostic("unexpected-character", message, Span(source, at, end)), end


def _refuse_hint(source: SourceText, at: int, stop: int) -> tuple[Diagnostic, int]:
    close = source.text.find("*/", at, stop)
    end = stop if close < 0 else close + 2
    return Diagnostic("hint", "hints are not read", Span(source, at, min(end, at + 200)), "leave it out"), end


def _match_brackets(tokens: Sequence[Token]) -> dict[int, int]:
    closing: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.key == "(":
            opened.append(at)
        elif token.key == ")" and opened:
            closing[opened.pop()] = at
    return closing


class Cursor:
    """A place in a list of tokens. Keywords are matched without regard to case, names exactly."""

    __slots__ = ("_at", "_closing", "_last", "depth", "source", "tokens")

    def __init__(self, source: SourceText, tokens: Sequence[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.depth = 0
        self._at = 0
        self._closing: dict[int, int] | None = None
        self._last = len(tokens) - 1

    @classmethod
    def over(
        cls, source: SourceText, start: int = 0, end: int | None = None, *, limit: int = MAX_FILE_SIZE
    ) -> Cursor:
        return cls(source, tokenize(source, start, end, limit=limit))

    @property
    def current(self) -> Token:
        return self.tokens[self._at]

    @property
    def previous(self) -> Token:
        return self.tokens[max(0, self._at - 1)]

    @property
    def position(self) -> int:
        """Where the cursor stands, for `rewind`."""
        return self._at

    def rewind(self, position: int) -> None:
        self._at = position

    def peek(self, ahead: int = 1) -> Token:
        """The token `ahead` places after the current one; at the end, the last."""
        return self.tokens[min(self._at + ahead, self._last)]

    def after_bracket(self, ahead: int) -> Token:
        """What follows the `)` of the `(` that stands `ahead` places on; the last token if it is not closed."""
        if self._closing is None:
            self._closing = _match_brackets(self.tokens)
        return self.tokens[min(self._closing.get(self._at + ahead, self._last) + 1, self._last)]

    @property
    def done(self) -> bool:
        return self.current.kind == END

    def next(self) -> Token:
        token = self.tokens[self._at]
        if self._at < self._last:
            self._at += 1
        return token

    def at(self, *keys: str) -> bool:
        """Whether the next tokens are these keywords or symbols, in this order."""
        return all(self.peek(ahead).key == key for ahead, key in enumerate(keys))

    def at_any(self, *keys: str) -> bool:
        return self.current.key in keys

    def accept(self, *keys: str) -> Token | None:
        """Take these keywords or symbols if they are next, in this order; gives the first."""
        if not self.at(*keys):
            return None
        first = self.current
        for _ in keys:
            self.next()
        return first

    def expect(self, *keys: str, help: str | None = None) -> Token:
        """As `accept`, but it is an error if they are not next."""
        first = self.current
        for key in keys:
            if self.current.key != key:
                self.fail_unexpected(f"`{key}`", help=help)
            self.next()
        return first

    def expect_name(self, what: str, reserved: frozenset[str] = frozenset()) -> Token:
        """A name, quoted or not; unquoted ones may not be in `reserved` (upper case)."""
        token = self.current
        if token.kind != QUOTED and (token.kind != NAME or token.key in reserved):
            help_ = f'to use it as a name, write "{token.text}"' if token.kind == NAME else None
            self.fail_unexpected(what, help=help_)
        return self.next()

    def expect_string(self, what: str) -> Token:
        if self.current.kind != STRING:
            self.fail_unexpected(what)
        return self.next()

    def expect_integer(self, what: str) -> int:
        """A plain natural number that fits in 64 bits."""
        token = self.current
        if token.kind != NUMBER or not token.text.isdigit():
            self.fail_unexpected(what)
        if len(token.text.lstrip("0")) > 18:
            self.fail("number-too-large", f"`{token.text[:40]}` is too large", self.span(token))
        self.next()
        return int(token.text)

    def span(self, first: Token, last: Token | None = None) -> Span:
        return Span(self.source, first.start, (last or first).end)

    def span_from(self, first: Token) -> Span:
        """From the given token to the one read last."""
        return Span(self.source, first.start, max(first.end, self.previous.end))

    def fail(self, code: str, message: str, span: Span | None = None, help: str | None = None) -> NoReturn:
        raise DiagnosticError([Diagnostic(code, message, span or self.span(self.current), help)])

    def fail_unexpected(self, wanted: str, *, help: str | None = None) -> NoReturn:
        """`expected …, found …` at the current token."""
        token = self.current
        found = "the end of the text" if token.kind == END else f"`{self.span(token).shown[:60]}`"
        self.fail("syntax", f"expected {wanted}, found {found}", self.span(token), help)
