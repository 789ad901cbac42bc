"""Settings of the documentation: everything it needs is on this machine, at build and when read."""

import importlib
import inspect
import re
from pathlib import Path

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
    "thumbnail_size": (840, 480),
}


def described(page):
    """The names that a page of the reference describes, each with the first line of its docstring."""
    directive = r"^\.\. auto(\w+):: (hullcal[\w.]+)$"
    for kind, name in re.findall(directive, page.read_text(encoding="utf-8"), re.MULTILINE):
        if kind == "module":
            continue
        path, value = name.split("."), hullcal
        for number, part in enumerate(path[1:], 2):
            if not hasattr(value, part):
                importlib.import_module(".".join(path[:number]))
            value = getattr(value, part)
        role = {"function": "func", "data": "data", "exception": "exc"}.get(kind, "class")
        line = "A constant." if kind == "data" else inspect.getdoc(value).splitlines()[0]
        yield f":{role}:`{name.partition('.')[2]} <{name}>`", line


def list_names(app, docname, source):
    """The index of the reference: a line for every name, page by page."""
    if docname != "api/index":
        return
    parts = []
    for page in re.findall(r"^   (\w+)$", source[0], re.MULTILINE):
        path = Path(app.srcdir) / "api" / f"{page}.rst"
        title = path.read_text(encoding="utf-8").splitlines()[0]
        rows = [f"   * - {name}\n     - {line}" for name, line in described(path)]
        parts += [f".. rubric:: {title}\n", ".. list-table::\n   :widths: 35 65\n", *rows, ""]
    source[0] += "\n" + "\n".join(parts) + "\n"


def setup(app):
    """Formulas as drawings: they need no fonts, which browsers do not load from a folder of files."""
    app.config.mathjax_path = "mathjax/tex-svg.js"
    app.connect("source-read", list_names)
