"""Settings that the guides, the API reference, and the release notes have in common.

The pages have the theme of the OpenStack documentation, but not its extension: the extension needs
a git repository, and adds links to sites that do not describe this implementation. The templates
replace those parts of the theme that request or link other sites.
"""

import configparser
from pathlib import Path

import openstackdocstheme

_ROOT = Path(__file__).resolve().parent.parent
_declarations = configparser.ConfigParser()
_declarations.read(_ROOT / 'setup.cfg', encoding='utf-8')

copyright = 'Placement contributors'
root_doc = 'index'
version = release = _declarations['metadata']['version']

html_theme = 'openstackdocs'
html_theme_path = [openstackdocstheme.get_html_theme_path()]
html_theme_options = {
    'analytics_tracking_code': '',
}
# Most examples are commands, configuration, or HTTP. The default is Python.
highlight_language = 'none'
# Of a shell session, only the commands are copied, without prompts. `> ` continues a command.
copybutton_prompt_text = r'\$ |> '
copybutton_prompt_is_regexp = True
copybutton_copy_empty_lines = False
# Options of commands start with two hyphens, which must not become a dash.
smartquotes = False

html_copy_source = False
html_static_path = [str(_ROOT / 'doc' / 'static')]
html_css_files = ['placement.css']
html_js_files = ['placement.js']
templates_path = [str(_ROOT / 'doc' / 'templates')]
html_context = {
    # The target of the search form of each page.
    'search_page': 'search.html',
    # The start page of each document, relative to the top directory of another document.
    'documents': (
        ('Guides', '../../../doc/build/html/index.html'),
        ('API reference', '../../../api-ref/build/html/index.html'),
        ('Release notes', '../../../releasenotes/build/html/index.html'),
    ),
}
