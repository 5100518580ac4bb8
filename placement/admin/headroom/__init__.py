"""Counts how many more claims of a query fit: `placement-manage headroom`.

| Module | Task |
|---|---|
| `reading` | parses the queries, and looks up the ids of their names |
| `simulation` | claims one candidate after another until none is left, and finds the limit |
| `result` | builds the JSON document, the text, and the claims from the simulation |

The candidates are those of `placement.candidates.solver`, and its terms anchor, slot and binding
apply here too (see `placement.candidates.model`). A claim is judged by the rules of
`placement.capacity`. Except for `reading`, all modules are pure.
"""
