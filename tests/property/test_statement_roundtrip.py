"""I6 for catalog statements: parse(print(s)) = s, whatever is in names and strings."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.expr.nodes import Literal, Polygon
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    COLUMN_TYPES,
    DOUBLE,
    INT,
    INT_RANGE,
    POLYGON,
    STRING,
    TIME,
    TIMESTAMP,
    set_of,
)
from sluicegate.expr.values import DAY, TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import INTERNAL_FUNCTIONS, AggFunction
from sluicegate.language import statements as s
from sluicegate.language.parse_statements import parse_statement, parse_statements
from sluicegate.language.print_literals import KEYWORDS
from sluicegate.language.print_statements import print_statement, print_statements
from sluicegate.policy.model import LeastWindow
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Range,
    Restriction,
)
from sluicegate.source import SourceText

ODD = "abXY09_ \"'`;:-*.,()[]{}/\\%$#éß日µ"
words = st.sampled_from(sorted(KEYWORDS)).flatmap(
    lambda word: st.sampled_from([word, word.lower(), word.title()])
)
plain = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
texts = st.text(ODD + "\n\t", max_size=12) | st.sampled_from(
    ["--", "';DROP ROLE x;--", "/*", "*/", "a\r\nb", "\\'"]
)
odd_names = st.text(ODD, min_size=1, max_size=8).filter(lambda name: not name.startswith("#"))
names = st.builds(s.Name, plain | words | odd_names)

INT_LOW, INT_HIGH = INT_RANGE[INT]
scalars = st.one_of(
    st.booleans().map(lambda value: Literal(value, BOOLEAN)),
    st.integers(INT_LOW, INT_HIGH).map(lambda value: Literal(value, INT)),
    st.integers(*INT_RANGE[BIGINT]).map(lambda value: Literal(value, BIGINT)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: Literal(value, DOUBLE)),
    texts.map(lambda value: Literal(value, STRING)),
    st.integers(TIMESTAMP_MIN, TIMESTAMP_MAX).map(lambda value: Literal(value, TIMESTAMP)),
    st.integers(0, DAY - 1).map(lambda value: Literal(value, TIME)),
)
fact_args = st.lists(
    st.integers(INT_LOW, INT_HIGH).map(lambda value: Literal(value, INT))
    | texts.map(lambda text: Literal(text, STRING)),
    max_size=2,
).map(tuple)
points = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
rings = st.lists(points, min_size=3, max_size=5, unique=True).map(tuple)
polygons = st.lists(st.lists(rings, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2).map(
    lambda parts: Literal(Polygon(tuple(parts)), POLYGON)
)
sets = st.frozensets(st.integers(INT_LOW, INT_HIGH), min_size=1, max_size=4).map(
    lambda v: Literal(v, set_of(INT))
)
sets |= st.frozensets(texts, min_size=1, max_size=4).map(lambda values: Literal(values, set_of(STRING)))
durations = st.integers(1, 10**6) | st.sampled_from([3_600_000_000, 600_000_000, 86_400_000_000])

expressions = st.sampled_from(
    [
        "a = 1",
        "Platoon = self.Platoon AND n > -1.5",
        "x = ';' OR y = '--'",
        "distance_nm(Long, Lat, port('x')) <= 50",
        "(a)",
    ]
).map(s.ExpressionText)
bounds = st.sampled_from(["NULL", "TIMESTAMP '2026-01-01 10:50:00'", "start('a')", "end(self.x)"]).map(
    s.ExpressionText
)
attributes = st.builds(s.AttributeName, st.none() | names, names)
attribute_lists = st.lists(attributes, max_size=3, unique=True).map(tuple)
unique_names = st.lists(names, min_size=1, max_size=3, unique=True).map(tuple)
profiles = st.lists(
    st.tuples(names, scalars), min_size=1, max_size=3, unique_by=lambda item: item[0].text
).map(tuple)
follows = st.builds(s.FollowClause, names, unique_names, names, durations)
definitions = st.builds(s.AttributeDef, names, st.sampled_from(COLUMN_TYPES))
definition_lists = st.lists(definitions, min_size=1, max_size=4, unique_by=lambda each: each.name.text).map(
    tuple
)
keys = st.lists(plain | words, min_size=1, max_size=3).map(".".join) | texts
options = st.builds(
    s.StreamOptions,
    st.none() | names,
    st.none() | durations,
    st.none() | names,
    st.none() | names,
    st.lists(st.tuples(keys, texts), max_size=2, unique_by=lambda pair: pair[0]).map(tuple),
    st.none() | names,
    st.booleans(),
    st.booleans(),
    st.just(()) | unique_names,
)

functions = st.sampled_from([each for each in AggFunction if each not in INTERNAL_FUNCTIONS])
rights = st.one_of(
    st.just(s.ReadRight(s.AllAttributes())),
    st.lists(attributes, min_size=1, max_size=3, unique=True).map(lambda found: s.ReadRight(tuple(found))),
    st.just(s.AppendRight()),
    st.lists(
        st.builds(s.FunctionRight, functions, attributes) | st.just(s.FunctionRight(AggFunction.COUNT, None)),
        min_size=1,
        max_size=3,
        unique=True,
    ).map(lambda found: s.AggregateRight(tuple(found))),
)
leasts = st.builds(LeastWindow, durations | st.just(0), durations | st.just(0)) | st.builds(
    LeastWindow, st.integers(0, 99), st.integers(0, 99), st.just(True)
)


@st.composite
def grants(draw: st.DrawFn) -> s.CreateGrant:
    right = draw(rights)
    aggregate, append = isinstance(right, s.AggregateRight), isinstance(right, s.AppendRight)
    uses = st.lists(
        st.builds(s.StreamUse, names, st.none() | names),
        min_size=1,
        max_size=3,
        unique_by=lambda use: (use.alias or use.stream).text,
    )
    return s.CreateGrant(
        draw(names),
        right,
        tuple(draw(uses)),
        draw(names),
        draw(st.booleans()),
        draw(st.none() | expressions),
        draw(st.none() | st.tuples(bounds, bounds)),
        None if append else draw(st.none() | leasts),
        draw(attribute_lists) if aggregate else (),
        draw(attribute_lists) if aggregate else (),
        draw(st.none() | st.integers(0, 1000)) if aggregate else None,
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.none() | names),
        draw(st.none() | texts),
    )


numbers = st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6)
strings = texts.filter(bool)


def patterns(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    ranges = st.builds(Range, numbers, numbers, st.booleans()) | st.builds(
        Range, strings, strings, st.booleans()
    )
    sets_ = st.lists(values, min_size=1, max_size=3).map(lambda found: OneOf(tuple(found)))
    return st.just(Anything()) | st.just(Nothing()) | st.builds(Constant, values) | sets_ | ranges


visible = st.text(ODD, min_size=1, max_size=8) | words | plain
name_patterns = (
    st.just(Anything())
    | st.just(Nothing())
    | st.builds(Constant, visible)
    | st.lists(visible, min_size=1, max_size=3).map(lambda found: OneOf(tuple(found)))
    | st.builds(Range, visible, visible, st.booleans())
)
descriptions = st.builds(
    DataDescription, name_patterns, patterns(numbers | texts | st.booleans()), name_patterns
)
restrictions = st.builds(Restriction, plain | words | odd_names, name_patterns, st.booleans())
punctuations = st.builds(
    s.InsertSP, st.none() | names, names, descriptions, restrictions, st.booleans(), st.booleans()
) | st.builds(
    s.InsertSP,
    st.none() | names,
    names,
    st.just(DataDescription()),
    restrictions,
    st.booleans(),
    st.just(False),
    texts,
)
queries = st.sampled_from(
    ["SELECT a FROM b", "SELECT ';' AS x FROM b -- c\n WHERE a = 1", "SELECT a FROM (SELECT b FROM c) d"]
)

statements = st.one_of(
    st.builds(s.CreateStream, names, definition_lists, options),
    st.builds(s.CreateStream, names, st.just(()), options, queries.map(s.QueryText)),
    st.builds(s.CreateRole, names, st.just(()) | unique_names),
    st.builds(s.CreateUser, names, st.just(()) | unique_names, st.just(()) | profiles, st.none() | follows),
    st.builds(
        s.SetFact, names, fact_args, scalars | sets | polygons | st.builds(s.FromFile, texts), st.booleans()
    ),
    grants(),
    st.builds(s.CreateSP, names, names, descriptions, restrictions, st.booleans(), st.booleans()),
    punctuations,
    st.builds(
        s.AlterUser,
        names,
        st.one_of(
            profiles.map(s.SetProfile),
            names.map(s.AddRole),
            names.map(s.DropRole),
            st.booleans().map(s.SetDisabled),
            follows,
        ),
    ),
    st.builds(
        s.AlterStream,
        names,
        st.one_of(
            definitions.map(s.AddAttribute),
            names.map(s.DropAttribute),
            options.filter(lambda found: found != s.StreamOptions()),
        ),
    ),
    st.builds(s.AlterRole, names, st.just(()) | unique_names),
    st.builds(s.Drop, st.sampled_from(s.ObjectKind), names, st.booleans()),
    st.builds(s.DropFact, names, fact_args),
    st.builds(s.CreatePolicy, st.builds(s.Name, texts), st.builds(s.PolicyText, texts), st.booleans()),
    st.builds(s.SetClock, st.integers(-(10**15), 10**16)),
    st.just(s.Begin()),
    st.just(s.Commit()),
)


@settings(max_examples=400)
@given(statements)
def test_a_printed_statement_is_the_same_statement(statement: s.Statement) -> None:
    text = print_statement(statement)
    assert parse_statement(text) == statement, text


@settings(max_examples=50)
@given(st.lists(statements, max_size=4))
def test_printed_statements_stay_apart(found: list[s.Statement]) -> None:
    assert parse_statements(SourceText("<printed>", print_statements(found))) == found
