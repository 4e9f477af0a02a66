"""What is written of a fetch, seen by another tool (warcio) and read back by our own reader."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from tests.repository.captures import SITE, capture, sha1, url_of
from webfountain.errors import RepositoryError
from webfountain.formats.page_metadata import PageMetadata, warc_fields
from webfountain.repository.warc_reader import Record, StoredCopy, parse_head, parse_record, parse_unpacked, stored
from webfountain.repository.warc_writer import Capture, Member, WarcWriter

if TYPE_CHECKING:
    from warcio.recordloader import ArcWarcRecord

WRITER = WarcWriter(software="webfountain/1.0")

names = st.text(alphabet=st.characters(max_codepoint=300), max_size=12)
values = st.text(alphabet=st.one_of(st.sampled_from("\r\n\0\x85\xa0é日 :\ud800"), st.characters()), max_size=30)
headers = st.lists(st.tuples(names, values), max_size=6).map(tuple)
clean_names = st.from_regex(r"x-[a-z]{1,8}", fullmatch=True)
clean_values = st.from_regex(r"[!-~]([ -~é]{0,20}[!-~])?", fullmatch=True)
clean = st.lists(st.tuples(clean_names, clean_values), max_size=6).map(tuple)


def read_by_warcio(members: list[Member]) -> list[tuple[ArcWarcRecord, bytes]]:
    """The records as another tool sees them; a digest that does not fit raises."""
    stream = io.BytesIO(b"".join(member.data for member in members))
    return [(r, r.content_stream().read()) for r in ArchiveIterator(stream, check_digests="raise")]


def read_back(members: list[Member]) -> StoredCopy:
    """The response as our own reader sees it."""
    return stored(parse_record(members[0].data))


def base32(body: bytes) -> str:
    """A digest as WARC files have it."""
    return "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()


def test_a_new_body_makes_a_response_and_a_request_that_names_it() -> None:
    """The request is concurrent to the response; both carry the address that was asked and the time."""
    (response, body), (request, _) = read_by_warcio(WRITER.members(capture(body=b"abc", at=1_700_000_000.25)))
    assert (response.rec_type, request.rec_type, body) == ("response", "request", b"abc")
    asked, reported = response.rec_headers, request.rec_headers
    assert reported["WARC-Concurrent-To"] == asked["WARC-Record-ID"] != reported["WARC-Record-ID"]
    assert asked["WARC-Payload-Digest"] == base32(b"abc")
    for fields in (asked, reported):
        assert fields["WARC-IP-Address"] == "127.0.0.1"
        assert fields["WARC-Date"] == "2023-11-14T22:13:20.250000Z"
        assert fields["WARC-Target-URI"] == url_of(0)
        assert fields.protocol == "WARC/1.1"
    assert request.http_headers.protocol == "GET"
    assert request.http_headers.statusline == "/page-0 HTTP/1.1"


def test_a_repeated_body_makes_a_revisit_that_names_the_copy() -> None:
    """Profile identical-payload-digest, with the digest and the date of the record that has the body."""
    members = WRITER.members(capture(body=b"abc", digest=sha1(b"abc"), repeats=1_600_000_000.5))
    (revisit, body), (request, _) = read_by_warcio(members)
    assert (revisit.rec_type, request.rec_type, body) == ("revisit", "request", b"")
    assert revisit.rec_headers["WARC-Profile"].endswith("/1.1/revisit/identical-payload-digest")
    assert revisit.rec_headers["WARC-Refers-To-Date"] == "2020-09-13T12:26:40.500000Z"
    assert revisit.rec_headers["WARC-Refers-To-Target-URI"] == url_of(0)
    assert revisit.rec_headers["WARC-Payload-Digest"] == base32(b"abc")
    assert revisit.http_headers.get_statuscode() == "200"


def test_not_modified_makes_a_revisit_of_its_own_profile_that_players_show_as_the_copy() -> None:
    """Where a revisit has a head of its own, pywb shows that: an empty page for a 304. Without one it takes head and
    body of the record that date and digest name."""
    members = WRITER.members(capture(body=b"", status=304, digest=sha1(b"abc"), repeats=1_600_000_000.5))
    (revisit, body), _ = read_by_warcio(members)
    fields = revisit.rec_headers
    assert (revisit.rec_type, fields["Content-Length"], body) == ("revisit", "0", b"")
    assert not revisit.http_headers
    assert fields["WARC-Profile"].endswith("/1.1/revisit/server-not-modified")
    assert fields["WARC-Payload-Digest"] == base32(b"abc")
    assert fields["WARC-Refers-To-Date"] == "2020-09-13T12:26:40.500000Z"
    assert fields["WARC-Refers-To-Target-URI"] == url_of(0)


def test_not_modified_is_a_revisit_even_when_nothing_is_known_of_the_copy() -> None:
    (revisit, _), _ = read_by_warcio(WRITER.members(capture(body=b"", status=304)))
    assert revisit.rec_headers["WARC-Profile"].endswith("/1.1/revisit/server-not-modified")
    assert revisit.rec_headers["WARC-Payload-Digest"] is None


def test_a_fetch_without_an_answer_makes_no_record() -> None:
    """Errors are the store's to know, not the archive's."""
    assert WRITER.members(capture(status=None)) == []


def test_a_body_is_stored_decoded_and_its_encodings_are_renamed() -> None:
    """Other tools would unpack it a second time, or wait for chunks."""
    sent = (("content-encoding", "gzip"), ("transfer-encoding", "chunked"), ("content-length", "7"), ("etag", '"1"'))
    (response, body), _ = read_by_warcio(WRITER.members(capture(body=b"decoded body", headers=sent)))
    http = response.http_headers
    assert body == b"decoded body"
    assert http["Content-Length"] == "12"
    assert http["Content-Encoding"] is http["Transfer-Encoding"] is None
    assert http["X-Archive-Orig-Content-Encoding"] == "gzip"
    assert http["X-Archive-Orig-Transfer-Encoding"] == "chunked"
    assert http["X-Archive-Orig-Content-Length"] == "7"
    assert http["ETag"] == '"1"'


def test_secrets_of_a_request_are_not_archived() -> None:
    """Cookies and passwords belong to who crawls, not to who reads the archive."""
    secret = (("Cookie", "s=1"), ("authorization", "Basic eA=="), ("accept", "*/*"))
    _, (request, _) = read_by_warcio(WRITER.members(capture(request=secret)))
    assert [name.lower() for name, _ in request.http_headers.headers] == ["host", "accept"]


def test_a_method_that_other_tools_refuse_leaves_the_request_out() -> None:
    """One unknown word would make every tool stop at that record."""
    assert [member.kind for member in WRITER.members(capture(method="BREW\r\nX: 1"))] == ["response"]
    assert read_by_warcio(WRITER.members(capture(method="POST")))[1][0].http_headers.protocol == "POST"


@given(headers=headers, request=headers, url=st.text(max_size=20), address=st.none() | values)
@settings(max_examples=150, deadline=None)
def test_hostile_texts_neither_break_a_record_nor_invent_a_header(
    headers: tuple[tuple[str, str], ...], request: tuple[tuple[str, str], ...], url: str, address: str | None
) -> None:
    """One header line per header that was sent, whatever its text; the body and its digest stay whole."""
    made = capture(f"{SITE}/{url}", b"body\r\n\r\nWARC/1.1\r\n", headers=headers, request=request, address=address)
    members = WRITER.members(made)
    (response, body), (asked, _) = read_by_warcio(members)
    assert body == b"body\r\n\r\nWARC/1.1\r\n"
    assert len(response.http_headers.headers) == len(headers) + 1
    private = sum(name.lower() in {"cookie", "authorization", "proxy-authorization"} for name, _ in request)
    host = any(name.lower() == "host" for name, _ in request)
    assert len(asked.http_headers.headers) == len(request) - private + (not host)
    assert read_back(members).body == body
    fields = {name for name, _ in response.rec_headers.headers}
    assert fields <= {
        "WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Target-URI", "WARC-IP-Address", "WARC-Payload-Digest",
        "X-Webfountain-Key", "Content-Type", "WARC-Block-Digest", "Content-Length",
    }  # fmt: skip


def test_a_value_that_holds_a_whole_clean_line_invents_no_header() -> None:
    """Each line of it is well-formed: only their number gives it away."""
    (response, _), _ = read_by_warcio(WRITER.members(capture(headers=(("a", "b\r\nx-evil: 1"),))))
    assert response.http_headers.headers == [("a", "b x-evil: 1"), ("content-length", "12")]


@given(headers=clean, body=st.binary(max_size=300), status=st.integers(100, 599).filter(lambda s: s != 304))
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read_back(headers: tuple[tuple[str, str], ...], body: bytes, status: int) -> None:
    """Status, headers in order, body, time and URL."""
    made = capture(body=body, headers=headers, status=status, at=1_700_000_000.123457)
    found = read_back(WRITER.members(made))
    assert (found.url, found.status, found.body) == (url_of(0), status, body)
    assert found.headers == (*headers, ("content-length", str(len(body))))
    assert found.at == pytest.approx(1_700_000_000.123457, abs=1e-6)


def test_a_response_says_which_page_of_the_store_it_is() -> None:
    """Another project's keys are not derived from the URL: the record carries the key."""
    member = WRITER.members(capture(key=b"\x00\xff345678"))[0]
    assert parse_head(member.data).page == (SITE, b"\x00\xff345678")
    assert parse_record(member.data).page == (SITE, b"\x00\xff345678")


