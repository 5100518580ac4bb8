"""The page with the OpenAPI documents displays the examples of a document, and no other ones."""

from pathlib import Path

from selenium.webdriver.support.ui import Select

from placement.tests.functional.openapi_browser.page import BLOCK, TestCase, builder

DOCUMENT = """
openapi: 3.1.0
info: {title: Example, version: '1.0'}
paths:
  /one:
    put:
      operationId: one:put
      tags: [one]
      requestBody:
        content:
          application/json:
            {schema: {type: object, additionalProperties: {type: integer}}}
      responses:
        '204': {description: No Content}
"""
EXAMPLES = """{examples: {cpu: {summary: Processor, value: {VCPU: 2}},
                        disk: {summary: Disk, value: {DISK_GB: 5}}}, schema:"""


class ExampleTest(TestCase):
    """Displays documents of two microversions, of which only the second has examples."""

    @classmethod
    def write(cls) -> Path:
        documents = cls.folder / 'documents'
        documents.mkdir()
        (documents / 'placement.yaml').touch()
        (documents / 'placement-1.0.yaml').write_text(DOCUMENT)
        (documents / 'placement-1.1.yaml').write_text(DOCUMENT.replace('{schema:', EXAMPLES))
        builder.write(documents, cls.folder, '17.0.0', ())
        return cls.folder

    def body(self) -> list[str]:
        """The example of the body in the first operation."""
        self.browser.wait(f'return document.querySelector("{BLOCK} .responses-wrapper")')
        self.browser.button('Example Value', BLOCK).click()
        return self.browser.texts(f'{BLOCK} .body-param__example')

    def test_an_example_of_the_document_is_displayed(self):
        self.open('?microversion=1.1#one:put')
        self.assertEqual('{ "VCPU": 2 }', ' '.join(''.join(self.body()).split()))
        Select(self.browser.find(f'{BLOCK} .examples-select select')).select_by_visible_text('Disk')
        self.browser.wait(
            'return document.querySelector(".body-param__example").textContent.includes("DISK_GB")'
        )

    def test_no_example_is_invented(self):
        """Swagger UI can generate an example from a schema, with keys that the schema forbids."""
        self.open('?microversion=1.0#one:put')
        self.assertEqual(['The document contains no example.'], self.body())
