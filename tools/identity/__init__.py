"""Test ``auth_strategy = keystone`` with a real Keystone: ``tox -e keystone``."""
