"""Error codes that a client finds in the `code` of an error (contract: `http.md` section 10.2).

A code tells apart conflicts that share one status: a client that reads
`placement.concurrent_update` may read again and retry, one that reads
`placement.inventory.inuse` may not. Codes are interface and never change.
"""

UNDEFINED_CODE = 'placement.undefined_code'
CONCURRENT_UPDATE = 'placement.concurrent_update'
INVENTORY_INUSE = 'placement.inventory.inuse'
DUPLICATE_NAME = 'placement.duplicate_name'
PROVIDER_IN_USE = 'placement.resource_provider.inuse'
PROVIDER_CANNOT_DELETE_PARENT = 'placement.resource_provider.cannot_delete_parent'
RESOURCE_PROVIDER_NOT_FOUND = 'placement.resource_provider.not_found'
QUERYPARAM_DUPLICATE_KEY = 'placement.query.duplicate_key'
QUERYPARAM_BAD_VALUE = 'placement.query.bad_value'
QUERYPARAM_MISSING_VALUE = 'placement.query.missing_value'
