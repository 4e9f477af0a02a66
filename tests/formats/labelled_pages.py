# ruff: noqa: E501, RUF001 - lines and signs are those of the generators
"""Pages as common generators write them, with their main content labelled by hand.

A template is written with its main content between ``⟦`` and ``⟧``. The labels were written with the templates, before
there was an extractor. Headings of the content, its tables, code, lists, captions and comments of a discussion are main
content. Navigation, banners, teasers of other pages, share buttons, forms, bylines' avatars and footers are not.
"""

from __future__ import annotations

import re
from html import unescape
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["LabelledPage", "Text", "labelled_pages", "pages_of", "words_of"]

_WORDS: Final = [
    "river",
    "valley",
    "stone",
    "bridge",
    "market",
    "engine",
    "signal",
    "lantern",
    "orchard",
    "winter",
    "harvest",
    "ledger",
    "copper",
    "timber",
    "ferry",
    "harbour",
    "window",
    "garden",
    "letter",
    "teacher",
    "doctor",
    "morning",
    "village",
    "council",
    "border",
    "treaty",
    "budget",
    "report",
    "survey",
    "sample",
    "measure",
    "pressure",
    "current",
    "voltage",
    "filter",
    "channel",
    "station",
    "railway",
    "ticket",
    "journey",
    "northern",
    "southern",
    "ancient",
    "modern",
    "public",
    "private",
    "careful",
    "quiet",
    "broad",
    "narrow",
    "early",
    "late",
    "steady",
    "sudden",
    "gather",
    "build",
    "carry",
    "follow",
    "answer",
    "remain",
    "improve",
    "repair",
    "deliver",
    "explain",
    "describe",
    "compare",
    "record",
    "protect",
    "discover",
    "arrange",
    "because",
    "although",
    "between",
    "beyond",
    "during",
    "against",
    "without",
    "within",
    "several",
    "another",
    "nearly",
    "almost",
    "perhaps",
    "already",
    "together",
]


class LabelledPage(NamedTuple):
    """A page, its name, its HTML, and the words of its main content in order."""

    name: str
    html: str
    main: list[str]


class Text:
    """Sentences of a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def sentence(self, words: int = 14) -> str:
        chosen = [self._random.choice(_WORDS) for _ in range(self._random.randint(words // 2, words * 3 // 2))]
        return " ".join(chosen).capitalize() + "."

    def paragraph(self, sentences: int = 4) -> str:
        return " ".join(self.sentence() for _ in range(self._random.randint(max(1, sentences - 2), sentences + 2)))

    def title(self) -> str:
        return " ".join(self._random.choice(_WORDS) for _ in range(5)).capitalize()

    def name(self) -> str:
        return " ".join(self._random.choice(_WORDS).capitalize() for _ in range(2))

    def number(self, most: int = 999) -> int:
        return self._random.randint(1, most)


_COOKIES: Final = """<div id="cookie-consent" class="cc-window cc-banner" role="dialog" aria-live="polite">
<span class="cc-message">We use cookies to make this site work and to understand how you use it. Read our policy.</span>
<a class="cc-btn" href="/cookies">Learn more</a><button class="cc-btn cc-allow">Accept all</button>
<button class="cc-btn">Reject</button></div>"""
_SHARE: Final = """<ul class="share-buttons"><li><a href="https://social.example/share">Share on Social</a></li>
<li><a href="mailto:?subject=x">Send by mail</a></li><li><a href="#print">Print this page</a></li></ul>"""


def _links(text: Text, count: int, tag: str = "li") -> str:
    return "".join(f'<{tag}><a href="/{i}">{text.name()}</a></{tag}>' for i in range(count))


def _paragraphs(text: Text, count: int) -> str:
    return "".join(f"<p>{text.paragraph()}</p>" for _ in range(count))


def _news(t: Text) -> str:
    return f"""<!DOCTYPE html><html lang="en"><head><title>{t.title()} | The Daily Ferry</title></head><body>{_COOKIES}
