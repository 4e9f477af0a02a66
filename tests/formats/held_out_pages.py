# ruff: noqa: E501, RUF001 - lines and signs are those of the generators
"""Pages of fourteen more generators, labelled by hand, on which nothing was tuned.

They are written in the form of `labelled_pages`, by the same rules of what is main content. They were committed before
any extractor had read them, and an extractor is never changed because of them: their F1 shows what the rules are worth
on pages that their author did not know. One rule, about linked cards, came after a look at the kinds that lose here
(`hashed`); it was held to pages of its own, `card_pages`, that were labelled before it.
"""

from __future__ import annotations

from typing import Final

from tests.formats.labelled_pages import LabelledPage, Text, pages_of

__all__ = ["held_out_pages"]

_SVG: Final = (
    '<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><title>icon</title><path d="M4 6h16v2H4z"/></svg>'
)


def _items(t: Text, count: int, kind: str) -> str:
    return "".join(f'<li class="{kind}"><a class="{kind}-link" href="/{i}/">{t.name()}</a></li>' for i in range(count))


def _paragraphs(t: Text, count: int) -> str:
    return "\n".join(f"<p>{t.paragraph()}</p>" for _ in range(count))


def _discourse(t: Text) -> str:
    """The page that Discourse gives to crawlers."""
    posts = "".join(
        f"""<div id='post_{i}' itemscope itemtype='http://schema.org/Comment' class='topic-body crawler-post'>
<div class='crawler-post-meta'><span class="creator" itemprop="author" itemscope itemtype="http://schema.org/Person"><a itemprop="url" rel='nofollow' href='/u/ferry{i}'><span itemprop='name'>ferry{i}</span></a></span>
<link itemprop="mainEntityOfPage" href="/t/9"><span class="crawler-post-infos"><time itemprop='datePublished' datetime='2026-05-03T10:0{i}:00Z' class='post-time'>May 3, 2026, 10:0{i}am</time> <meta itemprop='dateModified' content='2026-05-03'><span itemprop='position'>{i}</span></span></div>
<div class='post' itemprop='text'>⟦<p>{t.paragraph(3)}</p><pre><code class="lang-auto">ferry --north {i}
</code></pre><p>{t.paragraph(2)}</p>⟧</div>
<div itemprop="interactionStatistic" itemscope itemtype="http://schema.org/InteractionCounter"><meta itemprop="interactionType" content="http://schema.org/LikeAction"/><meta itemprop="userInteractionCount" content="3" /><span class='post-likes'>3 Likes</span></div></div>"""
        for i in range(1, 6)
    )
    related = "".join(
        f"""<tr class="topic-list-item" id="topic-list-item-{i}"><td class="main-link" itemprop='itemListElement'><meta itemprop='position' content='{i}'><span class="link-top-line"><a itemprop='url' href='/t/{i}' class='title raw-link raw-topic-link'>{t.title()}</a></span><div class="link-bottom-line"><a href='/c/{i}' class='badge-wrapper bullet'><span class='badge-category'>{t.name()}</span></a></div></td>
<td class="replies"><span class='posts' title='posts'>{t.number()}</span></td><td class="views"><span class='views' title='views'>{t.number()}</span></td><td>May 2026</td></tr>"""
        for i in range(4)
    )
    return f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{t.title()} - Harbour Forum</title><script src="/a.js"></script></head><body class="crawler ">
<header><a href="/">Harbour Forum</a></header><div id="main-outlet" class="wrap" role="main">
<div id="topic-title">⟦<h1><a href="/t/9">{t.title()}</a></h1>⟧<div class="topic-category" itemscope itemtype="http://schema.org/BreadcrumbList"><span itemprop="itemListElement"><a href="/c/help" class="badge-wrapper bullet" itemprop="item"><span class='badge-category-bg'></span><span class='badge-category clear-badge'><span class='category-name' itemprop='name'>Help</span></span></a></span></div></div>
<div itemscope itemtype='http://schema.org/DiscussionForumPosting'><meta itemprop='headline' content='x'>{posts}</div>
<div id="related-topics" class="more-topics__list" role="complementary" aria-labelledby="related-topics-title"><h3 id="related-topics-title" class="more-topics__list-title">Related topics</h3>
<div class="topic-list-container" itemscope itemtype='http://schema.org/ItemList'><table class='topic-list'><thead><tr><th>Topic</th><th></th><th class="replies">Replies</th><th class="views">Views</th><th>Activity</th></tr></thead><tbody>{related}</tbody></table></div></div></div>
<footer class="container wrap"><nav class='crawler-nav'><ul><li><a href='/'>Home</a></li><li><a href='/categories'>Categories</a></li><li><a href='/tos'>Terms of Service</a></li></ul></nav><p class='powered-by-link'>Powered by <a href="https://discourse.example">Discourse</a>, best viewed with JavaScript enabled</p></footer></body></html>"""


def _mdbook(t: Text) -> str:
    chapters = "".join(
        f'<li class="chapter-item expanded "><a href="c{i}.html"><strong aria-hidden="true">{i}.</strong> {t.name()}</a></li>'
        for i in range(1, 18)
    )
    return f"""<!DOCTYPE HTML>
