"""Several measures and both questions at once: what the command line prints and the report shows."""

from hullcal.assessment._asked import BOTH as BOTH
from hullcal.assessment._asked import assess
from hullcal.assessment._found import Assessment
from hullcal.verdicts import Answer

__all__ = ["Answer", "Assessment", "assess"]
