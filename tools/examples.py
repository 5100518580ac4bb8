"""Write the examples of the documentation: ``python -m tools.examples``.

The tool sends the requests of the gabbi files with examples, and writes the recorded requests and
responses. ``placement/tests/functional/test_api.py`` sends the same requests and compares them with
the files. Read the differences before you commit them.
"""

import sys

from placement.tests.examples import collection
from placement.tests.functional.examples import recorder


def main() -> None:
    """Write the files, and print the names of the changed files."""
    try:
        recordings = recorder.record_files(collection.gabbi_files())
    except recorder.RecordingError as exc:
        sys.exit(str(exc))
    changed = collection.write(collection.all_files(recordings))
    for name in changed:
        print(collection.FOLDER.relative_to(collection.ROOT) / name)
    print(f'{len(recordings)} examples, {len(changed)} files changed')


if __name__ == '__main__':
    main()
