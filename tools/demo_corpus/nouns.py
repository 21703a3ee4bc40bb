"""Nouns of the demo grammar with all their forms, compounds, and proper names.

A line of a table: gender (`m`, `f`, `n`; `w` = masculine of the n-declension),
German singular and plural (`-` if it has none), English singular and, if it is
irregular, plural.
"""

from typing import NamedTuple

from tools.demo_corpus import english
from tools.demo_corpus.german import noun_forms

TABLES = {
    "person": """
        m Mann Männer man men
        f Frau Frauen woman women
        n Kind Kinder child children
        n Mädchen Mädchen girl
        w Junge Jungen boy
        m Bäcker Bäcker baker
        m Maler Maler painter
        m Gärtner Gärtner gardener
        m Richter Richter judge
        m König Könige king
        m Gast Gäste guest
        m Dieb Diebe thief thieves
        m Kellner Kellner waiter
        w Polizist Polizisten policeman policemen
        w Student Studenten student
        m Ritter Ritter knight
        m Schneider Schneider tailor
        f Lehrerin Lehrerinnen teacher
        f Ärztin Ärztinnen doctor
        f Königin Königinnen queen
        f Sängerin Sängerinnen singer
        f Köchin Köchinnen cook
        f Tänzerin Tänzerinnen dancer
        f Pilotin Pilotinnen pilot
        f Reporterin Reporterinnen reporter
        f Anwältin Anwältinnen lawyer
        f Prinzessin Prinzessinnen princess
        f Forscherin Forscherinnen researcher
    """,
    "kin": """
        m Freund Freunde friend
        m Bruder Brüder brother
        m Vater Väter father
        m Sohn Söhne son
        m Onkel Onkel uncle
        w Nachbar Nachbarn neighbor
        f Mutter Mütter mother
        f Schwester Schwestern sister
        f Tochter Töchter daughter
        f Tante Tanten aunt
        f Großmutter Großmütter grandmother
    """,
    "animal": """
        m Hund Hunde dog
        f Katze Katzen cat
        n Pferd Pferde horse
        m Vogel Vögel bird
        f Kuh Kühe cow
        f Maus Mäuse mouse mice
        f Ente Enten duck
        w Bär Bären bear
        m Fuchs Füchse fox
        m Frosch Frösche frog
        f Ziege Ziegen goat
        n Huhn Hühner chicken
        f Gans Gänse goose geese
        f Schlange Schlangen snake
    """,
    "thing": """
        m Koffer Koffer suitcase
        m Ball Bälle ball
        m Ring Ringe ring
        n Bild Bilder picture
        f Blume Blumen flower
        n Geschenk Geschenke gift
        f Flasche Flaschen bottle
        n Glas Gläser glass
        m Teller Teller plate
        f Tasse Tassen cup
        n Messer Messer knife knives
        m Löffel Löffel spoon
        m Teppich Teppiche carpet
        f Decke Decken blanket
        n Fahrrad Fahrräder bicycle
        n Auto Autos car
        n Boot Boote boat
        n Seil Seile rope
        f Kiste Kisten box
        m Korb Körbe basket
        f Geige Geigen violin
        f Gitarre Gitarren guitar
        f Puppe Puppen doll
        f Kerze Kerzen candle
        f Münze Münzen coin
    """,
    "head": """
        m Tisch Tische table
        m Stuhl Stühle chair
        f Tür Türen door
        n Fenster Fenster window
        m Schrank Schränke cupboard
        f Bank Bänke bench
        m Schlüssel Schlüssel key
        f Tasche Taschen bag
        m Spiegel Spiegel mirror
    """,
    "device": """
        f Lampe Lampen lamp
        n Radio Radios radio
        m Computer Computer computer
        f Maschine Maschinen machine
        f Kamera Kameras camera
        f Uhr Uhren clock
    """,
    "text": """
        n Buch Bücher book
        m Brief Briefe letter
        f Zeitung Zeitungen newspaper
        n Gedicht Gedichte poem
        f Geschichte Geschichten story
        m Bericht Berichte report
    """,
    "garment": """
        m Hut Hüte hat
        m Mantel Mäntel coat
        n Hemd Hemden shirt
        f Jacke Jacken jacket
        n Kleid Kleider dress
        m Schuh Schuhe shoe
    """,
    "food": """
        m Apfel Äpfel apple
        f Birne Birnen pear
        m Kuchen Kuchen cake
        n Ei Eier egg
        f Kartoffel Kartoffeln potato
        f Tomate Tomaten tomato
        f Zitrone Zitronen lemon
        f Wurst Würste sausage
        m Pilz Pilze mushroom
    """,
    "meal": """
        n Brot - bread
        m Käse - cheese
        m Reis - rice
        f Suppe - soup
        n Fleisch - meat
        n Obst - fruit
    """,
    "drink": """
        m Kaffee - coffee
        m Tee - tea
        f Milch - milk
        n Wasser - water
        m Saft - juice
        m Wein - wine
    """,
    "place": """
        m Park Parks park
        m Garten Gärten garden
        m Wald Wälder forest
        m Bahnhof Bahnhöfe station
        m Laden Läden shop
        m Keller Keller cellar
        f Stadt Städte city
        f Schule Schulen school
        f Kirche Kirchen church
        f Küche Küchen kitchen
        f Bibliothek Bibliotheken library
        f Fabrik Fabriken factory
        f Burg Burgen castle
        f Höhle Höhlen cave
        f Scheune Scheunen barn
        f Wohnung Wohnungen apartment
        n Haus Häuser house
        n Dorf Dörfer village
        n Museum Museen museum
        n Hotel Hotels hotel
        n Theater Theater theater
        n Büro Büros office
        n Zimmer Zimmer room
    """,
}

