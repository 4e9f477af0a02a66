"""Read the text of the stored copy of a page, with which a new body is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.errors import RepositoryError
from webfountain.formats.media_type import content_type

if TYPE_CHECKING:
    from webfountain.formats.document import DocumentReader
    from webfountain.records import PageRecord
    from webfountain.repository.repository import Repository

__all__ = ["old_text"]


def old_text(repository: Repository | None, reader: DocumentReader, record: PageRecord) -> str | None:
    """Return the text of a page's newest stored copy; None if there is none, or it is lost or cannot be read."""
    if repository is None or record.copy is None:
        return None
    try:
        stored = repository.read(record.copy, record.url)
    except RepositoryError:
        return None
    document = reader.read(stored.body, content_type(stored.headers))
    return None if document.error is not None else document.text
