"""Plans where the consumers of provider trees fit elsewhere: `placement-manage drain`.

| Module | Task |
|---|---|
| `reading` | reads the provider trees, the consumers, and what the bodies of the moves need |
| `requests` | splits the allocations of a consumer into request groups and allocations to keep |
| `places` | finds the places of a request: candidates of the permitted trees |
| `plan` | simulates the claims of all consumers, in several orders |
| `proof` | proves that a plan is impossible |
| `report` | plans and judges each drain |
| `each` | drains trees one after another |
| `moves` | builds the bodies of PUT /allocations/{consumer} |
| `render` | builds the JSON document and the text of the result |

To *drain* a tree means to move the allocations of its consumers to other trees. The candidates are
those of `placement.candidates.solver`, and its terms anchor, slot and binding apply here, too (see
`placement.candidates.model`). The free capacity is that of `placement.admin.headroom`. Except for
`reading` and `each`, all modules are pure.
"""
