"""Run the `vidrio` command with `python -m vidrio`."""

from vidrio.cli import main

raise SystemExit(main())
