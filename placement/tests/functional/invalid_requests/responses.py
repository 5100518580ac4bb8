"""Checks whether a response has the required form, whatever the request was."""

import re

from placement.tests.wsgi_client import Response

_CONTROL = re.compile('[\x00-\x1f\x7f]')


def defect(response: Response, method: str) -> str:
    """Describe the first defect of a response; an empty string means that it has none."""
    if response.status >= 500:
        return 'server error'
    for name, value in response.headers.items():
        if _CONTROL.search(name + value):
            return f'control character in header {name}'
        if max(name + value) > '\xff':
            return f'header {name} is not latin-1'
    if 'x-openstack-request-id' not in response.headers:
        return 'no request id'
    if method.upper() == 'HEAD':
        return 'HEAD has a body' if response.content else ''
    try:
        return _defect_of_content(response)
    except (ValueError, KeyError, TypeError) as exc:
        return f'malformed document: {exc!r}'


def _defect_of_content(response: Response) -> str:
    content_type = response.headers.get('content-type', '')
    if response.status < 400:
        if response.content and content_type != 'application/json':
            return f'content type {content_type}'
        if response.content:
            response.json()
        return ''
    if content_type == 'application/json':
        return _defect_of_error(response)
    # An error is HTML or plain text if the Accept header requests that.
    if not re.match('text/(html|plain)', content_type):
        return f'content type {content_type}'
    return '' if response.content else 'empty error'


def _defect_of_error(response: Response) -> str:
    document = response.json()
    if response.status == 401:
        complete = set(document) == {'message', 'code', 'title'}
        return '' if complete else 'malformed document of 401'
    (error,) = document['errors']
    if error['status'] != response.status:
        return 'different status in the error document'
    if error['request_id'] != response.headers['x-openstack-request-id']:
        return 'different request id in the error document'
    if not error['title'] or not error['detail'].strip():
        return 'no title or no detail'
    error['detail'].encode()  # raises UnicodeEncodeError for a lone surrogate
    return ''
