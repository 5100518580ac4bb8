"""A self-contained HTML page that shows the contents of the database.

| module | purpose |
|---|---|
| `contents` | reads the database, groups the providers into trees, and sums their inventories |
| `page` | renders the page and the JSON documents that its scripts read |

Only `contents` accesses the database.
"""
