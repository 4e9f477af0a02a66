"""A certificate of another name is warned of, once for each host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.crawl.test_download_handler import answered, ask
from tests.download.peers import ok, tls_of
from webfountain.crawl.certificate_names import CertificateNames

if TYPE_CHECKING:
    from pathlib import Path


def test_a_certificate_of_another_name_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    response = answered(ok(b"1"), ask, tls=tls_of(tmp_path, "elsewhere.test"))
    assert response.status == 200
    assert 'Remote certificate is not valid for hostname "' in caplog.text


@pytest.mark.parametrize(("host", "warnings"), [("elsewhere.test", 0), ("127.0.0.1", 1), ("other.test", 1)])
def test_each_host_is_checked_once(tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, warnings: int) -> None:
    response = answered(ok(b"1"), ask, tls=tls_of(tmp_path, "elsewhere.test"))
    caplog.clear()
    names, asked = CertificateNames(), []

    def certificate() -> Any:
        asked.append(host)
        return response.certificate

    for _ in range(3):
        names.check(host, certificate)
    assert caplog.text.count("is not valid for hostname") == warnings
    assert len(asked) == 1
