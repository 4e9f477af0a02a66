"""The language of a text: by its script, its commonest words, or what its page declares."""

# ruff: noqa: RUF001

from __future__ import annotations

import pytest

from webfountain.formats.language import LANGUAGES, language_of

# The first article of the Universal Declaration of Human Rights.
ARTICLE = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience "
    "and should act towards one another in a spirit of brotherhood.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt "
    "und sollen einander im Geist der Brüderlichkeit begegnen.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
    "conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y "
    "conciencia, deben comportarse fraternalmente los unos con los otros.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e di "
    "coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
    "consciência, devem agir uns para com os outros em espírito de fraternidade.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand en "
    "geweten, en behoren zich jegens elkander in een geest van broederschap te gedragen.",
    "sv": "Alla människor är födda fria och lika i värde och rättigheter. De har utrustats med förnuft och samvete och "
    "bör handla gentemot varandra i en anda av gemenskap.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi w swojej godności i w swoich prawach. Są oni obdarzeni rozumem i "
    "sumieniem i powinni postępować wobec siebie w duchu braterstwa.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и "
    "должны поступать в отношении друг друга в духе братства.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "zh": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    "ar": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق، وقد وهبوا عقلا وضميرا.",
}


@pytest.mark.parametrize("language", ARTICLE)
def test_a_text_shows_its_language_whatever_its_page_declares(language: str) -> None:
    assert language_of(ARTICLE[language], declared="xx") == language


@pytest.mark.parametrize(
    ("declared", "found"), [("de-AT", "de"), ("EN_us", "en"), (" fr ", "fr"), ("", None), ("x", None)]
)
def test_what_is_too_short_to_decide_is_what_its_page_declares(declared: str, found: str | None) -> None:
    assert language_of("404", declared) == found


def test_a_language_that_nobody_knows_here_is_none() -> None:
    finnish_names = "Matti Meikäläinen Helsinki Espoo Vantaa Tampere Turku Oulu Lahti Kuopio Pori Vaasa Kotka"
    assert language_of(finnish_names) is None
    assert language_of("") is None
    assert set(ARTICLE) <= LANGUAGES
