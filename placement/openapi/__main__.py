"""Write the OpenAPI documents of the API: ``python -m placement.openapi DIRECTORY``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from placement.openapi import files


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the documents that the command line names; by default, all documents."""
    parser = argparse.ArgumentParser(
        prog='python -m placement.openapi',
        description='Write the OpenAPI documents of the Placement API.',
    )
    parser.add_argument('directory', type=Path, help='where to write the documents')
    parser.add_argument(
        'names',
        nargs='*',
        metavar='DOCUMENT',
        help=f'a microversion, or "{files.COMBINED}" for the document of all microversions, '
        'placement.yaml (default: all documents)',
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(files.NAMES):
        parser.error(f'there is no document {", ".join(sorted(unknown))}')
    try:
        files.write(options.directory, options.names or files.NAMES)
    except OSError as exc:
        parser.error(f'cannot write to {options.directory}: {exc.strerror}')


if __name__ == '__main__':
    main()
