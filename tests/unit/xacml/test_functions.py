"""Every function of the standard, by examples; none is without one."""

from __future__ import annotations

import pytest

from sluicegate.policy.xacml.context import Request
from sluicegate.policy.xacml.evaluate import Scope, evaluate
from sluicegate.policy.xacml.functions import CONTENT_FUNCTIONS, FUNCTIONS, HIGHER_ORDER
from sluicegate.policy.xacml.lookup import Lookup
from sluicegate.policy.xacml.model import Apply, Expression, FunctionName
from sluicegate.policy.xacml.names import DataType, StatusCode
from sluicegate.policy.xacml.signature import LimitError, UndeterminedError
from sluicegate.policy.xacml.values import Value, read_value

TYPES = {each.short: each for each in DataType}
SAMPLES = {
    "string": ("a", "b"),
    "boolean": ("true", "false"),
    "integer": ("1", "2"),
    "double": ("1.5", "2.5"),
    "time": ("08:00:00Z", "09:00:00Z"),
    "date": ("2026-01-01", "2026-01-02"),
    "dateTime": ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
    "anyURI": ("urn:a", "urn:b"),
    "hexBinary": ("0A", "0B"),
    "base64Binary": ("AAAA", "BBBB"),
    "rfc822Name": ("a@x.org", "b@x.org"),
    "x500Name": ("cn=a", "cn=b"),
    "dayTimeDuration": ("P1D", "P2D"),
    "yearMonthDuration": ("P1M", "P2M"),
}
ORDERED = ("string", "integer", "double", "time", "date", "dateTime")
Case = tuple[str, list[str], str]


def read(text: str) -> Value:
    kind, _, content = text.partition("=")
    return read_value(TYPES[kind], content)


def bag(kind: str, *texts: str) -> str:
    return f"[{kind}={'|'.join(texts)}]"


def expression(text: str) -> Expression:
    """`integer=1`, `[integer=1|2]` for a bag, or `&name` for a function."""
    if text.startswith("&"):
        return FunctionName(find(text[1:])[0])
    if text.startswith("["):
        kind, _, content = text[1:-1].partition("=")
        values = tuple(read(f"{kind}={each}") for each in content.split("|") if each)
        return Apply(find(f"{kind}-bag")[0], values)
    return read(text)


def find(name: str) -> list[str]:
    """The ids that end so: older ones mean the same."""
    known = [*FUNCTIONS, *HIGHER_ORDER]
    return [each for each in known if each.rpartition(":")[2] == name]


def show(found: object) -> str:
    if isinstance(found, Value):
        return found.text
    assert isinstance(found, tuple)
    return "[" + "|".join(each.text for each in found) + "]"


def list_by_type() -> list[Case]:
    cases: list[Case] = []
    for kind, (low, high) in SAMPLES.items():
        one, other = f"{kind}={low}", f"{kind}={high}"
        both, first, twice = bag(kind, low, high), bag(kind, low), bag(kind, low, low)
        empty = bag(kind)
        cases += [
            (f"{kind}-equal", [one, one], "true"),
            (f"{kind}-equal", [one, other], "false"),
            (f"{kind}-one-and-only", [first], low),
            (f"{kind}-one-and-only", [both], "processing-error"),
            (f"{kind}-one-and-only", [empty], "processing-error"),
            (f"{kind}-bag-size", [twice], "2"),
            (f"{kind}-bag-size", [empty], "0"),
            (f"{kind}-bag", [one, other], f"[{low}|{high}]"),
            (f"{kind}-is-in", [other, both], "true"),
            (f"{kind}-is-in", [other, first], "false"),
            (f"{kind}-intersection", [twice, both], f"[{low}]"),
            (f"{kind}-union", [twice, both], f"[{low}|{high}]"),
            (f"{kind}-at-least-one-member-of", [first, both], "true"),
            (f"{kind}-at-least-one-member-of", [first, empty], "false"),
            (f"{kind}-subset", [twice, both], "true"),
            (f"{kind}-subset", [both, first], "false"),
            (f"{kind}-subset", [empty, first], "true"),
            (f"{kind}-set-equals", [twice, first], "true"),
            (f"{kind}-set-equals", [both, first], "false"),
        ]
    for kind in ORDERED:
        one, other = (f"{kind}={text}" for text in SAMPLES[kind])
        cases += [
            (f"{kind}-greater-than", [other, one], "true"),
            (f"{kind}-greater-than", [one, one], "false"),
            (f"{kind}-greater-than-or-equal", [one, one], "true"),
            (f"{kind}-greater-than-or-equal", [one, other], "false"),
            (f"{kind}-less-than", [one, other], "true"),
            (f"{kind}-less-than", [one, one], "false"),
            (f"{kind}-less-than-or-equal", [one, one], "true"),
            (f"{kind}-less-than-or-equal", [other, one], "false"),
        ]
    for kind, text in {"ipAddress": "10.0.0.1", "dnsName": "a.org"}.items():
        cases += [
            (f"{kind}-bag", [f"{kind}={text}"], f"[{text}]"),
            (f"{kind}-bag-size", [bag(kind, text, text)], "2"),
            (f"{kind}-one-and-only", [bag(kind, text)], text),
        ]
    return cases


