"""Every sentence of a report in English and in German, one beside the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TEXTS = {
    "title": ("Room-mates: a plan and its reasons", "Zimmerpaare: ein Plan und seine Gründe"),
    "lead": (
        "Everything here is about people: keep it where their answers are kept.",
        "Alles hier handelt von Menschen: bitte so aufbewahren wie ihre Antworten.",
    ),
    "made": ("Made by mlestruct.", "Erstellt mit mlestruct."),
    "glance": ("At a glance", "Auf einen Blick"),
    "plan": ("The plan", "Der Plan"),
    "effects": ("What matters", "Was zählt"),
    "evaluation": ("How good it is", "Wie gut er ist"),
    "proof": ("How we know", "Woher wir das wissen"),
    "data": ("The data", "Die Daten"),
    "limits": ("What it cannot tell", "Was er nicht sagen kann"),
    # the lines on top
    "people": (
        "{people} people in {pairs} pairs; {alone}.",
        "{people} Personen in {pairs} Paaren; {alone}.",
    ),
    "nobody alone": ("nobody is left without a partner", "niemand bleibt ohne Partner"),
    "one alone": ("one person has no partner", "eine Person hat keinen Partner"),
    "some alone": ("{count} people have no partner", "{count} Personen haben keinen Partner"),
    "picks": (
        "Shown a pair that came about and one that did not, the model picks the right one {model} "
        "times in 100. {others}.",
        "Von einem Paar, das zustande kam, und einem, das nicht zustande kam, erkennt das Modell "
        "{model}-mal in 100 das richtige. {others}.",
    ),
    "baseline random": ("Guessing does so {share} times", "Raten trifft {share}-mal"),
    "baseline score": (
        "by its scores alone, which leave out who else is there, the model does so {share} times",
        "nur nach seinen Punkten, ohne die anderen Personen, trifft das Modell {share}-mal",
    ),
    "baseline constant": (
        "counting differences without learning {share}",
        "Unterschiede zählen, ohne zu lernen, {share}",
    ),
    "baseline logistic": (
        "a simple regression on pairs {share}",
        "eine einfache Regression über Paare {share}",
    ),
    "baseline ceiling": ("knowing the true rule {share}", "die wahre Regel {share}"),
    "untested": (
        "How good it is on these people is not known: nobody has said who shares with whom.",
        "Wie gut der Plan für diese Personen ist, ist nicht bekannt: Niemand hat angegeben, wer "
        "mit wem wohnt.",
    ),
    "matters most": ("What matters most: {effects}.", "Am meisten zählt: {effects}."),
    "nothing sure": (
        "No answer is surely of influence: too few pairs, or people do not mind.",
        "Keine Antwort hat sicher Einfluss: Es sind zu wenige Paare, oder es ist ihnen gleich.",
    ),
    # effects
    "per step": (
        "people one step apart on {column} share {factor} times as often",
        "wer bei {column} eine Stufe auseinanderliegt, wohnt {factor}-mal so oft zusammen",
    ),
    "differ": (
        "people who differ on {column} share {factor} times as often",
        "wer sich bei {column} unterscheidet, wohnt {factor}-mal so oft zusammen",
    ),
    "same": (
        "people with the same {column} share {factor} times as often",
        "wer bei {column} gleich antwortet, wohnt {factor}-mal so oft zusammen",
    ),
    "per unit": (
        "each unit of difference in {column}: {factor} times as often",
        "je Einheit Unterschied bei {column}: {factor}-mal so oft",
    ),
    "two answers": (
        "{a} with {b} on {column}: {factor} times as often",
        "{a} mit {b} bei {column}: {factor}-mal so oft",
    ),
    "own feature": (
        "each unit of {column}: {factor} times as often",
        "je Einheit {column}: {factor}-mal so oft",
    ),
    "effects chart": (
        "How many times as often people share, with 95 % intervals, surest first. Left of 1: less "
        "often; right of 1: more often. Where the line crosses 1 (hollow dot), the direction is "
        "open. Shown are {shown} of {all}.",
        "Wievielmal so oft man zusammen wohnt, mit 95-%-Intervallen, das Sicherste zuerst. Links "
        "von 1: seltener; rechts von 1: öfter. Wo die Linie die 1 kreuzt (hohler Punkt), ist die "
        "Richtung offen. Gezeigt sind {shown} von {all}.",
    ),
    "effects meaning": (
        "“Times as often” compares two pairs that are alike in everything else. An interval holds "
        "what this method would learn from unlimited data; it is no cause and no promise.",
        "„So oft“ vergleicht zwei Paare, die sonst in allem gleich sind. Ein Intervall enthält, "
        "was dieses Verfahren aus unbegrenzt vielen Daten lernen würde; es ist weder Ursache noch "
        "Versprechen.",
    ),
    "all effects": ("All of them, as numbers", "Alle, als Zahlen"),
    "untold": (
        "What these pairs do not tell: {names}.",
        "Was diese Paare nicht verraten: {names}.",
    ),
    # the plan
    "plan meaning": (
        "The percentage says how often this pair would come about if these people paired up many "
        "times, as far as the model knows. One in ten is much: everybody has many possible "
        "partners, and the plan must suit all.",
        "Der Prozentsatz sagt, wie oft dieses Paar zustande käme, wenn sich diese Personen viele "
        "Male fänden, soweit das Modell es weiß. Eins zu zehn ist viel: Alle haben viele mögliche "
        "Partner, und der Plan muss für alle passen.",
    ),
    "plan best": (
        "The plan keeps every rule. No plan has a total that is larger by more than {gap}.",
        "Der Plan hält jede Regel ein. Kein Plan hat eine Summe, die um mehr als {gap} größer ist.",
    ),
    "find": ("Find a person or room", "Person oder Zimmer suchen"),
    "order": ("Order", "Reihenfolge"),
    "by order": ("as planned", "wie geplant"),
    "by doubt": ("least probable first", "unwahrscheinlichste zuerst"),
    "by sure": ("most probable first", "wahrscheinlichste zuerst"),
    "room": ("Room {room}", "Zimmer {room}"),
    "alone": ("without a partner", "ohne Partner"),
    "probable": ("{share} probable", "{share} wahrscheinlich"),
    "also near": ("others who would suit", "wer auch passte"),
    "both say": ("both answer {a} to {column}", "beide antworten {a} bei {column}"),
    "they say": ("{a} and {b} on {column}", "{a} und {b} bei {column}"),
    "no answer": ("no answer", "keine Antwort"),
    "for it": ("{answers}: {factor} times the odds", "{answers}: Chancen {factor}-mal so hoch"),
    "no reason": (
        "Nothing speaks much for or against it.",
        "Nichts spricht stark dafür oder dagegen.",
    ),
    "for": ("for", "dafür"),
    "against": ("against", "dagegen"),
    "withheld": (
        "Not itemised, because they are protected: {columns}.",
        "Nicht einzeln aufgeführt, weil geschützt: {columns}.",
    ),
    "protected sum": (
        "protected answers together: {factor} times the odds",
        "geschützte Antworten zusammen: Chancen {factor}-mal so hoch",
    ),
    # evaluation
    "ranked chart": (
        "Of a pair that came about and one that did not: how often, in 100, the right one is "
        "picked. The line at 50 is guessing.",
        "Von einem Paar, das zustande kam, und einem anderen: wie oft in 100 Fällen das richtige "
        "erkannt wird. Die Linie bei 50 ist Raten.",
    ),
    "marginal": ("by probability", "nach Wahrscheinlichkeit"),
    "score": ("by score", "nach Punkten"),
    "constant": ("differences alone", "nur Unterschiede"),
    "random": ("guessing", "Raten"),
    "logistic": ("simple regression", "einfache Regression"),
    "ceiling": ("the true rule", "die wahre Regel"),
    "top caption": (
        "How often somebody's partner is among the most probable ones",
        "Wie oft der Partner unter den wahrscheinlichsten ist",
    ),
    "top among": ("among the first", "unter den ersten"),
    "top model": ("model", "Modell"),
    "top random": ("guessing", "Raten"),
    "held out": (
        "All of this is about {pairs} pairs that the model has not learned from.",
        "Das alles gilt für {pairs} Paare, aus denen das Modell nicht gelernt hat.",
    ),
    "learned from": (
        "Careful: the model has learned from {learned} of these {pairs} pairs, so all of this is "
        "better than it will be next time.",
        "Achtung: Aus {learned} dieser {pairs} Paare hat das Modell gelernt, also ist das alles "
        "besser, als es nächstes Mal sein wird.",
    ),
    "calibration": (
        "Does a probability mean what it says? Pairs by predicted probability: on the line it "
        "does. Bars are 95 % intervals; both axes are stretched where numbers are small.",
        "Bedeutet eine Wahrscheinlichkeit, was sie sagt? Paare nach vorhergesagter "
        "Wahrscheinlichkeit: auf der Linie ja. Balken sind 95-%-Intervalle; beide Achsen sind bei "
        "kleinen Zahlen gestreckt.",
    ),
    "predicted": ("predicted, %", "vorhergesagt, %"),
    "came true": ("came true, %", "eingetreten, %"),
    "numbers": ("The same in numbers", "Dasselbe in Zahlen"),
    "from": ("from", "von"),
    "to": ("to", "bis"),
    "pairs column": ("pairs", "Paare"),
    # how we know
    "fit proven": (
        "The weights are proven to be the best for what was asked of them: none are better by "
        "more than {relative} of the total.",
        "Die Gewichte sind nachweislich die besten für das, was verlangt war: Keine sind um mehr "
        "als {relative} der Summe besser.",
    ),
    "fit unproven": (
        "The weights are not proven to be the best: {why}.",
        "Es ist nicht bewiesen, dass die Gewichte die besten sind: {why}.",
    ),
    "scope": (
        "That is a proof about the computation. Whether people choose the way the model has it is "
        "another question, and only pairs it has not seen can answer it.",
        "Das ist ein Beweis über die Rechnung. Ob Menschen so wählen, wie das Modell es sieht, "
        "ist eine andere Frage; nur Paare, die es nicht kennt, können sie beantworten.",
    ),
    "technical": ("In technical words", "In Fachworten"),
    "likelihood": (
        "The log-likelihood of all {pairs} held-out pairs is about {estimate}, proven to be "
        "between {low} and {high}; pairing at random has {random}.",
        "Die Log-Likelihood aller {pairs} zurückgehaltenen Paare ist etwa {estimate}, bewiesen "
        "zwischen {low} und {high}; zufällige Paare haben {random}.",
    ),
    # data
    "groups": ("Who may share with whom", "Wer sich ein Zimmer teilen darf"),
    "group": ("group", "Gruppe"),
    "members": ("people", "Personen"),
    "columns": ("The columns used", "Die benutzten Spalten"),
    # limits
    "limit wishes": (
        "Pairs that came about are not pairs that went well. The model learns who shares with "
        "whom, from all that led to it: wishes, habits, and the office's own rules.",
        "Paare, die zustande kamen, sind nicht Paare, die sich gut verstanden. Das Modell lernt, "
        "wer mit wem wohnt, aus allem, was dazu führte: Wünschen, Gewohnheiten und den Regeln des "
        "Amtes.",
    ),
    "limit cause": (
        "Answers that go together with what was not asked speak for both. An effect is no cause.",
        "Antworten, die mit etwas Ungefragtem einhergehen, sprechen für beides. Ein Einfluss ist "
        "keine Ursache.",
    ),
    "limit probability": (
        "Percentages come from an approximation; trust them as far as pairs that the model has "
        "not seen confirm them.",
        "Prozentsätze stammen aus einer Näherung; man darf ihnen trauen, soweit Paare, die das "
        "Modell nicht kennt, sie bestätigen.",
    ),
    "limit future": (
        "Next year's people may differ from those learned from; nothing here measures that.",
        "Die Personen des nächsten Jahres können anders sein als die, aus denen gelernt wurde; "
        "das misst hier nichts.",
    ),
    "limit groups": (
        "Percentages compare pairs within one group only.",
        "Prozentsätze vergleichen nur Paare innerhalb einer Gruppe.",
    ),
}


def by_language(texts: Mapping[str, tuple[str, str]]) -> dict[str, Mapping[str, str]]:
    """Each language's sentences, of sentences in English and German."""
    return {
        language: {key: both[k] for key, both in texts.items()}
        for k, language in enumerate(("en", "de"))
    }


CATALOGUE = by_language(TEXTS)


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
