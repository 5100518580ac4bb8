"""Text of clients in a form that is safe in a log line and in a shell."""

import re
from urllib.parse import quote

# The characters to percent-encode: all except visible ASCII, and the quotation marks. A double
# quote would end a field of a log line. A single quote would end an argument in a shell.
_UNSAFE = re.compile(r'[^!#-&(-~]+')


def quoted(text: str) -> str:
    """Percent-encode the unsafe characters of a text from a WSGI environment.

    Text that is already percent-encoded is not encoded again. Therefore, an encoded query string
    has the same parameters as the original one.
    """
    return _UNSAFE.sub(_percent_encoded, text)


def _percent_encoded(match: re.Match[str]) -> str:
    # PEP 3333: the environment contains bytes decoded as latin-1.
    return quote(match[0], encoding='latin-1', errors='replace')
