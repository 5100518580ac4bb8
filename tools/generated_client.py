"""Generate a client for each microversion, and compare it with the examples.

``python -m tools.generated_client`` writes a client with openapi-python-client from the OpenAPI
document of each microversion; a warning of the generator is an error. The functions of the client
must send the requests of the recorded examples of the microversion, and parse their responses into
the generated types. Other tests compare the examples with the responses of the service.

The scheduler and the device agent of the guide then use the clients of two microversions. All
modules of all clients are imported, also those that pyopenapi-gen writes from the last document.
"""

import functools
import http
import importlib
import json
from pathlib import Path
import pkgutil
import runpy
import subprocess
import sys
import tempfile
from types import SimpleNamespace
import typing
from typing import Any
from urllib.parse import parse_qs, urlsplit
import uuid

import httpx

from api_reference import examples as recorded
from api_reference.openapi import files
from placement import handler
from placement.microversion import VERSIONS
from placement.tests.functional.fixtures import gabbits

# By default, the generator formats the code, which takes most of the time.
_CONFIGURATION = 'post_hooks: []\n'
# The generator ignores `patternProperties`, so these clients lose the amounts of the usages.
_LOSSY = {'list-usages-1.39'}
# The generators cannot be installed together. `tox -e clients` installs the other one here.
_OTHER_PYTHON = Path(sys.prefix) / 'pyopenapi-gen' / 'bin' / 'python'
_GUIDE = Path(__file__).resolve().parents[1] / 'doc' / 'source' / 'user' / 'examples'
# The microversions that the agent and the scheduler select.
_OF_PROGRAMS = frozenset({'1.37', '1.39'})
_HEADERS = {'X-Auth-Token': 'admin', 'X-Roles': 'admin,service'}
_document = functools.cache(files.content)
_MAPPER = handler.Mapper(handler.ROUTE_DECLARATIONS)


class MismatchError(Exception):
    """The generator failed, or a client differs from an example."""


def main() -> int:
    """Generate and compare all clients; return 1 if there is a difference."""
    compared = 0
    with tempfile.TemporaryDirectory(prefix='placement-client-') as name:
        sys.path.append(name)
        try:
            versions = sys.argv[1:] or VERSIONS
            for version in versions:
                package = generate(version, Path(name))
                import_all(package)
                for example in recorded.index():
                    # Without an operation, the path or the method of the request is wrong.
                    if example['microversion'] == version and example['operation']:
                        compared += compare(version, example)
            import_all(generate_other(versions[-1], Path(name)))
            if set(versions) >= _OF_PROGRAMS:
                run_programs()
        except MismatchError as error:
            print(f'generated_client: {error}', file=sys.stderr)
            return 1
    print(f'clients generated without a warning; {compared} examples compared')
    return 0


def generate(version: str, folder: Path) -> str:
    """Write the client of a microversion into a package in a directory, and return its name.

    :raises MismatchError: the generator fails, or prints a warning
    """
    package = _package(version)
    files.write(folder, [version])
    configuration = folder / 'configuration.yaml'
    configuration.write_text(_CONFIGURATION)
    output = _run(
        *('openapi_python_client', 'generate', '--fail-on-warning', '--meta', 'none'),
        *('--config', str(configuration), '--path', str(folder / files.file_name(version))),
        *('--output-path', str(folder / package)),
    )
    if 'warning' in output.lower():
        raise MismatchError(output)
    return package


def generate_other(version: str, folder: Path) -> str:
    """Write a client with pyopenapi-gen instead, and return the name of its package.

    :raises MismatchError: the generator fails
    """
    package = f'{_package(version)}_other'
    _run(
        *('pyopenapi_gen', 'gen', str(folder / files.file_name(version)), '--force'),
        *('--project-root', str(folder), '--output-package', package, '--no-postprocess'),
        python=_OTHER_PYTHON,
    )
    return package


def _run(*words: str, python: str | Path = sys.executable) -> str:
    """Run a generator, and return its output.

    :raises MismatchError: it fails
    """
    result = subprocess.run((python, '-m', *words), capture_output=True, text=True)
    output = result.stdout + result.stderr
    if result.returncode:
        raise MismatchError(f'{words}:\n{output}')
    return output


def compare(version: str, example: dict[str, Any]) -> bool:
    """Compare the request and the response of an example with those of the generated function.

    :returns: whether the function can send the request
    :raises MismatchError: they differ
    """
    sent, received = example['request'], example['response']
    url = urlsplit(sent['url'])
    match = _MAPPER.match(url.path)
    assert match is not None
    operations = _document(version)['paths'].get(match[0].template, {})
    if sent['method'].lower() not in operations:
        return False  # the example shows the error
    if any(message['body'] and _content(message) is None for message in (sent, received)):
        return False  # the example shows a body that is not JSON
    query = parse_qs(url.query, keep_blank_values=True)
    body, content = _content(sent), _content(received)
    requests: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(received['status'], json=content)

    try:
        function = prepared(version, sent['method'], url.path, query, body)
    except (KeyError, TypeError, ValueError):
        if received['status'] == http.HTTPStatus.BAD_REQUEST:
            return False  # the generated types do not allow the request
        raise
    parsed = function(client=_client(version, httpx.MockTransport(respond))).parsed
    (request,) = requests
    parameters = parse_qs(request.url.query.decode(), keep_blank_values=True)
    sent_body = json.loads(request.content) if request.content else None
    if example['name'] in _LOSSY:
        content = parsed.to_dict()
    if received['status'] == http.HTTPStatus.BAD_REQUEST:
        query, body = parameters, sent_body  # without the parts that are not allowed
    expected = (sent['method'], url.path, query, body, content)
    actual = (
        request.method,
        request.url.path,
        parameters,
        sent_body,
        None if parsed is None else parsed.to_dict(),
    )
    if actual != expected:
        raise MismatchError(f'{example["name"]}: {actual} instead of {expected}')
    return True


