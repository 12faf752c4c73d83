"""The doctor's sentences in German: by their form, so that the doctor need not know of languages.

What has no form here stays English, and the page says so to screen readers (``lang``). A test holds
every sentence that the doctor makes of messy tables to this list.
"""

from __future__ import annotations

import re

PLACES = (
    (r"\bpairs, row", "Paare, row"),
    (r"\brows? (\d+(?: and \d+)?)", r"Zeile \1"),
    (r"\blines? (\d+(?: and \d+)?)", r"Zeile \1"),
    (r"(\d) and (\d)", r"\1 und \2"),
    (r"\bsheet '", "Blatt '"),
    (r"\bcell ([A-Z]+\d)", r"Zelle \1"),
)
FINDINGS = (
    (
        r"column (.+): (.+), (\d+) times, the first in (.+), looks like a code for no answer; .*",
        r"Spalte \1: \2, \3-mal, zuerst in \4, sieht aus wie ein Code für keine Antwort",
    ),
    (r"column (.+) holds numbers, and (.+?)(?:: is that a person\?)?",
     r"Spalte \1 enthält Zahlen, und \2: Ist das richtig?"),
    (r"column (.+): (.+) differ in case or signs only, and count as different",
     r"Spalte \1: \2 unterscheiden sich nur in der Schreibweise und zählen als verschieden"),
    (r"column (.+): (\d+) of (\d+) cells are blank", r"Spalte \1: \2 von \3 Zellen sind leer"),
    (r"column (.+) is (.+) for all (\d+) who answered: it tells nobody apart",
     r"Spalte \1 ist \2 bei allen \3, die geantwortet haben: Sie unterscheidet niemanden"),
    (r"column (.+) is (.+) for (\d+) of (\d+): it tells few people apart",
     r"Spalte \1 ist \2 bei \3 von \4: Sie unterscheidet kaum jemanden"),
    (r"column (.+) is different for nearly everybody, .*",
     r"Spalte \1 ist bei fast allen verschieden, wie eine Kennung oder ein freier Text"),
    (r"the table is empty", "Die Tabelle ist leer"),
    (r"(.+) repeats an earlier one", r"\1 wiederholt eine frühere Zeile"),
    (r"column (.+) holds infinite numbers(?:, the first in (.+))?",
     r"Spalte \1 enthält unendliche Zahlen"),
    (r"(.+) has no ('.+')", r"\1 hat keinen Wert in \2"),
    (r"id (.+) is in (.*(?:rows|lines) \d+ and \d+)", r"Kennung \1 steht zweimal: \2"),
    (r"(.+): one person, who has nobody to share with",
     r"\1: eine Person, die mit niemandem wohnen kann"),
    (r"(.+): (\d+) people, an odd number, so one of them stays alone",
     r"\1: \2 Personen, eine ungerade Zahl, also bleibt eine allein"),
    (r"(.+): nobody has id (.+?)(?:; there is (.+), which is written differently)?",
     r"\1: niemand hat die Kennung \2"),
    (r"(.+): (.+) is paired with themself", r"\1: \2 ist mit sich selbst gepaart"),
    (r"(.+): (.+) and (.+) are of different groups",
     r"\1: \2 und \3 gehören zu verschiedenen Gruppen"),
    (r"(.+): (.+) is in another pair too, in (.+)",
     r"\1: \2 steht auch in einem anderen Paar, in \3"),
    (r"(.+): (\d+) people share \((.+)\); only pairs can be learned from.*",
     r"\1: \2 Personen wohnen zusammen (\3); nur aus Paaren kann gelernt werden"),
    (r"column (.+): (\d+) of (\d+) pairs have the same .*",
     r"Spalte \1: \2 von \3 Paaren haben dasselbe und kaum jemand sonst: Sagt sie, wer zusammen "
     r"wohnt, wie ein Zimmer? Dann nicht als Frage verwenden"),
    (r"column (.+): partners are next to each other in it, .*",
     r"Spalte \1: Partner stehen darin nebeneinander: Sagt sie, wer zusammen wohnt? Dann nicht als "
     r"Frage verwenden"),
    (r"column (.+) is proposed as a rule: (\d+) of (\d+) pairs agree in it .*",
     r"Spalte \1 ist als Regel vorgeschlagen: \2 von \3 Paaren stimmen darin überein"),
    (r"column (.+): (\d+) of (\d+) pairs agree in it .* where (.+) and (.+) mean the same.*",
     r"Spalte \1: \2 von \3 Paaren stimmen darin überein, wenn \4 dasselbe heißt und \5: Ist das "
     r"eine Regel? Dann jedes davon gleich schreiben"),
    (r"column (.+): (\d+) of (\d+) pairs agree in it .*",
     r"Spalte \1: \2 von \3 Paaren stimmen darin überein: Ist das eine Regel?"),
    (r"column (.+) names the partner in (\d+) of (\d+) pairs; .*",
     r"Spalte \1 nennt in \2 von \3 Paaren den Partner; nicht als Frage verwenden"),
    (r"(\d+) of (\d+) people are in no pair, and nothing is learned from them",
     r"\1 von \2 Personen sind in keinem Paar, und aus ihnen wird nichts gelernt"),
    (r"(\d+) pairs are few for (\d+) questions: at least (\d+) would tell more; .*",
     r"\1 Paare sind wenig für \2 Fragen: Mindestens \3 würden mehr sagen; die Intervalle werden "
     r"breit"),
    (r"column (.+) is taken for the ids of people", r"Spalte \1 gilt als Kennung der Personen"),
    (r"columns (.+) are taken for who shares", r"Spalten \1 sagen wohl, wer zusammen wohnt"),
    (r"column (.+) is taken for the room of a person", r"Spalte \1 gilt als Zimmer einer Person"),
    (r"column (.+) is taken for the partner of a person",
     r"Spalte \1 gilt als Partner einer Person"),
    (r"no column looks like ids of people, .*",
     r"keine Spalte sieht nach Kennungen von Personen aus, also lässt sich wenig sagen"),
    (r"… and (\d+) more such rows", r"… und \1 weitere solche Zeilen"),
)  # fmt: skip
READING = (
    (r"(\d+) rows;", r"\1 Zeilen;"),
    (r"\bsemicolons\b", "Semikolons"),
    (r"\bdecimal commas\b", "Dezimalkommas"),
    (r"\bdecimal points\b", "Dezimalpunkte"),
    (r"\bcommas\b", "Kommas"),
    (r"\btabs\b", "Tabulatoren"),
    (r"\bbars\b", "senkrechte Striche"),
    (r"\bone column\b", "eine Spalte"),
    (r"with a byte-order mark", "mit Kennzeichen am Anfang"),
    (r"names in (?:line|row) (\d+)", r"Namen in Zeile \1"),
    (r"names repeated in line ([\d, ]+) left out", r"Namen wiederholt in Zeile \1, ausgelassen"),
    (r"(\d+) lines? above it left out", r"\1 Zeilen darüber ausgelassen"),
    (r"(\d+) blank lines? left out", r"\1 leere Zeilen ausgelassen"),
    (r"blanks taken off (\d+) cells? \(the first (?:in )?(.+?)\)",
     r"Leerzeichen in \1 Zellen entfernt (zuerst \2)"),
    (r"(\d+) hidden rows are read too", r"\1 verborgene Zeilen mitgelesen"),
    (r"merged cells (\S+) have (.+?) in each row", r"verbundene Zellen \1 haben \2 in jeder Zeile"),
    (r"letters and their accents joined in (\d+) cells",
     r"Buchstaben und Akzente in \1 Zellen verbunden"),
    (r"a column without a name called", "eine Spalte ohne Namen heißt"),
)  # fmt: skip


def finding(words: str) -> str | None:
    """A finding in German; None for one of another form."""
    for pattern, german in FINDINGS:
        found = re.fullmatch(pattern, words, re.DOTALL)
        if found:
            return placed(found.expand(german))
    return None


def reading(words: str) -> str:
    """How a file was read, as far as its parts are known."""
    for pattern, german in READING:
        words = re.sub(pattern, german, words)
    return placed(words)


def placed(words: str) -> str:
    """Places of a file in German."""
    for pattern, german in PLACES:
        words = re.sub(pattern, german, words)
    return words
