"""Encoded values of every family, with headers as short and as long as the format allows, for hypothesis to draw."""

from __future__ import annotations

from hypothesis import strategies as st


def _with_length(heads: dict[int, int], between: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda head, middle, payload: bytes((head,)) + len(payload).to_bytes(heads[head], "big") + middle + payload,
        st.sampled_from(sorted(heads)),
        between,
        st.binary(max_size=40),
    )


def _number(head: int, width: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=width, max_size=width).map(lambda number: bytes((head,)) + number)


_NOTHING = st.just(b"")
_ATOMS = st.one_of(
    st.sampled_from([bytes((head,)) for head in (*range(0x80), 0xC0, 0xC2, 0xC3, *range(0xE0, 0x100))]),
    *[_number(head, width) for head, width in zip(range(0xCA, 0xD4), (4, 8, 1, 2, 4, 8, 1, 2, 4, 8), strict=True)],
    *[_number(head, width) for head, width in zip(range(0xD4, 0xD9), (2, 3, 5, 9, 17), strict=True)],
    st.binary(max_size=31).map(lambda text: bytes((0xA0 | len(text),)) + text),
    _with_length({0xD9: 1, 0xDA: 2, 0xDB: 4}, _NOTHING),
    _with_length({0xC4: 1, 0xC5: 2, 0xC6: 4}, _NOTHING),
    _with_length({0xC7: 1, 0xC8: 2, 0xC9: 4}, st.binary(min_size=1, max_size=1)),
)


def array_header(count: int, width: int) -> bytes:
    """Return the header of an array of `count` elements; `width` is 0 for the short form, else 2 or 4 bytes."""
    if not width:
        return bytes((0x90 | count,))
    return bytes((0xDC if width == 2 else 0xDD,)) + count.to_bytes(width, "big")


def map_header(count: int, width: int) -> bytes:
    """Return the header of a map of `count` pairs, in the way of array_header()."""
    if not width:
        return bytes((0x80 | count,))
    return bytes((0xDE if width == 2 else 0xDF,)) + count.to_bytes(width, "big")


def _containers(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    widths = st.sampled_from((0, 2, 4))
    arrays = st.builds(
        lambda parts, width: array_header(len(parts), width) + b"".join(parts), st.lists(inner, max_size=15), widths
    )
    maps = st.builds(
        lambda pairs, width: map_header(len(pairs), width) + b"".join(key + value for key, value in pairs),
        st.lists(st.tuples(inner, inner), max_size=8),
        widths,
    )
    return arrays | maps


encoded_values = st.recursive(_ATOMS, _containers, max_leaves=12)
"""One well-formed value each, in any of its encodings."""

bodies = st.builds(
    lambda parts, width: array_header(len(parts), width) + b"".join(parts),
    st.lists(encoded_values, min_size=1, max_size=9),
    st.sampled_from((0, 2, 4)),
)
"""Well-formed bodies of frames, each one array that is not empty."""


@st.composite
def mutated_bodies(draw: st.DrawFn) -> bytes:
    """Draw a body that was well-formed until some of its bytes were changed, cut out or put in."""
    body = bytearray(draw(bodies))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(body)))
        # Heads of values are what makes a difference; half of all bytes are numbers and strings.
        byte = draw(st.integers(0, 255) | st.integers(0x80, 0xDF))
        match draw(st.sampled_from(("change", "cut out", "put in", "truncate"))):
            case "change" if at < len(body):
                body[at] = byte
            case "cut out":
                del body[at : at + draw(st.integers(1, 4))]
            case "put in":
                body.insert(at, byte)
            case "truncate":
                del body[at:]
    return bytes(body)