<header class="site-header"><a href="/">The Daily Ferry</a><nav class="main-nav"><ul>{_links(t, 9)}</ul></nav>
<form action="/search"><input name="q"><button>Search</button></form></header>
<div class="breaking-ticker"><a href="/live">Live: {t.sentence()}</a></div>
<main><article class="story"><header>⟦<h1>{t.title()}</h1><p class="standfirst">{t.paragraph(2)}</p>⟧
<div class="byline"><img src="/a.jpg" alt=""><a href="/author">By {t.name()}</a> <time>3 May 2026</time></div>{_SHARE}</header>
⟦<figure><img src="/p.jpg" alt="A bridge"><figcaption>{t.sentence()}</figcaption></figure>{_paragraphs(t, 4)}⟧
<aside class="ad-slot">Advertisement <a href="https://ads.example/">{t.sentence()}</a></aside>
<div class="related-inline"><h3>Read more</h3><ul>{_links(t, 3)}</ul></div>
⟦<h2>{t.title()}</h2>{_paragraphs(t, 3)}<blockquote><p>{t.paragraph(2)}</p></blockquote>{_paragraphs(t, 2)}⟧
<ul class="tags">{_links(t, 4)}</ul></article>
<section class="newsletter-signup"><h2>Get the morning letter</h2><p>{t.sentence()}</p><form><input><button>Sign up</button></form></section>
<section class="most-read"><h2>Most read</h2><ol>{_links(t, 6)}</ol></section></main>
<footer><div class="footer-links">{_links(t, 12)}</div><p>© 2026 The Daily Ferry. All rights reserved.</p></footer></body></html>"""


def _sphinx(t: Text) -> str:
    return f"""<!DOCTYPE html><html><head><title>{t.title()} — Harbour documentation</title></head><body>
<div class="related" role="navigation"><h3>Navigation</h3><ul><li class="right"><a href="genindex.html">index</a></li>
<li class="right"><a href="next.html">next</a> |</li><li class="nav-item"><a href="index.html">Harbour 2.1 documentation</a></li></ul></div>
<div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main">
⟦<section id="usage"><h1>{t.title()}<a class="headerlink" href="#usage" title="Link to this heading"></a></h1>{_paragraphs(t, 2)}
<div class="highlight-python notranslate"><div class="highlight"><pre><span class="kn">import</span> <span class="nn">harbour</span>
<span class="n">boat</span> <span class="o">=</span> <span class="n">harbour</span><span class="o">.</span><span class="n">open</span><span class="p">(</span><span class="s2">"north"</span><span class="p">)</span>
</pre></div></div>{_paragraphs(t, 2)}
<dl class="py function"><dt class="sig"><span class="sig-name">open</span>(<em>name</em>, <em>mode=None</em>)</dt><dd><p>{t.sentence()}</p>
<dl class="field-list"><dt>Parameters</dt><dd><p><strong>name</strong> – {t.sentence()}</p></dd><dt>Returns</dt><dd><p>{t.sentence()}</p></dd></dl></dd></dl>
<div class="admonition note"><p class="admonition-title">Note</p><p>{t.paragraph(2)}</p></div>
<table class="docutils"><thead><tr><th>Option</th><th>Meaning</th></tr></thead><tbody><tr><td>north</td><td>{t.sentence(6)}</td></tr>
<tr><td>south</td><td>{t.sentence(6)}</td></tr></tbody></table></section>⟧</div></div></div>
<div class="sphinxsidebar" role="navigation" aria-label="Main"><div class="sphinxsidebarwrapper"><h3><a href="index.html">Table of Contents</a></h3>
<ul>{_links(t, 8)}</ul><h4>Previous topic</h4><p class="topless"><a href="p.html">{t.title()}</a></p><div id="searchbox"><h3>Quick search</h3>
<form><input><input type="submit" value="Go"></form></div></div></div></div>
<div class="footer">© Copyright 2026, Harbour. Created using Sphinx 8.1.</div></body></html>"""


def _docusaurus(t: Text) -> str:
    return f"""<!DOCTYPE html><html><head><title>{t.title()} | Ferry</title></head><body class="navigation-with-keyboard">
