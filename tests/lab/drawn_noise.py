"""A third noisy web: blocks that a server draws for each answer.

This web is kept aside, and nothing is tuned on it. Each of ten sites has its own template. Some noise is in a share of
the answers, with the same words: a consent layer, a newsletter box and a greeting. Other noise differs from answer to
answer: two wordings of a heading and of a button, an advert with a new class, a promotion at any place among the
paragraphs, the stock in a table row, the order of links, and the state of the cache. Some true changes look like noise:
a note that disappears some visits later, and an announcement on all pages of one site for a time.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from webfountain.lab.false_changes import PAGES, SITES, TrueChange, drawn_changes

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BY_HAND", "DrawnNoise"]

BY_HAND: Final = (
    'ignore = ["#consent-layer", ".letter", ".hello", ".lead", ".order", ".unit", ".stock", ".more", ".cache",'
    ' ".live"]\n'
    'ignore_text = ["^Promotion: .*"]\n'
)
_ANNOUNCED: Final = (5, 8)
"""The rounds at which the announcement on all pages of one site appears and disappears."""
_ANNOUNCING_SITE: Final = 4
_VOCABULARY: Final = """
acorn beacon cradle donkey easel flute goblet hornet icicle jigsaw kettle lilac marble napkin otter pepper quilt radish
sponge thimble umbrella violin wagon xylem yarrow zipper almond button cobalt dahlia ermine fennel
"""
_WORDS: Final = tuple(_VOCABULARY.split())


class DrawnNoise:
    """The pages as functions of page, round and time, with the interface of `NoisyWeb`."""

    def __init__(self, seed: int = 301) -> None:
        self._seed = seed
        self._random = Random(seed)
        self.changes = drawn_changes(self._random)
        draw = Random(seed + 1)
        self._texts = [[_words(draw, 30) for _ in range(6)] for _ in range(SITES * PAGES)]
        self._prices = [[draw.randrange(100, 9000) for _ in range(4)] for _ in range(SITES * PAGES)]
        self._live = [_words(draw, 30) for _ in range(SITES * PAGES)]
        self._notes = [""] * (SITES * PAGES)
        self._is_announced = False

    def advance(self, round: int) -> dict[int, list[TrueChange]]:
        """Apply the true changes of a round, and return them by page."""
        found: dict[int, list[TrueChange]] = {}
        for change in (each for each in self.changes if each.round == round):
            self._edit(change)
            found.setdefault(change.page, []).append(change)
        if round in _ANNOUNCED:
            self._is_announced = round == _ANNOUNCED[0]
            for page in range(_ANNOUNCING_SITE * PAGES, (_ANNOUNCING_SITE + 1) * PAGES):
                found.setdefault(page, []).append(TrueChange(page, round, 9, "announcement"))
        return found

    def _edit(self, change: TrueChange) -> None:
        draw, page = self._random, change.page
        if change.place == "price":
            self._prices[page][draw.randrange(4)] += draw.randint(1, 50)
        elif change.place == "live":
            self._live[page] = _edited(self._live[page], change.words, draw)
        elif page % 4 == 0:
            self._notes[page] = "" if self._notes[page] else _words(draw, change.words)
        else:
            place = draw.randrange(6)
            self._texts[page][place] = _edited(self._texts[page][place], change.words, draw)

    def body(self, page: int, at: float) -> bytes:
        """Return a page as its server answers at a time."""
        draw, site = Random(f"drawn {self._seed} {page} {at}"), page // PAGES
        drawn = _DrawnBlocks(draw)
        paragraphs = [f"<p>{text}</p>" for text in self._texts[page]]
        if site in (0, 6) and draw.random() < 0.4:
            paragraphs.insert(draw.randrange(7), f"<p>Promotion: {_WORDS[draw.randrange(5)]} at half the price</p>")
        kinds: list[Callable[[], str]] = [
            drawn.consent,
            drawn.letter,
            drawn.hello,
            drawn.lead,
            drawn.advert,
            drawn.more,
        ]
        top, bottom = (
            "".join(kind() for number, kind in enumerate(kinds) if number % 2 == side and (number + site) % 4)
            for side in (0, 1)
        )
        rows = "".join(f"<tr><td>size {n}<td>{price / 100:.2f}</tr>" for n, price in enumerate(self._prices[page]))
        stock = f"<tr class=stock><td>left<td>{draw.randrange(1, 40)}</tr>" if site % 2 else ""
        note = f'<div class="note"><p>{self._notes[page]}</p></div>' if self._notes[page] else ""
        announcement = (
            "<div class=announcement>Our shop is closed from Monday until the next week</div>"
            if self._is_announced and site == _ANNOUNCING_SITE
            else ""
        )
        live = f"<div class=live>{draw.randrange(2, 90)} carts hold this. {self._live[page]}</div>"
        return (
            f"<!doctype html><html><head><title>Thing {page}</title></head><body>{announcement}"
            f"<header><a href=/>Shop {site}</a></header>{top}<article><h1>Thing {page}</h1>{note}{''.join(paragraphs)}"
            f"<table class=sizes><tr><th>Size<th>Price</tr>{rows}{stock}</table>{drawn.order()}{live}</article>{bottom}"
            f"<footer><p>Imprint</p>{drawn.cache()}</footer></body></html>"
        ).encode()


class _DrawnBlocks:
    """Blocks that are drawn for each answer."""

    def __init__(self, draw: Random) -> None:
        self._draw = draw

    def _sometimes(self, share: float, html: str) -> str:
        return html if self._draw.random() < share else ""

    def consent(self) -> str:
        choices = "".join(f"<li>{name} storage</li>" for name in ("needed", "measured", "shared"))
        return self._sometimes(
            0.5, f"<div id=consent-layer><h2>Your choice</h2><p>We keep data.</p><ul>{choices}</ul></div>"
        )

    def letter(self) -> str:
        return self._sometimes(0.15, "<aside class=letter><p>Read our letter of the week, every week</p></aside>")

    def hello(self) -> str:
        return self._sometimes(0.85, "<p class=hello>Good to see you again, dear visitor</p>")

    def lead(self) -> str:
        return f"<h2 class=lead>{self._draw.choice(('Things that last for years', 'The best of this autumn'))}</h2>"

    def advert(self) -> str:
        return f'<div class="unit u{self._draw.randrange(10**6)}"><b>{_words(self._draw, 7)}</b></div>'

    def more(self) -> str:
        some = self._draw.sample(_WORDS[:6], 4)
        return f"<ul class=more>{''.join(f'<li><a href=/{word}>{word}</a>' for word in some)}</ul>"

    def order(self) -> str:
        return f"<p class=order>{self._draw.choice(('Add it to the basket', 'Order it today'))}</p>"

    def cache(self) -> str:
        return f"<dl class=cache><dt>Age<dd>{self._draw.randrange(900)} s<dt>Node<dd>n{self._draw.randrange(30)}</dl>"


def _words(draw: Random, many: int) -> str:
    return " ".join(draw.choices(_WORDS, k=many))


def _edited(text: str, many: int, draw: Random) -> str:
    """Return the text after replacing `many` words in a row."""
    words = text.split()
    at = draw.randrange(len(words) - min(many, len(words)) + 1)
    words[at : at + many] = [f"{draw.choice(_WORDS)}{draw.randrange(1000)}" for _ in range(many)]
    return " ".join(words)
