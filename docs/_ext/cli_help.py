"""``{cli-help} fit``: the help text of a command, as the command prints it."""

from docutils import nodes
from docutils.parsers.rst import Directive


class CliHelp(Directive):
    """Show ``frpcag COMMAND --help``; without an argument that of ``frpcag`` itself."""

    optional_arguments = 1

    def run(self):
        """Return the text as one literal block."""
        from typer.testing import CliRunner

        from frpcag.cli.main import app

        plain = {"COLUMNS": "98", "NO_COLOR": "1", "TERM": "dumb"}
        done = CliRunner().invoke(app, [*self.arguments, "--help"], prog_name="frpcag", env=plain)
        if done.exit_code != 0:
            raise self.error(f"frpcag {' '.join(self.arguments)} --help ended with {done.exit_code}: {done.output}")
        text = "\n".join(line.rstrip() for line in done.output.strip().splitlines())
        return [nodes.literal_block(text, text, language="text")]


def setup(app):
    """Register the directive."""
    app.add_directive("cli-help", CliHelp)
    return {"parallel_read_safe": True}