<html lang="en" class="light sidebar-visible" dir="ltr"><head><meta charset="UTF-8"><title>{t.title()} - The Ferry Book</title></head>
<body><div id="body-container"><script>var path_to_root = "";</script>
<input type="checkbox" id="sidebar-toggle-anchor" class="hidden">
<nav id="sidebar" class="sidebar" aria-label="Table of contents"><div class="sidebar-scrollbox"><ol class="chapter">{chapters}</ol></div></nav>
<div id="page-wrapper" class="page-wrapper"><div class="page"><div id="menu-bar-hover-placeholder"></div>
<div id="menu-bar" class="menu-bar sticky"><div class="left-buttons"><label id="sidebar-toggle" class="icon-button"><i class="fa fa-bars"></i></label><ul id="theme-list" class="theme-popup" aria-label="Themes" role="menu"><li role="none"><button role="menuitem" class="theme" id="light">Light</button></li><li role="none"><button role="menuitem" class="theme" id="coal">Coal</button></li></ul></div>
<h1 class="menu-title">The Ferry Book</h1><div class="right-buttons"><a href="print.html" title="Print this book" aria-label="Print this book"><i id="print-button" class="fa fa-print"></i></a></div></div>
<div id="search-wrapper" class="hidden"><form id="searchbar-outer" class="searchbar-outer"><input type="search" id="searchbar" placeholder="Search this book ..."></form></div>
<div id="content" class="content"><main>⟦<h1 id="borrow"><a class="header" href="#borrow">{t.title()}</a></h1>{_paragraphs(t, 2)}
<pre><pre class="playground"><code class="language-rust edition2021">fn main() {{
    let ferry = String::from("north");
    println!("{{ferry}}");
}}</code></pre></pre>
<h2 id="rules"><a class="header" href="#rules">{t.title()}</a></h2>{_paragraphs(t, 3)}
<blockquote><p>{t.paragraph(2)}</p></blockquote><ul><li>{t.sentence()}</li><li><code>ferry</code> {t.sentence()}</li></ul>
<div class="table-wrapper"><table><thead><tr><th>Lane</th><th>Meaning</th></tr></thead><tbody><tr><td>north</td><td>{t.sentence(6)}</td></tr><tr><td>south</td><td>{t.sentence(6)}</td></tr></tbody></table></div>{_paragraphs(t, 1)}⟧</main>
<nav class="nav-wrapper" aria-label="Page navigation"><a rel="prev" href="c3.html" class="mobile-nav-chapters previous" title="Previous chapter"><i class="fa fa-angle-left"></i></a><div style="clear: both"></div></nav></div></div>
<nav class="nav-wide-wrapper" aria-label="Page navigation"><a rel="next prefetch" href="c5.html" class="nav-chapters next" title="Next chapter"><i class="fa fa-angle-right"></i></a></nav></div></div></body></html>"""


def _ghost(t: Text) -> str:
    cards = "".join(
        f"""<article class="post-card post "><a class="post-card-image-link" href="/p{i}/"><img class="post-card-image" src="/i{i}.jpg" alt="{t.name()}" loading="lazy" /></a><div class="post-card-content"><a class="post-card-content-link" href="/p{i}/"><header class="post-card-header"><div class="post-card-tags"></div><h2 class="post-card-title">{t.title()}</h2></header><div class="post-card-excerpt">{t.paragraph(2)}</div></a><footer class="post-card-meta"><time class="post-card-meta-date" datetime="2026-04-0{i}">Apr {i}, 2026</time><span class="post-card-meta-length">4 min read</span></footer></div></article>"""
        for i in range(1, 4)
    )
    return f"""<!DOCTYPE html><html lang="en"><head><title>{t.title()}</title><script type="application/ld+json">{{"@context":"https://schema.org","@type":"Article","headline":"x"}}</script></head>
<body class="post-template tag-news is-head-left-logo has-cover"><div class="viewport"><header id="gh-head" class="gh-head outer"><div class="gh-head-inner inner"><div class="gh-head-brand"><a class="gh-head-logo no-image" href="/">Lantern Letter</a><button class="gh-search gh-icon-btn" aria-label="Search this site" data-ghost-search>{_SVG}</button></div><nav class="gh-head-menu"><ul class="nav"><li class="nav-home"><a href="/">Home</a></li><li class="nav-about"><a href="/about/">About</a></li></ul></nav><div class="gh-head-actions"><div class="gh-head-members"><a class="gh-head-link" href="#/portal/signin">Sign in</a><a class="gh-head-button" href="#/portal/signup">Subscribe</a></div></div></div></header>
<div class="site-content"><main id="site-main" class="site-main"><article class="article post tag-news image-full"><header class="article-header gh-canvas"><div class="article-tag post-card-tags"><span class="post-card-primary-tag"><a href="/tag/news/">News</a></span></div>
⟦<h1 class="article-title">{t.title()}</h1><p class="article-excerpt">{t.paragraph(1)}</p>⟧
<div class="article-byline"><section class="article-byline-content"><ul class="author-list instapaper_ignore"><li class="author-list-item"><a href="/author/x/" class="author-avatar"><img class="author-profile-image" src="/x.jpg" alt="{t.name()}" /></a></li></ul><div class="article-byline-meta"><h4 class="author-name"><a href="/author/x/">{t.name()}</a></h4><div class="byline-meta-content"><time class="byline-meta-date" datetime="2026-05-03">May 3, 2026</time><span class="byline-reading-time"><span class="bull">&bull;</span> 4 min read</span></div></div></section></div>
⟦<figure class="article-image"><img srcset="/s.jpg 300w" src="/f.jpg" alt="A ferry at night" /><figcaption>{t.sentence()}</figcaption></figure>⟧</header>
<section class="gh-content gh-canvas">⟦{_paragraphs(t, 2)}<h2 id="h">{t.title()}</h2>{_paragraphs(t, 2)}<div class="kg-card kg-callout-card kg-callout-card-blue"><div class="kg-callout-emoji">i</div><div class="kg-callout-text">{t.paragraph(1)}</div></div><figure class="kg-card kg-image-card"><img src="/q.png" class="kg-image" alt="" loading="lazy"></figure><hr>{_paragraphs(t, 2)}<ul><li>{t.sentence()}</li><li>{t.sentence()}</li></ul>⟧</section></article>
<section class="footer-cta outer"><div class="inner"><h2 class="footer-cta-title">Sign up for more like this.</h2><a class="footer-cta-button" href="#/portal"><div class="footer-cta-input">Enter your email</div><span>Subscribe</span></a></div></section>
<aside class="read-more-wrap outer"><div class="read-more inner">{cards}</div></aside></main></div>
<footer class="site-footer outer"><div class="inner"><section class="copyright"><a href="/">Lantern Letter</a> &copy; 2026</section><nav class="site-footer-nav"></nav><div class="gh-powered-by"><a href="https://ghost.example/">Powered by Ghost</a></div></div></footer></div></body></html>"""


def _material(t: Text) -> str:
    return f"""<!doctype html><html lang="en" class="no-js"><head><title>{t.title()} - Ferry</title></head><body dir="ltr" data-md-color-scheme="default">
