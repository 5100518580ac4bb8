"""The extension of Sphinx that writes the pages of the API reference from the operations.

`fields` and `tables` derive the rows of the tables; they do not depend on Sphinx.
"""

from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Register the directives and the nodes."""
    # The tests of the derivation import this package without Sphinx.
    from api_reference.pages import anchors, directives, markup

    app.add_directive('operation', directives.OperationDirective)
    app.add_directive('operations', directives.OperationsDirective)
    app.add_directive('example', directives.ExampleDirective)
    app.add_directive('error-examples', directives.ErrorExamplesDirective)
    app.add_node(markup.details, html=(markup.visit_details, markup.depart_details))
    app.add_node(markup.scrollable, html=(markup.visit_scrollable, markup.depart_scrollable))
    app.connect('doctree-read', markup.wrap_tables)
    app.connect('html-page-context', anchors.add_script)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
