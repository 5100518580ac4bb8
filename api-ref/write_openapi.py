"""Write the OpenAPI documents of the API: ``python api-ref/write_openapi.py DIRECTORY``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from api_reference.openapi import files


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the documents that the command line names; by default, all documents."""
    parser = argparse.ArgumentParser(
        description='Write the OpenAPI documents of the Placement API.'
    )
    parser.add_argument('directory', type=Path, help='where to write the documents')
    parser.add_argument(
        'names',
        nargs='*',
        metavar='DOCUMENT',
        help=f'a microversion, "latest", or "{files.COMBINED}" for the document of all '
        'microversions, placement.yaml (default: all documents)',
    )
    options = parser.parse_args(arguments)
    names = [files.LATEST if name == 'latest' else name for name in options.names]
    if unknown := set(names) - set(files.NAMES):
        parser.error(f'there is no document {", ".join(sorted(unknown))}')
    try:
        files.write(options.directory, names or files.NAMES)
    except OSError as exc:
        parser.error(f'cannot write to {options.directory}: {exc.strerror}')


if __name__ == '__main__':
    main()
