"""Prose-like text for generated pages. Each passage is made once and shared by all pages of a web."""

from __future__ import annotations

import re
from random import Random

__all__ = ["Prose"]


def _words(text: str) -> list[str]:
    return text.split()


_ADJECTIVES = _words(
    "quiet amber brittle careful distant early faint gentle hollow idle keen lively mellow narrow open patient "
    "quick remote steady tender upper vivid warm young ancient bitter clear damp eager formal golden humble "
    "inner joint local modest naïve ordered plain rapid"
)


_NOUNS = _words(
    "river market harbour window engine garden letter bridge forest signal copper theatre valley journal lantern "
    "kitchen orchard station compass library meadow captain village painter summer winter shadow bakery ladder "
    "mirror needle office pocket quarry ribbon saddle tunnel velvet whistle archive barrel candle dialect ember "
    "fountain glacier hammer island jacket kettle lemon mountain notebook ocean pigeon café"
)


_VERBS = _words(
    "follows carries measures hides answers crosses gathers paints repeats shelters weighs borrows counts divides "
    "explains finds guards holds invites joins keeps leaves mends names opens prints questions remembers settles "
    "teaches unites visits watches yields admires builds"
)


_PLACES = _words("near beyond under beside above behind within across along toward before after without against")


_OPENINGS = _words(
    "The A Every One Another This Perhaps|the Sometimes|a Today|the Slowly|every Once|a Again|the Often|one"
)


class Prose(dict[int, bytes]):
    """Numbered passages of about `length` bytes. Equal seeds give equal passages."""

    def __init__(self, seed: int, *, length: int = 250) -> None:
        super().__init__()
        self._seed, self._length = seed, length

    def __missing__(self, number: int) -> bytes:
        passage = self[number] = self._passage(Random(f"{self._seed} {number}"), self._length).encode()
        return passage

    def _passage(self, rng: Random, length: int) -> str:
        sentences = [_sentence(rng)]
        size = len(sentences[0])
        while size + 35 < length:
            sentences.append(_sentence(rng))
            size += 1 + len(sentences[-1])
        return " ".join(sentences)

    @staticmethod
    def title(draw: int) -> str:
        """Return three words chosen by a 64-bit draw, like ``Quiet river of letters``."""
        draw, a = divmod(draw, len(_ADJECTIVES))
        draw, b = divmod(draw, len(_NOUNS))
        return f"{_ADJECTIVES[a].capitalize()} {_NOUNS[b]} {_PLACES[draw % 14]} the {_NOUNS[draw // 14 % len(_NOUNS)]}"

    @staticmethod
    def slug(draw: int) -> str:
        """Return a folder and a name for a path, ASCII only, like ``/harbour/patient-signal``."""
        draw, a = divmod(draw, len(_ADJECTIVES) - 7)
        draw, b = divmod(draw, len(_NOUNS) - 1)
        adjective = _ADJECTIVES[a].replace("ï", "i")
        return f"/{_NOUNS[draw % 12]}/{adjective}-{_NOUNS[b]}"


def _sentence(rng: Random) -> str:
    """Return a sentence of about 70 bytes."""
    opening = rng.choice(_OPENINGS).replace("|", " ")
    subject = f"{opening} {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)}"
    deed = f"{rng.choice(_VERBS)} the {rng.choice(_NOUNS)}"
    place = f"{rng.choice(_PLACES)} a {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)}"
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", f"{subject} {deed} {place}.")
