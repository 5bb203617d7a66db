"""How the pages are built: `sphinx-build -W --keep-going -b html docs build/docs`.

Nothing is fetched, neither while building nor while reading: formulas become MathML, pictures are drawn by the
gallery's scripts, and there are no web fonts and no scripts from elsewhere.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import re
from functools import cached_property
from typing import Any

import calibrant

project = "calibrant"
author = "The calibrant developers"
copyright = author
version = release = calibrant.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "gallery/*.py", "gallery/README.rst", "**/.ipynb_checkpoints"]
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
default_role = "py:obj"
add_module_names = False
toc_object_entries = False
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"

_OPTIONAL = ("torch", "torchmetrics", "pydantic")
autodoc_mock_imports = [name for name in _OPTIONAL if importlib.util.find_spec(name) is None]

suppress_warnings = ["config.cache"]  # the gallery is configured with a function, which cannot be cached

html_theme = "pydata_sphinx_theme"
html_title = f"calibrant {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
_WITH_LIST = ("guides", "reference", "examples")
html_sidebars = {"*": [], **{f"{folder}/**": ["sidebar-nav-bs"] for folder in _WITH_LIST}}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": {pages: ["page-toc"] for pages in ("*", "reference/**", "examples/**")},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save every figure that a block of an example has bound to a new name; displays draw outside pyplot."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    seen = gallery_conf.setdefault("_figures_seen", set())
    found = [getattr(value, "figure_", value) for value in block_vars["example_globals"].values()]
    paths = []
    for figure in found:
        if isinstance(figure, Figure) and id(figure) not in seen:
            seen.add(id(figure))
            gallery_conf.setdefault("_figures_kept", []).append(figure)  # an id is one object's while it lives
            path = next(block_vars["image_path_iterator"])
            figure.savefig(path, dpi=130)
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r".*\.py",
    "image_scrapers": (figures,),
    "reset_modules": (),
    "thumbnail_size": (600, 420),
    "capture_repr": ("_repr_html_", "__repr__"),
    "download_all_examples": False,
    "notebook_extensions": [],
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
}


def setup(app: Any) -> None:
    """Formulas as MathML, which browsers draw by themselves; and the recipes as they are in the code."""
    block = (_block_formula, None)
    app.add_html_math_renderer("mathml", inline_renderers=(_inline_formula, None), block_renderers=block)
    app.add_directive("recipes", _recipes())
    app.add_directive("command-help", _command_help())
    app.connect("build-finished", _sample_report)
    app.connect("source-read", _closed_up)
    app.connect("autodoc-skip-member", _is_no_member)
    app.connect("autodoc-process-signature", _by_name)


def _sample_report(app: Any, failure: Exception | None) -> None:
    """The report that the first page links to."""
    from pathlib import Path

    from calibrant.files import SHIPPED, read
    from calibrant.report import Report

    if failure is None and app.builder.format == "html":
        network = read(SHIPPED / "fashion_mnist_test.npz")
        Report.of(network, name="a network on Fashion-MNIST").save(Path(app.outdir, "sample_report.html"))


def _closed_up(app: Any, page: str, source: list[str]) -> None:
    """Examples end with an empty line for doctest; readers need none."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def _is_no_member(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """A field's default is in the signature already; its docstring is that of the default, not of the field."""
    module = str(getattr(value, "__module__", ""))  # scikit-learn puts methods of its own into a class
    computed = isinstance(value, (property, cached_property))
    routine = inspect.isroutine(value) and module.startswith("calibrant") and "." in getattr(value, "__qualname__", "")
    documented = what != "class" or routine or computed or type(value).__module__.startswith("sphinx.")
    return None if documented else True


def _by_name(app: Any, what: str, name: str, value: Any, options: Any, given: str | None, result: str | None) -> Any:
    """Functions among the defaults by their names."""
    return given and re.sub(r"<function (\w+)[^>]*>", r"\1", given), result


def _recipes() -> type:
    """The directive that lists every recipe with the choices in which it differs from the defaults of its kind."""
    from sphinx.util.docutils import SphinxDirective

    class Recipes(SphinxDirective):
        def run(self) -> list[Any]:
            lines = []
            for name, metric in calibrant.RECIPES.items():
                lines += [f".. py:data:: {name}", f"   :value: {_short(metric)}", "   :module: calibrant", ""]
            return self.parse_text_to_nodes("\n".join(lines))

    return Recipes


def _command_help() -> type:
    """The directive that shows what every command says about itself."""
    import click
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    from calibrant.cli.commands import group

    def said(command: click.Command, context: click.Context) -> list[Any]:
        text = command.get_help(context)
        shown = [nodes.rubric("", context.command_path), nodes.literal_block(text, text, language="none")]
        inner = command.commands if isinstance(command, click.Group) else {}
        for name, one in inner.items():
            shown += said(one, click.Context(one, info_name=name, parent=context, terminal_width=100))
        return shown

    class CommandHelp(SphinxDirective):
        def run(self) -> list[Any]:
            return said(group, click.Context(group, info_name="calibrant", terminal_width=100))

    return CommandHelp


def _short(metric: Any) -> str:
    """A metric as one would write it: fields that have their default are left out."""
    fields = dataclasses.fields(metric)
    given = [
        (field.name, getattr(metric, field.name)) for field in fields if getattr(metric, field.name) != field.default
    ]
    named = (f"{name}={_named(value)}" for name, value in given)
    return f"{type(metric).__name__}({', '.join(named)})"


def _named(value: Any) -> str:
    return value.__name__ if callable(value) and hasattr(value, "__name__") else repr(value)


def _inline_formula(writer: Any, node: Any) -> None:
    _write(writer, _formula(node, "inline"))


def _block_formula(writer: Any, node: Any) -> None:
    _write(writer, f'<div class="formula">{_formula(node, "block")}</div>\n')


def _formula(node: Any, display: str) -> str:
    from latex2mathml.converter import convert

    return convert(node.astext(), display=display)


def _write(writer: Any, text: str) -> None:
    from docutils import nodes

    writer.body.append(text)
    raise nodes.SkipNode
