"""A self-contained HTML page that shows the contents of the database.

| module | purpose |
|---|---|
| `contents` | reads the database, groups the providers into trees, and sums their inventories |
| `document` | converts the data to the JSON document that the scripts of the page read |
| `page` | renders the verdict, and the page from the template, the style sheet, and the scripts |

Only `contents` accesses the database.
"""