def prepared(
    version: str, method: str, path: str, query: dict[str, list[str]], body: Any
) -> functools.partial[Any]:
    """Return the generated function of a request with its arguments, except the client."""
    match = _MAPPER.match(path)
    assert match is not None
    operation = _document(version)['paths'][match[0].template][method.lower()]
    (tag,), name = operation['tags'], operation['operationId']
    module = importlib.import_module(f'{_package(version)}.api.{tag}.{name}')
    arguments = match[1] | query | {'open_stack_api_version': f'placement {version}'}
    if body is not None:
        arguments['body'] = body
    typed = _typed_arguments(module.sync_detailed, arguments)
    return functools.partial(module.sync_detailed, **typed)


def _client(version: str, transport: httpx.BaseTransport) -> Any:
    return importlib.import_module(f'{_package(version)}.client').Client(
        base_url='http://127.0.0.1',
        headers=_HEADERS,
        raise_on_unexpected_status=True,
        httpx_args={'transport': transport},
    )


def _package(version: str) -> str:
    return f'placement_client_{version.replace(".", "_")}'


def import_all(package: str) -> None:
    """Import all modules of a package."""
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, f'{package}.'):
        importlib.import_module(module.name)


# The programs of the guide ------------------------------------------------------


class Api:
    """The generated functions, in the form of the adapter that the programs of the guide use."""

    def request(self, url: str, method: str, **content: Any) -> SimpleNamespace:
        """Send a request.

        :raises MismatchError: the request failed
        """
        version, parts = content.get('microversion', VERSIONS[-1]), urlsplit(url)
        query = parse_qs(parts.query)
        for name, value in (content.get('params') or {}).items():
            if value is not None:
                query[name] = value if isinstance(value, list) else [str(value)]
        function = prepared(version, method, parts.path, query, content.get('json'))
        reply = function(client=_client(version, httpx.WSGITransport(app=gabbits.application)))
        if reply.status_code >= http.HTTPStatus.BAD_REQUEST:
            raise MismatchError(f'{method} {url}: {reply.content}')
        parsed = None if reply.parsed is None else reply.parsed.to_dict()
        return SimpleNamespace(
            ok=True, status_code=reply.status_code, content=reply.content, json=lambda: parsed
        )

    get = functools.partialmethod(request, method='GET')
    put = functools.partialmethod(request, method='PUT')


def run_programs() -> None:
    """Report a host with two GPUs, claim a part of them, and remove one GPU."""
    agent = runpy.run_path(f'{_GUIDE}/device_agent.py')
    scheduler = runpy.run_path(f'{_GUIDE}/scheduler.py')
    service, api = gabbits.APIFixture(), Api()
    service.start_fixture()
    try:
        agent['run'](api, 'host1', ['gpu0', 'gpu1'])
        query = {'resources': ['VGPU:2'], 'required': [agent['TRAIT']]}
        owner = {'project_id': 'project', 'user_id': 'user', 'consumer_type': 'INSTANCE'}
        scheduler['place'](api, str(uuid.uuid4()), query, owner)
        agent['run'](api, 'host1', ['gpu0'])
    finally:
        service.stop_fixture()


def _content(message: dict[str, Any]) -> Any:
    """Return the JSON body of a request or a response of an example, or None."""
    if not (message['body'] or '').endswith('.json'):
        return None
    return json.loads((recorded.FOLDER / message['body']).read_text(encoding='utf-8'))


def _typed_arguments(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a generated function in its types.

    The function has one argument for the query parameters of all request groups.
    """
    hints = typing.get_type_hints(function)
    groups = {name: texts[0] for name, texts in arguments.items() if name not in hints}
    known = {name: value for name, value in arguments.items() if name in hints}
    if groups:
        known['request_groups'] = groups
    return {name: _typed(hints[name], value) for name, value in known.items()}


def _typed(hint: Any, value: Any) -> Any:
    """Return a value of the first type of a union that is not the type of missing values."""
    kinds = (hint,) if typing.get_origin(hint) is list else typing.get_args(hint) or (hint,)
    kind = next(one for one in kinds if getattr(one, '__name__', '') != 'Unset')
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        return [_typed(item, one) for one in value]
    if hasattr(kind, 'from_dict'):
        return kind.from_dict(value)
    return kind(value[0] if isinstance(value, list) else value)


if __name__ == '__main__':
    sys.exit(main())
