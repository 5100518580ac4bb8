"""The command-line programs `placement-manage` and `placement-status`.

`program.main` handles an interrupt of a command. Before it runs, Python imports the modules of the
command and of its libraries, which takes about a second. During the imports, no code of Placement
can catch an interrupt. So this package replaces the function with which Python prints an error that
was not caught.
"""

import sys
from types import TracebackType


def _report(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print('Error: The command was interrupted.', file=sys.stderr)
        return
    sys.__excepthook__(kind, error, traceback)


sys.excepthook = _report