<div role="region" aria-label="Skip to main content"><a class="skipToContent_x1" href="#main">Skip to main content</a></div>
<nav aria-label="Main" class="navbar navbar--fixed-top"><div class="navbar__inner"><a href="/">Ferry</a>{_links(t, 5, "span")}</div></nav>
<div class="main-wrapper"><aside class="theme-doc-sidebar-container"><ul class="theme-doc-sidebar-menu menu__list">{_links(t, 14)}</ul></aside>
<main class="docMainContainer_x"><div class="container"><article><nav class="theme-doc-breadcrumbs"><ul class="breadcrumbs">{_links(t, 3)}</ul></nav>
<div class="tocCollapsible_x"><button>On this page</button></div>⟦<div class="theme-doc-markdown markdown"><header><h1>{t.title()}</h1></header>
{_paragraphs(t, 2)}<h2>Install</h2><div class="language-bash codeBlockContainer_x"><pre><code class="codeBlockLines_x">npm install ferry
ferry --north --lanes 3
</code></pre>⟧<div class="buttonGroup__x"><button>Copy</button></div>⟦</div><p>{t.paragraph()}</p><ol><li>{t.sentence()}</li><li>{t.sentence()}<ul><li>{t.sentence()}</li></ul></li></ol>
{_paragraphs(t, 2)}</div>⟧<footer class="theme-doc-footer"><a href="https://git.example/edit">Edit this page</a></footer></article>
<nav class="pagination-nav"><a href="/prev"><div>Previous</div><div>{t.title()}</div></a><a href="/next"><div>Next</div><div>{t.title()}</div></a></nav></div>
<div class="tableOfContents_x"><ul class="table-of-contents">{_links(t, 5)}</ul></div></main></div>
<footer class="footer footer--dark"><div class="row">{_links(t, 8, "div")}</div><div>Copyright © 2026 Ferry project.</div></footer></body></html>"""


def _javadoc(t: Text) -> str:
    rows = "".join(
        f"<tr><td><code>void</code></td><td><code>{w}()</code></td><td>{t.sentence(8)}</td></tr>" for w in _WORDS[5:11]
    )
    return f"""<!DOCTYPE HTML><html lang="en"><head><title>Ferry (harbour 3.0 API)</title></head><body class="class-declaration-page">
<header class="flex-header"><nav><div class="top-nav" id="navbar-top"><ul class="nav-list">{_links(t, 7)}</ul></div>
<div class="sub-nav"><div><ul class="sub-nav-list"><li>Summary:&nbsp;</li><li>Nested</li></ul></div><label>SEARCH:</label><input></div></nav></header>
<div class="flex-content"><main role="main">⟦<div class="header"><div class="sub-title"><span>Package</span> <a href="p.html">org.harbour</a></div>
<h1 class="title">Class Ferry</h1></div><section class="class-description"><div class="block">{t.paragraph()}</div></section>
<section class="summary"><h2>Method Summary</h2><table class="summary-table"><tr><th>Modifier</th><th>Method</th><th>Description</th></tr>{rows}</table></section>
<section class="details"><h2>Method Details</h2><section class="detail"><h3>{_WORDS[7]}</h3><div class="member-signature">public void {_WORDS[7]}(int lanes)</div>
<div class="block">{t.paragraph(3)}</div><dl class="notes"><dt>Parameters:</dt><dd><code>lanes</code> - {t.sentence(6)}</dd></dl></section></section>⟧</main>
<footer role="contentinfo"><hr><p class="legal-copy"><small>Copyright © 2026 Harbour. All rights reserved.</small></p></footer></div></body></html>"""


def _shop(t: Text) -> str:
    cards = "".join(
        f'<li class="product-card"><a href="/p/{i}"><img alt="{t.name()}" src="/i.jpg"><span>{t.name()}</span><span class="price">{t.number()}.00 €</span></a></li>'
        for i in range(6)
    )
    return f"""<!doctype html><html><head><title>{t.name()} – Timber & Co</title></head><body class="template-product">{_COOKIES}
