"""Values for documents, path segments, query parameters and headers; most of them are invalid."""

# The UUIDs of existing objects.
HOST = '7b9e1d1c-0000-4000-8000-000000000001'
CHILD = '7b9e1d1c-0000-4000-8000-000000000002'
AGGREGATE = '7b9e1d1c-0000-4000-8000-00000000000a'
CONSUMER = '7b9e1d1c-0000-4000-8000-0000000000c1'
# Valid requests create them.
NEW_PROVIDER = '7b9e1d1c-0000-4000-8000-000000000009'
NEW_CONSUMER = '7b9e1d1c-0000-4000-8000-0000000000c2'

TEXTS = [
    *('', ' ', '.', '..', '%', '%FF', 'x', 'x' * 256, 'x' * 20_000, '-' * 36),
    *('\x00', 'CUSTOM_A\x00', 'CUSTOM_A\n', 'VCPU\n', f'{HOST}\n', 'CUSTOM_A\r\nX-Evil: 1'),
    *('VCPU', 'CUSTOM_T', 'CUSTOM_UNKNOWN', 'CUSTOM_' + 'A' * 248, 'CUSTOM_' + 'A' * 249),
    *(HOST, HOST.upper(), HOST.replace('-', ''), NEW_PROVIDER, CONSUMER),
    *('\U0001f600', '\U0001f600' * 200, 'ÄÖÜ', '\u202e', '\u00a0'),
    *("'; DROP TABLE resource_providers; --", "' OR 1=1 --", '%s%n{0}{x!r}<b>$(x)', '{uuid}'),
    'CUSTOM_A","name":"CUSTOM_B',
]
# Each character is one byte, as in PATH_INFO (PEP 3333).
SEGMENTS = [text.encode().decode('latin-1') for text in TEXTS] + ['\xff\xfe', '\xed\xa0\x80']
ROUTES = [
    *('/{}', '/{}/{}', '/allocations/{}', '/traits/{}', '/resource_classes/{}'),
    *('/resource_providers/{}', '/resource_providers/{}/inventories/{}'),
    f'/resource_providers/{HOST}/inventories/{{}}',
    *(
        f'/resource_providers/{{}}/{part}'
        for part in ('inventories', 'usages', 'aggregates', 'allocations', 'traits')
    ),
]

NUMBERS = ['0', '1', '-1', '1.5', '1e3', '1_0', '+1', ' 1 ', '', '9' * 30, '9' * 5_000, '٣', '²']
CONDITIONS = [
    *TEXTS,
    *('!', '!!', 'in:', 'in:in:', ',', ',,', 'CUSTOM_T,', '!CUSTOM_T', '!in:CUSTOM_T'),
    *('none', 'isolate', '_A', '_A,_B', 'true', 'TRUE', 'all', 'unknown', 'INSTANCE'),
    *('in:CUSTOM_T,HW_CPU_X86_VMX', 'startswith:', 'startswith:%'),
    *(f'!{AGGREGATE}', f'in:{AGGREGATE},{AGGREGATE}', f'!in:{AGGREGATE}'),
    *(','.join(['CUSTOM_T'] * 2_000), f'in:{",".join([AGGREGATE] * 500)}'),
    *('in:' + ','.join(f'T{number}' for number in range(2_000)), 'startswith:\U0001f600'),
]
AMOUNTS = [
    *(f'VCPU:{number}' for number in NUMBERS),
    *('VCPU:1,VGPU:1', 'VCPU:1,VCPU:2', 'VCPU::1', ':1', 'VCPU', 'CUSTOM_UNKNOWN:1'),
    ','.join(['VCPU:1'] * 1_000),
    ','.join(f'CUSTOM_{number}:1' for number in range(1_000)),
]
_GROUP = {'resources': AMOUNTS, **dict.fromkeys(('required', 'member_of', 'in_tree'), CONDITIONS)}
QUERIES: dict[str, dict[str, list[str]]] = {
    '/resource_providers': {**_GROUP, **dict.fromkeys(('name', 'uuid'), CONDITIONS)},
    '/allocation_candidates': {
        'limit': NUMBERS,
        **dict.fromkeys(('root_required', 'same_subtree', 'group_policy'), CONDITIONS),
        **{name + suffix: texts for name, texts in _GROUP.items() for suffix in ('', '_A', '_B')},
    },
    '/traits': dict.fromkeys(('name', 'associated'), CONDITIONS),
    '/usages': dict.fromkeys(('project_id', 'user_id', 'consumer_type'), CONDITIONS),
}
# A valid query of each path.
PLAIN_QUERIES = {
    '/resource_providers': '',
    '/allocation_candidates': 'resources=VCPU:1',
    '/traits': '',
    '/usages': 'project_id=p',
}
RAW_QUERIES = [
    *('%', '%FF', '%FF=1', 'name=%FF', 'name=%ED%A0%80', 'name=%00', 'name=\xff', 'a' * 50_000),
    *('\xf0\x9f\x98\x80=\xf0\x9f\x98\x80', '=', '&&&', ';;', '=&=&='),
    '&'.join(f'resources{number}=VCPU:1' for number in range(1, 40)) + '&group_policy=none',
    '&'.join(['resources=VCPU:1'] * 500),
    '&'.join(['required=CUSTOM_T'] * 500) + '&resources=VCPU:1',
    'resources' + '1' * 5_000 + '=VCPU:1',
    *('resources%0A=VCPU:1', 'resources1%0A=VCPU:1'),
    'resources_\U0001f600=VCPU:1'.encode().decode('latin-1'),
]

