"""Settings of the API reference build."""

project = 'Placement API Reference'
copyright = 'Placement contributors'

extensions = []
root_doc = 'index'
html_theme = 'alabaster'
html_theme_options = {'fixed_sidebar': True, 'page_width': '70rem'}
html_show_copyright = False
