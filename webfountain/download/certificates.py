"""Verification of sites' certificates against the system's authorities, as in browsers, for collections that require
it.

Without verification, anyone on the network path can change a page. With it, the crawl loses pages behind an expired
certificate, or behind a server that omits an intermediate certificate (which a browser finds elsewhere).
"""

from __future__ import annotations

import logging
import ssl

__all__ = ["check_certificates"]

logger = logging.getLogger(__name__)


def check_certificates(context: ssl.SSLContext) -> None:
    """Make a TLS client context require a valid certificate that names the host.

    The authorities are those of the system, or those that SSL_CERT_FILE and SSL_CERT_DIR name; where there are none,
    as in small containers, certifi's.
    """
    context.check_hostname = True
    context.verify_mode = ssl.CERT_REQUIRED
    paths = ssl.get_default_verify_paths()
    if paths.cafile is not None or paths.capath is not None:
        context.load_default_certs()
        return
    import certifi  # noqa: PLC0415  where the system has authorities nobody needs it

    logger.warning("The system has no certificate authorities; certifi's are used")
    context.load_verify_locations(certifi.where())
