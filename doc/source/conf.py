"""Settings of the documentation build."""

project = 'Placement'
copyright = 'Placement contributors'

extensions = ['oslo_config.sphinxext', 'oslo_policy.sphinxext']
root_doc = 'index'
html_theme = 'alabaster'
html_theme_options = {
    'description': 'Resource inventories, allocations and allocation candidates',
    'fixed_sidebar': True,
    'page_width': '70rem',
}
html_show_copyright = False
