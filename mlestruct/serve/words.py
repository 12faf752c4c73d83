"""Every sentence of the page in English and in German, one beside the other."""

from __future__ import annotations

from mlestruct.report.words import by_language

TEXTS = {
    "title": ("Room-mates", "Zimmerpaare"),
    "lead": (
        "From your tables to a plan. Everything stays on this machine.",
        "Von Ihren Tabellen zum Plan. Alles bleibt auf diesem Rechner.",
    ),
    "language": ("Language", "Sprache"),
    "files": ("Files", "Dateien"),
    "people": ("People", "Personen"),
    "people what": (
        "A line for each person: an id, and answers.",
        "Eine Zeile je Person: eine Kennung und Antworten.",
    ),
    "pairs": ("Who shared", "Wer zusammen wohnte"),
    "pairs what": (
        "Earlier years: two ids to a line, or an id and a room.",
        "Frühere Jahre: zwei Kennungen je Zeile, oder Kennung und Zimmer.",
    ),
    "new": ("New people", "Neue Personen"),
    "new what": ("If they are in a file of their own.", "Falls sie in einer eigenen Datei stehen."),
    "rooms": ("Rooms", "Zimmer"),
    "rooms what": (
        "Columns room and size; fixed, if somebody has one.",
        "Spalten room und size; fixed, wenn schon jemand dort wohnt.",
    ),
    "rules": ("Rules", "Regeln"),
    "rules what": (
        "Columns rule (forbid, require, allow), id_a, id_b.",
        "Spalten rule (forbid, require, allow), id_a, id_b.",
    ),
    "if you like": ("if you like", "wenn gewünscht"),
    "drop": ("Drop a file here, or choose one:", "Datei hierher ziehen oder wählen:"),
    "sheet": ("sheet", "Blatt"),
    "columns": ("Columns and rules", "Spalten und Regeln"),
    "columns what": (
        "This was proposed from your tables. Change what is wrong.",
        "Das ist ein Vorschlag nach Ihren Tabellen. Ändern Sie, was nicht stimmt.",
    ),
    "found": ("What was found in the tables", "Was in den Tabellen auffiel"),
    "faults": ("{count} to put right first", "{count} vorher zu berichtigen"),
    "remarks": ("{count} to know", "{count} zu wissen"),
    "nothing found": ("Nothing odd was found.", "Nichts Auffälliges gefunden."),
    "fault": ("Put right", "Berichtigen"),
    "remark": ("Know", "Hinweis"),
    "id": ("id of a person", "Kennung einer Person"),
    "names": ("shown beside ids", "neben der Kennung gezeigt"),
    "cohort": ("year or cohort", "Jahr oder Jahrgang"),
    "planned": ("pair up", "Paare bilden für"),
    "who shared": ("who shared is said by", "wer zusammen wohnte, sagen"),
    "way partners": ("columns with the two ids", "Spalten mit beiden Kennungen"),
    "way room": ("each person's room", "das Zimmer jeder Person"),
    "way partner": ("each person's partner", "der Partner jeder Person"),
    "first end": ("first of a pair", "erste Person des Paars"),
    "second end": ("second of a pair", "zweite Person des Paars"),
    "way column": ("column", "Spalte"),
    "none": ("none", "keine"),
    "questions": ("What each column is", "Was jede Spalte ist"),
    "column": ("column", "Spalte"),
    "used as": ("used as", "verwendet als"),
    "no answer": ("means no answer", "bedeutet keine Antwort"),
    "protected": ("protected", "geschützt"),
    "protected what": (
        "Protected columns are learned from, but reasons do not name their answers.",
        "Aus geschützten Spalten wird gelernt, aber Begründungen nennen ihre Antworten nicht.",
    ),
    "not used": ("not used", "nicht verwendet"),
    "same": ("rule: partners have the same", "Regel: Partner haben dasselbe"),
    "mix": ("no rule: partners may differ", "keine Regel: Partner dürfen sich unterscheiden"),
    "crossed": (
        "Column {column}: {agree} of {pairs} earlier pairs agree in it (by chance {chance} in 100 "
        "would), and {broken} of {planned} planned pairs do not, or nobody knows. Is that a rule? "
        "Choose “rule: partners have the same” for it, or tick “no rule: partners may differ”, and "
        "learn again.",
        "Spalte {column}: {agree} von {pairs} früheren Paaren stimmen darin überein (durch Zufall "
        "wären es {chance} von 100), und {broken} von {planned} geplanten Paaren nicht, oder "
        "niemand weiß es. Ist das eine Regel? Wählen Sie dafür „Regel: Partner haben dasselbe“ "
        "oder kreuzen Sie „keine Regel: Partner dürfen sich unterscheiden“ an, und lernen Sie neu.",
    ),
    "crossed spelled": (
        "Column {column}: {agree} of {pairs} earlier pairs agree in it (by chance {chance} in 100 "
        "would) where these mean the same: {alike}. {broken} of {planned} planned pairs do not, or "
        "nobody knows. Is that a rule? Write each of them in one way in the table, drop it again "
        "and choose “rule: partners have the same”; or tick “no rule: partners may differ”, and "
        "learn again.",
        "Spalte {column}: {agree} von {pairs} früheren Paaren stimmen darin überein (durch Zufall "
        "wären es {chance} von 100), wenn diese dasselbe heißen: {alike}. {broken} von {planned} "
        "geplanten Paaren nicht, oder niemand weiß es. Ist das eine Regel? Schreiben Sie jedes "
        "davon gleich, ziehen Sie die Tabelle noch einmal hierher und wählen Sie „Regel: Partner "
        "haben dasselbe“; oder kreuzen Sie „keine Regel: Partner dürfen sich unterscheiden“ an, "
        "und lernen Sie neu.",
    ),
    "ordinal": ("question with steps (1, 2, 3 …)", "Frage mit Stufen (1, 2, 3 …)"),
    "categorical": ("question with kinds (tea, coffee …)", "Frage mit Arten (Tee, Kaffee …)"),
    "binary": ("question with two answers", "Frage mit zwei Antworten"),
    "meaning no": ("{value} ({count} times)", "{value} ({count}-mal)"),
    "more rules": ("When something is missing or new", "Wenn etwas fehlt oder neu ist"),
    "missing": ("people who left a question out", "wer eine Frage ausließ"),
    "missing neutral": ("count as average there", "zählt dort als Durchschnitt"),
    "missing refuse": ("stop and name them", "anhalten und nennen"),
    "unknown": ("an answer that nobody gave before", "eine Antwort, die es früher nicht gab"),
    "unknown refuse": ("stop and name it", "anhalten und nennen"),
    "unknown neutral": ("counts as average", "zählt als Durchschnitt"),
    "unknown nearest": ("counts as the nearest number", "zählt als die nächste Zahl"),
    "larger": ("rooms of three and more in the past", "frühere Zimmer zu dritt und größer"),
    "larger refuse": ("stop and name them", "anhalten und nennen"),
    "larger leave_out": (
        "leave these people out of learning",
        "diese Personen beim Lernen auslassen",
    ),
    "learn": ("Learn and plan", "Lernen und planen"),
    "again": ("These choices are not learned yet.", "Mit dieser Wahl ist noch nicht gelernt."),
    "starting": (
        "getting ready, {seconds} s (the first time on a machine, up to a minute)",
        "wird vorbereitet, {seconds} s (beim ersten Mal auf einem Rechner bis zu 1 Minute)",
    ),
    "learning": (
        "learning, round {round}, {seconds} s; at most {percent} % from the best",
        "lernt, Runde {round}, {seconds} s; höchstens {percent} % vom Besten entfernt",
    ),
    "plan": ("The plan", "Der Plan"),
    "change": ("Change the plan", "Den Plan ändern"),
    "person": ("Person", "Person"),
    "other": ("and", "und"),
    "ask together": ("Put together: what would it cost?", "Zusammenlegen: was kostet das?"),
    "ask swap": ("Swap their partners: what would it cost?", "Partner tauschen: was kostet das?"),
    "apart": ("Keep them apart", "Getrennt halten"),
    "do it": ("Do it", "So machen"),
    "name two": ("Name two people of the plan.", "Nennen Sie zwei Personen des Plans."),
    "share already": ("Nothing would change.", "Es würde sich nichts ändern."),
    "cost": (
        "By what was learned, the present plan is {factor} times as probable.",
        "Nach dem Gelernten ist der jetzige Plan {factor}-mal so wahrscheinlich.",
    ),
    "cost same": (
        "The plan would be about as good as it is.",
        "Der Plan wäre etwa so gut wie jetzt.",
    ),
    "cost far": (
        "By what was learned, the changed plan would hardly ever come about.",
        "Nach dem Gelernten käme der geänderte Plan kaum je zustande.",
    ),
    "new pairs": ("New pairs: {pairs}.", "Neue Paare: {pairs}."),
    "cost undone": (
        "No longer put together: {pairs}.",
        "Nicht mehr zusammengelegt: {pairs}.",
    ),
    "not together": (
        "They do not share now; they will not in any later plan.",
        "Sie wohnen jetzt nicht zusammen und auch in keinem späteren Plan.",
    ),
    "decided": ("What was decided", "Was entschieden wurde"),
    "decided what": (
        "This holds in every plan, also after a table was corrected, until it is let go.",
        "Das gilt in jedem Plan, auch nach einer Korrektur der Tabellen, bis es aufgehoben wird.",
    ),
    "decided require": ("{who} are locked together", "{who} sind zusammen festgehalten"),
    "decided forbid": ("{who} are kept apart", "{who} bleiben getrennt"),
    "decided together": ("{who} were put together", "{who} sind zusammengelegt"),
    "decided fixed": ("{who} are locked in room {room}", "{who}: festgehalten in Zimmer {room}"),
    "decided column": ("column {who}", "Spalte {who}"),
    "decided planned": ("to be paired up: {who}", "Paare bilden für: {who}"),
    "not in use": ("Not in use now: {why}.", "Zurzeit ohne Wirkung: {why}."),
    "let go": ("let go", "aufheben"),
    "undo": ("Take the last change back", "Letzte Änderung zurücknehmen"),
    "unfit nobody yet": ("nobody can be paired up yet", "noch werden keine Paare gebildet"),
    "unfit gone": (
        "nobody among those who are paired up has the id {who}",
        "niemand, für den ein Paar gebildet wird, hat die Kennung {who}",
    ),
    "unfit groups": (
        "they are of groups that never share: {first} and {second}",
        "sie gehören zu Gruppen, die nie zusammen wohnen: {first} und {second}",
    ),
    "unfit room": ("there is no room {room}", "es gibt kein Zimmer {room}"),
    "unfit room of": ("room {room} is for {group}", "Zimmer {room} ist für {group}"),
    "unfit column": (
        "there is no such column now; it was used as: {roles}",
        "eine solche Spalte gibt es jetzt nicht; sie war: {roles}",
    ),
    "unfit planned": ("nobody is of it now", "zurzeit gehört niemand dazu"),
    "alone": ("without a partner", "ohne Partner"),
    "room": ("Room {room}", "Zimmer {room}"),
    "probable": ("{share} % probable", "{share} % wahrscheinlich"),
    "lock": ("lock", "festhalten"),
    "unlock": ("unlock", "freigeben"),
    "lock whom": ("{action} {who}", "{who} {action}"),
    "locked": ("locked", "festgehalten"),
    "find": ("Find a person or room", "Person oder Zimmer suchen"),
    "downloads": ("Take it with you", "Zum Mitnehmen"),
    "report": ("report", "Bericht"),
    "technical": ("The same from the command line", "Dasselbe auf der Befehlszeile"),
    "loading": ("reading …", "wird gelesen …"),
    "lost": (
        "The program does not answer. Start it again: everything is kept.",
        "Das Programm antwortet nicht. Starten Sie es neu: Alles ist aufbewahrt.",
    ),
}

CATALOGUE = by_language(TEXTS)
NAMES = {"en": "English", "de": "Deutsch"}
