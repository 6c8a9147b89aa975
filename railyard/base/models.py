"""Models of data that do not change once they are made."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class StrictModel(FrozenModel):
    """A field that is not known is an error."""

    model_config = ConfigDict(extra="forbid")