<div class="announcement-bar">Free delivery from 50 €</div><header id="shopify-section-header"><a href="/">Timber & Co</a>
<nav><ul>{_links(t, 7)}</ul></nav><a href="/cart">Cart (0)</a></header>
<main id="MainContent"><nav class="breadcrumbs"><a href="/">Home</a> › <a href="/tools">Tools</a></nav>
<section class="product">⟦<h1 class="product__title">{t.title()}</h1><div class="price price--large">{t.number()}.95 €</div><p class="tax-note">{t.sentence(5)}</p>⟧
<form action="/cart/add"><label>Quantity</label><input type="number"><select><option>Oak</option><option>Pine</option></select><button>Add to cart</button></form>
⟦<div class="product__description">{_paragraphs(t, 2)}<ul><li>{t.sentence(6)}</li><li>{t.sentence(6)}</li></ul>
<table><tr><td>Weight</td><td>{t.number()} g</td></tr><tr><td>Length</td><td>{t.number()} mm</td></tr></table></div>⟧</section>
<section class="product-reviews"><h2>Reviews</h2>⟦<div class="review"><p>{t.paragraph(2)}</p></div><div class="review"><p>{t.paragraph(2)}</p></div>⟧</section>
<section class="product-recommendations"><h2>You may also like</h2><ul>{cards}</ul></section></main>
<footer class="site-footer"><ul>{_links(t, 9)}</ul><form><label>Newsletter</label><input><button>Subscribe</button></form><small>© 2026 Timber & Co</small></footer></body></html>"""


def _forum(t: Text) -> str:
    posts = "".join(
        f"""<div id="p{i}" class="post has-profile bg{i % 2}"><div class="inner"><dl class="postprofile"><dt><a href="/u{i}">{t.name()}</a></dt><dd>Posts: {t.number()}</dd><dd>Joined: May 2020</dd></dl>
<div class="postbody"><ul class="post-buttons"><li><a href="/q">Quote</a></li><li><a href="/r">Report</a></li></ul><div class="content">⟦{t.paragraph(3)}<br>{t.paragraph(2)}⟧</div>
<div class="signature">{t.sentence(5)}</div></div></div></div>"""
        for i in range(5)
    )
    return f"""<!DOCTYPE html><html><head><title>{t.title()} - Harbour board</title></head><body id="phpbb" class="section-viewtopic">
<div id="wrap"><div id="page-header"><div class="headerbar"><h1>Harbour board</h1><p>{t.sentence(5)}</p></div><div class="navbar"><ul id="nav-main">{_links(t, 6)}</ul></div></div>
<div id="page-body">⟦<h2 class="topic-title"><a href="/t">{t.title()}</a></h2>⟧<div class="action-bar"><a href="/reply" class="button">Post Reply</a><div class="pagination">5 posts • Page 1 of 1</div></div>
{posts}<div class="action-bar"><a href="/reply">Post Reply</a></div><div class="jumpbox"><ul>{_links(t, 6)}</ul></div></div>
<div id="page-footer"><div class="navbar"><ul>{_links(t, 4)}</ul></div><div class="copyright"><p>Powered by phpBB</p></div></div></div></body></html>"""


def _wiki(t: Text) -> str:
    return f"""<!DOCTYPE html><html class="client-nojs"><head><title>{t.name()} - Harbour Wiki</title></head><body class="mediawiki skin-vector">