# The first parts of compounds, including their linking element.
COMPOUND_MODIFIERS = tuple(
    tuple(line.split())
    for line in """
        Garten garden
        Küchen kitchen
        Schul school
        Stadt city
        Kirchen church
        Keller cellar
        Hotel hotel
        Museums museum
        Theater theater
        Büro office
        Reise travel
        Sommer summer
        Winter winter
        Glas glass
        Haus house
        Gold gold
        Silber silver
    """.strip().splitlines()
)

PERSON_NAMES = tuple(
    "Anna Peter Maria Paul Laura Thomas Julia Martin Eva Felix Clara "
    "Emil".split()
)
CITY_NAMES = (
    ("Berlin", "Berlin"),
    ("Hamburg", "Hamburg"),
    ("Paris", "Paris"),
    ("London", "London"),
    ("Wien", "Vienna"),
    ("München", "Munich"),
    ("Köln", "Cologne"),
    ("Rom", "Rome"),
    ("Prag", "Prague"),
    ("Bremen", "Bremen"),
)


class Noun(NamedTuple):
    """A noun: its kind, gender, German forms and two English forms."""

    kind: str
    column: int
    forms: tuple[tuple[str, str], ...]
    english: tuple[str, str]
    countable: bool


def _noun(kind, line):
    gender, singular, plural, english_singular, *rest = line.split()
    column = "mfn".index("m" if gender == "w" else gender)
    countable = plural != "-"
    english_plural = rest[0] if rest else english.plural(english_singular)
    return Noun(
        kind,
        column,
        noun_forms(
            singular,
            plural if countable else singular,
            column,
            weak=gender == "w",
        ),
        (english_singular, english_plural),
        countable,
    )


def _compound(modifier, head):
    stem, english_modifier = modifier
    return head._replace(
        forms=tuple(
            tuple(stem + form.lower() for form in row) for row in head.forms
        ),
        english=tuple(f"{english_modifier} {form}" for form in head.english),
    )


NOUNS = {
    kind: tuple(_noun(kind, line) for line in table.strip().splitlines())
    for kind, table in TABLES.items()
}
COMPOUNDS = tuple(
    _compound(modifier, head)
    for modifier in COMPOUND_MODIFIERS
    for head in NOUNS["head"]
)