<input class="md-toggle" data-md-toggle="drawer" type="checkbox" id="__drawer"><label class="md-overlay" for="__drawer"></label>
<div data-md-component="skip"><a href="#x" class="md-skip">Skip to content</a></div>
<header class="md-header md-header--shadow" data-md-component="header"><nav class="md-header__inner md-grid" aria-label="Header"><a href=".." title="Ferry" class="md-header__button md-logo">{_SVG}</a><div class="md-header__title"><div class="md-header__ellipsis"><div class="md-header__topic"><span class="md-ellipsis">Ferry</span></div><div class="md-header__topic" data-md-component="header-topic"><span class="md-ellipsis">{t.name()}</span></div></div></div><div class="md-search" data-md-component="search" role="dialog"><form class="md-search__form"><input type="text" class="md-search__input" placeholder="Search"></form><div class="md-search__output"><div class="md-search-result"><div class="md-search-result__meta">Initializing search</div><ol class="md-search-result__list"></ol></div></div></div><div class="md-header__source"><a href="https://forge.example" class="md-source"><div class="md-source__repository">harbour/ferry</div></a></div></nav></header>
<div class="md-container"><nav class="md-tabs" aria-label="Tabs"><div class="md-grid"><ul class="md-tabs__list">{_items(t, 5, "md-tabs__item")}</ul></div></nav>
<main class="md-main"><div class="md-main__inner md-grid"><div class="md-sidebar md-sidebar--primary" data-md-type="navigation"><div class="md-sidebar__scrollwrap"><div class="md-sidebar__inner"><nav class="md-nav md-nav--primary" aria-label="Navigation"><label class="md-nav__title">Ferry</label><ul class="md-nav__list">{_items(t, 16, "md-nav__item")}</ul></nav></div></div></div>
<div class="md-sidebar md-sidebar--secondary" data-md-type="toc"><div class="md-sidebar__scrollwrap"><div class="md-sidebar__inner"><nav class="md-nav md-nav--secondary" aria-label="Table of contents"><label class="md-nav__title">Table of contents</label><ul class="md-nav__list">{_items(t, 5, "md-nav__item")}</ul></nav></div></div></div>
<div class="md-content" data-md-component="content"><article class="md-content__inner md-typeset"><a href="https://forge.example/edit" title="Edit this page" class="md-content__button md-icon">{_SVG}</a>
⟦<h1 id="t">{t.title()}<a class="headerlink" href="#t" title="Permanent link"></a></h1>{_paragraphs(t, 1)}<div class="admonition tip"><p class="admonition-title">Tip</p><p>{t.paragraph(2)}</p></div>
<h2 id="u">{t.title()}</h2><div class="tabbed-set tabbed-alternate"><input id="i1" name="i" type="radio">⟧<div class="tabbed-labels"><label for="i1">pip</label><label for="i2">uv</label></div>⟦<div class="tabbed-content"><div class="tabbed-block"><div class="highlight"><pre><span></span><code>pip<span class="w"> </span>install<span class="w"> </span>ferry
</code></pre></div></div></div></div>{_paragraphs(t, 3)}<details class="note"><summary>Note</summary><p>{t.paragraph(2)}</p></details><div class="md-typeset__scrollwrap"><div class="md-typeset__table"><table><thead><tr><th>Key</th><th>Meaning</th></tr></thead><tbody><tr><td><code>north</code></td><td>{t.sentence(7)}</td></tr></tbody></table></div></div>⟧
<aside class="md-source-file"><span class="md-source-file__fact"><span class="git-revision-date-localized-plugin">May 3, 2026</span></span></aside></article></div></div></main>
<footer class="md-footer"><nav class="md-footer__inner md-grid" aria-label="Footer"><a href="../p/" class="md-footer__link md-footer__link--prev"><div class="md-footer__title"><span class="md-footer__direction">Previous</span><div class="md-ellipsis">{t.name()}</div></div></a><a href="../n/" class="md-footer__link md-footer__link--next"><div class="md-footer__title"><span class="md-footer__direction">Next</span><div class="md-ellipsis">{t.name()}</div></div></a></nav><div class="md-footer-meta md-typeset"><div class="md-copyright">Made with <a href="https://m.example">Material for MkDocs</a></div></div></footer></div>
<div class="md-dialog"><div class="md-dialog__inner md-typeset"></div></div></body></html>"""


def _storefront(t: Text) -> str:
    related = "".join(
        f"""<li class="product type-product post-{i} status-publish instock"><a href="/product/{i}/" class="woocommerce-LoopProduct-link"><img src="/p{i}.jpg" alt="{t.name()}"><h2 class="woocommerce-loop-product__title">{t.name()}</h2><span class="price"><span class="woocommerce-Price-amount amount"><bdi><span class="woocommerce-Price-currencySymbol">&euro;</span>{t.number()}.00</bdi></span></span></a><a href="?add-to-cart={i}" class="button product_type_simple add_to_cart_button">Add to cart</a></li>"""
        for i in range(4)
    )
    return f"""<!doctype html><html lang="en-US"><head><title>{t.name()} - Copper Shop</title></head><body class="product-template-default single single-product postid-9 wp-embed-responsive theme-storefront woocommerce woocommerce-page storefront-align-wide right-sidebar">
<div id="page" class="hfeed site"><header id="masthead" class="site-header" role="banner"><div class="col-full"><a class="skip-link screen-reader-text" href="#site-navigation">Skip to navigation</a><div class="site-branding"><div class="beta site-title"><a href="/" rel="home">Copper Shop</a></div><p class="site-description">{t.sentence(5)}</p></div><div class="site-search"><form role="search" class="woocommerce-product-search"><label class="screen-reader-text">Search for:</label><input type="search"><button type="submit" value="Search">Search</button></form></div></div>
<div class="storefront-primary-navigation"><div class="col-full"><nav id="site-navigation" class="main-navigation" role="navigation"><button class="menu-toggle"><span>Menu</span></button><div class="primary-navigation"><ul>{_items(t, 6, "menu-item")}</ul></div></nav><ul id="site-header-cart" class="site-header-cart menu"><li><a class="cart-contents" href="/cart/">0.00 <span class="count">0 items</span></a></li></ul></div></div></header>
<div class="storefront-breadcrumb"><div class="col-full"><nav class="woocommerce-breadcrumb"><a href="/">Home</a><span class="breadcrumb-separator"> / </span><a href="/c/">{t.name()}</a></nav></div></div>
<div id="content" class="site-content" tabindex="-1"><div class="col-full"><div class="woocommerce"></div><div id="primary" class="content-area"><main id="main" class="site-main" role="main"><div class="woocommerce-notices-wrapper"></div><div id="product-9" class="product type-product post-9"><div class="woocommerce-product-gallery images"><div class="woocommerce-product-gallery__image"><a href="/f.jpg"><img src="/f.jpg" class="wp-post-image" alt="A kettle of copper"></a></div></div>
<div class="summary entry-summary">⟦<h1 class="product_title entry-title">{t.title()}</h1><p class="price"><span class="woocommerce-Price-amount amount"><bdi><span class="woocommerce-Price-currencySymbol">&euro;</span>{t.number()}.00</bdi></span></p><div class="woocommerce-product-details__short-description"><p>{t.paragraph(2)}</p></div><p class="stock in-stock">12 in stock</p>⟧<form class="cart" method="post"><div class="quantity"><label class="screen-reader-text">Quantity</label><input type="number"></div><button type="submit" class="single_add_to_cart_button button alt">Add to cart</button></form>
<div class="product_meta"><span class="sku_wrapper">SKU: <span class="sku">C-{t.number()}</span></span> <span class="posted_in">Category: <a href="/c/" rel="tag">{t.name()}</a></span></div></div>
<div class="woocommerce-tabs wc-tabs-wrapper"><ul class="tabs wc-tabs" role="tablist"><li class="description_tab" role="tab"><a href="#tab-description">Description</a></li><li class="additional_information_tab" role="tab"><a href="#tab-additional_information">Additional information</a></li></ul>
<div class="woocommerce-Tabs-panel panel entry-content wc-tab" id="tab-description" role="tabpanel">⟦<h2>Description</h2>{_paragraphs(t, 3)}⟧</div><div class="woocommerce-Tabs-panel panel entry-content wc-tab" id="tab-additional_information" role="tabpanel">⟦<h2>Additional information</h2><table class="woocommerce-product-attributes shop_attributes"><tr class="woocommerce-product-attributes-item"><th class="woocommerce-product-attributes-item__label">Weight</th><td class="woocommerce-product-attributes-item__value">{t.number()} g</td></tr><tr><th>Material</th><td><p>{t.name()}</p></td></tr></table>⟧</div></div>
<section class="related products"><h2>Related products</h2><ul class="products columns-4">{related}</ul></section></div></main></div>
<div id="secondary" class="widget-area" role="complementary"><div id="woocommerce_product_categories-2" class="widget woocommerce"><span class="gamma widget-title">Product categories</span><ul class="product-categories">{_items(t, 7, "cat-item")}</ul></div></div></div></div>
<footer id="colophon" class="site-footer" role="contentinfo"><div class="col-full"><div class="site-info">&copy; Copper Shop 2026 <br /><a href="/privacy">Privacy Policy</a></div></div></footer></div></body></html>"""


def _rustdoc(t: Text) -> str:
    methods = "".join(
        f"""<details class="toggle method-toggle" open><summary><section id="method.m{i}" class="method"><a class="src rightside" href="../src/f.rs.html#{i}">Source</a><h4 class="code-header">pub fn <a href="#method.m{i}" class="fn">cross_{i}</a>(&amp;self, lane: <a class="primitive" href="../std/primitive.u32.html">u32</a>) -&gt; <a class="struct" href="struct.Lane.html" title="struct ferry::Lane">Lane</a></h4></section></summary><div class="docblock"><p>{t.paragraph(2)}</p><h5 id="e{i}"><a class="doc-anchor" href="#e{i}">§</a>Examples</h5><div class="example-wrap"><pre class="rust rust-example-rendered"><code><span class="kw">let </span>lane = ferry.cross_{i}(<span class="number">{i}</span>);
