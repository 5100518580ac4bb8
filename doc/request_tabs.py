"""Tabs with the forms of each request in the worked examples.

The tabs contain the request in HTTP, for curl, for the command `openstack`, and for openstacksdk.
This module is an extension of Sphinx.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx_design.shared import create_component

from tools import request_forms

_NO_COMMAND = 'osc-placement has no command for this request.'


def setup(app: Any) -> dict[str, bool]:
    """Add the tabs to the pages."""
    app.connect('doctree-read', _add_tabs)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}


def _add_tabs(app: Any, document: nodes.document) -> None:
    guide = Path(app.env.docname).name
    if not guide.startswith('guide-'):
        return
    requests = {name[0].upper() + name[1:]: one for name, one in request_forms.read(guide).items()}
    for block in list(document.findall(nodes.literal_block)):
        caption = block.parent.next_node(nodes.caption)
        if caption is not None and block.parent.get('literal_block'):
            block.replace_self(_tabs(block, requests[caption.astext()]))


def _tabs(http: nodes.literal_block, request: request_forms.Request) -> nodes.Node:
    command = request_forms.command(request)
    forms = {
        'HTTP': http.deepcopy(),
        'curl': _code(request_forms.curl(request), 'bash'),
        'openstack': nodes.paragraph('', _NO_COMMAND)
        if command is None
        else _code(command, 'bash'),
        'openstacksdk': _code(request_forms.sdk(request), 'python'),
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
