"""GET /allocation_candidates: the modules in the order of the data flow.

| Module | Task |
|---|---|
| `request` | from the query string to a `Query`; `limit`, `group_policy`, 400 Bad Request |
| `search` | the whole search: turns of trees, search limit, warnings |
| `facts`, `statements` | names and provider rows; all statements |
| `paging`, `page_statements` | pages of trees: their sizes, lenient and strict pages |
| `prefilter` | conditions on a root in SQL |
| `sharing` | which sharing providers serve which trees |
| `solver` | the candidates of one anchor |
| `provider_checks` | resources, `required`, `member_of`, `in_tree` of one provider |
| `group_policy`, `flow` | isolation, and the capacity that several groups use |
| `collective_traits` | `required` of the unsuffixed group |
| `same_subtree` | `same_subtree` |
| `backtracking` | the depth-first search for bindings |
| `ordering`, `randomize` | depth-first, breadth-first and random order |
| `candidate_limits` | duplicates, max_allocation_candidates, `limit`, old clients |
| `search_steps` | max_candidate_search_steps |
| `summaries`, `render` | which providers have a summary; the body of the response |

`model` has the data types.
"""
