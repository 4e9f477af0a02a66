"""A second noisy web, with kinds of noise that `lab.false_changes` does not have.

Nothing was tuned on this web. Each of ten sites has its own template, in the style of CSS-in-JS sites, shops, wikis and
forums. The noise consists of render times and server names, relative times, a countdown, a ticker of prices, counts in
headings and list items, trending lists of changing length, a carousel, banners in one answer of three, a test that
swaps two blocks, new class names in each answer, sessions in links, and an advert between list items.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from webfountain.lab.false_changes import PAGES, SITES, drawn_changes

if TYPE_CHECKING:
    from webfountain.lab.false_changes import TrueChange

__all__ = ["BY_HAND", "OtherNoise"]

BY_HAND: Final = (
    'ignore = [".render", ".ago", ".countdown", ".ticker", ".count", ".trending", ".carousel", ".banner", ".variant",'
    ' ".sponsored", ".live"]\n'
)
_VOCABULARY: Final = """
anchor basket cellar desert empire fabric gallery helmet insect jungle kernel ladder magnet nectar oyster parcel quiver
rocket saddle tablet urchin vessel walnut yellow zephyr barley candle dragon engine falcon
"""
_WORDS: Final = tuple(_VOCABULARY.split())


class OtherNoise:
    """The pages as functions of page, round and time, with the interface of `NoisyWeb`."""

    def __init__(self, seed: int = 77) -> None:
        self._seed = seed
        self._random = Random(seed)
        self.changes = drawn_changes(self._random)
        draw = Random(seed + 1)
        self._texts = [[_words(draw, 35) for _ in range(7)] for _ in range(SITES * PAGES)]
        self._prices = [[draw.randrange(100, 9000) for _ in range(5)] for _ in range(SITES * PAGES)]
        self._live = [_words(draw, 30) for _ in range(SITES * PAGES)]

    def advance(self, round: int) -> dict[int, list[TrueChange]]:
        """Apply the true changes of a round, and return them by page."""
        found: dict[int, list[TrueChange]] = {}
        for change in (each for each in self.changes if each.round == round):
            self._edit(change)
            found.setdefault(change.page, []).append(change)
        return found

    def _edit(self, change: TrueChange) -> None:
        draw = self._random
        if change.place == "price":
            self._prices[change.page][draw.randrange(5)] += draw.randint(1, 50)
            return
        place = draw.randrange(7)
        text = self._live[change.page] if change.place == "live" else self._texts[change.page][place]
        words = text.split()
        at = draw.randrange(len(words) - min(change.words, len(words)) + 1)
        words[at : at + change.words] = [f"{draw.choice(_WORDS)}{draw.randrange(1000)}" for _ in range(change.words)]
        if change.place == "live":
            self._live[change.page] = " ".join(words)
        else:
            self._texts[change.page][place] = " ".join(words)

    def body(self, page: int, at: float) -> bytes:
        """Return a page as its server answers at a time."""
        draw, site = Random(f"other {self._seed} {page} {at}"), page // PAGES
        noise, texts = _Noise(draw, at), self._texts[page]
        name = f"css-{draw.getrandbits(32):08x}" if site in (1, 4) else "content"
        rows = "".join(f"<tr><td>part {n}<td>{price / 100:.2f}</tr>" for n, price in enumerate(self._prices[page]))
        live = f"<div class=live>{draw.randrange(2, 90)} people look at this. {self._live[page]}</div>"
        paragraphs = [f"<p>{text}</p>" for text in texts[:5]]
        items = [f"<li>{text}</li>" for text in texts[5:]]
        if site in (2, 7):
            items.insert(draw.randrange(3), f"<li class=sponsored>Sponsored: {_words(draw, 6)}</li>")
        blocks = [f"<section class={name}>{''.join(paragraphs)}</section>", f"<ul>{''.join(items)}</ul>"]
        kinds = [noise.ago, noise.countdown, noise.ticker, noise.trending, noise.carousel, noise.banner, noise.count]
        chosen = [kind() for number, kind in enumerate(kinds) if (number + site) % 3 != 0]
        variant = ["<div class=variant>Try the new look</div>", f"<div class=variant>{_words(draw, 5)}</div>"]
        top, bottom = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
        if site in (3, 8):
            (top if draw.random() < 0.5 else bottom).append(draw.choice(variant))
        return (
            f"<!doctype html><html><head><title>Part {page}</title><meta name=csrf content={draw.getrandbits(64):x}>"
            f"</head><body data-render={draw.random()}><nav><a href='/?sid={draw.getrandbits(40):x}'>Start</a></nav>"
            f"{''.join(top)}<main><h1>Part {page}</h1>{''.join(blocks)}<table><tr><th>Part<th>Price</tr>{rows}</table>"
            f"{live}</main>{''.join(bottom)}<footer>About us {noise.render()}</footer></body></html>"
        ).encode()


class _Noise:
    """Blocks that are new in each answer."""

    def __init__(self, draw: Random, at: float) -> None:
        self._draw, self._at = draw, at

    def render(self) -> str:
        return f"<small class=render>Rendered in {self._draw.random():.4f} s by web-{self._draw.randrange(40)}</small>"

    def ago(self) -> str:
        return f"<p class=ago>Last visitor {self._draw.randrange(1, 59)} seconds ago</p>"

    def countdown(self) -> str:
        left = int(-self._at) % 86_400
        return (
            f"<div class=countdown><span>{left // 3600} h</span> <span>{left // 60 % 60} m {left % 60} s</span></div>"
        )

    def ticker(self) -> str:
        cells = "".join(f"<td>{name.upper()[:4]} {self._draw.uniform(5, 90):.3f}</td>" for name in _WORDS[:6])
        return f"<table class=ticker><tr>{cells}</tr></table>"

    def trending(self) -> str:
        some = self._draw.sample(_WORDS, self._draw.randint(3, 7))
        return f"<aside class=trending><h4>Trending</h4><ol>{''.join(f'<li>{word}' for word in some)}</ol></aside>"

    def carousel(self) -> str:
        cards = "".join(
            f"<div><b>{_words(self._draw, 2)}</b><i>{self._draw.randrange(99)} EUR</i></div>" for _ in "abcd"
        )
        return f"<div class=carousel>{cards}</div>"

    def banner(self) -> str:
        return f"<div class=banner>{_words(self._draw, 9)}</div>" if self._draw.random() < 0.33 else ""

    def count(self) -> str:
        return f"<h3>Comments <span class=count>({self._draw.randrange(500)})</span></h3><p>Be kind to each other.</p>"


def _words(draw: Random, many: int) -> str:
    return " ".join(draw.choices(_WORDS, k=many))
