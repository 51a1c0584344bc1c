"""What was read, what was left out and why, in numbers and in samples."""

from dataclasses import dataclass, field
from typing import Any

SAMPLES = 5  # kept for each reason
LONGEST_SAMPLE = 200  # characters

# Every reason, in the order in which a pair is tested, and what it means.
REASONS = {
    "invalid UTF-8": "the bytes are no UTF-8 text; the line is skipped",
    "line too long": "a line of more than 1,000,000 bytes is skipped unread",
    "NUL character": "text files do not hold it; the line is skipped",
    "not JSON": "the line is no JSON object",
    "column missing": "the row does not have both columns, or not as text",
    "empty": "one side is blank",
    "too long": "one side has too many characters",
    "broken encoding": "text decoded wrongly at some time: Ã© for é, or the mark U+FFFD",
    "control characters": "characters that no sentence holds",
    "identical sides": "three or more words, the same on both sides",
    "wrong script": "most letters are of a script that the language does not use",
    "length ratio": "one side is far longer than the other, by the measure of all the pairs",
    "numbers differ": "a number stands on one side only",
    "duplicate": "the same pair came before",
    "duplicate up to case and punctuation": "nearly the same pair came before",
    "shares a side with a held-out pair": "another translation of a held-out sentence",
    "stands in a held-out set": "the source or the target is one of a held-out sentence, up to case and punctuation",
    "near-copy of a held-out sentence": "but for one word it is a held-out sentence",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One pair that was left out."""

    place: str  # file and line
    source: str
    target: str


@dataclass
class Tally:
    """Counts by reason, with the first few samples of each."""

    read: int = 0
    kept: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    near_copies: int = 0  # of held-out sentences, kept all the same: without them little would be left

    def skip(self, reason: str, place: str, source: str, target: str = "") -> None:
        """Count a pair that is left out."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        samples = self.samples.setdefault(reason, [])
        if len(samples) < SAMPLES:
            samples.append(Sample(place, _clip(source), _clip(target)))

    @property
    def skipped(self) -> int:
        return sum(self.counts.values())

    def reasons(self) -> list[tuple[str, int]]:
        """Reasons that occurred, in their order, with counts."""
        return [(reason, self.counts[reason]) for reason in REASONS if reason in self.counts]

    def summary(self, left: int) -> str:
        """How many pairs were read, how many are left, and why."""
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in self.reasons())
        return f"{self.read:,} pairs read, {left:,} left" + (f" ({reasons})" if reasons else "")

    def notes(self) -> list[str]:
        """What must be known beside the counts, in lines to tell."""
        if not self.near_copies:
            return []
        return [
            f"  kept {self.near_copies:,} that differ from a held-out sentence in one word only, since many pairs do: "
            "scores will be better than on new sentences"
        ]

    def to_json(self) -> dict[str, Any]:
        samples = {
            reason: [{"place": s.place, "source": s.source, "target": s.target} for s in self.samples[reason]]
            for reason, _ in self.reasons()
        }
        near = {"near_copies": self.near_copies} if self.near_copies else {}
        return {"read": self.read, "kept": self.kept, **near, "skipped": dict(self.reasons()), "samples": samples}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Tally":
        samples = {reason: [Sample(**sample) for sample in some] for reason, some in data["samples"].items()}
        return Tally(data["read"], data["kept"], dict(data["skipped"]), samples, data.get("near_copies", 0))


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST_SAMPLE else text[:LONGEST_SAMPLE] + "…"
