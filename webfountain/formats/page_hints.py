"""Hints that a copy is incomplete, because scripts draw the page, or the page asks for a login or consent.

A page with enough text gets no hint, even with a login form or a cookie banner. A hint does not change the crawl: it is
only counted and stored in the page's record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webfountain.urls import host_of, site_of

if TYPE_CHECKING:
    from webfountain.records import Hint

__all__ = ["MAX_HINTED_TEXT", "hint_of_page", "hint_of_redirect"]

MAX_HINTED_TEXT: Final = 2000
"""Maximum length of a text that is searched for hints, in characters."""
_SHORT_TEXT: Final = 400
"""A page with at least this number of visible characters gets no hint."""
_SEARCHED_BYTES: Final = 50_000
"""Number of bytes at the start of a body that are searched for hints."""
_PASSWORD: Final = re.compile(rb"<input\b[^>]{0,200}\btype\s*=\s*[\"']?password\b", re.IGNORECASE)
_SCRIPT: Final = re.compile(rb"<script\b", re.IGNORECASE)
_EMPTY_ROOT: Final = re.compile(
    rb"<(?:div|main|body)\b[^>]{0,100}\bid\s*=\s*[\"']?(?:root|app|__next|__nuxt|___gatsby|svelte|q-app|main-app)\b"
    rb"[^>]{0,100}>\s{0,20}</|<(?:app-root|ion-app)\b[^>]{0,100}>\s{0,20}</",
    re.IGNORECASE,
)
"""Pattern of an empty element into which a common JavaScript framework will draw the page."""
_NOSCRIPTS: Final = 3
_NOSCRIPT_BYTES: Final = 1000
"""Maximum number of bytes read from each of the first `_NOSCRIPTS` noscript elements."""
_CONSENT: Final = re.compile(
    r"before you continue|we value your privacy|accept (?:all )?cookies|consent to|alle akzeptieren"
    r"|zustimmen und weiter|accepter et continuer|tout accepter|aceptar todo|accetta tutto",
    re.IGNORECASE,
)
_CONSENT_FORM: Final = re.compile(rb"<(?:form|button|iframe)\b[^>]{0,200}consent|sp_message_container", re.IGNORECASE)
_LOGIN_WORDS: Final = frozenset({"login", "log-in", "signin", "sign-in", "sign_in", "sso", "wp-login.php", "login.php"})
_CONSENT_WORDS: Final = frozenset({"consent", "cookie-consent", "cookiewall", "privacywall", "privacy-gate"})


def hint_of_page(body: bytes, text: str) -> Hint | None:
    """Return the hint for a page from its body and visible text, or None."""
    visible = text.strip()
    if len(visible) >= _SHORT_TEXT:
        return None
    begin = body[:_SEARCHED_BYTES]
    if _PASSWORD.search(begin):
        return "login"
    if _CONSENT.search(visible) and _CONSENT_FORM.search(begin):
        return "consent"
    if _SCRIPT.search(begin) and (_EMPTY_ROOT.search(begin) or _asks_for_scripts(begin)):
        return "javascript"
    return None


def _asks_for_scripts(body: bytes) -> bool:
    """Return whether a page tells browsers without scripts that it needs JavaScript."""
    low, at = body.lower(), 0
    for _ in range(_NOSCRIPTS):
        at = low.find(b"<noscript", at)
        if at < 0:
            return False
        if b"javascript" in low[at : at + _NOSCRIPT_BYTES].partition(b"</noscript")[0]:
            return True
        at += 1
    return False


def hint_of_redirect(target: str) -> Hint | None:
    """Return the hint for a redirect, from words such as "login" in the path or host of its target."""
    site = site_of(target)
    steps = set(target[len(site) :].partition("?")[0].lower().strip("/").split("/"))
    if steps & _LOGIN_WORDS or host_of(site).split(".")[0] in ("login", "sso", "accounts"):
        return "login"
    if steps & _CONSENT_WORDS or host_of(site).split(".")[0] == "consent":
        return "consent"
    return None
