"""`python -m vidrio` is `vidrio`."""

from vidrio.cli import main

raise SystemExit(main())