<span class="macro">assert_eq!</span>(lane.number(), <span class="number">{i}</span>);</code></pre></div></div></details>"""
        for i in range(4)
    )
    links = "".join(f'<li><a href="#method.m{i}">cross_{i}</a></li>' for i in range(4))
    return f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="generator" content="rustdoc"><title>Ferry in ferry - Rust</title></head><body class="rustdoc struct">
<nav class="mobile-topbar"><button class="sidebar-menu-toggle" title="show sidebar"></button></nav><nav class="sidebar"><div class="sidebar-crate"><h2><a href="../ferry/index.html">ferry</a><span class="version">1.2.0</span></h2></div><div class="sidebar-elems"><section id="rustdoc-toc"><h2 class="location"><a href="#">Ferry</a></h2><h3><a href="#implementations">Methods</a></h3><ul class="block method">{links}</ul></section><div id="rustdoc-modnav"><h2 class="in-crate"><a href="index.html">In crate ferry</a></h2></div></div></nav><div class="sidebar-resizer"></div>
<main><div class="width-limiter"><rustdoc-search></rustdoc-search><section id="main-content" class="content"><div class="main-heading"><div class="rustdoc-breadcrumbs"><a href="index.html">ferry</a></div>⟦<h1>Struct <span class="struct">Ferry</span>⟧<button id="copy-path" title="Copy item path to clipboard">Copy item path</button></h1><rustdoc-toolbar></rustdoc-toolbar><span class="sub-heading"><a class="src" href="../src/f.rs.html#1">Source</a></span></div>
⟦<pre class="rust item-decl"><code>pub struct Ferry {{ <span class="comment">/* private fields */</span> }}</code></pre><details class="toggle top-doc" open><summary class="hideme"><span>Expand description</span></summary><div class="docblock">{_paragraphs(t, 3)}<ul><li>{t.sentence()}</li><li><a href="struct.Lane.html"><code>Lane</code></a> {t.sentence()}</li></ul></div></details>
<h2 id="implementations" class="section-header">Implementations<a href="#implementations" class="anchor">§</a></h2><div id="implementations-list"><details class="toggle implementors-toggle" open><summary><section id="impl-Ferry" class="impl"><h3 class="code-header">impl <a class="struct" href="struct.Ferry.html" title="struct ferry::Ferry">Ferry</a></h3></section></summary><div class="impl-items">{methods}</div></details></div>⟧</section></div></main></body></html>"""


def _doxygen(t: Text) -> str:
    members = "".join(
        f"""<a id="a{i}"></a><h2 class="memtitle"><span class="permalink"><a href="#a{i}">&#9670;&#160;</a></span>cross{i}()</h2><div class="memitem"><div class="memproto"><table class="memname"><tr><td class="memname">int ferry_cross{i} </td><td>(</td><td class="paramtype">struct lane *&#160;</td><td class="paramname"><span class="paramname"><em>lane</em></span></td><td>)</td><td></td></tr></table></div><div class="memdoc"><p>{t.paragraph(2)}</p><dl class="params"><dt>Parameters</dt><dd><table class="params"><tr><td class="paramname">lane</td><td>{t.sentence(8)}</td></tr></table></dd></dl><dl class="section return"><dt>Returns</dt><dd>{t.sentence(8)}</dd></dl></div></div>"""
        for i in range(4)
    )
    summary = "".join(
        f'<tr class="memitem:a{i}" id="r_a{i}"><td class="memItemLeft" align="right" valign="top">int&#160;</td><td class="memItemRight" valign="bottom"><a class="el" href="#a{i}">ferry_cross{i}</a> (struct lane *lane)</td></tr><tr class="memdesc:a{i}"><td class="mdescLeft">&#160;</td><td class="mdescRight">{t.sentence(8)} <a href="#a{i}">More...</a><br /></td></tr>'
        for i in range(4)
    )
    return f"""<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "https://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd"><html xmlns="http://www.w3.org/1999/xhtml" lang="en-US"><head><meta name="generator" content="Doxygen 1.9.8"/><title>libferry: ferry.h File Reference</title></head><body>
<div id="top"><div id="titlearea"><table cellspacing="0" cellpadding="0"><tbody><tr id="projectrow"><td id="projectalign"><div id="projectname">libferry<span id="projectnumber">&#160;2.4</span></div><div id="projectbrief">{t.sentence(5)}</div></td></tr></tbody></table></div>
<div id="main-nav"><ul class="sm sm-dox" id="main-menu"><li><a href="index.html">Main&#160;Page</a></li><li><a href="annotated.html">Data&#160;Structures</a></li><li><a href="files.html">Files</a></li></ul></div><div id="nav-path" class="navpath"><ul><li class="navelem"><a class="el" href="dir.html">include</a></li></ul></div></div>
<div class="header"><div class="summary"><a href="#func-members">Functions</a></div><div class="headertitle">⟦<div class="title">ferry.h File Reference</div>⟧</div></div>
<div class="contents">⟦<p>{t.sentence()} <a href="#details">More...</a></p><div class="textblock"><code>#include &lt;stddef.h&gt;</code><br /></div><table class="memberdecls"><tr class="heading"><td colspan="2"><h2 class="groupheader"><a id="func-members" name="func-members"></a>Functions</h2></td></tr>{summary}</table>
<a name="details" id="details"></a><h2 class="groupheader">Detailed Description</h2><div class="textblock">{_paragraphs(t, 2)}<div class="fragment"><div class="line"><span class="preprocessor">#include &lt;ferry.h&gt;</span></div><div class="line">ferry_cross1(lane);</div></div></div><h2 class="groupheader">Function Documentation</h2>{members}⟧</div>
<hr class="footer"/><address class="footer"><small>Generated by&#160;<a href="https://doxygen.example"><img class="footer" src="doxygen.svg" width="104" height="31" alt="doxygen"/></a> 1.9.8</small></address></body></html>"""


