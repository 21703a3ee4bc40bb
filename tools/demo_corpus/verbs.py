"""Verbs and modal verbs of the demo grammar.

A line of a table: German : English : the rest. German is `infinitive`, or
`infinitive/third/participle` for a strong verb, with `prefix+` before a
separable verb and `*` after a verb whose perfect takes *sein*. English is
`base` or `base/past`, then its particle; `_up` marks a particle that a pronoun
cannot follow (*picks up the man*, but not *picks up him*). The rest is the
possible objects (kinds of nouns), or the preposition and its case.
"""

from typing import NamedTuple

from tools.demo_corpus import english
from tools.demo_corpus.german import (
    ACCUSATIVE,
    DATIVE,
    participle,
    present_forms,
)

_TABLES = {
    "intransitive": """
        schlafen/schläft/geschlafen : sleep/slept : animal
        arbeiten : work
        lachen : laugh
        weinen : cry
        singen/singt/gesungen : sing/sang
        tanzen : dance
        spielen : play : animal
        schwimmen/schwimmt/geschwommen* : swim/swam : animal
        schreien/schreit/geschrien : scream : animal
        sitzen/sitzt/gesessen : sit/sat : animal
        stehen/steht/gestanden : stand/stood : animal
        kochen : cook
        beten : pray
        husten : cough
        fallen/fällt/gefallen* : fall/fell : animal
        sterben/stirbt/gestorben* : die : animal
        kämpfen : fight/fought : animal
        zittern : tremble : animal
        lernen : study
        bleiben/bleibt/geblieben* : stay : animal
        ein+schlafen/schläft/geschlafen* : fall/fell asleep : animal
        auf+wachen* : wake/woke up : animal
        auf+stehen/steht/gestanden* : get/got up : animal
        an+kommen/kommt/gekommen* : arrive : animal
        zurück+kommen/kommt/gekommen* : come/came back : animal
        mit+kommen/kommt/gekommen* : come/came along
        ein+steigen/steigt/gestiegen* : get/got in
        aus+steigen/steigt/gestiegen* : get/got out
        weg+laufen/läuft/gelaufen* : run/ran away : animal
        fern+sehen/sieht/gesehen : watch television
        auf+geben/gibt/gegeben : give/gave up
        auf+hören : stop/stopped
        an+fangen/fängt/gefangen : begin/began
        aus+gehen/geht/gegangen* : go/went out
        ein+kaufen : go/went shopping
        um+ziehen/zieht/gezogen* : move
    """,
    "transitive": """
        sehen/sieht/gesehen : see/saw : person kin animal thing head place
        hören : hear/heard : person kin animal
        lieben : love : person kin animal
        kennen/kennt/gekannt : know/knew : person kin place
        suchen : look for : person kin thing head device garment food
        finden/findet/gefunden : find/found : thing head text garment food
        treffen/trifft/getroffen : meet/met : person kin
        besuchen : visit : person kin place
        küssen : kiss : person kin
        bewundern : admire : person kin animal place
        malen : paint : person kin animal thing head place
        vergessen/vergisst/vergessen : forget/forgot : head text device food
        retten : save : person kin animal
        begrüßen : greet : person kin
        verfolgen : chase : person kin animal
        füttern : feed/fed : animal
        waschen/wäscht/gewaschen : wash : animal garment food
        kaufen : buy/bought : thing head device text garment food meal drink
        lesen/liest/gelesen : read/read : text
        schreiben/schreibt/geschrieben : write/wrote : text
        essen/isst/gegessen : eat/ate : food meal
        trinken/trinkt/getrunken : drink/drank : drink
        tragen/trägt/getragen : carry : thing head garment food
        brauchen : need : thing head device garment food meal drink
        holen : fetch : thing head device garment food meal drink
        reparieren : repair : device head
        verstecken : hide/hid : head text device garment
        verlieren/verliert/verloren : lose/lost : head text device garment
        stehlen/stiehlt/gestohlen : steal/stole : head device garment food
        haben/hat/gehabt : have/had : animal head device garment food
        machen : make/made : food meal drink
        auf+machen : open : thing head
        zu+machen : close : thing head
        an+machen : turn _on : device
        aus+machen : turn _off : device
        an+rufen/ruft/gerufen : phone : person kin
        ab+holen : pick _up : person kin animal head
        ein+laden/lädt/geladen : invite : person kin
        mit+nehmen/nimmt/genommen : take/took _along : animal thing head food
        weg+nehmen/nimmt/genommen : take/took _away : thing text food
        mit+bringen/bringt/gebracht : bring/brought _along : device meal drink
        weg+werfen/wirft/geworfen : throw/threw _away : device text food
        an+sehen/sieht/gesehen : look at : person animal device head
        zurück+geben/gibt/gegeben : give/gave _back : thing text head
        vor+lesen/liest/gelesen : read/read _aloud : text
        an+ziehen/zieht/gezogen : put/put _on : garment
        aus+ziehen/zieht/gezogen : take/took _off : garment
        auf+essen/isst/gegessen : eat/ate _up : food meal
        aus+trinken/trinkt/getrunken : drink/drank _up : drink
    """,
    "dative": """
        helfen/hilft/geholfen : help
        danken : thank
        folgen* : follow
        vertrauen : trust
        antworten : answer
        gratulieren : congratulate
        dienen : serve
        verzeihen/verzeiht/verziehen : forgive/forgave
        zu+hören : listen to
        winken : wave at
    """,
    "ditransitive": """
        geben/gibt/gegeben : give/gave : thing head text garment food
        zeigen : show : thing head device text garment
        bringen/bringt/gebracht : bring/brought : thing head food meal drink
        schicken : send/sent : thing text garment
        verkaufen : sell/sold : animal thing head device garment food
        leihen/leiht/geliehen : lend/lent : thing device text garment
        versprechen/verspricht/versprochen : promise : thing device garment
        an+bieten/bietet/geboten : offer : thing food meal drink
    """,
    "motion": """
        gehen/geht/gegangen* : go/went : animal
        laufen/läuft/gelaufen* : run/ran : animal
        fahren/fährt/gefahren* : drive/drove
        reisen* : travel
        wandern* : hike
        eilen* : hurry
        springen/springt/gesprungen* : jump : animal
        kriechen/kriecht/gekrochen* : crawl : animal
    """,
    "prepositional": """
        warten : wait for : auf accusative
        sprechen/spricht/gesprochen : speak/spoke with : mit dative
        denken/denkt/gedacht : think/thought of : an accusative
        träumen : dream of : von dative
        lachen : laugh about : über accusative
        kämpfen : fight/fought against : gegen accusative
        arbeiten : work for : für accusative
        fragen : ask about : nach dative
    """,
    "clausal": """
        sagen : say/said : dass
        glauben : believe : dass
        wissen/weiß/gewusst : know/knew : dass
        hoffen : hope : dass
        behaupten : claim : dass
        merken : notice : dass
        fürchten : fear : dass
        vergessen/vergisst/vergessen : forget/forgot : dass
        fragen : ask : ob
        prüfen : check : ob
    """,
}
_HAVE = ("habe", "hat", "haben")
_BE = ("bin", "ist", "sind")
_FIRST_PERSON = {"haben": "habe", "wissen": "weiß"}


