"""Write requests and responses into the worked examples: ``python -m tools.worked_examples``.

The tool sends the requests of the gabbi files ``guide-*.yaml`` to an empty service, as
``placement/tests/functional/test_example_pages.py`` does, and writes them into the pages of the
user guide. It replaces only blocks that differ. Read the differences before you commit them.
"""

import argparse

from placement.tests.functional import example_pages


def main() -> None:
    """Update the pages that the command line names; by default, all pages."""
    guides = example_pages.guides()
    parser = argparse.ArgumentParser(description='Write requests and responses into guide pages.')
    parser.add_argument('guides', nargs='*', metavar='GUIDE', help=f'some of: {", ".join(guides)}')
    for guide in parser.parse_args().guides or guides:
        page = example_pages.page(guide)
        before = page.read_text()
        after = example_pages.updated(before, example_pages.record(guide))
        page.write_text(after)
        print(f'{page}: {"unchanged" if before == after else "updated"}')


if __name__ == '__main__':
    main()
