"""Settings of the documentation build."""

project = 'Placement'
copyright = 'Placement contributors'

extensions = ['oslo_config.sphinxext', 'oslo_policy.sphinxext']
root_doc = 'index'
html_theme = 'alabaster'
html_theme_options = {
    'description': 'What a cloud has, who uses it, and where a workload could run',
    'fixed_sidebar': True,
    'page_width': '70rem',
}
html_show_copyright = False