def _olivero(t: Text) -> str:
    return f"""<!DOCTYPE html><html lang="en" dir="ltr"><head><meta name="Generator" content="Drupal 10"><title>{t.title()} | Council of Orchard</title></head><body class="path-node page-node-type-article"><a href="#main-content" class="visually-hidden focusable skip-link">Skip to main content</a>
<div class="dialog-off-canvas-main-canvas" data-off-canvas-main-canvas><div id="page-wrapper" class="page-wrapper"><div id="page"><header id="header" class="site-header" data-drupal-selector="site-header" role="banner"><div class="site-header__fixable"><div class="site-header__inner"><div id="block-branding" class="site-branding block block-system-branding-block"><div class="site-branding__inner"><div class="site-branding__text"><div class="site-branding__name"><a href="/" title="Home" rel="home">Council of Orchard</a></div></div></div></div><div class="header-nav-overlay"></div><div class="header-nav"><nav id="block-main-menu" class="primary-nav block block-menu navigation menu--main"><h2 class="visually-hidden block__title">Main navigation</h2><ul class="menu primary-nav__menu primary-nav__menu--level-1">{_items(t, 7, "primary-nav__menu-item")}</ul></nav></div></div></div></header>
<div id="main-wrapper" class="layout-main-wrapper layout-container"><div id="main" class="layout-main"><div class="main-content"><a id="main-content" tabindex="-1"></a><div class="main-content__container container"><div class="region region--highlighted grid-full layout--pass--content-medium"><div data-drupal-messages-fallback class="hidden messages-list"></div></div><div class="region region--breadcrumb grid-full"><nav class="breadcrumb" role="navigation"><h2 class="visually-hidden">Breadcrumb</h2><ol class="breadcrumb__list"><li class="breadcrumb__item"><a href="/" class="breadcrumb__link">Home</a></li></ol></nav></div>
<div class="region region--content-above grid-full layout--pass--content-medium"><div id="block-page-title" class="block block-core block-page-title-block">⟦<h1 class="title page-title"><span class="field field--name-title field--type-string field--label-hidden">{t.title()}</span></h1>⟧</div></div>
<main role="main"><div class="region region--content grid-full layout--pass--content-medium" id="content"><div id="block-content" class="block block-system block-system-main-block"><div class="block__content"><article data-history-node-id="7" class="node node--type-article node--view-mode-full"><header class=""><div class="node__meta"><span>By {t.name()}, 3 May, 2026</span></div></header><div class="node__content">⟦<div class="field field--name-field-image field--type-image"><figure><img loading="lazy" src="/a.jpg" alt="The market hall"><figcaption>{t.sentence()}</figcaption></figure></div><div class="text-content clearfix field field--name-body field--type-text-with-summary field--label-hidden field__item">{_paragraphs(t, 3)}<h2>{t.title()}</h2>{_paragraphs(t, 2)}<table><caption>{t.sentence(5)}</caption><thead><tr><th scope="col">Office</th><th scope="col">Hours</th></tr></thead><tbody><tr><td>{t.name()}</td><td>9 to 12</td></tr><tr><td>{t.name()}</td><td>13 to 17</td></tr></tbody></table></div>⟧
<div class="field field--name-field-tags field--type-entity-reference field--label-inline clearfix field--tags"><h3 class="field__label inline">Tags</h3><ul class="links field__items">{_items(t, 3, "field__item")}</ul></div></div></article></div></div></div></main>
<div class="sidebar-grid grid-full"><main class="site-main"></main><div class="layout--sidebar"><div class="region region--sidebar"><div id="block-recent" class="block block-views"><h2 class="block__title">Recent announcements</h2><div class="block__content"><ul>{_items(t, 5, "views-row")}</ul></div></div></div></div></div></div></div></div></div>
<footer class="site-footer"><div class="site-footer__inner container"><div class="region region--footer-top"><p>{t.sentence()}</p></div><div class="region region--footer-bottom"><div class="block block-system-powered-by-block"><span>Powered by <a href="https://drupal.example">Drupal</a></span></div></div></div></footer></div></div></div></body></html>"""


