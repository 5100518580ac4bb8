"""Tabs with the forms of each request in the worked examples, and in the API reference.

The tabs contain the request in HTTP, for curl, for the command `openstack`, and for openstacksdk.
This module is an extension of Sphinx, which adds the tabs to the worked examples.
"""

from pathlib import Path
import re
from typing import Any

from docutils import nodes
from sphinx_design.shared import create_component

from tools import request_forms

# A long URL has several lines.
_REQUEST_LINE = re.compile(r'^.+(\n +[?&].+)*')
_NO_COMMAND = 'osc-placement has no command for this request.'


def setup(app: Any) -> dict[str, bool]:
    """Add the tabs to the pages."""
    app.connect('doctree-read', _add_tabs)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}


def _add_tabs(app: Any, document: nodes.document) -> None:
    guide = request_forms.guide_of(Path(app.env.docname).name)
    if guide is None:
        return
    requests = {name[0].upper() + name[1:]: one for name, one in request_forms.read(guide).items()}
    for block in list(document.findall(nodes.literal_block)):
        caption = block.parent.next_node(nodes.caption)
        if caption is not None and block.parent.get('literal_block'):
            request = requests[caption.astext()]
            http = _code(_with_headers(block.astext(), request), 'text')
            block.replace_self(tabs(http, request, request_forms.DEFAULT_VERSION))


def _with_headers(text: str, request: request_forms.Request) -> str:
    """Return a request with its headers, which the source of a page does not contain."""
    names = ('X-Auth-Token: $TOKEN', f'OpenStack-API-Version: placement {request.version}')
    return _REQUEST_LINE.sub(lambda match: '\n'.join((match[0], *names)), text, count=1)


def tabs(http: nodes.Node, request: request_forms.Request, selected: str = '') -> nodes.Node:
    """Return the forms of a request.

    :param http: the request in HTTP
    :param selected: the microversion that the other forms do not need to state
    """
    command = request_forms.command(request, selected)
    forms = {
        'HTTP': http,
        'curl': _code(request_forms.curl(request), 'bash'),
        'openstack': nodes.paragraph('', _NO_COMMAND)
        if command is None
        else _code(command, 'bash'),
        'Python': _code(request_forms.sdk(request, selected), 'python'),
    }
    items = [_item(name, content) for name, content in forms.items()]
    return create_component('tab-set', classes=['sd-tab-set'], children=items)


def _code(text: str, language: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language=language)


def _item(name: str, content: nodes.Node) -> nodes.Node:
    label = nodes.rubric(name, name, classes=['sd-tab-label'])
    # A selected tab is selected in all requests.
    label['sync_id'], label['sync_group'] = name, 'request'
    body = create_component('tab-content', classes=['sd-tab-content'], children=[content])
    classes = ['sd-tab-item']
    return create_component('tab-item', classes=classes, children=[label, body], selected=False)
