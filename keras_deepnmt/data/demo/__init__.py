"""The embedded corpus `demo`: German to English, out of a grammar of our own.

Pairs are generated, not stored: a lexicon of some 440 lexemes and a grammar
that writes both languages at once give millions of distinct pairs, the same
for the same seed everywhere. English is a function of the German sentence, so
that every difference from the reference is a mistake of the translator.

What is in it, and what it is good for:

*   **Order and position** (hybrid self-attention). The verb is second in a
    main clause, last in a subordinate one, first in a question; perfects and
    modals put the verb that carries the meaning at the end; objects and
    adverbials may open a sentence. *Heute hat der Mann die Tür aufgemacht*,
    "Today the man opened the door".
*   **Separable verbs.** *macht … auf / zu / an / aus* is "opens", "closes",
    "turns on", "turns off": one must read to the end of the clause, near by
    in one order and far away in another.
*   **Roles** (contextualised role interaction). Four cases, and one word for
    six functions: *der* is "the" (masculine subject), "to the" or "with the"
    (feminine dative), "of the" (feminine or plural genitive), "who", "whom"
    or "which" (relative). Each one is labelled (`DemoPair.roles`), as gold
    for whoever looks into a model.
*   **Depth and composition** (deep representations, fusion of layers).
    Adjectives agree in case, gender, number and determiner; verbs agree with
    subjects that a relative clause or a genitive keeps at a distance, in both
    languages; *sie* is "she" or "they" as the verb says; compounds are made
    of parts (*Gartentisch*, "garden table").

Sentences have 3 to 40 German words, twelve or thirteen on average; long ones
are made by joining clauses, and nothing is nested deeper than a relative
clause in a subordinate clause. Words are drawn uniformly within their kind, so
that there is no tail of rare ones.

Example:
>>> paths = write_demo_corpus("demo", num_train=20_000)  # doctest: +SKIP
>>> for pair in demo_pairs(3):  # doctest: +SKIP
...     print(pair.source, pair.target, pair.roles)
"""

from keras_deepnmt.data.demo.corpus import DemoPair as DemoPair
from keras_deepnmt.data.demo.corpus import RoleLabel as RoleLabel
from keras_deepnmt.data.demo.corpus import demo_pairs as demo_pairs
from keras_deepnmt.data.demo.corpus import (
    write_demo_corpus as write_demo_corpus,
)
from keras_deepnmt.data.demo.german import DER_FUNCTIONS as DER_FUNCTIONS
from keras_deepnmt.data.demo.lexicon import LEXICON as LEXICON
from keras_deepnmt.data.demo.lexicon import Lexeme as Lexeme
from keras_deepnmt.data.demo.lexicon import num_lexemes as num_lexemes
