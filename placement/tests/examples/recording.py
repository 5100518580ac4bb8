"""Records the request and the response of a gabbi test."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
import json
from pathlib import Path
from typing import Any

from placement import microversion
from placement.tests.examples import layout
from placement.tests.examples.normalize import Normalizer, is_shortened

# The media type of a body -> the extension of its file.
_EXTENSIONS = {'application/json': 'json', 'text/html': 'html', 'text/plain': 'txt'}
# noauth2 takes the roles of a user from X-Roles.
_OMITTED_FROM_REQUESTS = frozenset({'x-roles'})
_TOKEN = 'X-Auth-Token'
# A recorded body has another length, and gabbi adds three members to the headers of a response.
_OMITTED_FROM_RESPONSES = frozenset({'content-length', 'http_protocol_version', 'reason', 'status'})
_SPELLINGS = {
    'openstack-api-version': 'OpenStack-API-Version',
    'www-authenticate': 'WWW-Authenticate',
}


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request or a response.

    :ivar extension: the extension of a file with this body, for example `json`
    :ivar text: the body, with line breaks and indentation if it is JSON, and with a final newline
    :ivar shortened: whether `text` lacks a part of the body
    """

    extension: str
    text: str
    shortened: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """The headers and the body of a request or a response.

    :ivar headers: name of a header, as the documentation spells it -> value
    :ivar body: the body; None if it is empty
    """

    headers: Mapping[str, str]
    body: Body | None


@dataclass(frozen=True, slots=True)
class Recording:
    """A request and its response, without parts that differ from run to run.

    :ivar name: the value of `response_example` in the gabbi file
    :ivar title: the name of the gabbi test
    :ivar url: the path and the query
    :ivar version: the microversion in the response; None if the response names none
    """

    name: str
    title: str
    method: str
    url: str
    version: str | None
    status: int
    request: Message
    response: Message


def record(test: Any) -> Recording:
    """Return the recording of a gabbi test whose response has arrived.

    :param test: the `gabbi.case.HTTPTestCase`
    """
    data = test.test_data
    name = data['response_example']
    file = Path(test.test_directory) / f'{test.test_base_name}.yaml'
    normalizer = Normalizer(name, f'{test.scheme}://{test.netloc}{test.prefix}', file)
    return Recording(
        name=name,
        title=data['name'],
        method=data['method'],
        url=normalizer.text(test.url),
        version=_version(test.response),
        status=int(test.response['status']),
        request=_request(data, normalizer),
        response=_response(test, normalizer),
    )


def _version(headers: Mapping[str, str]) -> str | None:
    value = headers.get(microversion.HEADER.lower())
    return value.removeprefix(f'{microversion.SERVICE_TYPE} ') if value else None


def _request(data: Mapping[str, Any], normalizer: Normalizer) -> Message:
    body = data['data']
    omitted = _OMITTED_FROM_REQUESTS | ({'content-type'} if body == '' else set())
    headers = _headers(data['request_headers'], omitted, normalizer)
    if _TOKEN in headers:
        headers[_TOKEN] = '$TOKEN'
    if body == '':
        return Message(headers, None)
    if isinstance(body, str):
        return Message(headers, Body('txt', f'{normalizer.text(body)}\n'))
    # The order of keys is that of the gabbi file.
    document = json.loads(normalizer.text(json.dumps(body)))
    return Message(headers, Body('json', layout.pretty(document)))


def _response(test: Any, normalizer: Normalizer) -> Message:
    headers = _headers(test.response, _OMITTED_FROM_RESPONSES, normalizer)
    if not test.output:
        return Message(headers, None)
    extension = _EXTENSIONS[headers['Content-Type'].partition(';')[0]]
    if extension != 'json':
        return Message(headers, Body(extension, normalizer.text(test.output)))
    document = normalizer.document(test.output)
    return Message(headers, Body('json', layout.pretty(document), is_shortened(document)))


def _headers(
    headers: Mapping[str, Any], omitted: Set[str], normalizer: Normalizer
) -> dict[str, str]:
    return {
        _SPELLINGS.get(name.lower(), name.title()): normalizer.text(str(value))
        for name, value in headers.items()
        if name.lower() not in omitted
    }
