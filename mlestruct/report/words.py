"""Every sentence of a report, by language: one catalogue, so that another language is one more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ENGLISH = {
    "title": "Room-mates: a plan and its reasons",
    "lead": "Everything here is about people: keep it where their answers are kept.",
    "made": "Made by mlestruct.",
    "glance": "At a glance",
    "plan": "The plan",
    "effects": "What matters",
    "evaluation": "How good it is",
    "proof": "How we know",
    "data": "The data",
    "limits": "What it cannot tell",
    # the lines on top
    "people": "{people} people in {pairs} pairs; {alone}.",
    "nobody alone": "nobody is left without a partner",
    "one alone": "one person has no partner",
    "some alone": "{count} people have no partner",
    "picks": (
        "Shown a pair that came about and one that did not, the model picks the right one "
        "{model} times in 100. {others}."
    ),
    "baseline random": "Guessing does so {share} times",
    "baseline constant": "counting differences without learning {share}",
    "baseline logistic": "a simple regression on pairs {share}",
    "baseline ceiling": "knowing the true rule {share}",
    "untested": (
        "How good it is on these people is not known: nobody has said who shares with whom."
    ),
    "matters most": "What matters most: {effects}.",
    "nothing sure": "No answer is surely of influence: too few pairs, or people do not mind.",
    # effects
    "per step": "people one step apart on {column} share {factor} times as often",
    "differ": "people who differ on {column} share {factor} times as often",
    "same": "people with the same {column} share {factor} times as often",
    "per unit": "each unit of difference in {column}: {factor} times as often",
    "two answers": "{a} with {b} on {column}: {factor} times as often",
    "own feature": "each unit of {column}: {factor} times as often",
    "effects chart": (
        "How many times as often people share, with 95 % intervals, surest first. Left of 1: less "
        "often; right of 1: more often. Where the line crosses 1 (hollow dot), the direction is "
        "open. Shown are {shown} of {all}."
    ),
    "effects meaning": (
        "“Times as often” compares two pairs that are alike in everything else. An interval holds "
        "what this method would learn from unlimited data; it is no cause and no promise."
    ),
    "all effects": "All of them, as numbers",
    "untold": "What these pairs do not tell: {names}.",
    # the plan
    "plan meaning": (
        "The percentage says how often this pair would come about if these people paired up many "
        "times, as far as the model knows. One in ten is much: everybody has many possible "
        "partners, and the plan must suit all."
    ),
    "plan best": (
        "The plan keeps every rule. No plan has a total that is larger by more than {gap}."
    ),
    "find": "Find a person or room",
    "order": "Order",
    "by order": "as planned",
    "by doubt": "least probable first",
    "by sure": "most probable first",
    "room": "Room {room}",
    "alone": "without a partner",
    "probable": "{share} probable",
    "also near": "others who would suit",
    "both say": "both answer {a} to {column}",
    "they say": "{a} and {b} on {column}",
    "no answer": "no answer",
    "for it": "{answers}: {factor} times the odds",
    "no reason": "Nothing speaks much for or against it.",
    "for": "for",
    "against": "against",
    "withheld": "Not itemised, because they are protected: {columns}.",
    "protected sum": "protected answers together: {factor} times the odds",
    # evaluation
    "ranked chart": (
        "Of a pair that came about and one that did not: how often, in 100, the right one is "
        "picked. The line at 50 is guessing."
    ),
    "marginal": "by probability",
    "score": "by score",
    "constant": "differences alone",
    "random": "guessing",
    "logistic": "simple regression",
    "ceiling": "the true rule",
    "top caption": "How often somebody's partner is among the most probable ones",
    "top among": "among the first",
    "top model": "model",
    "top random": "guessing",
    "held out": "All of this is about {pairs} pairs that the model has not learned from.",
    "learned from": (
        "Careful: the model has learned from {learned} of these {pairs} pairs, so all of this is "
        "better than it will be next time."
    ),
    "calibration": (
        "Does a probability mean what it says? Pairs by predicted probability: on the line it "
        "does. Bars are 95 % intervals; both axes are stretched where numbers are small."
    ),
    "predicted": "predicted, %",
    "came true": "came true, %",
    "numbers": "The same in numbers",
    "from": "from",
    "to": "to",
    "pairs column": "pairs",
    # how we know
    "fit proven": (
        "The weights are proven to be the best for what was asked of them: none are better by "
        "more than {relative} of the total."
    ),
    "fit unproven": "The weights are not proven to be the best: {why}.",
    "scope": (
        "That is a proof about the computation. Whether people choose the way the model has it is "
        "another question, and only pairs it has not seen can answer it."
    ),
    "technical": "In technical words",
    "likelihood": (
        "The log-likelihood of all {pairs} held-out pairs is about {estimate}, proven to be "
        "between {low} and {high}; pairing at random has {random}."
    ),
    # data
    "groups": "Who may share with whom",
    "group": "group",
    "members": "people",
    "columns": "The columns used",
    # limits
    "limit wishes": (
        "Pairs that came about are not pairs that went well. The model learns who shares with "
        "whom, from all that led to it: wishes, habits, and the office's own rules."
    ),
    "limit cause": (
        "Answers that go together with what was not asked speak for both. An effect is no cause."
    ),
    "limit probability": (
        "Percentages come from an approximation; trust them as far as pairs that the model has "
        "not seen confirm them."
    ),
    "limit future": (
        "Next year's people may differ from those learned from; nothing here measures that."
    ),
    "limit groups": "Percentages compare pairs within one group only.",
}

GERMAN = {
    "title": "Zimmerpaare: ein Plan und seine Gründe",
    "lead": "Alles hier handelt von Menschen: bitte so aufbewahren wie ihre Antworten.",
    "made": "Erstellt mit mlestruct.",
    "glance": "Auf einen Blick",
    "plan": "Der Plan",
    "effects": "Was zählt",
    "evaluation": "Wie gut er ist",
    "proof": "Woher wir das wissen",
    "data": "Die Daten",
    "limits": "Was er nicht sagen kann",
    "people": "{people} Personen in {pairs} Paaren; {alone}.",
    "nobody alone": "niemand bleibt ohne Partner",
    "one alone": "eine Person hat keinen Partner",
    "some alone": "{count} Personen haben keinen Partner",
    "picks": (
        "Von einem Paar, das zustande kam, und einem, das nicht zustande kam, erkennt das Modell "
        "{model}-mal in 100 das richtige. {others}."
    ),
    "baseline random": "Raten trifft {share}-mal",
    "baseline constant": "Unterschiede zählen, ohne zu lernen, {share}",
    "baseline logistic": "eine einfache Regression über Paare {share}",
    "baseline ceiling": "die wahre Regel {share}",
    "untested": (
        "Wie gut der Plan für diese Personen ist, ist nicht bekannt: Niemand hat angegeben, wer "
        "mit wem wohnt."
    ),
    "matters most": "Am meisten zählt: {effects}.",
    "nothing sure": (
        "Keine Antwort hat sicher Einfluss: Es sind zu wenige Paare, oder es ist ihnen gleich."
    ),
    "per step": "wer bei {column} eine Stufe auseinanderliegt, wohnt {factor}-mal so oft zusammen",
    "differ": "wer sich bei {column} unterscheidet, wohnt {factor}-mal so oft zusammen",
    "same": "wer bei {column} gleich antwortet, wohnt {factor}-mal so oft zusammen",
    "per unit": "je Einheit Unterschied bei {column}: {factor}-mal so oft",
    "two answers": "{a} mit {b} bei {column}: {factor}-mal so oft",
    "own feature": "je Einheit {column}: {factor}-mal so oft",
    "effects chart": (
        "Wievielmal so oft man zusammen wohnt, mit 95-%-Intervallen, das Sicherste zuerst. Links "
        "von 1: seltener; rechts von 1: öfter. Wo die Linie die 1 kreuzt (hohler Punkt), ist die "
        "Richtung offen. Gezeigt sind {shown} von {all}."
    ),
    "effects meaning": (
        "„So oft“ vergleicht zwei Paare, die sonst in allem gleich sind. Ein Intervall enthält, "
        "was dieses Verfahren aus unbegrenzt vielen Daten lernen würde; es ist weder Ursache noch "
        "Versprechen."
    ),
    "all effects": "Alle, als Zahlen",
    "untold": "Was diese Paare nicht verraten: {names}.",
    "plan meaning": (
        "Der Prozentsatz sagt, wie oft dieses Paar zustande käme, wenn sich diese Personen viele "
        "Male fänden, soweit das Modell es weiß. Eins zu zehn ist viel: Alle haben viele mögliche "
        "Partner, und der Plan muss für alle passen."
    ),
    "plan best": (
        "Der Plan hält jede Regel ein. Kein Plan hat eine Summe, die um mehr als {gap} größer ist."
    ),
    "find": "Person oder Zimmer suchen",
    "order": "Reihenfolge",
    "by order": "wie geplant",
    "by doubt": "unwahrscheinlichste zuerst",
    "by sure": "wahrscheinlichste zuerst",
    "room": "Zimmer {room}",
    "alone": "ohne Partner",
    "probable": "{share} wahrscheinlich",
    "also near": "wer auch passte",
    "both say": "beide antworten {a} bei {column}",
    "they say": "{a} und {b} bei {column}",
    "no answer": "keine Antwort",
    "for it": "{answers}: Chancen {factor}-mal so hoch",
    "no reason": "Nichts spricht stark dafür oder dagegen.",
    "for": "dafür",
    "against": "dagegen",
    "withheld": "Nicht einzeln aufgeführt, weil geschützt: {columns}.",
    "protected sum": "geschützte Antworten zusammen: Chancen {factor}-mal so hoch",
    "ranked chart": (
        "Von einem Paar, das zustande kam, und einem anderen: wie oft in 100 Fällen das richtige "
        "erkannt wird. Die Linie bei 50 ist Raten."
    ),
    "marginal": "nach Wahrscheinlichkeit",
    "score": "nach Punkten",
    "constant": "nur Unterschiede",
    "random": "Raten",
    "logistic": "einfache Regression",
    "ceiling": "die wahre Regel",
    "top caption": "Wie oft der Partner unter den wahrscheinlichsten ist",
    "top among": "unter den ersten",
    "top model": "Modell",
    "top random": "Raten",
    "held out": "Das alles gilt für {pairs} Paare, aus denen das Modell nicht gelernt hat.",
    "learned from": (
        "Achtung: Aus {learned} dieser {pairs} Paare hat das Modell gelernt, also ist das alles "
        "besser, als es nächstes Mal sein wird."
    ),
    "calibration": (
        "Bedeutet eine Wahrscheinlichkeit, was sie sagt? Paare nach vorhergesagter "
        "Wahrscheinlichkeit: auf der Linie ja. Balken sind 95-%-Intervalle; beide Achsen sind bei "
        "kleinen Zahlen gestreckt."
    ),
    "predicted": "vorhergesagt, %",
    "came true": "eingetreten, %",
    "numbers": "Dasselbe in Zahlen",
    "from": "von",
    "to": "bis",
    "pairs column": "Paare",
    "fit proven": (
        "Die Gewichte sind nachweislich die besten für das, was verlangt war: Keine sind um mehr "
        "als {relative} der Summe besser."
    ),
    "fit unproven": "Es ist nicht bewiesen, dass die Gewichte die besten sind: {why}.",
    "scope": (
        "Das ist ein Beweis über die Rechnung. Ob Menschen so wählen, wie das Modell es sieht, ist "
        "eine andere Frage; nur Paare, die es nicht kennt, können sie beantworten."
    ),
    "technical": "In Fachworten",
    "likelihood": (
        "Die Log-Likelihood aller {pairs} zurückgehaltenen Paare ist etwa {estimate}, bewiesen "
        "zwischen {low} und {high}; zufällige Paare haben {random}."
    ),
    "groups": "Wer sich ein Zimmer teilen darf",
    "group": "Gruppe",
    "members": "Personen",
    "columns": "Die benutzten Spalten",
    "limit wishes": (
        "Paare, die zustande kamen, sind nicht Paare, die sich gut verstanden. Das Modell lernt, "
        "wer mit wem wohnt, aus allem, was dazu führte: Wünschen, Gewohnheiten und den Regeln des "
        "Amtes."
    ),
    "limit cause": (
        "Antworten, die mit etwas Ungefragtem einhergehen, sprechen für beides. Ein Einfluss ist "
        "keine Ursache."
    ),
    "limit probability": (
        "Prozentsätze stammen aus einer Näherung; man darf ihnen trauen, soweit Paare, die das "
        "Modell nicht kennt, sie bestätigen."
    ),
    "limit future": (
        "Die Personen des nächsten Jahres können anders sein als die, aus denen gelernt wurde; "
        "das misst hier nichts."
    ),
    "limit groups": "Prozentsätze vergleichen nur Paare innerhalb einer Gruppe.",
}

CATALOGUE: dict[str, Mapping[str, str]] = {"en": ENGLISH, "de": GERMAN}


@dataclass(frozen=True)
class Words:
    """A language: ``words("people", people=4, …)`` is its sentence, numbers in its spelling.

    >>> Words.of("de").number(0.567)
    '0,57'
    """

    language: str
    texts: Mapping[str, str]

    @classmethod
    def of(cls, language: str) -> Words:
        """By its two letters."""
        if language not in CATALOGUE:
            raise ValueError(f"no language {language!r}; there are {', '.join(CATALOGUE)}")
        return cls(language, CATALOGUE[language])

    def __call__(self, key: str, **values: object) -> str:
        return self.texts[key].format(**values)

    def number(self, value: float, digits: int = 2) -> str:
        """To so many significant digits."""
        plain = f"{value:.{digits}g}"
        if "e" in plain and 1e-4 <= abs(value) < 1e6:
            plain = f"{value:.0f}"
        plain = plain.replace("-", "−")
        return plain.replace(".", ",") if self.language == "de" else plain

    def percent(self, share: float) -> str:
        """A share in two digits."""
        return f"{self.number(100 * share)} %"
