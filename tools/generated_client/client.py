"""Calls of the functions of a generated client."""

from collections.abc import Mapping
import importlib
from typing import Any

from placement.microversion import Version


class MismatchError(Exception):
    """A client cannot be generated, or a response does not have the expected type."""


class Client:
    """A generated client.

    :param package: the name of the generated package
    :param url: the address of the service
    """

    def __init__(self, package: str, url: str, version: Version) -> None:
        self.version = version
        self.models = importlib.import_module(f'{package}.models')
        self._package = package
        module = importlib.import_module(f'{package}.client')
        self._anonymous = module.Client(base_url=url)
        self._authenticated = module.AuthenticatedClient(
            base_url=url, token='admin', prefix='', auth_header_name='X-Auth-Token'
        )

    def call(
        self,
        operation: str,
        status: int,
        type_name: str | None = None,
        *,
        anonymous: bool = False,
        **arguments: Any,
    ) -> Any:
        """Call the function of an operation and return the parsed body of the response.

        :param operation: the id of the operation
        :param status: the expected status
        :param type_name: the generated type of the body; None if the response has no body
        :param anonymous: whether to send no token
        :param arguments: the other arguments of the function
        :raises MismatchError: the response has another status, or its body has another type
        """
        tag = operation.partition(':')[0].partition('/')[0]
        name = operation.replace('/', '').replace(':', '')
        module = importlib.import_module(f'{self._package}.api.{tag}.{name}')
        response = module.sync_detailed(
            client=self._anonymous if anonymous else self._authenticated,
            open_stack_api_version=self.models.Microversion(f'placement {self.version}'),
            **arguments,
        )
        expected = (status, type_name or 'NoneType')
        actual = (response.status_code.value, type(response.parsed).__name__)
        if actual != expected:
            content = response.content.decode(errors='replace')
            raise MismatchError(
                f'{operation} in {self.version} returned {actual} instead of {expected}: {content}'
            )
        return response.parsed

    def body(self, type_name: str, document: Mapping[str, Any]) -> Any:
        """Return a request body of a generated type, with the content of a document."""
        return getattr(self.models, type_name).from_dict(document)
