"""Which responses a client may get, whatever it sent."""

import json
import re
from typing import Any, NamedTuple

_CONTROL = re.compile('[\x00-\x1f\x7f]')


class Answer(NamedTuple):
    """A response; the names of its headers are lower case."""

    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f'{name} is not JSON')


def fault(answer: Answer, method: str) -> str:
    """What is wrong with a response; empty if nothing is."""
    if answer.status >= 500:
        return 'server error'
    for name, value in answer.headers.items():
        if _CONTROL.search(name + value):
            return f'control character in header {name}'
        if max(name + value) > '\xff':
            return f'header {name} is not latin-1'
    if 'x-openstack-request-id' not in answer.headers:
        return 'no request id'
    if method.upper() == 'HEAD':
        return 'body of HEAD' if answer.content else ''
    try:
        return _fault_of_content(answer)
    except (ValueError, KeyError, TypeError) as exc:
        return f'malformed document: {exc!r}'


def _fault_of_content(answer: Answer) -> str:
    content_type = answer.headers.get('content-type', '')
    if answer.status < 400:
        if answer.content and content_type != 'application/json':
            return f'content type {content_type}'
        if answer.content:
            answer.json()
        return ''
    if content_type == 'application/json':
        return _fault_of_error(answer)
    # The client asked for another form.
    if not re.match('text/(html|plain)', content_type):
        return f'content type {content_type}'
    return '' if answer.content else 'empty error'


def _fault_of_error(answer: Answer) -> str:
    document = answer.json()
    if answer.status == 401:
        return '' if set(document) == {'message', 'code', 'title'} else 'form of 401'
    (error,) = document['errors']
    if error['status'] != answer.status:
        return 'another status in the error document'
    if error['request_id'] != answer.headers['x-openstack-request-id']:
        return 'another request id in the error document'
    if not error['title'] or not error['detail'].strip():
        return 'no title or no detail'
    error['detail'].encode()  # raises UnicodeEncodeError for a lone surrogate
    return ''
