"""The HTML of a report."""

import base64
import hashlib
from html import parser
import json
from unittest import mock

from oslotest import base

from placement.admin import audit
from placement.admin.report import document, page, trees
from placement.tests.unit.admin.report.clouds import (
    DRAINS,
    ORIGIN,
    VCPU,
    cloud,
    inventory,
    provider,
)

HOSTILE = '</script><img src=x onerror=alert(1)>&amp;"\''


class _Parser(parser.HTMLParser):
    """Collects the elements of a page and the texts of its scripts and style sheets."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.elements[-1][0] if self.elements else '', data))


def render(*providers, findings=(), **options) -> str:
    shown = cloud(*providers, **options)
    found = trees.of_cloud(shown)
    documents = {
        'data': document.build(shown, found),
        'consumers': document.consumers(shown, found),
    }
    return page.render(shown, found, documents, findings, ORIGIN)


def parsed(text: str) -> _Parser:
    result = _Parser()
    result.feed(text)
    return result


class PageTest(base.BaseTestCase):
    def test_n_plus_1(self):
        self.assertNotIn('<dt>N+1</dt>', render(provider(1)))
        text = render(provider(1), drains=DRAINS)
        self.assertIn('<dt>N+1</dt><dd>1 of 3</dd>', text)

    def test_an_integer_of_more_than_64_bits(self):
        self.assertEqual('{"capacity":1180591620717411303424}', page._embedded({'capacity': 2**70}))

    def test_the_policy_names_the_style_sheet_and_the_script(self):
        text = render(provider(1))
        elements = parsed(text).elements
        policy = next(
            attributes['content']
            for _, attributes in elements
            if attributes.get('http-equiv') == 'Content-Security-Policy'
        )
        self.assertIn("default-src 'none'", policy)
        for start, end in (('<style>', '</style>'), ('<script>', '</script>')):
            content = text.partition(start)[2].partition(end)[0]
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            self.assertIn(f"'sha256-{digest}'", policy)

    def test_the_page_has_no_address_and_no_inline_style_or_handler(self):
        text = render(provider(1))
        for tag, attributes in parsed(text).elements:
            self.assertNotIn('style', attributes, tag)
            self.assertFalse([name for name in attributes if name.startswith('on')], tag)
            for name in ('src', 'href', 'action'):
                self.assertEqual('#', (attributes.get(name) or '#')[0], tag)
        scripts = text.replace('http://www.w3.org/2000/svg', '')
        self.assertNotRegex(scripts, r'https?://|@import|url\(')

    def test_hostile_names_are_text(self):
        finding = audit.Finding('duplicate-name', 'notice', 1, rows=({HOSTILE: HOSTILE},))
        plain = parsed(render(provider(1, inventory(VCPU, 4)), findings=(finding,)))
        text = render(
            provider(1, inventory(VCPU, 4), aggregates=(1,)),
            names={1: HOSTILE},
            classes={VCPU: HOSTILE},
            aggregates={1: HOSTILE},
            projects=((HOSTILE, VCPU, 1),),
            findings=(finding,),
        )
        found = parsed(text)
        self.assertEqual([tag for tag, _ in plain.elements], [tag for tag, _ in found.elements])
        data = text.partition('id="data">')[2].partition('</script>')[0]
        self.assertEqual([HOSTILE], json.loads(data)['providers']['name'])
        self.assertNotRegex(data, '[<>&]')

    def test_what_the_report_was_made_from(self):
        text = render(provider(1))
        for fact in (
            '2026-11-22 12:30:00 UTC',
            'sqlite:////var/lib/placement.db',
            'a082b8bb98d0',
            '17.0.0',
        ):
            self.assertIn(fact, text)

    def test_a_sentence_says_that_only_the_fullest_trees_are_shown(self):
        self.assertNotIn('The map and the table show', render(provider(1), provider(2)))
        with mock.patch.object(page, 'TREES', 1):
            text = ' '.join(render(provider(1), provider(2)).split())
        self.assertIn('The map and the table show the fullest 1 of 2 trees.', text)

    def test_findings(self):
        rows = ({'provider': 'host', 'used': 5}, {'provider': None, 'list': ['a']})
        text = render(findings=(audit.Finding('over-capacity', 'notice', 7, rows=rows),))
        self.assertIn('<td>host</td><td>5</td><td></td>', text)
        self.assertIn('<td></td><td></td><td>[&#34;a&#34;]</td>', text)
        self.assertIn('placement-manage audit --only over-capacity', text)
        self.assertIn('The audit found nothing.', render())
