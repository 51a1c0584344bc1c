"""An answer that is no translation: its status and its words."""

import logging
from collections.abc import Mapping

from starlette.exceptions import HTTPException

from vidrio.errors import ConfigError, ModelError, VidrioError

log = logging.getLogger("vidrio.serve")


class Refusal(HTTPException):
    """A request that is not served."""

    def __init__(self, status: int, error: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, error, headers)


def busy(status: int, error: str, seconds: float) -> Refusal:
    """Come again after so many seconds."""
    return Refusal(status, error, {"Retry-After": str(max(1, round(seconds)))})


def bad(error: str) -> Refusal:
    return Refusal(400, f"Invalid request: {error}")


def refusal_of(error: VidrioError) -> Refusal:
    """What a client reads: why a text cannot be translated; of the operator's own faults little, since the rest, with
    its paths, is for the log."""
    if not isinstance(error, ModelError | ConfigError):
        return bad(error.what)
    log.error("%s", error)
    of_model = isinstance(error, ModelError)
    return Refusal(500, "The model cannot be loaded" if of_model else "The server is not set up as it should be")
