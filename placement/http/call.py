"""What a handler receives: a request that has passed the checks of its operation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from placement.http import ENVIRON_CONTEXT, Environ
from placement.microversion import Version


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has passed the checks that its operation declares.

    :ivar path: the values of the path parameters, by name
    :ivar items: the names and values of the query parameters, in the order of the query string;
        empty if the operation ignores the query string
    :ivar query: the last value of each query parameter, validated; empty if the parameters can have
        suffixes, because then the handler parses the items
    :ivar body: the document in the body, validated; None if the operation ignores the body
    """

    environ: Environ
    version: Version
    path: Mapping[str, str]
    items: Sequence[tuple[str, str]] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def conf(self) -> cfg.ConfigOpts:
        """Return the configuration of the service."""
        conf: cfg.ConfigOpts = self.environ[ENVIRON_CONTEXT].config
        return conf

    @property
    def mount_prefix(self) -> str:
        """Return the path at which the API is mounted. The links in responses begin with it."""
        prefix: str = self.environ.get('SCRIPT_NAME', '')
        return prefix
