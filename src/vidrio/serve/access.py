"""Who may ask the server to compute, and how much: one guard for every route that does."""

from dataclasses import dataclass

from fastapi import Request

from vidrio.serve.keys import Key, Keys, RequestLimits
from vidrio.serve.requests import Refusal
from vidrio.serve.settings import Settings

BEARER = "bearer "


@dataclass(frozen=True)
class Access:
    """The API keys, and how many requests each client has made."""

    settings: Settings
    keys: Keys | None
    limits: RequestLimits

    def admit(self, request: Request, field: str = "", requests: int = 1) -> Key:
        """The key of a request, which is counted."""
        key = self.key_of(request, field)
        self.count(request, key, requests)
        return key

    def key_of(self, request: Request, field: str = "") -> Key:
        """The key of a request, from its header `Authorization: Bearer KEY` or the field `api_key`; without one, what
        the server allows everybody. A wrong key is refused, and a missing one if it is required."""
        everybody = Key("", self.settings.req_limit)
        if self.keys is None:
            return everybody
        header = request.headers.get("authorization", "")
        secret = field or (header[len(BEARER) :].strip() if header.lower().startswith(BEARER) else "")
        found = self.keys.find(secret) if secret else None
        if secret and found is None:
            raise Refusal(403, "Invalid API key")
        if found is None and self.settings.key_required:
            status = 401 if request.url.path.startswith("/api/") else 403  # LibreTranslate's clients know 403
            wanted = {"WWW-Authenticate": "Bearer"}
            raise Refusal(status, "Please contact the server operator to get an API key", wanted)
        return found or everybody

    def count(self, request: Request, key: Key, requests: int) -> None:
        """Refuse a key, or without one an address, that asks too often."""
        client = f"key {key.name}" if key.name else request.client.host if request.client else ""
        self.limits.take(client, requests, key.req_limit)

    def characters(self, key: Key, otherwise: int | None = None) -> int:
        """How many characters a request with this key may have; −1 is no limit."""
        limits = (key.char_limit, otherwise, self.settings.char_limit)
        return next(limit for limit in limits if limit is not None)
