"""The use of a generated client: register, search, claim, read, and release."""

from collections.abc import Mapping
from typing import Any
import uuid

from placement import errors, microversion
from tools.generated_client.client import Client, MismatchError

_SHARING = 'MISC_SHARES_VIA_AGGREGATE'
_FAST = 'HW_CPU_X86_AVX2'
_COMPUTE = {'VCPU': {'total': 8, 'allocation_ratio': 4.0}, 'MEMORY_MB': {'total': 4096}}
_DISK = {'DISK_GB': {'total': 1000}}
_HOSTS = 2
_NUMA_NODES = 2


def use(client: Client) -> str:
    """Call the operations of a microversion, and return what was done, as one line.

    The service is empty before and after.

    :raises MismatchError: a response does not have the expected status, type, or content
    """
    cloud = Cloud(client)
    candidates = search(cloud)
    claimed = claim(cloud, candidates[0])
    check_errors(cloud)
    release(cloud)
    return (
        f'{len(candidates)} candidates, {claimed} allocations of a candidate claimed and released'
    )


def require(condition: bool, message: str) -> None:
    """Raise an error if a condition does not apply.

    :raises MismatchError: the condition does not apply
    """
    if not condition:
        raise MismatchError(message)


class Cloud:
    """Hosts whose disks are in a shared pool.

    If the microversion has trees, the processors of a host belong to NUMA nodes, which are its
    children.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.consumer = uuid.uuid4()
        self.aggregate = uuid.uuid4()
        # Parents are before their children.
        self.providers: list[uuid.UUID] = []
        self.nested = client.version >= microversion.NESTED_PROVIDERS
        self.pool = self._create('pool', _DISK, [_SHARING])
        self._set_aggregates(self.pool)
        for number in range(_HOSTS):
            self._register_host(f'host{number}')

    def _register_host(self, name: str) -> None:
        if not self.nested:
            self._set_aggregates(self._create(name, _COMPUTE, [_FAST]))
            return
        host = self._create(name, {}, [])
        self._set_aggregates(host)
        for number in range(_NUMA_NODES):
            self._create(f'{name}-numa{number}', _COMPUTE, [_FAST], host)

    def _create(
        self,
        name: str,
        inventories: Mapping[str, Any],
        traits: list[str],
        parent: uuid.UUID | None = None,
    ) -> uuid.UUID:
        document = {'name': name, 'uuid': str(uuid.uuid4())}
        if parent is not None:
            document['parent_provider_uuid'] = str(parent)
        returns_body = self.client.version >= microversion.PROVIDER_POST_RETURNS_BODY
        self.client.call(
            'resource_providers:post',
            200 if returns_body else 201,
            'ResourceProvidersCreateResourceProviderResponse' if returns_body else None,
            body=self.client.body('ResourceProvidersCreateResourceProviderRequest', document),
        )
        provider = uuid.UUID(document['uuid'])
        self.providers.append(provider)
        self._set_inventories(provider, inventories)
        self._set_traits(provider, traits)
        return provider

    def generation(self, provider: uuid.UUID) -> int:
        """Return the generation of a provider."""
        shown = self.client.call(
            'resource_providers/uuid:get',
            200,
            'ResourceProviderGetResourceProviderResponse',
            uuid=provider,
        )
        require(shown.uuid == provider, f'{shown.uuid} is not {provider}')
        generation: int = shown.generation
        return generation

    def inventories(self, generation: int, inventories: Mapping[str, Any]) -> Any:
        """Return the body of a request that replaces the inventories of a provider."""
        return self.client.body(
            'ResourceProvidersInventoriesSetInventoriesRequest',
            {'resource_provider_generation': generation, 'inventories': inventories},
        )

    def _set_inventories(self, provider: uuid.UUID, inventories: Mapping[str, Any]) -> None:
        stored = self.client.call(
            'resource_providers/uuid/inventories:put',
            200,
            'ResourceProvidersInventoriesSetInventoriesResponse',
            uuid=provider,
            body=self.inventories(self.generation(provider), inventories),
        )
        totals = {
            name: inventory.total
            for name, inventory in stored.inventories.additional_properties.items()
        }
        expected = {name: inventory['total'] for name, inventory in inventories.items()}
        require(totals == expected, f'the totals are {totals} instead of {expected}')

    def _set_traits(self, provider: uuid.UUID, traits: list[str]) -> None:
        stored = self.client.call(
            'resource_providers/uuid/traits:put',
            200,
            'ResourceProvidersTraitsUpdateTraitsForResourceProviderResponse',
            uuid=provider,
            body=self.client.body(
                'ResourceProvidersTraitsUpdateTraitsForResourceProviderRequest',
                {
                    'resource_provider_generation': self.generation(provider),
                    'traits': traits,
                },
            ),
        )
        require(stored.traits == traits, f'the traits are {stored.traits} instead of {traits}')

    def _set_aggregates(self, provider: uuid.UUID) -> None:
        body: Any = [str(self.aggregate)]
        if self.client.version >= microversion.AGGREGATE_GENERATION:
            body = self.client.body(
                'ResourceProvidersAggregatesSetAggregatesRequest',
                {
                    'resource_provider_generation': self.generation(provider),
                    'aggregates': [str(self.aggregate)],
                },
            )
        stored = self.client.call(
            'resource_providers/uuid/aggregates:put',
            200,
            'ResourceProvidersAggregatesSetAggregatesResponse',
            uuid=provider,
            body=body,
        )
        stored_ones = list(map(str, stored.aggregates))
        require(stored_ones == [str(self.aggregate)], f'the aggregates are {stored_ones}')


def query(cloud: Cloud) -> dict[str, Any]:
    """Return a query that each pair of NUMA nodes, or each host, can satisfy with the pool."""
    version, aggregate = cloud.client.version, str(cloud.aggregate)
    if version < microversion.NESTED_CANDIDATES:
        result: dict[str, Any] = {'resources': 'VCPU:2,MEMORY_MB:512,DISK_GB:10'}
        if version >= microversion.CANDIDATES_REQUIRED:
            result['required'] = f'{_FAST},{_SHARING}'
        return result
    suffixes = ('_A', '_B') if version >= microversion.TEXT_SUFFIXES else ('1', '2')
    groups = {}
    for suffix in suffixes:
        groups[f'resources{suffix}'] = 'VCPU:2,MEMORY_MB:512'
        groups[f'required{suffix}'] = f'{_FAST},!{_SHARING}'
    repeatable = version >= microversion.ANY_TRAITS
    return {
        'resources': 'DISK_GB:10',
        'required': [_SHARING, f'in:{_SHARING},{_FAST}'] if repeatable else _SHARING,
        'member_of': [aggregate, f'in:{aggregate},{uuid.uuid4()}'],
        'request_groups': cloud.client.body('AllocationCandidatesgetRequestGroups', groups),
        'group_policy': cloud.client.models.AllocationCandidatesgetGroupPolicy('isolate'),
        'limit': 10,
    }


def search(cloud: Cloud) -> list[Any]:
    """Return the allocation requests of a search."""
    found = cloud.client.call(
        'allocation_candidates:get',
        200,
        'AllocationCandidatesListAllocationCandidatesResponse',
        **query(cloud),
    )
    expected = _HOSTS * _NUMA_NODES if cloud.nested else _HOSTS
    actual = len(found.allocation_requests)
    require(actual == expected, f'{actual} candidates found instead of {expected}')
    summary = found.provider_summaries[str(cloud.pool)]
    require(summary.resources['DISK_GB'].capacity == 1000, f'unexpected capacity: {summary}')
    requests: list[Any] = found.allocation_requests
    return requests


def claim(cloud: Cloud, candidate: Any) -> int:
    """Claim an unchanged candidate, and return the number of its providers."""
    client = cloud.client
    document = {**candidate.to_dict(), 'project_id': 'project', 'user_id': 'user'}
    if client.version >= microversion.CONSUMER_GENERATION:
        document['consumer_generation'] = None
    if client.version >= microversion.CONSUMER_TYPES:
        document['consumer_type'] = 'INSTANCE'
    client.call(
        'allocations/consumer_uuid:put',
        204,
        consumer_uuid=cloud.consumer,
        body=client.body('AllocationSetAllocationsForConsumerRequest', document),
    )
    stored = client.call(
        'allocations/consumer_uuid:get',
        200,
        'AllocationListForConsumerResponse',
        consumer_uuid=cloud.consumer,
    )
    claimed = candidate.allocations.additional_properties
    require(
        {key: one.resources for key, one in claimed.items()}.keys()
        == stored.allocations.additional_properties.keys(),
        f'unexpected allocations: {stored}',
    )
    for provider, allocation in claimed.items():
        used = _usages(cloud, uuid.UUID(provider))
        for name, amount in allocation.resources.additional_properties.items():
            require(used[name] == amount, f'{used[name]} of {name} are used instead of {amount}')
    return len(claimed)


def _usages(cloud: Cloud, provider: uuid.UUID) -> dict[str, int]:
    usages = cloud.client.call(
        'resource_providers/uuid/usages:get',
        200,
        'ResourceProvidersUsagesListUsagesResponse',
        uuid=provider,
    )
    result: dict[str, int] = usages.usages.additional_properties
    return result


def check_errors(cloud: Cloud) -> None:
    """Send requests that fail, and check the types of the error documents."""
    client = cloud.client
    stale = cloud.inventories(cloud.generation(cloud.pool) - 1, _DISK)
    arguments = {'uuid': cloud.pool, 'body': stale}
    document = client.call('resource_providers/uuid/inventories:put', 409, 'Error', **arguments)
    (error,) = document.errors
    require(error.status == 409, f'unexpected error: {error}')
    if client.version >= microversion.ERROR_CODES:
        require(error.code.value == errors.CONCURRENT_UPDATE, f'unexpected code: {error.code}')
    client.call('resource_providers/uuid:get', 404, 'Error', uuid=uuid.uuid4())
    client.call(
        'resource_providers/uuid/inventories:put',
        401,
        'UnauthorizedByPlacement',
        anonymous=True,
        **arguments,
    )


def release(cloud: Cloud) -> None:
    """Release the allocations and delete the providers."""
    client = cloud.client
    client.call('allocations/consumer_uuid:delete', 204, consumer_uuid=cloud.consumer)
    left = client.call(
        'allocations/consumer_uuid:get',
        200,
        'AllocationListForConsumerResponse',
        consumer_uuid=cloud.consumer,
    )
    require(not left.allocations.additional_properties, f'allocations remain: {left}')
    for provider in reversed(cloud.providers):
        client.call('resource_providers/uuid:delete', 204, uuid=provider)