@pytest.mark.parametrize("cut", [0, 1, 50])
def test_a_cut_head_is_refused(cut: int) -> None:
    """The first bytes must hold the whole WARC header."""
    with pytest.raises(ValueError, match=r"."):
        parse_head(WRITER.members(capture())[0].data[:cut])


def test_no_damaged_byte_goes_unnoticed() -> None:
    """Each byte flipped in turn: an error, or (in gzip's own unused fields) the same record."""
    data = WRITER.members(capture(body=b"some body"))[0].data
    whole = parse_record(data)
    unnoticed = []
    for index in range(len(data)):
        hurt = data[:index] + bytes([data[index] ^ 0x55]) + data[index + 1 :]
        with contextlib.suppress(RepositoryError):
            assert parse_record(hurt) == whole
            unnoticed.append(index)
    assert len(unnoticed) <= 6


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"WARC/1.1\r\nWARC-Type: response\r\n\r\nbody\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: x\r\n\r\nbody\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 4\r\n\r\nbod\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 4\r\n\r\nbody more\r\n\r\n",
    ],
)
def test_bytes_that_are_no_record_are_refused(data: bytes) -> None:
    """Another program's file, or one whose lengths do not fit."""
    with pytest.raises(RepositoryError, match="a record is damaged"):
        parse_unpacked(data)


