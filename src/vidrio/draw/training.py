"""The report of a training run, written into its model's folder."""

from pathlib import Path

from vidrio.draw.html import page
from vidrio.look.report import Ending, report
from vidrio.model.folder import write_atomically


def write_report(folder: Path, ending: Ending, data: Path | None = None) -> Path:
    """Write `report.html`; `data` is the data.json of the run's pairs. The same run gives the same bytes."""
    path = folder / "report.html"
    write_atomically(path, page(report(folder, ending, data)).encode())
    return path
