"""An answer that is no translation: its status and its words."""

from fastapi.responses import JSONResponse


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
