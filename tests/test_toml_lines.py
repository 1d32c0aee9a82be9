"""Each key of a TOML file is found at its line, whatever stands around it."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from skywalker.toml_lines import MOST_LINES, lines

VALUES = st.sampled_from(
    [
        "1",
        "true",
        '"a # b"',
        '"[t]"',
        "'''\n[no.table]\nkey = 1\n'''",
        '"""\nx = \\"\\"\\"\n= 2"""',
        "[\n  1, # [x]\n  2,\n]",
        "[]",
        '["]", "["]  # ]',
        "1979-05-27",
        "[[1], [\n2]]",
    ]
)
KEYS = st.sampled_from(["{}", '"{}"', "'{}'", "  {}", "{} "])
BETWEEN = st.lists(st.sampled_from(["", "# comment = 1", "  # [table]", "\t"]), max_size=3)


@given(st.lists(st.tuples(BETWEEN, st.booleans(), KEYS, VALUES), max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_a_key_is_where_it_begins(entries: list[tuple[list[str], bool, str, str]], end: str) -> None:
    text: list[str] = []
    expected: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, (between, opens, form, value) in enumerate(entries):
        text += between
        if opens:
            table = ("t", f"a b{number}")
            expected.setdefault(("t",), len(text) + 1)
            expected[table] = len(text) + 1
            text.append(f'[ t . "a b{number}" ] # here')
        expected[*table, f"k{number}"] = len(text) + 1
        text += f"{form.format(f'k{number}')} = {value}".split("\n")
    written = end.join(text)
    tomllib.loads(written)
    assert lines(written) == expected


def test_dotted_keys_and_tables_in_a_line_have_a_line_for_each_part() -> None:
    assert lines('a.b = 1\na.c = { d = 1 }\n[[e]]\nf = 1\n[[e]]\nf = 2\n["x.y"]\nz = 1') == {
        ("a",): 1,
        ("a", "b"): 1,
        ("a", "c"): 2,
        ("a", "c", "d"): 2,
        ("e",): 3,
        ("e", "f"): 4,
        ("x.y",): 7,
        ("x.y", "z"): 8,
    }


def test_behind_a_statement_of_very_many_lines_no_more_is_told() -> None:
    found = lines("a = 1\nb = [\n" + "1,\n" * MOST_LINES + "]\nc = 1\n")
    assert found == {("a",): 1}