_JSON = 'application/json'
_LONG = '9' * 5_000
HEADERS: dict[str, list[str | None]] = {
    'CONTENT_TYPE': [
        *(None, '', _JSON, f'{_JSON}; charset=utf-16', f'{_JSON};' * 1_000, 'text/html'),
        *('\xff', 'x' * 20_000, '/'),
    ],
    'CONTENT_LENGTH': [
        *(None, '', '0', '-1', '1e3', '1_0', ' 2 ', '+2', '²', '9' * 30, _LONG, 'x'),
    ],
    'HTTP_ACCEPT': [
        *(None, '', '*/*', _JSON, 'text/html', 'text/plain', ';;;', 'a/b,' * 2_000, '\xff'),
        *(f'{_JSON};q=x', f'{_JSON};q=0', f'text/html, {_JSON}'),
    ],
    'HTTP_OPENSTACK_API_VERSION': [
        *(None, '', 'placement', 'compute 2.1', 'placement 1.10, placement x', ',' * 1_000),
        *(f'placement {one}' for one in ('', 'latest', '1', '1.', '.1', '1.-1', '1.²', '\xff')),
        *(f'placement {one}' for one in (f'{_LONG}.1', f'1.{_LONG}', '1.9 1.9', '1.38\x00')),
    ],
    'HTTP_X_AUTH_TOKEN': [None, '', 'admin', ':', '::::', 'admin:' + 'x' * 20_000, '\xff\xfe'],
    'HTTP_X_ROLES': [None, '', ',', 'admin,service', 'ADMIN', '\xff', 'x,' * 2_000],
    'HTTP_OPENSTACK_SYSTEM_SCOPE': [None, '', 'all', '\xff'],
    'HTTP_X_OPENSTACK_REQUEST_ID': [None, '', 'req-x', '\xff', 'x' * 20_000],
    'HTTP_X_USER_ID': [None, '\xff'],
    'HTTP_HOST': [None, '', 'x' * 2_000, 'a:b:c', '\xff', '[::1'],
    'HTTP_IF_MODIFIED_SINCE': [None, 'never', '\xff'],
    'HTTP_ORIGIN': [None, 'http://example.com', '\xff'],
    'HTTP_TRANSFER_ENCODING': [None, 'chunked', 'x'],
    'HTTP_X_FORWARDED_FOR': [None, ',,,'],
    'REMOTE_ADDR': [None, '', '\xff'],
    'SERVER_PORT': ['80', '443', '8778'],
    'SCRIPT_NAME': ['', '/placement', '/\xff'],
}
METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'get', 'X' * 300]
