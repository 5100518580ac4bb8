"""Options of the systemd units, applied to a command without systemd."""

from collections.abc import Collection
import subprocess
import sys

_SHOW_PROCESSES_ONLY = 'mount -t proc -o subset=pid,hidepid=invisible proc /proc && exec "$0" "$@"'
# prctl(2): PR_SET_MDWE with PR_MDWE_REFUSE_EXEC_GAIN, which child processes inherit.
_DENY_WRITE_EXECUTE = (
    'import ctypes, os, sys; '
    'sys.exit("no PR_SET_MDWE") if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) else '
    'os.execvp(sys.argv[1], sys.argv[1:])'
)
_WRAPPERS = {
    'ProcSubset=pid': ('unshare', '--mount', 'sh', '-c', _SHOW_PROCESSES_ONLY),
    'PrivateUsers=true': ('unshare', '--user', '--map-current-user'),
    'MemoryDenyWriteExecute=true': (sys.executable, '-I', '-c', _DENY_WRITE_EXECUTE),
}


def wrapper(options: Collection[str]) -> list[str]:
    """Return a command that executes another command with options of a unit.

    :param options: lines of a unit, from the keys of `_WRAPPERS`
    """
    return [word for option, words in _WRAPPERS.items() if option in options for word in words]


def refusal(command: list[str]) -> str:
    """Return why this machine cannot execute a wrapper; an empty text if it can."""
    done = subprocess.run([*command, 'true'], capture_output=True, text=True)
    return done.stderr if done.returncode else ''
