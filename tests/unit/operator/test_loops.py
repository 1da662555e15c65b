"""One resource's loop: how long it waits after a failure."""

import pytest

from baton.operator.loops import longest
from baton.operator.specs import Key, Wanted


@pytest.mark.parametrize(
    ("interval", "seconds"), [("1s", 5.0), ("20s", 20.0), ("1h", 3600.0), (None, 30.0), ("soon", 30.0)]
)
def test_what_failed_is_tried_again_within_one_interval(interval: str | None, seconds: float) -> None:
    """But a loop that hurries does not hurry to fail; and an interval that cannot be read does not end the loop."""
    spec = {} if interval is None else {"interval": interval}
    assert longest(Wanted(key=Key("n", "r", "u"), generation=1, version="1", spec=spec)) == seconds
