"""GET /allocation_candidates. The table lists the modules in the order in which a request runs.

| Module | Task |
|---|---|
| `request` | parses the query string; reports 400 Bad Request for an invalid query |
| `search` | runs the search; applies the configuration options |
| `forecasts` | reads the ids of a query, usually together with a forecast first page |
| `names` | reads the ids of names, and the names of ids, most of them in advance |
| `tree_search` | searches all trees in turns of limited length; logs warnings |
| `paging`, `page_order`, `page_reader`, `page_statements` | read provider trees page by page |
| `tree_rows` | reads a provider from its row |
| `prefilter` | builds the SQL conditions that skip trees which cannot serve the query |
| `rare` | restricts pages to the trees of a trait or aggregate that few providers have |
| `sharing` | finds the sharing providers that are available to a tree |
| `solver` | finds the candidates of one tree |
| `provider_checks` | checks `resources`, `required`, `member_of` and `in_tree` for one provider |
| `group_policy` | group_policy=isolate |
| `contention`, `flow` | capacity that several groups use |
| `collective_traits` | checks `required` of the unsuffixed group |
| `same_subtree` | checks `same_subtree` |
| `backtracking` | assigns providers to request groups, depth-first |
| `ordering`, `randomize` | order the candidates: depth-first, breadth-first or random |
| `candidate_limits` | removes duplicates; applies max_allocation_candidates and `limit` |
| `search_step_limit` | counts search steps and response sizes; applies their limits |
| `summaries`, `render` | read the provider summaries; build the body of the response |

`model` defines the data types, and the terms of this package: anchor, slot, option, binding.
"""
