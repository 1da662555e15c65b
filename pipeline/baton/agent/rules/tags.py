"""Tags: a few words under which a lawyer would look for a document."""

import re
import unicodedata
from typing import Final

from baton.agent.rules.reading import Reading

MAX_TAGS: Final = 12

_SUBJECTS: Final = tuple(
    (tag, re.compile(pattern, re.IGNORECASE))
    for tag, pattern in (
        ("confidential", r"\bconfidential\b|конфиденциально|εμπιστευτικ|गोपनीय"),
        ("without prejudice", r"\bwithout prejudice\b"),
        ("draft", r"^draft\b|\bdraft (?:of|for discussion)\b"),
        ("settlement", r"\bsettlement\b|мировое соглашение|συμβιβασμ"),
        ("arbitration", r"\barbitra(?:tion|l|tor)"),
        ("injunction", r"\binjuncti(?:on|ve)"),
        ("damages", r"\bdamages\b|убытк|αποζημ[ιί]ωση|क्षतिपूर्ति"),
        ("breach of contract", r"\bbreach of (?:the )?(?:contract|agreement)|\bmaterial breach\b"),
        ("termination", r"\bterminat(?:e|ion|ed)\b|расторжени"),
        ("payment", r"\b(?:payment|invoice|outstanding amount)\b|оплат|πληρωμ|भुगतान"),
        ("delivery", r"\b(?:late|delayed|failed) deliver|\bdelivery (?:date|schedule|note)"),
        ("employment", r"\bemploy(?:ment|er|ee)\b"),
        ("lease", r"\b(?:lease|landlord|tenant)\b|\bμ[ιί]σθωση"),
        ("insurance", r"\binsur(?:ance|er|ed)\b"),
        ("intellectual property", r"\b(?:patent|trade ?mark|copyright|trade secret)s?\b"),
        ("data protection", r"\b(?:personal data|data protection|gdpr)\b"),
        ("expert evidence", r"\bexpert (?:report|witness|opinion|evidence)"),
        ("evidence", r"\b(?:exhibit|annexure|deposition)s?\b"),
    )
)
_SCRIPTS: Final = (
    "greek",
    "cyrillic",
    "devanagari",
    "arabic",
    "hebrew",
    "cjk",
    "bengali",
    "tamil",
    "georgian",
    "armenian",
)
_SAMPLE: Final = 4000


def tags_of(reading: Reading) -> tuple[tuple[str, float], ...]:
    """Tags with their confidence, by the head of the text; a tag for a script other than Latin."""
    head = reading.head
    found: list[tuple[str, float]] = []
    for tag, pattern in _SUBJECTS:
        hits = sum(1 for _match in pattern.finditer(head))
        if hits:
            found.append((tag, round(min(0.6 + 0.1 * hits, 0.9), 2)))
    if script := script_of(head):
        found.append((f"script: {script}", 0.95))
    return tuple(found[:MAX_TAGS])


def script_of(text: str) -> str | None:
    """The script that most letters are of, where it is one of the known ones and not Latin."""
    counts: dict[str, int] = {}
    letters = 0
    for character in text[:_SAMPLE]:
        if character.isalpha():
            letters += 1
            if not character.isascii():
                name = unicodedata.name(character, "").partition(" ")[0].lower()
                counts[name] = counts.get(name, 0) + 1
    if not counts:
        return None
    script, count = max(counts.items(), key=lambda item: (item[1], item[0]))
    return script if script in _SCRIPTS and 2 * count > letters else None