@pytest.mark.parametrize("block", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 ok\r\n\r\n"])
def test_a_response_record_without_an_answer_is_refused(block: bytes) -> None:
    """The text says whose it is."""
    headers = {"warc-type": "response", "warc-date": "2026-11-20T00:00:00Z", "warc-target-uri": "http://a/"}
    with pytest.raises(RepositoryError, match="the response record of http://a/ is damaged"):
        stored(Record(headers, block))


def test_only_a_response_is_a_copy() -> None:
    """A place that names another record is an error, not a strange page."""
    member = WRITER.members(capture())[1]
    with pytest.raises(RepositoryError, match="response record was expected, found 'request'"):
        stored(parse_record(member.data))


def test_record_ids_are_distinct() -> None:
    """Over writers too: files of two crawls may be put together."""
    made: list[Capture] = [capture()] * 50
    members = [m for writer in (WRITER, WarcWriter(software="x")) for c in made for m in writer.members(c)]
    assert len({parse_record(m.data).headers["warc-record-id"] for m in members}) == 200


def test_what_a_page_says_of_itself_is_a_metadata_record_of_its_response() -> None:
    found = PageMetadata("A é\r\nX: y", published=0.0, sources={"title": "meta", "published": "time"})
    fields = warc_fields(msgspec.msgpack.encode(found))
    members = WRITER.members(msgspec.structs.replace(capture(body=b"abc"), metadata=fields))
    response, _, (record, text) = read_by_warcio(members)
    assert (record.rec_type, record.rec_headers["Content-Type"]) == ("metadata", "application/warc-fields")
    assert record.rec_headers["WARC-Target-URI"] == url_of(0)
    assert record.rec_headers["WARC-Concurrent-To"] == response[0].rec_headers["WARC-Record-ID"]
    assert text.decode().splitlines() == [
        "page-title: A é X: y",
        "page-published: 1970-01-01T00:00:00+00:00",
        "page-sources: title meta, published time",
    ]


def test_a_page_that_says_nothing_of_itself_has_no_metadata_record() -> None:
    assert warc_fields(b"") == warc_fields(msgspec.msgpack.encode(PageMetadata())) == []
    assert len(WRITER.members(capture(body=b"abc"))) == 2
