"""Paths with which a client could read the metrics although a server protects them."""

import random

COUNT = 1500
_FORMS = (
    *('/metrics', '/metrics/', '//metrics', '/./metrics', '/x/../metrics', '/%zz/../metrics'),
    *('/metrics%', '/metrics%6', '/metrics;x', '/metrics%00', '/%c0%afmetrics', '\\metrics'),
    *('/%2e%2e/placement/metrics', '%2fmetrics', '%2f%6detrics%6'),
)
_INSERTED = ('/', '/.', '%zz', '%', '%2f', '%00', '%20', '%c0%af', '..%2f', ';')


def disguised(prefix: str) -> list[str]:
    """Return different paths, the same in each run, that resemble the path of the metrics."""
    choice = random.Random(23)

    def changed(character: str) -> str:
        code = f'{ord(character):02x}'
        forms = (f'%{code}', f'%{code.upper()}', f'%25{code}', f'%u00{code}', character.swapcase())
        return choice.choice((*forms, character + choice.choice(_INSERTED)))

    paths = dict.fromkeys([*(prefix + form for form in _FORMS), '/x/..' + prefix])
    while len(paths) < COUNT:
        path = prefix + choice.choice(_FORMS)
        probability = choice.choice((0.02, 0.1, 0.5))
        parts = [changed(one) if choice.random() < probability else one for one in path[1:]]
        paths['/' + ''.join(parts)] = None
    return list(paths)