def _government(t: Text) -> str:
    body = "".join(
        f'<h2 id="s{i}">{t.title()}</h2>{_paragraphs(t, 2)}<ul><li>{t.sentence(8)}</li><li>{t.sentence(8)}</li></ul>'
        for i in range(3)
    )
    return f"""<!DOCTYPE html><html lang="en" class="govuk-template govuk-template--rebranded"><head><title>{t.title()}: Overview - PUBLIC.EXAMPLE</title></head><body class="gem-c-layout-for-public govuk-template__body draft"><script>document.body.className += ' js-enabled';</script>
<div id="global-cookie-message" class="gem-c-cookie-banner govuk-clearfix" data-nosnippet role="region" aria-label="Cookies on PUBLIC"><div class="govuk-cookie-banner__message govuk-width-container" role="alert"><h2 class="govuk-cookie-banner__heading govuk-heading-m">Cookies on PUBLIC</h2><div class="govuk-cookie-banner__content"><p class="govuk-body">We would like to set additional cookies to understand how you use this site and improve public services.</p></div><div class="govuk-button-group"><button class="gem-c-button govuk-button" type="submit">Accept additional cookies</button><a class="govuk-link" href="/help/cookies">View cookies</a></div></div></div>
<a class="gem-c-skip-link govuk-skip-link govuk-!-display-none-print" href="#content">Skip to main content</a><header class="gem-c-layout-super-navigation-header" role="banner"><div class="gem-c-layout-super-navigation-header__container govuk-width-container"><nav aria-labelledby="super-navigation-menu-heading" class="gem-c-layout-super-navigation-header__content"><h2 id="super-navigation-menu-heading" class="govuk-visually-hidden">Navigation menu</h2><ul>{_items(t, 12, "gem-c-layout-super-navigation-header__dropdown-list-item")}</ul></nav></div></header>
<div id="wrapper" class="wrapper govuk-width-container"><div class="gem-c-breadcrumbs govuk-breadcrumbs" aria-label="Breadcrumb"><ol class="govuk-breadcrumbs__list"><li class="govuk-breadcrumbs__list-item"><a class="govuk-breadcrumbs__link" href="/">Home</a></li></ol></div>
<main role="main" id="content" class="detailed-guide" lang="en"><div class="govuk-grid-row"><div class="govuk-grid-column-two-thirds"><div class="gem-c-heading govuk-!-margin-bottom-8"><span class="govuk-caption-xl gem-c-heading__context">Guidance</span>⟦<h1 class="gem-c-heading__text govuk-heading-l">{t.title()}</h1>⟧</div>⟦<p class="gem-c-lead-paragraph">{t.paragraph(1)}</p>⟧</div><div class="metadata-logo-wrapper"><div class="govuk-grid-column-two-thirds metadata-column"><div class="gem-c-metadata"><dl><dt class="gem-c-metadata__term">From:</dt><dd class="gem-c-metadata__definition"><a class="govuk-link" href="/org">{t.name()} Office</a></dd><dt class="gem-c-metadata__term">Published</dt><dd class="gem-c-metadata__definition">3 May 2026</dd></dl></div></div></div></div>
<div class="govuk-grid-row"><div class="govuk-grid-column-two-thirds"><nav class="gem-c-contents-list" role="navigation" aria-label="Contents"><h2 class="gem-c-contents-list__title">Contents</h2><ol class="gem-c-contents-list__list">{_items(t, 3, "gem-c-contents-list__list-item")}</ol></nav><div class="gem-c-govspeak govuk-govspeak"><div class="govspeak">⟦{body}<div role="note" aria-label="Information" class="application-notice info-notice"><p>{t.paragraph(1)}</p></div>⟧</div></div><div class="gem-c-print-link"><button class="govuk-link gem-c-print-link__button">Print this page</button></div></div><div class="govuk-grid-column-one-third"><div class="gem-c-contextual-sidebar"><div class="gem-c-related-navigation"><h2 class="gem-c-related-navigation__main-heading">Related content</h2><nav role="navigation" class="gem-c-related-navigation__nav-section"><ul class="gem-c-related-navigation__link-list">{_items(t, 5, "gem-c-related-navigation__link")}</ul></nav></div></div></div></div></main>
<div class="gem-c-feedback govuk-!-display-none-print"><div class="gem-c-feedback__prompt"><h2 class="gem-c-feedback__prompt-question">Is this page useful?</h2><button>Yes</button><button>No</button></div></div></div>
<footer class="gem-c-layout-footer govuk-footer" role="contentinfo"><div class="govuk-width-container"><div class="govuk-footer__navigation"><h2 class="govuk-footer__heading">Services and information</h2><ul class="govuk-footer__list">{_items(t, 14, "govuk-footer__list-item")}</ul></div><div class="govuk-footer__meta"><span class="govuk-footer__licence-description">All content is available under the <a class="govuk-footer__link" href="/l">Open Licence</a>, except where otherwise stated</span></div></div></footer></body></html>"""


def _hashed(t: Text) -> str:
    """A news page whose classes are made by a bundler, so that none has a meaning."""
    blocks = "".join(
        f'<div data-component="text-block" class="sc-{"abcdef"[i % 6]}8f3-0 kRqGYz"><div class="sc-18fde0d6-0 dlWCEZ"><p class="sc-eb7bd5f6-0 fezwLZ">{t.paragraph(3)}</p></div></div>'
        for i in range(6)
    )
    cards = "".join(
        f'<div class="sc-b38350e4-3 fsVWTE"><a href="/a{i}" class="sc-2e6baa30-0 gILusN"><div data-testid="card-text-wrapper" class="sc-8ea7699c-1 hxRodh"><h2 class="sc-8ea7699c-3 dhclWg">{t.title()}</h2><p class="sc-ae29827d-0 cNPpME">{t.sentence()}</p><span class="sc-6fba5bd4-1 efYorw">5 hrs ago</span></div></a></div>'
        for i in range(6)
    )
    return f"""<!DOCTYPE html><html lang="en-GB"><head><title>{t.title()}</title><style data-styled>.a{{}}</style></head><body><div id="__next"><a href="#main-content" class="sc-26ddf2ac-0 kVQZFS">Skip to content</a><header class="sc-46f4c2e7-0 dLnZZH"><div class="sc-46f4c2e7-1 cKkNIC"><a href="/" aria-label="North Bay News">{_SVG}</a><button>Watch Live</button></div><nav role="navigation" class="sc-df0290d6-5 lfGEBi"><ul>{_items(t, 10, "sc-df0290d6-9")}</ul></nav></header>
<main id="main-content" class="sc-7b6d8a5-0 hjHhQN"><article class="sc-a34861b-0 kpPjTp"><div data-component="headline-block" class="sc-18fde0d6-0 hCiRVp">⟦<h1 class="sc-f98b1ad2-0 dfvxux">{t.title()}</h1>⟧</div><div data-component="byline-block" class="sc-801dd632-0 gKBzvQ"><div class="sc-801dd632-1 eqMslG"><time datetime="2026-05-03T10:00:00.000Z" class="sc-801dd632-2 IvNnh">3 May 2026</time><button aria-label="Share">Share</button><button>Save</button></div><div class="sc-801dd632-6 cCMHwO"><span class="sc-801dd632-7 lasLGY">{t.name()}</span><div class="sc-801dd632-8 ijTRGh">Harbour correspondent</div></div></div>
⟦<figure><div data-component="image-block" class="sc-18fde0d6-0 bBMwVL"><img src="/a.webp" alt="Boats in the morning" class="sc-d1200759-0 dvfjxj"></div><figcaption class="sc-8353772e-0 cvNhQw">{t.sentence()}</figcaption></figure>{blocks}<div data-component="subheadline-block" class="sc-18fde0d6-0 hVVhAY"><h2 class="sc-f98b1ad2-0 iUNhxM">{t.title()}</h2></div><div data-component="text-block" class="sc-18fde0d6-0 dlWCEZ"><p class="sc-eb7bd5f6-0 fezwLZ">{t.paragraph(3)}</p><p class="sc-eb7bd5f6-0 fezwLZ">{t.paragraph(3)}</p></div>⟧
<div data-component="links-block" class="sc-18fde0d6-0 gOrWnF"><h2 class="sc-ae29827d-0">More on this story</h2><ul>{_items(t, 3, "sc-1fcd7b29-1")}</ul></div><div data-component="tags" class="sc-1d7d3bb9-0 kUtAPa"><a href="/topics/1">{t.name()}</a><a href="/topics/2">{t.name()}</a></div></article>
<div data-component="ad-slot" class="sc-94ea4d35-0 hXuNpD"><div>Advertisement</div></div><section data-testid="links-grid" class="sc-7d76d6cc-0 cmRfFX"><div class="sc-d13a2b48-1"><h2 class="sc-d13a2b48-2 hLRNGp">More from the bay</h2></div><div class="sc-e70150c3-0 fbvxoY">{cards}</div></section></main>
<footer class="sc-9d0bbd51-0 fNsSWF"><ul>{_items(t, 12, "sc-9d0bbd51-5")}</ul><div class="sc-9d0bbd51-7">Copyright © 2026 North Bay News. <i>The bay is not responsible for the content of external sites.</i></div></footer></div><script id="__NEXT_DATA__" type="application/json">{{"props":{{"pageProps":{{"x":"<p>no text</p>"}}}}}}</script></body></html>"""


