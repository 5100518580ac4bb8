"""`placement-manage audit`: data that no request of this release can write.

Older releases, SQL statements of operators, and restored backups can leave such data. Each kind of
finding is a function with the decorator `model.finding`, in the modules `consumers`, `providers`
and `texts`; its correction stands beside it. `run` executes the checks and the corrections, and
`render` makes the report.
"""

# The order of these modules and of their checks is the order of the report.
from placement.admin.audit import consumers, providers, texts
from placement.admin.audit.model import Finding
from placement.admin.audit.run import findings

__all__ = ('Finding', 'consumers', 'findings', 'providers', 'texts')
