"""Plans where the consumers of provider trees fit elsewhere: `placement-manage drain`.

| Module | Task |
|---|---|
| `reading` | reads the conditions and the consumers; drains trees one after another |
| `places` | splits the allocations of a consumer into a request, and finds its places |
| `plan` | simulates the claims of all consumers, in several orders; proves that no plan exists |
| `report` | plans and judges each drain; the result is the JSON document with the moves |
| `render` | builds the text of the result |

To *drain* a tree means to move the allocations of its consumers to other trees. The candidates are
those of `placement.candidates.solver`, and its terms anchor, slot and binding apply here, too (see
`placement.candidates.model`). The cloud is that of `placement.admin.cloud`, and the free capacity
that of `placement.admin.headroom`. Except for `reading`, all modules are pure.
"""
