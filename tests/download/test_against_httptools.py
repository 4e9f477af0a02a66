"""Our reader of HTTP beside llhttp, which Node.js and httptools use: what is read differently, and why.

Where llhttp takes a response we read the same status, headers and body, or refuse it (`NOT_TAKEN`). What llhttp
refuses and we take is what browsers take (`TAKEN`): each entry has its reason. A difference that stands in neither
list fails here.
"""

from __future__ import annotations

from typing import NamedTuple

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.download.bad_response import BadResponse
from webfountain.download.http_reader import ResponseReader

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

TAKEN: dict[str, tuple[bytes, str]] = {
    "Invalid header token": (OK + b"no colon here\r\n\r\nx", "a line that is no header is skipped, as browsers do"),
    "Invalid header field char": (b"HTTP/1.1 200 OK\r\n\nx", "the empty line may end with LF alone"),
    "Invalid header value char": (OK + b"X: a\x01b\r\n\r\nx", "kept; with a CR or NUL the line is skipped"),
    "Missing expected CR after header value": (OK + b"A: 1\nB: 2\r\n\r\nx", "a line may end with LF alone"),
    "Missing expected CR after response line": (b"HTTP/1.1 200 OK\nA: 1\r\n\r\nx", "as above"),
    "Missing expected LF after header value": (OK + b"A: 1\rB\r\n\r\nx", "the line is skipped"),
    "Missing expected CR after chunk": (CHUNKED + b"1\nx\n0\n\n", "a line may end with LF alone"),
    "Expected LF after CR": (b"HTTP/1.1 200 O\rK\r\n\r\nx", "the reason phrase means nothing"),
    "Expected LF after headers": (OK + b"\rA: 1\r\n\r\nx", "the line is skipped"),
    "Expected LF after chunk size": (CHUNKED + b"1;a=b\rc\r\nx\r\n0\r\n\r\n", "chunk extensions mean nothing"),
    "Invalid character in chunk extensions": (CHUNKED + b"1;\r\nx\r\n0\r\n\r\n", "chunk extensions mean nothing"),
    "Unexpected space after start line": (OK + b" folded\r\nA: 1\r\n\r\nx", "a fold of nothing is skipped"),
    "Unexpected whitespace after header value": (OK + b"A: 1\r\n 2\r\n\r\nx", "folded lines are joined (RFC 9112 5.2)"),
    "Expected space after version": (b"HTTP/1.1\t200 OK\r\n\r\nx", "blanks are blanks"),
    "Invalid status code": (b"HTTP/1.1  200 OK\r\n\r\nx", "blanks are blanks"),
    "Invalid response status": (b"HTTP/1.1 200\tOK\r\n\r\nx", "blanks are blanks"),
    "Invalid HTTP version": (b"HTTP/1.5 200 OK\r\n\r\nx", "a later 1.x is read as 1.1 (RFC 9110 section 2.5)"),
    "Duplicate Content-Length": (
        OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        "equal ones are one",
    ),
    "Invalid character in Content-Length": (OK + b"Content-Length: 1, 1\r\n\r\nx", "equal ones are one"),
    "Content-Length can't be present": (
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "chunked wins (RFC 9112 section 6.3), the connection is not used again",
    ),
    "Transfer-Encoding can't be present": (
        OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "as above",
    ),
    "Empty Content-Length": (OK + b"Content-Length:\r\n\r\nx", "says nothing, as in browsers"),
    "Empty Transfer-Encoding": (OK + b"Transfer-Encoding:\r\n\r\nx", "says nothing, as in browsers"),
    "Data after `Connection: close`": (
        b"HTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\n" + OK + b"\r\nx",
        "the final response counts",
    ),
}
"""What llhttp refuses, by the beginning of its message: an example that we take as a page "x", and why."""

