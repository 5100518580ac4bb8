"""The section TLS of ``doc/source/admin/databases.rst``."""

from pathlib import Path
import re
from typing import Any

import sqlalchemy as sa

import placement

_PAGE = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'databases.rst'
_SECTION = re.compile(r'^TLS\n=+\n(.+?)^\S+\n=+\n', re.MULTILINE | re.DOTALL)
_URL = re.compile(r'^    connection = (\S+)$', re.MULTILINE)


def section() -> str:
    """Return the text of the section."""
    match = _SECTION.search(_PAGE.read_text())
    assert match, 'the page has no section TLS'
    return match[1]


def url(driver: str) -> sa.URL:
    """Return the URL of the page for a driver."""
    urls = map(sa.make_url, _URL.findall(section()))
    return next(url for url in urls if url.get_driver_name() == driver)


def verification(driver: str, authority: str | Path) -> dict[str, Any]:
    """Return the URL parameters of the page for a driver.

    :param authority: the file with the certificate of the CA that the driver trusts
    """
    query = url(driver).query
    return {name: str(authority) if '/' in str(value) else value for name, value in query.items()}
