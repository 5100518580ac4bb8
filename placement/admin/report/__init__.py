"""A self-contained HTML page that shows the contents of the database.

The data passes through these modules:

| module | purpose |
|---|---|
| `read` | reads the database; returns a `Cloud` of `model` |
| `trees` | groups the providers into trees |
| `totals` | sums inventories by resource class, aggregate, and trait; finds the largest projects |
| `document` | converts the data to the JSON document that the scripts of the page read |
| `make` | calls the other modules |
| `page` | renders the page from the template, the style sheet, and the scripts in `assets` |

Only `read` accesses the database.
"""
