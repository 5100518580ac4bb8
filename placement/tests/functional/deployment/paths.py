"""Paths with which a client could read the metrics although a server protects them."""

import random

COUNT = 1500
_SEED = 23
_FORMS = (
    '/metrics',
    '/metrics/',
    '//metrics',
    '/./metrics',
    '/x/../metrics',
    '/%zz/../metrics',
    '/metrics%',
    '/metrics%6',
    '/metrics;x',
    '/metrics%00',
    '/%c0%afmetrics',
    '\\metrics',
    '/%2e%2e/placement/metrics',
)
_INSERTED = ('/', '/.', '%zz', '%', '%2f', '%00', '%20', '%c0%af', '..%2f', ';')


def _changed(character: str, choice: random.Random) -> str:
    """Return another text that a server could interpret as a character."""
    code = f'{ord(character):02x}'
    return choice.choice(
        (
            f'%{code}',
            f'%{code.upper()}',
            f'%25{code}',
            f'%u00{code}',
            character.swapcase(),
            character + choice.choice(_INSERTED),
        )
    )


def disguised(prefix: str) -> list[str]:
    """Return different paths, the same in each run, that resemble the path of the metrics."""
    choice = random.Random(_SEED)
    paths = dict.fromkeys(f'{prefix}{form}' for form in _FORMS)
    paths |= dict.fromkeys((f'{prefix}%2f%6detrics%6', f'{prefix}%2fmetrics', '/x/..' + prefix))
    while len(paths) < COUNT:
        form = prefix + choice.choice(_FORMS)
        probability = choice.choice((0.02, 0.1, 0.5))
        paths[
            '/'
            + ''.join(
                _changed(character, choice) if choice.random() < probability else character
                for character in form[1:]
            )
        ] = None
    return list(paths)
