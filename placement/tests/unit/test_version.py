"""The version of the distribution, if it is installed and if it is not."""

import importlib.metadata
from unittest import mock

from oslotest import base

from placement import version


class VersionTest(base.BaseTestCase):
    def test_an_installed_distribution_has_its_version(self) -> None:
        with mock.patch.object(importlib.metadata, 'version', return_value='17.0.0') as read:
            self.assertEqual('17.0.0', version.version_string())
        read.assert_called_once_with('openstack-placement')

    def test_the_version_is_unknown_without_a_distribution(self) -> None:
        missing = importlib.metadata.PackageNotFoundError
        with mock.patch.object(importlib.metadata, 'version', side_effect=missing):
            self.assertEqual('unknown', version.version_string())
