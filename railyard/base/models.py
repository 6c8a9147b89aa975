"""Immutable models of data, and the types of their fields."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class StrictModel(FrozenModel):
    """A field that is not known is an error."""

    model_config = ConfigDict(extra="forbid")