<div class="vector-header-container"><header class="vector-header"><a href="/">Harbour Wiki</a><form id="searchform"><input><button>Search</button></form></header></div>
<div id="mw-panel" class="vector-menu"><nav id="p-navigation"><h3>Navigation</h3><ul>{_links(t, 7)}</ul></nav><nav id="p-tb"><h3>Tools</h3><ul>{_links(t, 6)}</ul></nav></div>
<main id="content" class="mw-body" role="main">⟦<h1 id="firstHeading">{t.name()}</h1>⟧<div class="vector-page-toolbar"><ul>{_links(t, 5)}</ul></div>
<div id="bodyContent"><div id="siteSub">From Harbour Wiki</div><div id="mw-content-text">⟦<div class="mw-parser-output"><p>{t.paragraph()}</p>⟧
<div id="toc" class="toc" role="navigation"><h2>Contents</h2><ul><li><a href="#a">1 History</a></li><li><a href="#b">2 Use</a></li></ul></div>
⟦<h2><span id="a">History</span></h2>⟧<span class="mw-editsection">[<a href="/e">edit</a>]</span>⟦{_paragraphs(t, 3)}
<table class="infobox"><tr><th>Length</th><td>{t.number()} m</td></tr><tr><th>Built</th><td>18{t.number(89) + 10}</td></tr></table>
<h2>Use</h2>{_paragraphs(t, 2)}<ul><li>{t.sentence()}</li><li>{t.sentence()}</li></ul></div>⟧
<div class="navbox"><ul>{_links(t, 10)}</ul></div></div><div id="catlinks"><ul>{_links(t, 3)}</ul></div></div></main>
<footer id="footer"><ul id="footer-info"><li>This page was last edited on 3 May 2026.</li></ul><ul>{_links(t, 4)}</ul></footer></body></html>"""


def _recipe(t: Text) -> str:
    return f"""<!DOCTYPE html><html><head><title>{t.title()} - Orchard Kitchen</title></head><body class="post-template single"><div class="site-container">
<ul class="genesis-skip-link"><li><a href="#c">Skip to content</a></li></ul><header class="site-header"><p class="site-title"><a href="/">Orchard Kitchen</a></p></header>
<nav class="nav-primary"><ul class="menu">{_links(t, 6)}</ul></nav><div class="content-sidebar-wrap"><main class="content"><article class="post entry">
<header class="entry-header">⟦<h1 class="entry-title">{t.title()}</h1>⟧<p class="entry-meta">May 3, 2026 by <a href="/a">{t.name()}</a> <a href="#respond">Leave a Comment</a></p></header>
<div class="entry-content"><a class="wprm-recipe-jump" href="#recipe">Jump to Recipe</a>⟦{_paragraphs(t, 3)}⟧<div class="adthrive-ad">Advertisement</div>⟦{_paragraphs(t, 2)}
<div id="recipe" class="wprm-recipe-container"><h2>{t.title()}</h2><p>{t.sentence()}</p><h3>Ingredients</h3><ul><li><span>200</span> <span>g</span> <span>flour</span></li><li><span>2</span> <span>apples</span></li></ul>
<h3>Instructions</h3><ol><li>{t.sentence()}</li><li>{t.sentence()}</li><li>{t.sentence()}</li></ol></div>⟧</div></article>
<div class="after-entry widget-area"><section class="widget"><h3>Never miss a recipe</h3><form><input><button>Join</button></form></section></div>
<div class="entry-comments"><h3>Comments</h3>⟦<ol class="comment-list"><li><p>{t.paragraph(2)}</p></li><li><p>{t.paragraph(2)}</p></li></ol>⟧</div>
<div id="respond" class="comment-respond"><h3>Leave a Reply</h3><form><p>Your email address will not be published.</p><textarea></textarea><button>Post Comment</button></form></div></main>
<aside class="sidebar"><section class="widget"><h3>About</h3><p>{t.paragraph(2)}</p></section><section class="widget"><h3>Popular</h3><ul>{_links(t, 6)}</ul></section></aside></div>
<footer class="site-footer"><p>Copyright © 2026 · <a href="/privacy">Privacy Policy</a></p></footer></div></body></html>"""


def _gallery(t: Text) -> str:
    figures = "".join(
        f'<figure class="gallery-item"><a href="/full/{i}.jpg"><img src="/t/{i}.jpg" alt="{t.name()}"></a><figcaption>{t.sentence(9)}</figcaption></figure>'
        for i in range(9)
    )
    return f"""<!doctype html><html><head><title>{t.title()}</title></head><body><div class="topbar"><a href="/">Lantern Photos</a> <a href="/albums">Albums</a> <a href="/login">Log in</a></div>