def list_conversions() -> list[Case]:
    written = {
        "boolean": ("1", "true"),
        "integer": ("+07", "7"),
        "double": ("27.50", "27.5"),
        "time": ("08:00:00.0Z", "08:00:00Z"),
        "date": ("2026-01-01+00:00", "2026-01-01Z"),
        "dateTime": ("2026-01-01T24:00:00Z", "2026-01-02T00:00:00Z"),
        "anyURI": ("urn:a", "urn:a"),
        "dayTimeDuration": ("PT25H", "P1DT1H"),
        "yearMonthDuration": ("P13M", "P1Y1M"),
        "x500Name": ("cn=A, c=US", "cn=A, c=US"),
        "rfc822Name": ("A@X.org", "A@X.org"),
        "ipAddress": ("10.0.0.1:80", "10.0.0.1:80"),
        "dnsName": ("a.org", "a.org"),
    }
    cases: list[Case] = []
    for kind, (text, shown) in written.items():
        cases.append((f"{kind}-from-string", [f"string={text}"], text))
        cases.append((f"string-from-{kind}", [f"{kind}={text}"], shown))
        if kind != "anyURI":
            cases.append((f"{kind}-from-string", ["string=?"], "syntax-error"))
    return cases


CASES: list[Case] = [
    ("string-equal-ignore-case", ["string=Äb", "string=äB"], "true"),
    ("string-equal-ignore-case", ["string=a", "string=b"], "false"),
    ("double-equal", ["double=NaN", "double=NaN"], "true"),
    ("double-equal", ["double=-0", "double=0"], "true"),
    ("double-less-than", ["double=NaN", "double=INF"], "false"),
    ("double-is-in", ["double=NaN", bag("double", "1", "NaN")], "true"),
    ("time-less-than", ["time=08:00:00", "time=09:00:00Z"], "processing-error"),
    ("time-less-than", ["time=08:00:00", "time=09:00:00"], "true"),
    ("integer-add", ["integer=1", "integer=2", "integer=3"], "6"),
    ("double-add", ["double=0.5", "double=1"], "1.5"),
    ("integer-multiply", ["integer=2", "integer=3", "integer=-4"], "-24"),
    ("double-multiply", ["double=1e300", "double=1e300"], "INF"),
    ("integer-subtract", ["integer=2", "integer=3"], "-1"),
    ("double-subtract", ["double=2.5", "double=3"], "-0.5"),
    ("integer-divide", ["integer=-7", "integer=2"], "-3"),
    ("integer-divide", ["integer=7", "integer=-2"], "-3"),
    ("integer-divide", ["integer=7", "integer=0"], "processing-error"),
    ("double-divide", ["double=1", "double=4"], "0.25"),
    ("double-divide", ["double=1", "double=0"], "processing-error"),
    ("integer-mod", ["integer=-7", "integer=2"], "-1"),
    ("integer-mod", ["integer=7", "integer=-2"], "1"),
    ("integer-mod", ["integer=7", "integer=0"], "processing-error"),
    ("integer-abs", ["integer=-7"], "7"),
    ("double-abs", ["double=-INF"], "INF"),
    ("round", ["double=2.5"], "2"),
    ("round", ["double=3.5"], "4"),
    ("round", ["double=INF"], "INF"),
    ("floor", ["double=-2.5"], "-3"),
    ("double-to-integer", ["double=-2.9"], "-2"),
    ("double-to-integer", ["double=NaN"], "processing-error"),
    ("integer-to-double", ["integer=3"], "3"),
    ("integer-to-double", ["integer=1" + "0" * 400], "processing-error"),
    ("string-normalize-space", ["string=  This  is IT!\n"], "This  is IT!"),
    ("string-normalize-to-lower-case", ["string= This IS "], " this is "),
    ("or", [], "false"),
    ("or", ["boolean=false", "boolean=true"], "true"),
    ("and", [], "true"),
    ("and", ["boolean=true", "boolean=false"], "false"),
    ("not", ["boolean=true"], "false"),
    ("n-of", ["integer=0"], "true"),
    ("n-of", ["integer=1", "boolean=false", "boolean=true"], "true"),
    ("n-of", ["integer=2", "boolean=false", "boolean=true"], "false"),
    ("n-of", ["integer=3", "boolean=true", "boolean=true"], "processing-error"),
    ("n-of", ["integer=-1", "boolean=true"], "processing-error"),
    (
        "dateTime-add-dayTimeDuration",
        ["dateTime=2026-02-28T23:00:00-05:00", "dayTimeDuration=PT2H"],
        "2026-03-01T01:00:00-05:00",
    ),
    (
        "dateTime-subtract-dayTimeDuration",
        ["dateTime=2026-03-01T00:00:00Z", "dayTimeDuration=-P1D"],
        "2026-03-02T00:00:00Z",
    ),
    (
        "dateTime-add-yearMonthDuration",
        ["dateTime=2024-02-29T01:02:03Z", "yearMonthDuration=P1Y"],
        "2025-02-28T01:02:03Z",
    ),
    (
        "dateTime-subtract-yearMonthDuration",
        ["dateTime=2026-03-31T00:00:00Z", "yearMonthDuration=P1M"],
        "2026-02-28T00:00:00Z",
    ),
    ("date-add-yearMonthDuration", ["date=2026-12-31Z", "yearMonthDuration=P2M"], "2027-02-28Z"),
    ("date-subtract-yearMonthDuration", ["date=2026-01-15", "yearMonthDuration=P13M"], "2024-12-15"),
    ("time-in-range", ["time=08:00:00Z", "time=08:00:00Z", "time=09:00:00Z"], "true"),
    ("time-in-range", ["time=09:00:01Z", "time=08:00:00Z", "time=09:00:00Z"], "false"),
    ("time-in-range", ["time=01:00:00Z", "time=22:00:00Z", "time=02:00:00Z"], "true"),
    ("time-in-range", ["time=12:00:00Z", "time=22:00:00Z", "time=02:00:00Z"], "false"),
    ("time-in-range", ["time=08:30:00+02:00", "time=08:00:00", "time=09:00:00"], "true"),
    ("time-in-range", ["time=08:30:00+02:00", "time=08:00:00Z", "time=09:00:00Z"], "false"),
    ("string-concatenate", ["string=a", "string=b", "string=c"], "abc"),
    ("uri-string-concatenate", ["anyURI=http://a/", "string=b", "string=c"], "http://a/bc"),
    ("string-starts-with", ["string=ab", "string=abc"], "true"),
    ("string-starts-with", ["string=abc", "string=ab"], "false"),
    ("string-ends-with", ["string=bc", "string=abc"], "true"),
    ("string-contains", ["string=b", "string=abc"], "true"),
    ("string-contains", ["string=abc", "string=b"], "false"),
    ("anyURI-starts-with", ["string=http:", "anyURI=http://a"], "true"),
    ("anyURI-ends-with", ["string=/b", "anyURI=http://a"], "false"),
    ("anyURI-contains", ["string=://", "anyURI=http://a"], "true"),
    ("string-substring", ["string=abcdef", "integer=2", "integer=4"], "cd"),
    ("string-substring", ["string=abcdef", "integer=2", "integer=-1"], "cdef"),
    ("string-substring", ["string=abc", "integer=3", "integer=3"], ""),
    ("string-substring", ["string=abc", "integer=-1", "integer=2"], "processing-error"),
    ("string-substring", ["string=abc", "integer=0", "integer=4"], "processing-error"),
    ("string-substring", ["string=abc", "integer=2", "integer=1"], "processing-error"),
    ("anyURI-substring", ["anyURI=http://a", "integer=0", "integer=4"], "http"),
    ("string-regexp-match", ["string=^a.c$", "string=abc"], "true"),
    ("string-regexp-match", ["string=b", "string=abc"], "true"),
    ("string-regexp-match", ["string=(", "string=abc"], "processing-error"),
    ("anyURI-regexp-match", ["string=^urn:", "anyURI=urn:a"], "true"),
    ("ipAddress-regexp-match", [r"string=10\.", "ipAddress=10.0.0.1"], "true"),
    ("dnsName-regexp-match", [r"string=\.com$", "dnsName=a.org"], "false"),
    ("rfc822Name-regexp-match", ["string=@", "rfc822Name=a@b.org"], "true"),
    ("x500Name-regexp-match", ["string=c=US$", "x500Name=cn=a,c=US  "], "true"),
    ("string-regexp-match", ["string=a$", "string=a "], "false"),
    ("string-from-anyURI", ["anyURI= urn:a "], "urn:a"),
    ("x500Name-match", ["x500Name=o=Medi,c=US", "x500Name=cn=a, O=medi, C=US"], "true"),
    ("x500Name-match", ["x500Name=cn=a,o=Medi,c=US", "x500Name=o=Medi,c=US"], "false"),
    ("x500Name-match", ["x500Name=cn=a", "x500Name=cn=a,c=US"], "false"),
    ("rfc822Name-match", ["string=Anderson@sun.com", "rfc822Name=Anderson@SUN.COM"], "true"),
    ("rfc822Name-match", ["string=anderson@sun.com", "rfc822Name=Anderson@sun.com"], "false"),
    ("rfc822Name-match", ["string=sun.com", "rfc822Name=a@Sun.com"], "true"),
    ("rfc822Name-match", ["string=sun.com", "rfc822Name=a@east.sun.com"], "false"),
    ("rfc822Name-match", ["string=.east.sun.com", "rfc822Name=a@isrg.EAST.sun.com"], "true"),
    ("rfc822Name-match", ["string=.east.sun.com", "rfc822Name=a@east.sun.com"], "false"),
    ("any-of", ["&string-equal", "string=a", bag("string", "b", "a")], "true"),
    ("any-of", ["&integer-greater-than", bag("integer", "1", "2"), "integer=2"], "false"),
    ("any-of", ["&string-equal", "string=a", bag("string")], "false"),
    ("any-of", ["&or", "boolean=false", bag("boolean", "false", "true")], "true"),
    ("all-of", ["&integer-less-than", "integer=1", bag("integer", "2", "3")], "true"),
    ("all-of", ["&integer-less-than", "integer=2", bag("integer", "2", "3")], "false"),
    ("all-of", ["&integer-less-than", "integer=2", bag("integer")], "true"),
    ("any-of-any", ["&string-equal", bag("string", "a", "b"), bag("string", "c", "b")], "true"),
    ("any-of-any", ["&string-equal", bag("string", "a"), bag("string", "b")], "false"),
    ("all-of-any", ["&integer-greater-than", bag("integer", "10", "20"), bag("integer", "1", "19")], "true"),
    ("all-of-any", ["&integer-greater-than", bag("integer", "1", "20"), bag("integer", "1", "19")], "false"),
    ("any-of-all", ["&integer-greater-than", bag("integer", "3", "5"), bag("integer", "1", "4")], "true"),
    ("any-of-all", ["&integer-greater-than", bag("integer", "3", "4"), bag("integer", "1", "4")], "false"),
    ("all-of-all", ["&integer-greater-than", bag("integer", "5", "6"), bag("integer", "1", "4")], "true"),
    ("all-of-all", ["&integer-greater-than", bag("integer", "4", "6"), bag("integer", "1", "4")], "false"),
    ("map", ["&string-normalize-to-lower-case", bag("string", "A", "B")], "[a|b]"),
    ("map", ["&integer-add", "integer=1", bag("integer", "1", "2")], "[2|3]"),
    ("map", ["&integer-divide", "integer=1", bag("integer", "1", "0")], "processing-error"),
    *list_by_type(),
    *list_conversions(),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), CASES)
