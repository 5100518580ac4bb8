"""Schema of the version document."""

from placement import microversion
from placement.microversion import Variants
from placement.schemas import common

_NUMBER = {'type': 'string', 'pattern': r'^[0-9]+\.[0-9]+\Z'}

VERSIONS = Variants(
    {
        microversion.MIN_VERSION: common.closed(
            {
                'versions': common.array(
                    common.closed(
                        {
                            'id': {
                                'type': 'string',
                                'description': 'The identifier of the major version of the API.',
                            },
                            'max_version': {
                                **_NUMBER,
                                'description': 'The latest supported microversion.',
                            },
                            'min_version': {
                                **_NUMBER,
                                'description': 'The earliest supported microversion.',
                            },
                            'status': {
                                'type': 'string',
                                'enum': ['CURRENT'],
                                'description': 'The status of the major version.',
                            },
                            'links': common.links('self'),
                        }
                    ),
                    minItems=1,
                    maxItems=1,
                    description='The major versions of the API. Placement has one.',
                )
            }
        )
    }
)
