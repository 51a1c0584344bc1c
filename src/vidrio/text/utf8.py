"""Lines of bytes → text, with the number of the line that is not UTF-8."""

from vidrio.errors import DataError


class Decoder:
    """Decodes one line after the other; of the first one a byte-order mark is left out. What is not UTF-8 is an error,
    or with `errors` "replace" becomes \ufffd, and such lines are counted. `first` is the number of the line to come."""

    def __init__(self, name: str, errors: str = "strict", do: str = "convert it to UTF-8", first: int = 1) -> None:
        self.replaced = 0
        self._name, self._errors, self._do, self._number = name, errors, do, first - 1

    def __call__(self, raw: bytes) -> str:
        self._number += 1
        try:
            return raw.decode("utf-8-sig" if self._number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            if self._errors == "strict":
                raise DataError(
                    f"line {self._number} of {self._name} is not UTF-8",
                    found=f"byte 0x{raw[error.start]:02X} at place {error.start + 1} of the line",
                    do=self._do,
                ) from None
            self.replaced += 1
            return raw.decode("utf-8", errors="replace")