class Verb(NamedTuple):
    """A verb: the complements it takes, and all its forms.

    The German present has three forms (*ich*, singular, plural); `prefix` is
    empty unless the verb is separable. English forms are tuples of words,
    including the particle.
    """

    frame: str
    prefix: str
    present: tuple[str, str, str]
    infinitive: str
    participle: str
    auxiliary: tuple[str, str, str]
    english_base: tuple[str, ...]
    english_third: tuple[str, ...]
    english_past: tuple[str, ...]
    phrasal: bool
    kinds: tuple[str, ...]
    preposition: str
    case: int


def _verb(frame, line):
    german, meaning, *rest = (part.strip() for part in line.split(":"))
    auxiliary = _BE if german.endswith("*") else _HAVE
    prefix, _, body = german.rstrip("*").rpartition("+")
    infinitive, *strong = body.split("/")
    third, past_participle = strong or ("", participle(infinitive))
    present = present_forms(infinitive, third)
    if infinitive in _FIRST_PERSON:
        present = (_FIRST_PERSON[infinitive], *present[1:])
    first, *particle = meaning.split()
    base, _, past = first.partition("/")
    particle = tuple(word.removeprefix("_") for word in particle)
    governs = rest[0].split() if rest else []
    preposition, case = "", ACCUSATIVE
    if frame == "prepositional":
        preposition = governs[0]
        case = DATIVE if governs[1] == "dative" else ACCUSATIVE
        governs = ["person", "kin", "animal"]
    elif frame == "clausal":
        preposition = governs[0]
    return Verb(
        frame,
        prefix,
        present,
        prefix + infinitive,
        prefix + past_participle,
        auxiliary,
        (base, *particle),
        (english.third_person(base), *particle),
        (past or english.past(base), *particle),
        "_" in meaning,
        tuple(governs),
        preposition,
        case,
    )


VERBS = {
    frame: tuple(_verb(frame, line) for line in table.strip().splitlines())
    for frame, table in _TABLES.items()
}
# The verbs that can have an animal as subject.
ANIMAL_VERBS = {
    frame: tuple(verb for verb in VERBS[frame] if "animal" in verb.kinds)
    for frame in ("intransitive", "motion")
}


class Modal(NamedTuple):
    """A modal verb: three German forms, and its English in three parts.

    `auxiliary` is inverted in questions and negated by *not*; the other two are
    the words before the infinitive. If `auxiliary` is `"do"`, those words are
    an ordinary verb, which is inflected unless the clause is negated or a
    question.
    """

    present: tuple[str, str, str]
    auxiliary: str
    english_base: tuple[str, ...]
    english_third: tuple[str, ...]


MODALS = (
    Modal(("kann", "kann", "können"), "can", (), ()),
    Modal(("muss", "muss", "müssen"), "do", ("have", "to"), ("has", "to")),
    Modal(("will", "will", "wollen"), "do", ("want", "to"), ("wants", "to")),
    Modal(("soll", "soll", "sollen"), "should", (), ()),
    Modal(("darf", "darf", "dürfen"), "may", (), ()),
    Modal(("werde", "wird", "werden"), "will", (), ()),
)
