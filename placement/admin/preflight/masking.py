"""Texts of errors without the secrets of the configuration."""

from collections.abc import Iterable
import contextlib
import re

from oslo_config import cfg

from placement import messages
from placement.admin.preflight import options
from placement.conf import database_url

MASK = '***'


def sentence(error: Exception, config: cfg.ConfigOpts) -> str:
    """Return the message of an error in one line, without secrets of the configuration."""
    return mask(messages.sentence(error), values(config))


def values(config: cfg.ConfigOpts) -> set[str]:
    """Return the values of all secret options, and the passwords in the database URLs."""
    found = set()
    for option in options.registered(config):
        if not option.secret:
            continue
        with contextlib.suppress(ValueError, cfg.Error):
            found.add(str(options.value(config, option) or ''))
    parts = {part for value in found for part in database_url.secrets(value)}
    return (found | parts) - {''}


def mask(text: str, hidden: Iterable[str]) -> str:
    """Replace each occurrence of the hidden texts that is not a part of a word."""
    for value in sorted(hidden, key=len, reverse=True):
        text = re.sub(rf'(?<!\w){re.escape(value)}(?!\w)', MASK, text)
    return text
