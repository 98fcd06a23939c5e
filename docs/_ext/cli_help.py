"""``{cli-help} fit``: the help text of a command, as the command prints it."""

import io
import os
from contextlib import redirect_stdout

from docutils import nodes
from docutils.parsers.rst import Directive


class CliHelp(Directive):
    """Show ``frpcag COMMAND --help``; without an argument that of ``frpcag`` itself."""

    optional_arguments = 1

    def run(self):
        """Return the text as one literal block."""
        from frpcag.cli.main import main

        printed, before = io.StringIO(), os.environ.get("COLUMNS")
        os.environ["COLUMNS"] = "98"
        try:
            with redirect_stdout(printed):
                code = main([*self.arguments, "--help"])
        finally:
            os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
        if code != 0:
            raise self.error(f"frpcag {' '.join(self.arguments)} --help ended with {code}")
        text = "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
        return [nodes.literal_block(text, text, language="text")]


def setup(app):
    """Register the directive."""
    app.add_directive("cli-help", CliHelp)
    return {"parallel_read_safe": True}
