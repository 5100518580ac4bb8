"""Settings of the release notes build."""

project = 'Placement Release Notes'
copyright = 'Placement contributors'

extensions = ['reno.sphinxext']
root_doc = 'index'
html_theme = 'alabaster'
html_show_copyright = False
