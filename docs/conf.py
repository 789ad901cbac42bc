"""Settings of the documentation: everything it needs is on this machine, at build and when read."""

import hullcal

project = "hullcal"
author = "The hullcal developers"
copyright = "2026, the hullcal developers"
release = hullcal.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.rst"]

html_theme = "pydata_sphinx_theme"
html_title = "hullcal"
html_static_path = ["_static"]
html_css_files = ["hullcal.css"]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "hullcal"},
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# A page without neighbours has an empty left side.
html_sidebars = {"index": []}

numpydoc_show_class_members = False
autodoc_member_order = "bysource"
# What an array-like is, the docstrings say in words; spelt out as a type it takes four lines.
autodoc_typehints = "none"
python_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    # Names in pictures are small; twice the pixels keep them sharp on a screen.
    "image_srcset": ["2x"],
}


def setup(app):
    """Formulas as drawings: they need no fonts, which browsers do not load from a folder of files."""
    app.config.mathjax_path = "mathjax/tex-svg.js"
