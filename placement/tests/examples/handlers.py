"""The key `response_example` of the gabbi files."""

import functools
from typing import Any

from gabbi.handlers import base
import yaml

from placement.tests.examples import collection
from placement.tests.examples.recording import Recording, record


class ExampleHandler(base.ResponseHandler):
    """`response_example`: the request and the response are those of the committed example."""

    test_key_suffix = 'example'
    test_key_value = ''

    def preprocess(self, test: Any) -> None:
        self.handle(test, record(test))

    def handle(self, test: Any, recording: Recording) -> None:
        """Compare a recording with the committed files."""
        remedy = f'The example {recording.name} has changed. {collection.COMMAND} writes it.\n'
        committed = committed_entries().get(recording.name)
        test.assertEqual(committed, collection.entry(recording), remedy)
        for name, text in collection.body_files(recording).items():
            file = collection.FOLDER / name
            test.assertEqual(file.read_text() if file.exists() else '', text, remedy)


@functools.cache
def committed_entries() -> dict[str, Any]:
    """Return the entries of the committed index by name."""
    entries = yaml.safe_load((collection.FOLDER / collection.INDEX).read_text())
    return {entry['name']: entry for entry in entries}