def test_function(name: str, arguments: list[str], wanted: str) -> None:
    ids = find(name)
    assert ids
    for function_id in ids:
        applied = Apply(function_id, tuple(expression(each) for each in arguments))
        if wanted.endswith("-error"):
            with pytest.raises(UndeterminedError) as failed:
                evaluate(applied, Scope(Lookup(Request(), None)))
            assert failed.value.status.code is StatusCode(f"urn:oasis:names:tc:xacml:1.0:status:{wanted}")
        else:
            assert show(evaluate(applied, Scope(Lookup(Request(), None)))) == wanted


def test_no_function_is_without_an_example() -> None:
    tried = {name for name, _, _ in CASES}
    assert {each.rpartition(":")[2] for each in (*FUNCTIONS, *HIGHER_ORDER)} == tried


def test_the_functions_of_the_standard_are_there() -> None:
    of_standard = {
        *("1.0:function:string-equal", "3.0:function:string-equal-ignore-case", "2.0:function:time-in-range"),
        *("3.0:function:dayTimeDuration-equal", "1.0:function:dayTimeDuration-equal", "3.0:function:any-of"),
        *(
            "1.0:function:all-of-any",
            "3.0:function:map",
            "2.0:function:ipAddress-bag",
            "3.0:function:any-of-any",
        ),
        *(
            "2.0:function:dnsName-regexp-match",
            "3.0:function:string-from-ipAddress",
            "1.0:function:x500Name-match",
        ),
        *("3.0:function:date-add-yearMonthDuration", "2.0:function:string-concatenate"),
        *("3.0:function:xpath-node-count", "3.0:function:xpath-node-match", "3.0:function:xpath-node-equal"),
    }
    known = {*FUNCTIONS, *HIGHER_ORDER, *CONTENT_FUNCTIONS}
    assert {f"urn:oasis:names:tc:xacml:{each}" for each in of_standard} <= known


