"""The error codes: the values of `code` in error documents since microversion 1.23.

Codes distinguish errors that have the same HTTP status. If the code is
`placement.concurrent_update`, the client can read the object again and retry the request. If the
code is `placement.inventory.inuse`, retrying does not help. Codes are part of the API and never
change.
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
