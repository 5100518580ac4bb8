"""Changes that a command assumes: the option `--assume`.

| Module | Task |
|---|---|
| `model` | the changes, and what their result reports |
| `private_copy` | fills a database in memory with the providers and their usage |
| `apply` | makes the changes in this database |

The commands read the database in memory as they read the database of the service. So the changes
need no code in `explain`, `headroom`, and `drain`. `placement.cmd.assume` parses the changes.
"""
