"""Explains why a query has no allocation candidates: `placement-manage explain`.

| Module | Task |
|---|---|
| `conditions` | splits a query into conditions; builds the query without some of them |
| `provider_kinds` | determines which providers no condition of the query can distinguish |
| `patterns` | groups the anchors of the cloud that no condition of the query can distinguish |
| `checks` | checks each condition alone for the providers of an anchor |
| `judge` | decides whether the query without some conditions has candidates |
| `relaxations` | finds the sets of conditions whose removal yields candidates |
| `funnel` | counts the providers that remain after each check |
| `most_free` | finds the providers with the most free capacity and the largest max_unit |
| `nearest` | finds the trees in which the fewest conditions fail, with the facts |
| `explanation` | runs these steps on one snapshot of the database |
| `render` | builds the JSON document and the text of the result |

`model` defines the result. The terms anchor, slot and any-set are those of
`placement.candidates.model`. The rules are those of `placement.candidates`: this package only
selects which conditions a search has.
"""
