"""Runs the `vidrio` command as `python -m vidrio`."""

from vidrio.cli import main

raise SystemExit(main())
