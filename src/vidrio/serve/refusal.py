"""An answer that is no translation: its status and its words."""

import logging

from fastapi.responses import JSONResponse

from vidrio.errors import ConfigError, ModelError, VidrioError

log = logging.getLogger("vidrio.serve")


class Refusal(Exception):
    """A request that is not served. The body is LibreTranslate's: {"error": "…"}."""

    def __init__(self, status: int, error: str, retry_after: float | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.retry_after = status, error, retry_after

    def response(self) -> JSONResponse:
        headers = {} if self.retry_after is None else {"Retry-After": str(max(1, round(self.retry_after)))}
        return JSONResponse({"error": self.error}, self.status, headers)


def bad(error: str) -> Refusal:
    return Refusal(400, f"Invalid request: {error}")


def refusal_of(error: VidrioError) -> Refusal:
    """What a client is told: of a text that cannot be translated why; of the operator's own faults little, since the
    rest, with its paths, is for the log."""
    if not isinstance(error, ModelError | ConfigError):
        return bad(error.what)
    log.error("%s", error)
    told = "The model cannot be loaded" if isinstance(error, ModelError) else "The server is not set up as it should be"
    return Refusal(500, told)
