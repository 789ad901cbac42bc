"""`python -m hullcal` is `hullcal`."""

from hullcal.cli import main

if __name__ == "__main__":
    main(prog_name="hullcal")
