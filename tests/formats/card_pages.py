# ruff: noqa: E501 - lines and signs are those of the generators
"""Pages of six templates with linked cards, labelled by hand before the rule about such cards was written.

They are in the form of `labelled_pages`, by the same rules of what is main content: cards below an article are teasers,
and on a page that consists of cards they are the content. The extractor is not changed because of them.
"""

from __future__ import annotations

from typing import Final

from tests.formats.labelled_pages import LabelledPage, Text, pages_of

__all__ = ["card_pages"]


def _tailwind_article(t: Text) -> str:
    """An article with utility classes alone, and cards to read next inside the main element."""
    body = "".join(f'<p class="mt-6 leading-7">{t.paragraph(3)}</p>' for _ in range(5))
    cards = "".join(
        f'<a class="group flex flex-col gap-2" href="/p/{i}"><img class="rounded-lg" src="/{i}.jpg" alt=""/><h3 class="text-lg">{t.title()}</h3><p class="text-zinc-600">{t.sentence()} {t.sentence()}</p></a>'
        for i in range(3)
    )
    return f"""<!DOCTYPE html><html lang="en" class="scroll-smooth"><head><title>{t.title()}</title></head><body class="antialiased"><div class="flex min-h-screen flex-col"><header class="sticky top-0"><div class="mx-auto"><a href="/">Ferry</a><ul class="flex gap-4"><li><a href="/blog">Blog</a></li><li><a href="/about">About</a></li></ul></div></header>
<main class="mx-auto max-w-2xl"><div>⟦<h1 class="text-4xl">{t.title()}</h1>{body}<h2 class="mt-10">{t.title()}</h2><p class="mt-6"><a href="/report.pdf">{t.sentence()} {t.sentence()}</a></p><p class="mt-6">{t.paragraph(2)}</p>⟧</div><div class="mt-16 border-t"><h2 class="text-2xl">Keep reading</h2><div class="grid grid-cols-3">{cards}</div></div></main>
<footer class="border-t"><p>© 2026 Ferry Works. All rights reserved.</p></footer></div></body></html>"""


def _astro_index(t: Text) -> str:
    """The list of a blog's posts: each post is a linked card."""
    posts = "".join(
        f'<li><a href="/blog/{i}/"><img width="720" height="360" src="/{i}.webp" alt=""><h4 class="title">{t.title()}</h4><p>{t.sentence()} {t.sentence()}</p><p class="date"><time datetime="2026-05-0{i + 1}">May {i + 1}, 2026</time></p></a></li>'
        for i in range(7)
    )
    return f"""<!DOCTYPE html><html lang="en"><head><title>Blog</title></head><body><header data-astro-cid-3ef6="true"><nav data-astro-cid-3ef6="true"><h2><a href="/">Valley Notes</a></h2><div class="internal-links"><a href="/">Home</a><a href="/blog" class="active">Blog</a></div></nav></header>
<main><section>⟦<ul>{posts}</ul>⟧</section></main><footer>© 2026 {t.name()}. All rights reserved.</footer></body></html>"""


def _docs_landing(t: Text) -> str:
    """The first page of a documentation: an introduction, then linked cards of its parts."""
    cards = "".join(
        f'<article class="col col--6"><a class="card padding--lg cardContainer_x1" href="/docs/{i}"><h2 class="text--truncate cardTitle_r2" title="x">{t.title()}</h2><p class="cardDescription_p3">{t.sentence()} {t.sentence()}</p></a></article>'
        for i in range(8)
    )
    return f"""<!DOCTYPE html><html lang="en"><head><title>Docs</title></head><body class="navigation-with-keyboard"><div role="region" aria-label="Skip to main content"><a href="#m">Skip to main content</a></div><nav aria-label="Main" class="navbar"><a class="navbar__brand" href="/">Ferry</a><a class="navbar__item" href="/docs">Docs</a></nav>
<div id="m"><main class="docMainContainer_a1"><div class="container">⟦<h1>{t.title()}</h1><p>{t.paragraph(2)}</p><section class="row">{cards}</section>⟧</div></main></div><footer class="footer footer--dark"><p>Copyright © 2026 Ferry Works.</p></footer></body></html>"""


