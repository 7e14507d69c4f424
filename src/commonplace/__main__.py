"""`python -m commonplace`."""

from commonplace.surfaces.cli import main

main()
