"""Warns of public names that the built site does not document."""

import logging
import re
import zlib
from pathlib import Path

log = logging.getLogger("mkdocs.plugins.check_names")


def on_post_build(config, **kwargs):
    """Called by MkDocs; with `--strict` a warning fails the build."""
    inventory = Path(config.site_dir, "objects.inv").read_bytes()
    # Four lines of header, then one object per compressed line.
    lines = zlib.decompress(inventory.split(b"\n", 4)[4]).decode().splitlines()
    documented = {line.split()[0] for line in lines}
    root = Path(config.config_file_path).parent
    # A page may also name an alias in its text, in backticks.
    for page in (root / "docs" / "api").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        documented |= set(re.findall(r"`(keras_deepnmt[\w.]+)`", text))
    (file,) = root.glob("tests/*/public_names.txt")
    for name in file.read_text(encoding="utf-8").split():
        # The package's own names are those of other packages, and constants
        # have no docstring.
        if name.count(".") > 1 and name not in documented:
            if not name.rsplit(".", 1)[1].isupper():
                log.warning("%s is not on any page", name)
