from importlib.metadata import version as installed

project = "mlestruct"
author = "The mlestruct developers"
copyright = "2026, the mlestruct developers"
version = release = installed("mlestruct")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "generated/index.md"]
templates_path = ["_templates"]

autosummary_ignore_module_all = False  # a page lists what its module's __all__ names
autosummary_imported_members = False
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
python_use_unqualified_type_names = True

# Strict for our own names; those of NumPy and the like are not looked up, so that the build needs
# no network.
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!mlestruct).*")]

html_theme = "furo"
html_title = f"mlestruct {release}"
