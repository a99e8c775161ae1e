"""Sphinx settings."""

from pathlib import Path

project = "Mooncake"
author = "The Mooncake authors"
release = (Path(__file__).resolve().parents[1] / "VERSION").read_text().strip()
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
exclude_patterns = ["README.md", "_generated/README.md"]
suppress_warnings = ["myst.xref_missing"]  # Links into the source tree, which is not part of the pages.
