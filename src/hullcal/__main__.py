"""`python -m hullcal` is `hullcal`."""

from hullcal.cli import run

if __name__ == "__main__":
    run()