<div id="content">⟦<h1>{t.title()}</h1><p class="album-description">{t.paragraph(3)}</p><div class="gallery">{figures}</div>⟧
<div class="pager"><a href="?p=2">Next page</a> <a href="?p=9">Last page</a></div></div>
<div class="sidebar"><h3>Other albums</h3><ul>{_links(t, 8)}</ul></div><div class="foot">Made with Lantern 4.2 <a href="/imprint">Imprint</a></div></body></html>"""


def _legal(t: Text) -> str:
    sections = "".join(
        f"<section id='s{i}'><h3>§ {i} {t.title()}</h3><p>(1) {t.paragraph(3)}</p><p>(2) {t.paragraph(2)}</p><ol type='a'><li>{t.sentence()}</li><li>{t.sentence()}</li></ol></section>"
        for i in range(1, 7)
    )
    return f"""<!DOCTYPE html><html lang="en"><head><title>{t.title()} Act</title></head><body><div id="header"><img src="/arms.png" alt="Coat of arms"><span>Office of Public Records</span></div>
<div id="topnav"><a href="/">Start</a> | <a href="/acts">Acts</a> | <a href="/index">Index</a> | <a href="/contact">Contact</a> | <a href="/help">Help</a></div>
<div id="leftmenu"><ul>{_links(t, 12)}</ul></div><div id="text">⟦<h1>{t.title()} Act</h1><p class="enacted">{t.sentence()}</p>{sections}⟧</div>
<div id="bottom"><a href="#header">to the top</a> <a href="/imprint">Imprint</a> <a href="/privacy">Privacy</a> <a href="/barrier">Accessibility</a></div></body></html>"""


def _changelog(t: Text) -> str:
    releases = "".join(
        f"""<section class="release"><div class="release-meta"><a href="/u">{t.name()}</a> released this <relative-time>Mar {i}</relative-time> · <a href="/c">{t.number()} commits</a> to main since this release</div>
⟦<h2><a href="/tag/v1.{i}">v1.{i}</a></h2><div class="markdown-body"><h3>Added</h3><ul><li>{t.sentence()}</li><li>{t.sentence()} <a href="/pull/{i}">#{i}</a></li></ul><h3>Fixed</h3><ul><li><code>{_WORDS[i]}</code>: {t.sentence()}</li></ul></div>⟧
<details><summary>Assets 2</summary><ul><li><a href="/zip">Source code (zip)</a></li><li><a href="/tgz">Source code (tar.gz)</a></li></ul></details></section>"""
        for i in range(5)
    )
    return f"""<!DOCTYPE html><html><head><title>Releases · harbour/ferry</title></head><body><div class="header-wrapper"><header class="AppHeader"><a href="/">Forge</a><a href="/login">Sign in</a></header></div>
<div id="repo-head"><strong><a href="/harbour">harbour</a>/<a href="/harbour/ferry">ferry</a></strong><nav class="UnderlineNav"><ul>{_links(t, 7)}</ul></nav></div>
<main id="js-repo-pjax-container"><h1 class="sr-only">Releases: harbour/ferry</h1><div class="subnav"><a href="/releases">Releases</a><a href="/tags">Tags</a></div>{releases}
<div class="paginate-container"><span>Previous</span><a href="?page=2">Next</a></div></main><footer role="contentinfo"><p>© 2026 Forge</p><ul>{_links(t, 8)}</ul></footer></body></html>"""


def _blog(t: Text) -> str:
    return f"""<!DOCTYPE html><html><head><title>{t.title()} :: lantern.log</title></head><body><div class="container"><header class="header"><span class="logo"><a href="/">$ cd /home/</a></span>