def test_what_is_not_needed_is_not_evaluated() -> None:
    failing = Apply(find("integer-one-and-only")[0], (expression("[integer=]"),))
    broken = Apply(find("integer-equal")[0], (failing, failing))
    true, false = read("boolean=true"), read("boolean=false")
    scope = Scope(Lookup(Request(), None))
    for name, arguments, wanted in (
        ("or", (true, broken), "true"),
        ("and", (false, broken), "false"),
        ("n-of", (read("integer=1"), true, broken), "true"),
        ("n-of", (read("integer=2"), false, broken), "false"),
    ):
        assert show(evaluate(Apply(find(name)[0], arguments), scope)) == wanted
    for name in ("or", "and"):
        with pytest.raises(UndeterminedError):
            evaluate(Apply(find(name)[0], (broken, true)), scope)


def test_combinations_are_bounded() -> None:
    many = expression(bag("integer", *(str(each) for each in range(400))))
    name = FunctionName(find("integer-equal")[0])
    other = expression(bag("integer", *(str(-each - 1) for each in range(400))))
    for function_id in (*find("any-of-any"), *find("all-of-any")):
        with pytest.raises(LimitError, match="too many combinations"):
            evaluate(Apply(function_id, (name, many, other)), Scope(Lookup(Request(), None)))