def _questions(t: Text) -> str:
    def votes(score: int) -> str:
        return f'<div class="votecell post-layout--left"><div class="js-voting-container d-flex"><button class="js-vote-up-btn">up</button><div class="js-vote-count" itemprop="upvoteCount">{score}</div><button class="js-vote-down-btn">down</button></div></div>'

    comments = "".join(
        f'<li id="comment-{i}" class="comment js-comment"><div class="comment-text js-comment-text-and-form"><div class="comment-body js-comment-edit-hide">⟦<span class="comment-copy">{t.sentence()}</span>⟧ <span class="comment-user-wrap">– <a href="/users/{i}" class="comment-user">{t.name()}</a></span> <span class="comment-date"><span class="relativetime-clean">May 3 at 10:0{i}</span></span></div></div></li>'
        for i in range(2)
    )
    signature = f'<div class="mt24"><div class="d-flex fw-wrap ai-start jc-end"><div class="js-post-menu"><a href="/a/1" class="js-share-link">Share</a><a href="/edit" class="js-suggest-edit-post">Improve this answer</a></div><div class="post-signature flex--item"><div class="user-info"><div class="user-action-time">answered <span class="relativetime">May 3 at 9:00</span></div><div class="user-details"><a href="/users/1">{t.name()}</a><div class="-flair"><span class="reputation-score">4,{t.number()}</span></div></div></div></div></div></div>'
    answers = "".join(
        f'<div id="answer-{i}" class="answer js-answer" itemprop="suggestedAnswer" itemscope><div class="post-layout">{votes(i)}<div class="answercell post-layout--right"><div class="s-prose js-post-body" itemprop="text">⟦{_paragraphs(t, 2)}<pre class="lang-py s-code-block"><code class="hljs language-python">ferry.cross({i})\n</code></pre><p>{t.paragraph(1)}</p>⟧</div>{signature}</div><div class="post-layout--right js-post-comments-component"><ul class="comments-list js-comments-list">{comments}</ul><a class="js-add-link comments-link">Add a comment</a></div></div></div>'
        for i in range(2)
    )
    hot = "".join(f'<li class="dno"><a href="/hot/{i}" class="js-gps-track">{t.title()}</a></li>' for i in range(6))
    return f"""<!DOCTYPE html><html class="html__responsive" lang="en"><head><title>python - {t.title()} - Harbour Exchange</title></head><body class="question-page unified-theme"><header class="s-topbar ps-fixed t0 l0 js-top-bar"><div class="s-topbar--container"><a href="/" class="s-topbar--logo js-gps-track"><span class="-img _glyph">Harbour Exchange</span></a><ol class="s-navigation" role="presentation"><li><a href="/about" class="s-navigation--item">About</a></li></ol><form id="search" role="search" class="s-topbar--searchbar"><input type="text"></form></div></header>
<div class="container"><div id="left-sidebar" class="left-sidebar js-pinned-left-sidebar"><nav role="navigation"><ol class="nav-links">{_items(t, 5, "ps-relative")}</ol></nav></div><div id="content" class="snippet-hidden"><div itemprop="mainEntity" itemscope itemtype="https://schema.org/Question"><div class="inner-content clearfix"><div id="question-header" class="d-flex sm:fd-column">⟦<h1 itemprop="name" class="fs-headline1 ow-break-word"><a href="/q/1" class="question-hyperlink">{t.title()}</a></h1>⟧<div class="ml12 aside-cta"><a href="/questions/ask" class="s-btn s-btn__filled">Ask Question</a></div></div><div class="d-flex fw-wrap pb8 mb16 bb bc-black-200"><div class="flex--item ws-nowrap mr16 mb8"><span class="fc-black-400">Asked</span> <time itemprop="dateCreated" datetime="2026-05-03">today</time></div><div class="flex--item ws-nowrap mb8"><span>Viewed</span> {t.number()} times</div></div>
<div id="mainbar" role="main" aria-label="question and answers"><div class="question js-question" id="question"><div class="post-layout">{votes(3)}<div class="postcell post-layout--right"><div class="s-prose js-post-body" itemprop="text">⟦{_paragraphs(t, 2)}<pre><code>import ferry
ferry.north()
</code></pre>{_paragraphs(t, 1)}⟧</div><div class="mt24 mb12"><div class="post-taglist"><ul class="ml0 list-ls-none js-post-tag-list-wrapper">{_items(t, 3, "js-post-tag-list-item")}</ul></div></div>{signature}</div><div class="post-layout--right js-post-comments-component"><ul class="comments-list">{comments}</ul></div></div></div>
<div id="answers"><div id="answers-header"><div class="answers-subheader d-flex"><h2 class="mb0" data-answercount="2">2 Answers</h2><form><label>Sorted by:</label><select><option>Highest score</option></select></form></div></div>{answers}<form id="post-form" class="js-add-answer-component post-form"><h2 class="space" id="your-answer-header">Your Answer</h2><textarea></textarea><button>Post Your Answer</button><p class="privacy-policy-agreement">By clicking you agree to our <a href="/tos">terms of service</a>.</p></form></div></div>
<div id="sidebar" class="show-votes" role="complementary" aria-label="sidebar"><div class="module sidebar-linked"><h4 id="h-linked">Linked</h4><div class="linked">{_items(t, 3, "spacer")}</div></div><div id="hot-network-questions" class="module tex2jax_ignore"><h4><a href="/hot">Hot Network Questions</a></h4><ul>{hot}</ul></div></div></div></div></div></div><footer id="footer" class="site-footer js-footer" role="contentinfo"><div class="site-footer--container"><ul>{_items(t, 9, "-link")}</ul><p class="md:mb24">Site design and logo © 2026 Harbour Exchange; user contributions licensed under a licence. <span id="svnrev">rev 2026.5.3</span></p></div></footer></body></html>"""


