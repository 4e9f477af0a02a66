"""Log warnings about certificates for another host name, as Scrapy's own download handler for HTTP/1.1 does.

Place in the walk: the download handler calls this module when a request of another project got its answer. By default
Scrapy verifies no certificate, but logs if one is not for the requested host. The crawl continues in any case. Each
host is checked once. Certificates that DOWNLOAD_VERIFY_CERTIFICATES rejects never reach this module.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from service_identity import CertificateError, VerificationError

from webfountain.public_addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from twisted.internet.ssl import Certificate

__all__ = ["CertificateNames"]

logger = logging.getLogger(__name__)


class CertificateNames:
    """The hosts whose certificates were checked in one crawl."""

    def __init__(self) -> None:
        self._checked: set[str] = set()

    def check(self, host: str, certificate_of: Callable[[], Certificate | None]) -> None:
        """Log a warning if the certificate is not for the host, once for each host."""
        if host in self._checked:
            return
        self._checked.add(host)
        certificate = certificate_of()
        if certificate is None:
            return
        # These imports take half a millisecond, which a project without TLS does not need.
        from cryptography.x509 import load_der_x509_certificate  # noqa: PLC0415
        from service_identity import cryptography as names  # noqa: PLC0415

        found = load_der_x509_certificate(certificate.dump())
        try:
            if is_address(host):
                names.verify_certificate_ip_address(found, host)
            else:
                names.verify_certificate_hostname(found, host)
        except (CertificateError, VerificationError) as error:
            logger.warning('Remote certificate is not valid for hostname "%s"; %s', host, error)
