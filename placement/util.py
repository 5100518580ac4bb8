"""The public functions of `placement.http`, for code outside of this repository.

The modules of this package import these functions from `placement.http` instead.
"""

from placement.http.reply import pick_last_modified
from placement.http.request import check_accept, extract_json, require_content

__all__ = ['check_accept', 'extract_json', 'pick_last_modified', 'require_content']
