"""Clauses of the demo grammar, and the three positions of the German verb.

A clause is first planned and then put in order: the verb is second in a main
clause (*Der Mann macht die Tür auf*), last in a subordinate clause (*weil der
Mann die Tür aufmacht*), first in a question. English word order does not
change.
"""

from tools.demo_corpus.phrases import THIRD

_BE = {
    "present": (("bin", "ist", "sind"), ("am", "is", "are")),
    "past": (("bin", "ist", "sind"), ("was", "was", "were")),
}


class Clause:
    """A planned clause: its subject, the parts of its verb, and other words.

    Attributes:
        subject: Phrase.
        finite: str, the finite verb.
        tail: list of str, the end of a main clause (prefix, participle).
        final: list of str, the whole verb when it comes last.
        middle: list of (name, German words) between the two parts of the verb.
        auxiliary: str, the English auxiliary that begins a question.
        base: list of str, the English verb after that auxiliary.
        statement: list of str, the English verb of a statement.
        after: list of (name, English words) after the English verb.
        fronts: list of str, names in `middle` that may open the sentence.
        tense: str.
        complementizer: str, the word that introduces the object clause.
    """

    __slots__ = (
        "subject",
        "finite",
        "tail",
        "final",
        "middle",
        "auxiliary",
        "base",
        "statement",
        "after",
        "fronts",
        "tense",
        "complementizer",
    )

    def __init__(self, subject, tense):
        self.subject = subject
        self.tense = tense
        self.middle = []
        self.after = []
        self.fronts = []
        self.complementizer = ""

    def conjugate(self, verb, modal, negated):
        """Sets the forms of the verb that agree with the subject."""
        person = self.subject.person
        self._conjugate_german(
            person,
            verb.present,
            verb.prefix,
            verb.infinitive,
            verb.participle,
            verb.auxiliary,
            modal,
        )
        base, third = [*verb.english_base], [*verb.english_third]
        auxiliary = "do"
        if self.tense == "past":
            auxiliary, third = "did", [*verb.english_past]
        elif self.tense == "modal":
            auxiliary = modal.auxiliary
            third = [*modal.english_third, *base]
            base = [*modal.english_base, *base]
        self._conjugate_english(person, auxiliary, base, third, negated)

    def conjugate_copula(self, modal, negated):
        """Sets the forms of *sein*, "to be", that agree with the subject."""
        person = self.subject.person
        auxiliary, base, third = "do", ["be"], ["be"]
        present, forms = _BE["past" if self.tense == "past" else "present"]
        self._conjugate_german(
            person, present, "", "sein", "gewesen", present, modal
        )
        if self.tense == "modal":
            auxiliary = modal.auxiliary
            base = [*modal.english_base, "be"]
            third = [*modal.english_third, "be"]
        else:
            auxiliary, base, third = forms[person], [], []
        self._conjugate_english(person, auxiliary, base, third, negated)

    def _conjugate_german(
        self, person, present, prefix, infinitive, participle, auxiliary, modal
    ):
        if self.tense == "present":
            self.finite = present[person]
            self.tail = [prefix] if prefix else []
            self.final = [prefix + self.finite]
            return
        past = self.tense == "past"
        self.finite = (auxiliary if past else modal.present)[person]
        self.tail = [participle if past else infinitive]
        self.final = [*self.tail, self.finite]

    def _conjugate_english(self, person, auxiliary, base, third, negated):
        if auxiliary == "do" and person == THIRD:
            auxiliary, plain = "does", third
        else:
            plain = third if auxiliary == "did" else base
        self.auxiliary, self.base = auxiliary, base
        if negated:
            no = ["cannot"] if auxiliary == "can" else [auxiliary, "not"]
            self.statement = no + base
        elif auxiliary in ("do", "does", "did"):
            self.statement = plain
        else:
            self.statement = [auxiliary, *base]

    def add(self, name, german, english, front=False):
        """Adds a constituent that may open the sentence if `front` is true."""
        self.middle.append((name, german))
        if english:
            self.after.append((name, english))
        if front:
            self.fronts.append(name)

    def main(self, front: str | None = None):
        """Orders a main clause that starts with `front` or with the subject.

        `front` is one of the names in `fronts`. Returns the German and the
        English words.
        """
        subject = self.subject
        german = [*subject.german, self.finite]
        english = [*subject.english, *self.statement]
        rest = self.middle
        if front is not None:
            opening = [words for name, words in rest if name == front][0]
            rest = [item for item in rest if item[0] != front]
            german = [*opening, self.finite, *subject.german]
        for _, words in rest:
            german += words
        german += self.tail
        # In English, objects follow the verb and adverbials stay in front.
        moved = [words for name, words in self.after if name == front]
        if moved and front in ("time", "place"):
            english = moved[0] + english
        for name, words in self.after:
            if name != front or name not in ("time", "place"):
                english += words
        return german, english

    def continued(self):
        """Orders a main clause that shares the subject of the preceding one."""
        german = [self.finite]
        english = [*self.statement]
        for _, words in self.middle:
            german += words
        for _, words in self.after:
            english += words
        return german + self.tail, english

    def subordinate(self, german_opening=(), english_opening=()):
        """Orders a subordinate clause, whose verb comes last."""
        german = [*german_opening, *self.subject.german]
        english = [*english_opening, *self.subject.english, *self.statement]
        for _, words in self.middle:
            german += words
        for _, words in self.after:
            english += words
        return german + self.final, english

    def question(self, german_opening=(), english_opening=()):
        """Orders a question, whose verb comes before its subject."""
        german = [*german_opening, self.finite, *self.subject.german]
        english = [*english_opening, self.auxiliary]
        english += [*self.subject.english, *self.base]
        for _, words in self.middle:
            german += words
        for _, words in self.after:
            english += words
        return german + self.tail, english
