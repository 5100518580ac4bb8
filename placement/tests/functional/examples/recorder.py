"""Sends the requests of gabbi files and records the examples."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
import unittest

from gabbi import suitemaker, utils
from gabbi.handlers import RESPONSE_HANDLERS

from placement.tests.examples.handlers import ExampleHandler
from placement.tests.examples.recording import Recording
from placement.tests.functional.fixtures import gabbi_handlers, gabbits


class RecordingError(Exception):
    """A test of a gabbi file failed."""


def record_files(files: Iterable[Path]) -> list[Recording]:
    """Return the examples of gabbi files in their order.

    :raises RecordingError: a test of a file failed
    """
    recordings: list[Recording] = []

    class Recorder(ExampleHandler):
        def handle(self, test: Any, recording: Recording) -> None:
            recordings.append(recording)

    for file in files:
        result = unittest.TestResult()
        _suite(file, Recorder).run(result)
        for test, text in result.failures + result.errors:
            raise RecordingError(f'{test.id()}\n{text}')
    return recordings


def _suite(file: Path, handler: type[ExampleHandler]) -> unittest.TestSuite:
    # gabbi ignores the second handler with the same key.
    kinds = [handler, *gabbi_handlers.gabbi_response_handlers, *RESPONSE_HANDLERS]
    return suitemaker.test_suite_from_dict(
        loader=unittest.defaultTestLoader,
        test_base_name=file.stem,
        suite_dict=utils.load_yaml(yaml_file=str(file)),
        test_directory=str(file.parent),
        host='placement.example.com',
        port=None,
        fixture_module=gabbits,
        intercept=lambda: gabbits.application,
        handlers=[kind() for kind in kinds],
        test_loader_name=__name__,
    )
