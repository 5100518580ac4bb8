"""Release notes of a tree without tags or without the complete git history.

reno reads the git history to find the release of each note. It fails in an archive and in a shallow
clone, and calls the release 0.0.0 if the history has no tag.
"""

from pathlib import Path
import subprocess

from reno import loader

_ROOT = Path(__file__).resolve().parent.parent


def has_history() -> bool:
    """Return whether reno can find the release of each note."""
    if not (_ROOT / '.git').exists():
        return False
    is_complete = _git('rev-parse', '--is-shallow-repository') == 'false'
    # A contributor can have other tags than those of releases.
    return is_complete and bool(_git('tag', '--list', '[0-9]*'))


def _git(*arguments: str) -> str:
    try:
        completed = subprocess.run(('git', *arguments), cwd=_ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return ''
    return completed.stdout.strip()


def read_without_history(release: str) -> None:
    """Make reno read the notes in the working tree as notes of one release."""

    class Scanner:
        """Replaces the class of reno that reads the git history."""

        def __init__(self, config: object) -> None:
            del config

        def get_notes_by_version(self) -> dict[str, list[tuple[str, str]]]:
            paths = sorted((_ROOT / 'releasenotes' / 'notes').glob('*.yaml'))
            return {release: [(str(path.relative_to(_ROOT)), '') for path in paths]}

        def get_version_dates(self) -> dict[str, int]:
            return {}

        def get_file_at_commit(self, filename: str, sha: str) -> bytes:
            del sha
            return (_ROOT / filename).read_bytes()

        def close(self) -> None:
            pass

    loader.scanner.Scanner = Scanner
