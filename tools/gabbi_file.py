"""The tests of a gabbi file, for a running server."""

from pathlib import Path
import unittest

from gabbi import handlers, suitemaker, utils


def suite(file: Path, url: str) -> unittest.TestSuite:
    """Return the tests of a gabbi file; `url` is the one of the server, without TLS."""
    host, _, path = url.removeprefix('http://').partition('/')
    name, _, port = host.partition(':')
    tests: unittest.TestSuite = suitemaker.test_suite_from_dict(
        loader=unittest.defaultTestLoader,
        test_base_name=file.stem,
        suite_dict=utils.load_yaml(yaml_file=str(file)),
        test_directory=str(file.parent),
        host=name,
        port=port,
        fixture_module=None,
        intercept=None,
        prefix=f'/{path}' if path else '',
        handlers=[kind() for kind in handlers.RESPONSE_HANDLERS],
        test_loader_name=__name__,
    )
    return tests
