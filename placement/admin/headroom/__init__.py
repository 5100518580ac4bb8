"""Counts how many more claims of a query fit: `placement-manage headroom`.

| Module | Task |
|---|---|
| `reading` | reads the provider trees and the names that a report needs |
| `free_capacity` | keeps the free capacity that simulated claims leave |
| `simulation` | claims one candidate after another until no candidate is left |
| `upper_bound` | computes a number of claims that no order of claims can exceed |
| `fragmentation` | computes the free capacity that the claims cannot use |
| `claims` | builds the body of PUT /allocations/{consumer} for each simulated claim |
| `report` | counts the claims of each tree or aggregate |
| `render` | builds the JSON document and the text of the result |

The candidates are those of `placement.candidates.solver`, and its terms anchor, slot and binding
apply here too (see `placement.candidates.model`). A claim is judged by the rules of
`placement.capacity`. Except for `reading`, all modules are pure.
"""