NOT_TAKEN: list[tuple[bytes, str, str]] = [
    (
        OK + b"Transfer-Encoding: \xa0chunked\r\n\r\nx",
        "bad-response",
        "no coding of that name: nobody can read it",
    ),
    (OK + b"Transfer-Encoding: gzip\r\n\r\nx", "bad-response", "we offer none, and would take packed bytes for a page"),
    (OK + b"Transfer-Encoding: chunked, gzip\r\n\r\nx", "bad-response", "as above"),
    (
        OK + b"Transfer-Encoding: chunked,\r\n\r\nx\r\n",
        "bad-response",
        "an empty member is none; x is no size",
    ),
    (OK + b"Transfer-Encoding: chunked\t\r\n\r\nx\r\n", "bad-response", "a tab is a blank; x is no size"),
    (b"HTTP/1.1 000 Zero\r\n\r\nx", "bad-response", "no status is below 100"),
]
"""What llhttp takes and we refuse, the word, and why."""


class ReadResponse(NamedTuple):
    """What a parser made of bytes that end with the connection: a page, or why there is none."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    refusal: str = ""


CUT = ReadResponse(0, refusal="cut")


def ours(data: bytes) -> ReadResponse:
    reader = ResponseReader()
    try:
        body = reader.feed(data)
        reader.eof()
    except BadResponse as bad:
        return ReadResponse(0, refusal=bad.word)
    assert reader.status is not None
    return ReadResponse(reader.status, tuple(reader.headers), body)


class _Events:
    """What llhttp calls back. Headers after the body are trailers, which nobody reads."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.chunked = False
        self.body = b""
        self.read: ReadResponse | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status is None:
            self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")))
            if name.lower() == b"transfer-encoding":
                self.chunked = value.lower().rpartition(b",")[2].strip(b" ") == b"chunked"

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        if self.status is not None and 100 <= self.status < 200:
            self.status, self.headers = None, []
        elif self.read is None and self.status is not None:
            self.read = ReadResponse(self.status, tuple(self.headers), self.body)

    def at_end(self) -> ReadResponse:
        framed = self.chunked or "content-length" in dict(self.headers)
        return CUT if self.status is None or framed else ReadResponse(self.status, tuple(self.headers), self.body)


def llhttp(data: bytes) -> ReadResponse:
    received = _Events()
    try:
        received.parser.feed_data(data)
    except httptools.HttpParserError as error:
        return received.read or ReadResponse(0, refusal=str(error))
    return received.read or received.at_end()


@pytest.mark.parametrize("message", TAKEN)
def test_what_llhttp_refuses_and_browsers_take_is_taken(message: str) -> None:
    example, _ = TAKEN[message]
    assert llhttp(example).refusal.startswith(message)
    assert (ours(example).status, ours(example).body) == (200, b"x")


@pytest.mark.parametrize(("example", "word", "_why"), NOT_TAKEN)
def test_what_llhttp_takes_and_nobody_could_read_is_refused(example: bytes, word: str, _why: str) -> None:
    assert not llhttp(example).refusal
    assert ours(example).refusal == word


CORPUS = [
    OK + b"Content-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
    CHUNKED + b"3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n',
    OK + b"Connection: keep-alive\r\nA: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok",
    *(example for example, _ in TAKEN.values()),
    *(example for example, _, _ in NOT_TAKEN),
]
TOKENS = [b"", *(b" \t\r\n\xa0\x0b\x85\0:,;-+05f"[i : i + 1] for i in range(18)), b"\r\n", b"chunked", b"identity"]
TOKENS += [b"gzip", b"close", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Connection: close\r\n", OK]
_CHANGES = st.lists(st.tuples(st.integers(0, 200), st.sampled_from([0, 0, 1, 3]), st.sampled_from(TOKENS)), max_size=3)


@given(st.sampled_from(CORPUS), _CHANGES)
def test_mutated_responses_are_read_as_llhttp_reads_them_or_for_a_reason(
    data: bytes, changes: list[tuple[int, int, bytes]]
) -> None:
    for at, cut, token in changes:
        data = data[:at] + token + data[at + cut :]
    mine, theirs = ours(data), llhttp(data)
    if mine.refusal:
        if not theirs.refusal:
            assert mine.refusal in ("bad-response", "cut")
            assert theirs.status < 200 or "transfer-encoding" in dict(theirs.headers), data
    elif theirs.refusal == "cut":
        assert dict(theirs.headers)["transfer-encoding"], data
    elif theirs.refusal:
        assert theirs.refusal.startswith(tuple(TAKEN)), (theirs.refusal, data)
    elif not dict(mine.headers).get("transfer-encoding"):
        assert mine == theirs, data
