"""Settings of the documentation."""

import hullcal

project = "hullcal"
author = "The hullcal developers"
copyright = "2026, the hullcal developers"
release = hullcal.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "myst_parser"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
