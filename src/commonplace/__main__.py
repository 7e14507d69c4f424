"""`python -m commonplace`."""

from commonplace.surfaces.cli import main

if __name__ == "__main__":  # processes that work for this one import it by another name
    main()
