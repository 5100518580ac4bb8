"""The names of the HTTP edge that the architecture document lists.

`placement.http.request` and `placement.http.reply` define them. Code outside of this repository
may import them from here; modules of this package import `placement.http`.
"""

from placement.http.reply import pick_last_modified
from placement.http.request import check_accept, extract_json, require_content

__all__ = ['check_accept', 'extract_json', 'pick_last_modified', 'require_content']
