"""``python -m dptally`` is the command line."""

from dptally.cli import main

main()
