"""Lines of bytes → text; the error of one that is not UTF-8 has its number."""

from vidrio.errors import DataError


class Decoder:
    """Decodes one line after the other; of the file's first one a byte-order mark is left out. `first` is the number of
    the line to come."""

    def __init__(self, name: str, first: int = 1) -> None:
        self._name, self._number = name, first - 1

    def __call__(self, raw: bytes) -> str:
        self._number += 1
        try:
            return raw.decode("utf-8-sig" if self._number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"line {self._number} of {self._name} is not UTF-8",
                found=f"byte 0x{raw[error.start]:02X} at place {error.start + 1} of the line",
                do="convert it to UTF-8",
            ) from None
