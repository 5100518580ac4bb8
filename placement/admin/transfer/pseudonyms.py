"""Replace the names in an export, so that it can be published in a bug report."""

from collections.abc import Callable, Mapping, Sequence
import functools
import hashlib
import hmac
from typing import Any

from placement.admin.transfer import model

# In bits: 80. Two of a million names have the same pseudonym with a probability of 4e-13.
_DIGITS = 20
_CUSTOM = 'CUSTOM_'
# The default project and user of consumers that old releases created without an owner.
_INCOMPLETE = '00000000-0000-0000-0000-000000000000'
# The consumer types of Nova.
_KNOWN_TYPES = frozenset({'INSTANCE', 'MIGRATION'})

Digest = Callable[[str, str], str]
# A function that returns the values of a row with pseudonyms.
Rename = Callable[[model.Kind, Sequence[Any]], Sequence[Any]]


def _custom(kind: str, name: str, digest: Digest) -> str:
    return f'{_CUSTOM}{digest(kind, name).upper()}' if name.startswith(_CUSTOM) else name


def _consumer_type(kind: str, name: str, digest: Digest) -> str:
    return name if name in _KNOWN_TYPES else f'TYPE_{digest(kind, name).upper()}'


def _owner(kind: str, name: str, digest: Digest) -> str:
    return name if name == _INCOMPLETE else f'{kind}-{digest(kind, name)}'


_RULES: Mapping[str, Callable[[str, str, Digest], str]] = {
    'resource_class': _custom,
    'trait': _custom,
    'consumer_type': _consumer_type,
    'project': _owner,
    'user': _owner,
}


class Pseudonyms:
    """Replaces names by pseudonyms; with one key, the same name always has the same pseudonym.

    The name of a provider becomes its UUID, so it cannot be guessed. The other pseudonyms are
    digests of the names. For those who have the key, the digest confirms a guess of a name.

    :param key: the secret key of the digests
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._pseudonym = functools.lru_cache(maxsize=10_000)(self._compute)
        self._positions = {
            kind: [(n, of) for n, of in enumerate(_subjects(kind)) if of in _RULES]
            for kind in model.KINDS
        }

    def __call__(self, kind: model.Kind, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values of a row with pseudonyms in place of names.

        :param values: the values in the order of the fields of the kind
        """
        if kind is model.PROVIDER:
            uuid, _name, *rest = values
            return [uuid, f'provider-{uuid}', *rest]
        positions = self._positions[kind]
        if not positions:
            return values
        changed = list(values)
        for position, of in positions:
            if changed[position] is not None:
                changed[position] = self._pseudonym(of, changed[position])
        return changed

    def _compute(self, kind: str, name: str) -> str:
        return _RULES[kind](kind, name, self._digest)

    def _digest(self, kind: str, name: str) -> str:
        text = f'{kind}\0{name}'.encode()
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()[:_DIGITS]


def _subjects(kind: model.Kind) -> list[str]:
    """Return, for each field of a kind, the kind of the rows that the field names."""
    own = {name: kind.name for name in kind.key if len(kind.key) == 1}
    return [{**own, **kind.references}.get(name, '') for name in kind.fields]
