"""`placement-manage audit`: data that no request of this release can write.

Older releases, SQL statements of operators, and restored backups can leave such data. Each kind of
finding has a code (`model.CODES`). The modules `trees`, `duplicates` and `render` are pure;
`providers`, `references`, `consumers`, `servers`, `generations`, `texts` and `unused` read the
database.
`checks` reads all findings from one snapshot. `repair` corrects the findings that have a safe
correction.
"""

from placement.admin.audit.checks import findings
from placement.admin.audit.model import Finding

__all__ = ('Finding', 'findings')