<nav class="menu"><ul>{_links(t, 3)}</ul></nav></header><div class="content"><div class="post">⟦<h1 class="post-title"><a href="/post">{t.title()}</a></h1>⟧
<div class="post-meta"><time>2026-05-03</time><span>{t.number(20)} min read</span></div><span class="post-tags">#<a href="/t">stone</a></span>
⟦<div class="post-content"><p>{t.paragraph()}</p><h2>{t.title()}</h2><p>{t.paragraph()} <code>ferry --north</code> {t.sentence()}</p>
<div class="highlight"><pre tabindex="0"><code class="language-go">func main() {{
    ferry.Open("north")
}}
</code></pre></div>{_paragraphs(t, 3)}<ul><li>{t.sentence()}</li><li>{t.sentence()}</li></ul><p>{t.paragraph(2)}</p></div>⟧
<div class="pagination"><div class="pagination__title"><span>Read other posts</span></div><div><a href="/a">← {t.title()}</a> <a href="/b">{t.title()} →</a></div></div></div></div>
<footer class="footer"><div class="footer__inner"><span>© 2026 Powered by <a href="https://gohugo.example">Hugo</a></span></div></footer></div></body></html>"""


def _prices(t: Text) -> str:
    rows = "".join(
        f"<tr><td><a href='/i/{i}'>{t.name()}</a></td><td>{t.number()}.{i}0</td><td>{t.number(90)} %</td><td>2026-05-{i:02}</td></tr>"
        for i in range(1, 21)
    )
    return f"""<html><head><title>Prices of {t.name()}</title></head><body bgcolor="#ffffff"><table width="100%"><tr><td colspan="2" class="head"><font size="5">Market Board</font></td></tr>
<tr><td width="160" valign="top" class="nav">{"".join(f'<a href="/{i}">{t.name()}</a><br>' for i in range(10))}</td>
<td valign="top">⟦<h2>{t.title()}</h2><p>{t.sentence()}</p><table border="1"><tr><th>Article</th><th>Price</th><th>Change</th><th>Date</th></tr>{rows}</table><p><small>{t.sentence()}</small></p>⟧</td></tr>
<tr><td colspan="2" class="foot"><a href="/">Home</a> | <a href="/terms">Terms</a> | <a href="/contact">Contact</a><br>Last update 3 May 2026</td></tr></table></body></html>"""


def _faq(t: Text) -> str:
    items = "".join(
        f"<details class='faq-item'><summary><h3>{t.sentence(7)[:-1]}?</h3></summary><div class='answer'><p>{t.paragraph(3)}</p></div></details>"
        for _ in range(7)
    )
    return f"""<!DOCTYPE html><html><head><title>Help: {t.title()}</title></head><body><div id="onetrust-consent-sdk"><div class="ot-sdk-container" role="alertdialog"><p>{t.sentence()}</p><button>OK</button></div></div>
<div class="header" role="banner"><div class="logo"><a href="/">Copper Bank</a></div><div class="menu" role="navigation"><ul>{_links(t, 8)}</ul></div></div>
<div class="page" role="main"><div class="crumbs"><a href="/">Home</a> / <a href="/help">Help</a></div>⟦<h1>{t.title()}</h1><p>{t.paragraph(2)}</p>{items}⟧
<div class="feedback"><p>Was this page helpful?</p><button>Yes</button><button>No</button></div><div class="contact-box"><h2>Still have questions?</h2><p><a href="/chat">Chat with us</a></p></div></div>
<div class="footer" role="contentinfo"><ul>{_links(t, 10)}</ul><p>Copper Bank is supervised by the harbour council.</p></div></body></html>"""


_TEMPLATES: Final = (
    _news, _sphinx, _docusaurus, _javadoc, _shop, _forum, _wiki, _recipe, _gallery, _legal, _changelog, _blog, _prices, _faq,
)  # fmt: skip
_TAG: Final = re.compile(
    r"<(?:script|style|button|label|select)\b.*?</(?:script|style|button|label|select)>|<[^>]*>", re.DOTALL
)
_MAIN: Final = re.compile("⟦(.*?)⟧", re.DOTALL)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case."""
    return re.findall(r"\w+", text.lower())


def labelled_pages() -> list[LabelledPage]:
    """Three pages of each of fourteen templates."""
    return pages_of(_TEMPLATES, seeds=3)


def pages_of(templates: Sequence[Callable[[Text], str]], *, seeds: int) -> list[LabelledPage]:
    """Pages of templates, several of each, without the marks around their main content."""
    found = []
    for template in templates:
        for seed in range(seeds):
            marked = template(Text(100 * seed + len(template.__name__)))
            main = " ".join(unescape(_TAG.sub(" ", part)) for part in _MAIN.findall(marked))
            html = marked.replace("⟦", "").replace("⟧", "")
            found.append(LabelledPage(f"{template.__name__.strip('_')}-{seed}", html, words_of(main)))
    return found
