import re
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

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
python_use_unqualified_type_names = True

# Strict for our own names; those of NumPy and the like are not looked up, so that the build needs
# no network.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!mlestruct).*"),
    (r"py:.*", r"mlestruct.*\.[A-Z](_co|_contra)?"),  # type variables
    (r"py:.*", r"mlestruct(_oracles)?\.native\._door\..*"),  # written by the build
    (r"py:.*", r"mlestruct\.learners\.[a-z_]+\.[A-Z]\w+"),  # a learner's name hides its module's
]
# Two modules may each have a Plan; annotations name the right one in the source.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"mlestruct {release}"


def plain_formulas(app, what, name, obj, options, lines):
    """Docstrings are read in editors too: |x| and coef_ are formulas and names, not reST markup."""
    literal = None  # the indentation of the `::` line of the code block we are in
    for index, line in enumerate(lines):
        text = line.strip()
        indentation = len(line) - len(line.lstrip())
        if literal is not None and text and indentation <= literal:
            literal = None
        if literal is None and not text.startswith((">>>", "...")):
            lines[index] = escape(line)
        if literal is None and text.endswith("::"):
            literal = indentation


def escape(line):
    parts = re.split(r"(`[^`]*`)", line)  # every second part is in backticks and stays
    parts[::2] = (re.sub(r"(?<!\\)\||(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts[::2])
    return "".join(parts)


def levelled(app, pagename, templatename, context, doctree):
    """For screen readers and keyboards: captions of lists have a level, wide blocks the focus."""
    for part in ("body", "furo_navigation_tree"):
        if isinstance(context.get(part), str):
            bare = 'class="caption" role="heading"'
            context[part] = context[part].replace(bare, f'{bare} aria-level="2"')
            context[part] = context[part].replace("<pre>", '<pre tabindex="0">')


def setup(app):
    app.connect("autodoc-process-docstring", plain_formulas)
    app.connect("html-page-context", levelled, priority=900)
