"""`python -m league` is the `league` command."""

from league.cli.main import main

main()
