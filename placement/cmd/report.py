"""Write an HTML page that shows the contents of the database.

Exit status: 0 the page is written; 2 the page cannot be written, the database cannot be read, or
the command line is not valid.
"""

from typing import Any

from oslo_config import cfg

from placement.admin import console
from placement.admin.headroom import reading
from placement.cmd import output, program
from placement.db import engine

_OPTIONS = """
FILE
    the page, for example report.html; an existing file is replaced when the page is complete; -
    writes the page to standard output
--drain
    show which trees can be drained, as `placement-manage drain --each` prints it
--headroom NAME=QUERY
    show how many more claims of a query of GET /allocation_candidates fit; the option can be
    repeated
"""


def add_commands(commands: Any) -> None:
    """Add the command to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'report', _report, __doc__)
    program.add_options(parser, _OPTIONS, headroom={'action': 'append', 'default': []})
    output.add_names_option(parser)


def _report(config: cfg.ConfigOpts) -> int:
    # The library for templates is part of an extra, which other commands do not need.
    from placement.admin.report import contents, page

    options = config.category
    known = console.read_names(options.names)
    queries = reading.parse_named(options.headroom)
    if options.file != output.STANDARD:
        output.check(options.file)
    with engine.snapshot() as conn:
        shown = contents.read(conn, config, known, queries, options.drain, output.progress)
    rendered = page.render(shown)
    with output.destination(options.file) as file:
        file.write(rendered)
    return 0
