"""What lawyers read."""

import re

import pytest

from baton.runs import messages

SENTENCES = {name: text for name, text in vars(messages).items() if name.isupper()}


@pytest.mark.parametrize("name", sorted(SENTENCES))
def test_a_message_is_one_plain_sentence(name: str) -> None:
    """Without ids, codes or the words of machines."""
    text = SENTENCES[name]
    assert re.fullmatch(r"[A-Z][a-z ,;']+\.", text), text
    assert not re.search(r"\b(run|ticket|queue|exception|error|timeout|null)\b", text)
