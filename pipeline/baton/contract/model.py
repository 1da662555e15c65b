"""The base of every model of the contract."""

from pydantic import BaseModel, ConfigDict


class ContractModel(BaseModel):
    """Frozen, no unknown members, no conversions: the string "1" is not a number.

    Validation errors leave the input out, so that content cannot reach a log through them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False)
