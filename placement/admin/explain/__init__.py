"""Explains why a query has no allocation candidates: `placement-manage explain`.

| Module | Task |
|---|---|
| `conditions` | splits a query into conditions; builds the query without some of them |
| `search` | finds the sets of conditions whose removal yields candidates |
| `explanation` | runs these steps on one snapshot of the database; builds the JSON document |
| `render` | builds the text of the result |

The terms anchor, slot and any-set are those of `placement.candidates.model`. The rules are those of
`placement.candidates`: this package only selects which conditions a search has.
"""
