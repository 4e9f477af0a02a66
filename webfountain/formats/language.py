"""Detect a page's language from its letters, from frequent words, and from its declaration.

Some writing systems, such as Greek and Thai, are enough to identify the language. Languages that share a writing system
are told apart by their stop words. The declared language (``lang``) counts only for very short texts, because many
declarations are wrong.
"""

# ruff: noqa: RUF001  (letters of other scripts are what this is about)
from __future__ import annotations

import re
from collections import Counter
from typing import Final

__all__ = ["LANGUAGES", "language_of"]

_WORDS: Final = {
    "bg": "и на да се не за от по че със или това като но ще към при са който беше има",
    "cs": "a se na je že v s z do o i jako ale by k si po jsou pro které nebo byl až od ve",
    "da": "og i at det er en til på som af for ikke med der de den har var et om hun efter vi også blev",
    "de": "und die der in zu den das nicht von sie ist des sich mit dem dass er es ein ich auf so eine auch als",
    "en": "the of and to a in that is was he for it with as his on be at by i this had not are but from or",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya este",
    "fi": "ja on ei että se hän oli joka mutta kun niin myös tai mitä ovat kuin vain sen sekä ole olla",
    "fr": "de la le et les des en un une du que est pour qui dans par pas au sur ne plus ce il sont avec se ou son",
    "hu": "a az és hogy nem is egy ez volt de csak már meg mint el még azt van ha vagy ki be",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena ada oleh atau sebagai",
    "it": "di e il la che in un a per è del non una si con i da le dei sono al come della ha più gli anche",
    "nl": "de en het van ik te dat die in een hij niet zijn is was op aan met als voor had er maar om hem dan zou ook",
    "no": "og i det er på som en for å at til med han av ikke jeg har de den var et ved fra ble kan seg etter også",
    "pl": "i w nie na się z do to że o jest jak za po co ale od jego tym przez był dla są czy tak które",
    "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das à seu",
    "ro": "de și în a la cu pe că nu o un din este să se mai pentru care au fost ce sunt ca prin fi",
    "ru": "и в не на я что он с как это по но они мы она из у за от то так для же все был его только",
    "sv": "och i att det som en på är av för med den till inte han de var ett om men sig så från hade vi kan också",
    "tr": "ve bir bu da de için ile çok o ne gibi daha olarak ama kadar sonra var olan mi en değil her ya ben",
    "uk": "і в не на що з як та до це за від але він його для так у є про вона чи бути або",
    "vi": "và của là có không được cho một với các người trong đã này những tôi để khi đó về",
}
_STOP_WORDS: Final = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_SCRIPTS: Final = (
    ("ja", re.compile("[\u3041-\u30ff]")),  # Test for kana before Chinese characters, because Japanese uses both.
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
LANGUAGES: Final = frozenset(_WORDS) | {language for language, _ in _SCRIPTS}
"""Languages that can be detected, ISO 639-1."""

_SAMPLE: Final = 8_000
"""Number of characters that are examined in a text."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_FEWEST_WORDS: Final = 12
_LEAST_SHARE: Final = 0.12
"""Minimum share of a language's stop words in a text of this language. In real prose, the share of stop words is 0.3 to
0.5.
"""
_MARGIN: Final = 1.15
"""Minimum ratio between the numbers of stop words of the best and of the second-best language."""
_OWN_SCRIPT: Final = 0.2
"""A writing system decides the language if more than this share of the letters belong to it."""


def language_of(text: str, declared: str | None = None) -> str | None:
    """Return the ISO 639-1 code of a text's language, or None if it is unknown.

    Parameters
    ----------
    declared : the language that the page declares (``de-AT``)
    """
    sample = text[:_SAMPLE]
    return _by_script(sample) or _by_words(sample) or _primary(declared)


def _by_script(text: str) -> str | None:
    letters = sum(map(str.isalpha, text))
    if text.isascii() or letters < _FEWEST_WORDS:
        return None
    many = {language: len(script.findall(text)) for language, script in _SCRIPTS}
    if many["ja"] > 0.05 * letters:
        return "ja"
    language, most = max(many.items(), key=lambda each: each[1])
    return language if most > _OWN_SCRIPT * letters else None


def _by_words(text: str) -> str | None:
    words = Counter(_WORD.findall(text.lower()))
    total = words.total()
    if total < _FEWEST_WORDS:
        return None
    found = {language: sum(words[word] for word in stop_words) for language, stop_words in _STOP_WORDS.items()}
    (language, most), (_, second) = sorted(found.items(), key=lambda each: -each[1])[:2]
    return language if most >= _LEAST_SHARE * total and most >= _MARGIN * second else None


def _primary(declared: str | None) -> str | None:
    found = re.match(r"\s*([A-Za-z]{2,3})(?:[-_]|\s*$)", declared or "")
    return found[1].lower() if found else None
