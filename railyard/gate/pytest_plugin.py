"""The pytest face: tests of a scheduler as plain tests.

    def test_survives_outage(railyard):
        result = railyard.run(scheme="xlink", pair="hsr-1", seed=3)
        assert result.rebuffer_rate == 0

Runs are in virtual time: exact, the same on every machine, and they take a fraction of a second. The plugin comes with
the package; nothing needs to be enabled.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from railyard.gate.testing import Railyard


@pytest.fixture
def railyard(tmp_path: Path) -> "Railyard":
    """`railyard.run(scheme=…, pair=…, seed=…, **settings)` runs once in virtual time, below the test's tmp_path."""
    # Imported late: sessions that do not use the fixture do not pay for it.
    from railyard.gate.testing import Railyard  # noqa: PLC0415

    return Railyard(tmp_path / "railyard")
