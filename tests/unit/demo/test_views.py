"""What is seen while it goes on."""

import io
from pathlib import Path
from uuid import UUID

from rich.console import Console

from baton.casefile.exhibits import Exhibit
from baton.db.states import ProcessingStatus as P
from baton.db.states import RegistrationStatus as R
from baton.demo.arrivals import Filed
from baton.demo.sights import Sight
from baton.demo.views import watching

_REST = Sight(processing=P.INDEXED, registration=R.REGISTERED, parts_ready=3)
_ON_ITS_WAY = Sight(processing=P.INDEXED, registration=R.REGISTERING)


def _filed(number: int) -> Filed:
    exhibit = Exhibit(
        name=f"Letter [{number}].pdf",
        path=Path("x"),
        kind="PDF",
        content_type="application/pdf",
        expected_processing="indexed",
        expected_registration="registered",
        why="an example",
    )
    return Filed(id=UUID(int=number), exhibit=exhibit, batch=1)


def _console(**options: int) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=100, **options), out  # type: ignore[arg-type]


def test_lines_tell_of_each_document_once() -> None:
    """A document is named when it comes to rest, and never again; brackets in its name are no markup."""
    console, out = _console()
    filed = [_filed(1), _filed(2)]
    with watching(console, live=False) as view:
        for _ in range(3):
            view.show(filed, {filed[0].id: _REST, filed[1].id: _ON_ITS_WAY}, starts={})
    assert out.getvalue().count("Letter [1].pdf: indexed, registered") == 1
    assert "Letter [2].pdf" not in out.getvalue()
    assert "1 indexed/registering" in out.getvalue()


def test_on_a_short_screen_documents_at_rest_make_room() -> None:
    """Those that move stay in sight, and what is left out is counted."""
    console, out = _console(height=16)
    filed = [_filed(number) for number in range(1, 41)]
    seen = {each.id: _REST for each in filed[:-3]} | {each.id: _ON_ITS_WAY for each in filed[-3:]}
    with watching(console, live=True) as view:
        view.say("kill -9 extractor")
        view.show(filed, seen, starts={"extractor": 2, "agent": 1})
    picture = out.getvalue()
    for number in (38, 39, 40):
        assert f"Letter [{number}].pdf" in picture
    assert "33 more, 33 of them at rest" in picture
    assert "extractor x2  agent" in picture
    assert "kill -9 extractor" in picture