def _mailing_list(t: Text) -> str:
    quoted = "\n".join(f"&gt; {t.sentence()}" for _ in range(4))
    text = "\n\n".join(t.paragraph(3) for _ in range(3))
    return f"""<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN"><HTML><HEAD><TITLE> [ferry-dev] {t.title()} </TITLE><LINK REL="Index" HREF="index.html" ><META NAME="robots" CONTENT="index,nofollow"></HEAD><BODY BGCOLOR="#ffffff">
⟦<H1>[ferry-dev] {t.title()}</H1>⟧
<B>{t.name()}</B> <A HREF="mailto:ferry-dev%40lists.example" TITLE="[ferry-dev] x">north at ferry.example </A><BR><I>Sun May 3 10:00:00 CEST 2026</I>
<P><UL><LI>Previous message: <A HREF="001.html">[ferry-dev] {t.title()} </A></li><LI>Next message: <A HREF="003.html">[ferry-dev] {t.title()} </A></li><LI> <B>Messages sorted by:</B> <a href="date.html#2">[ date ]</a> <a href="thread.html#2">[ thread ]</a> <a href="subject.html#2">[ subject ]</a> <a href="author.html#2">[ author ]</a></LI></UL><HR>
<!--beginarticle-->⟦<PRE>On Sat, May 2, 2026 at 9:00 PM somebody wrote:
{quoted}

{text}

diff --git a/ferry.c b/ferry.c
-	int lane = 1;
+	int lane = 2;

</PRE>⟧<!--endarticle-->
<HR><P><UL><!--threads--><LI>Previous message: <A HREF="001.html">[ferry-dev] {t.title()} </A></li><LI>Next message: <A HREF="003.html">[ferry-dev] {t.title()} </A></li><LI> <B>Messages sorted by:</B> <a href="date.html#2">[ date ]</a> <a href="thread.html#2">[ thread ]</a></LI></UL>
<hr><a href="https://lists.example/listinfo/ferry-dev">More information about the ferry-dev mailing list</a><br></body></html>"""


def _texinfo(t: Text) -> str:
    bar = f'<p>Next: <a href="N.html" accesskey="n" rel="next">{t.name()}</a>, Previous: <a href="P.html" accesskey="p" rel="prev">{t.name()}</a>, Up: <a href="U.html" accesskey="u" rel="up">Using Ferry</a> &nbsp; [<a href="index.html#SEC_Contents" title="Table of contents" rel="contents">Contents</a>][<a href="Index.html" title="Index" rel="index">Index</a>]</p>'
    functions = "".join(
        f'<dl class="first-deftypefn"><dt class="deftypefn" id="index-cross_{i}"><span class="category-def">Function: </span><span><code class="def-type">int</code> <strong class="def-name">ferry_cross_{i}</strong> <code class="def-code-arguments">(ferry_lane *<var class="var">lane</var>)</code><a class="copiable-link" href="#index-cross_{i}"> &para;</a></span></dt><dd><p>{t.paragraph(2)}</p></dd></dl>'
        for i in range(4)
    )
    return f"""<!DOCTYPE html><html><!-- Created by GNU Texinfo 7.1 --><head><meta http-equiv="Content-Type" content="text/html; charset=utf-8"><title>{t.name()} (Ferry: the manual)</title></head><body lang="en"><div class="subsection-level-extent" id="The-Lanes">
<div class="nav-panel">{bar}</div><hr>
⟦<h4 class="subsection" id="The-Lanes-1"><span>2.3.1 {t.title()}<a class="copiable-link" href="#The-Lanes-1"> &para;</a></span></h4>{_paragraphs(t, 2)}{functions}<div class="example"><pre class="example-preformatted">struct lane lane;
  ferry_cross_1 (&amp;lane);
</pre></div><p>{t.paragraph(2)}</p><dl class="table"><dt><code class="code">LANE_NORTH</code></dt><dd><p>{t.sentence()}</p></dd><dt><code class="code">LANE_SOUTH</code></dt><dd><p>{t.sentence()}</p></dd></dl>⟧
</div><hr><div class="nav-panel">{bar}</div></body></html>"""


def _job(t: Text) -> str:
    return f"""<!DOCTYPE html><html lang="en"><head><title>Job Application for {t.name()} at Copper Line</title></head><body><div class="page-container" id="app"><div class="navbar-placeholder"></div><header class="index-module_header__x9"><a class="logo" href="https://copper.example"><img src="/logo.png" alt="Copper Line Logo"/></a></header>
<main class="main font-secondary job-post"><div class="content"><a class="back-button" href="/jobs">{_SVG}Back to jobs</a><div class="job__title">⟦<h1 class="section-header section-header--large font-primary">{t.title()}</h1><div class="job__location"><div>Northern Harbour, or remote</div></div>⟧</div><div class="job__header-apply"><button class="btn btn--pill">Apply</button></div>
<div class="job__description body">⟦<div><p><strong>About us</strong></p>{_paragraphs(t, 1)}<p><strong>What you will do</strong></p><ul><li>{t.sentence()}</li><li>{t.sentence()}</li><li>{t.sentence()}</li></ul><p><strong>What you bring</strong></p><ul><li>{t.sentence()}</li><li>{t.sentence()}</li></ul>{_paragraphs(t, 1)}<div class="pay-range"><p>Salary range</p><p>{t.number()} to {t.number()} a day</p></div></div>⟧</div>
<div class="job-alert"><h2>Create a Job Alert</h2><p>Interested in building your career at Copper Line? Get future opportunities sent straight to your email.</p><button>Create alert</button></div>
<div id="application" class="application--container"><h2 class="section-header">Apply for this job</h2><p class="required">* indicates a required field</p><form id="application-form"><label>First Name</label><input><label>Last Name</label><input><div class="eeoc__container"><h3>Voluntary questions</h3><label>Gender</label><select><option>Select...</option></select></div><button type="submit">Submit application</button></form></div></div></main>
<footer class="footer"><p>Powered by <a href="https://jobs.example"><img alt="Jobs logo" src="/j.png"/></a></p><p>Read our <a href="/privacy">Privacy Policy</a></p></footer></div></body></html>"""


_TEMPLATES: Final = (
    _discourse, _mdbook, _ghost, _material, _storefront, _rustdoc, _doxygen, _olivero, _government, _hashed, _questions,
    _mailing_list, _texinfo, _job,
)  # fmt: skip


def held_out_pages() -> list[LabelledPage]:
    """Two pages of each of fourteen templates that `labelled_pages` does not have."""
    return pages_of(_TEMPLATES, seeds=2)