def _module_magazine(t: Text) -> str:
    """A magazine with CSS modules: linked cards between the paragraphs and below them."""
    inset = f'<div class="Inset_root__a8"><a class="Inset_link__c2" href="/i"><span class="Inset_kicker__d1">Read also</span><div class="Inset_title__e3">{t.title()}</div></a></div>'
    paragraphs = [f'<p class="Body_p__k9">{t.paragraph(3)}</p>' for _ in range(6)]
    cards = "".join(
        f'<li class="Grid_cell__z{i}"><a class="Card_root__b1" href="/m/{i}"><div class="Card_text__b2"><h3 class="Card_title__b3">{t.title()}</h3><p class="Card_standfirst__b4">{t.sentence()}</p><div class="Card_meta__b5">{t.name()} · 6 min</div></div></a></li>'
        for i in range(4)
    )
    return f"""<!DOCTYPE html><html lang="en"><head><title>{t.title()}</title></head><body><div id="__next"><div class="Shell_bar__q1"><a href="/">The Orchard</a><a href="/culture">Culture</a><a href="/science">Science</a></div>
<div class="Layout_main__w7"><div class="Story_root__h3">⟦<h1 class="Story_title__h4">{t.title()}</h1><p class="Story_standfirst__h5">{t.sentence()}</p>{"".join(paragraphs[:3])}⟧{inset}⟦{"".join(paragraphs[3:])}⟧</div><div class="Grid_root__z0"><h2 class="Grid_head__z9">From the same issue</h2><ul class="Grid_list__z8">{cards}</ul></div></div>
<div class="Shell_end__q9"><p>The Orchard is printed in the valley.</p><a href="/imprint">Imprint</a> <a href="/privacy">Privacy</a></div></div></body></html>"""


def _product(t: Text) -> str:
    """A product with its description, and linked cards of others."""
    cards = "".join(
        f'<div class="tile-9f"><a href="/t/{i}"><div class="pic-2a"><img src="/{i}.png" alt="{t.name()}"></div><div class="name-7c">{t.title()}</div><div class="desc-1d">{t.sentence()}</div><div class="cost-4e">{t.number()} EUR</div></a></div>'
        for i in range(5)
    )
    rows = "".join(f"<tr><th>{t.name()}</th><td>{t.number()} mm</td></tr>" for _ in range(5))
    return f"""<!DOCTYPE html><html lang="en"><head><title>{t.title()}</title></head><body><div class="hd-1"><a href="/">Copper Shop</a><a href="/a">Lamps</a><a href="/b">Tables</a></div><main class="pg-5">⟦<h1 class="ti-3">{t.title()}</h1><div class="pr-8">{t.number()} EUR</div><div class="tx-6"><p>{t.paragraph(3)}</p><p>{t.paragraph(2)}</p></div><table class="sp-2">{rows}</table>⟧<div class="more-0"><h2>People also like</h2><div class="row-b">{cards}</div></div></main><div class="ft-9"><a href="/agb">Terms</a><a href="/imprint">Imprint</a></div></body></html>"""


def _front_page(t: Text) -> str:
    """The front page of a newspaper: its linked cards are the content."""
    cards = "".join(
        f'<section class="teaser_x{i % 3}"><a href="/n/{i}" class="link_c0"><h2 class="h_{i % 2}">{t.title()}</h2><p class="s_0">{t.sentence()}</p></a></section>'
        for i in range(12)
    )
    links = "".join(f'<li class="i_1"><a href="/s/{i}">{t.name()}</a></li>' for i in range(9))
    return f"""<!DOCTYPE html><html lang="en"><head><title>Harbour Times</title></head><body><nav class="n_0"><ul>{links}</ul></nav><main class="m_0">⟦{cards}⟧</main><footer><ul>{links}</ul><p>© 2026 Harbour Times</p></footer></body></html>"""


_TEMPLATES: Final = (_tailwind_article, _astro_index, _docs_landing, _module_magazine, _product, _front_page)


def card_pages() -> list[LabelledPage]:
    """Two pages of each of six templates."""
    return pages_of(_TEMPLATES, seeds=2)
