"""``{measured} fit``: a table made at build time from the measurements in results/, so that none is typed by hand.

``{measured} gpu:steps`` is another table of the same record.
"""

import json

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from tables import RESULTS, TABLES


class Measured(Directive):
    """A table of ``results/NAME.json``, NAME up to the colon, and a line that says where it was measured."""

    required_arguments = 1

    def run(self):
        """Return the nodes of the table, parsed as Markdown."""
        name = self.arguments[0]
        source = RESULTS / f"{name.partition(':')[0]}.json"
        self.state.document.settings.env.note_dependency(str(source))
        record = json.loads(source.read_text())
        head, rows = TABLES[name](record)
        machine = record.get("gpu") or f"{record['machine']['cores']} cores, {record['machine']['cpu']}"
        lines = [head, ["---"] * len(head), *rows]
        text = ["| " + " | ".join(cells) + " |" for cells in lines]
        text += ["", f"*Measured on: {machine}. From `results/{source.name}`, read when this page was built.*"]
        box = nodes.container(classes=["measured"])
        self.state.nested_parse(StringList(text, str(source)), 0, box)
        return [box]


def setup(app):
    """Register the directive."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
