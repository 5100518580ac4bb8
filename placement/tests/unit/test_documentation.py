"""Names in the documentation refer to existing modules, files, options, environments and routes."""

from collections.abc import Iterator
import configparser
import pathlib
import re

from oslo_config import cfg
from oslotest import base

import placement
from placement import conf, errors, requestlog, telemetry
from placement.admin.preflight import report

PACKAGE = pathlib.Path(placement.__file__).parent
ROOT = PACKAGE.parent
DOCUMENTS = ROOT / 'doc' / 'source'
CONTRIBUTOR = DOCUMENTS / 'contributor'
MONITORING = DOCUMENTS / 'admin' / 'monitoring.rst'
NOTES = ROOT / 'releasenotes' / 'notes'
ERROR_CODES = {value for name, value in vars(errors).items() if name.isupper()}
# Directories whose files the contributor documentation names.
SOURCES = ('constraints', 'placement', 'tools', 'etc', 'doc', 'api-ref', 'releasenotes', '.ci')

_FILE = re.compile(
    r'[\w./-]+\.(py|rst|yaml|txt|cfg)|[\w.-]+(/[\w.-]+)*/|(placement|tools|doc)/[\w./-]+'
)
_OPTION = re.compile(r'\[(\w+)\] (\w+)( = .+)?')


def literals(page: pathlib.Path) -> Iterator[str]:
    """The texts between double backquotes, in one line each."""
    for match in re.finditer(r'``(.+?)``', page.read_text(), re.DOTALL):
        yield ' '.join(match[1].split())


def pages(directory: pathlib.Path) -> list[pathlib.Path]:
    return sorted(directory.rglob('*.rst'))


def files() -> set[str]:
    """The files and directories of the source tree, each with a leading slash."""
    paths = [path for top in SOURCES for path in (ROOT / top).rglob('*')]
    paths += ROOT.glob('*.*')
    return {f'/{path.relative_to(ROOT).as_posix()}' for path in paths} | {'/placement', '/etc'}


def metrics_of_the_service() -> str:
    """The part of the page of the monitoring with these metrics."""
    return MONITORING.read_text().partition('.. _metrics:\n')[2].partition('.. _exporter:\n')[0]


def distribution() -> configparser.ConfigParser:
    """The metadata of the distribution."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / 'setup.cfg')
    return setup


class NamesTest(base.BaseTestCase):
    def test_files_exist(self):
        existing = files()
        wrong = [
            (page.name, text)
            for page in pages(CONTRIBUTOR)
            for text in filter(_FILE.fullmatch, literals(page))
            if not any(path.endswith(f'/{text.strip("/")}') for path in existing)
        ]
        self.assertEqual([], wrong)

    def test_the_files_for_contributors_and_security_name_existing_files(self):
        """The source distribution contains both files, and the README file names them."""
        manifest = (ROOT / 'MANIFEST.in').read_text()
        self.assertRegex(manifest, r'(?m)^include .*\*\.rst')
        for name in ('CONTRIBUTING.rst', 'SECURITY.rst'):
            self.assertIn(name, set(literals(ROOT / 'README.rst')))
            named = {text for text in literals(ROOT / name) if '/' in text or '.rst' in text}
            named = {text for text in named if re.fullmatch(r'[\w./]+', text)}
            self.assertGreater(len(named), 3)
            self.assertEqual([], [text for text in named if not (ROOT / text).exists()])

    def test_options_exist(self):
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        wrong = [
            (page.name, text)
            for page in [ROOT / 'SECURITY.rst', *pages(DOCUMENTS), *sorted(NOTES.glob('*.yaml'))]
            for text in literals(page)
            if (option := _OPTION.fullmatch(text))
            and option[1] in config
            and option[2] not in config[option[1]]
        ]
        self.assertEqual([], wrong)

    def test_environments_of_tox_exist(self):
        tox = configparser.ConfigParser(interpolation=None)
        tox.read(ROOT / 'tox.ini')
        wrong = [
            (page.name, name)
            for page in [ROOT / 'README.rst', *pages(DOCUMENTS)]
            for match in re.finditer(r'tox\s+-e\s+([\w,-]+)', page.read_text())
            for name in match[1].split(',')
            if f'testenv:{name}' not in tox
        ]
        self.assertEqual([], wrong)


class QuestionsTest(base.BaseTestCase):
    """The first pages of the administration guide, which operators read under pressure."""

    def test_each_page_is_short_and_starts_with_a_command(self):
        folder = DOCUMENTS / 'admin'
        _, questions, *_ = (folder / 'index.rst').read_text().split('.. toctree::')
        names = re.findall(r'^   ([a-z-]+)$', questions, re.MULTILINE)
        self.assertGreater(len(names), 8)
        for name in names:
            text = (folder / f'{name}.rst').read_text()
            self.assertLessEqual(text.count('\n'), 60, name)
            first = re.sub(r'^\.\. (meta|index)::.*\n(   .*\n)*\n', '', text, flags=re.MULTILINE)
            self.assertRegex(first, r'\A=+\n.+\n=+\n\n\.\. code-block:: (console|shell)\n', name)


class CompletenessTest(base.BaseTestCase):
    def test_the_installation_guide_lists_every_extra(self):
        extras = set(distribution()['extras'])
        for name, row in (
            ('production', r'^``\[(\w+)\]`` '),
            ('platforms', r'^``(\w+)`` +``[\w-]+``(?:, ``[\w-]+``)*$'),
        ):
            page = (DOCUMENTS / 'install' / f'{name}.rst').read_text()
            self.assertEqual(extras, set(re.findall(row, page, re.MULTILINE)), name)

    def test_every_command_has_a_manual_page(self):
        scripts = distribution()['entry_points']['console_scripts'].split('\n')
        commands = {line.partition(' = ')[0] for line in scripts if line}
        pages_of_commands = {page.stem for page in (DOCUMENTS / 'cli').glob('placement-*.rst')}
        manual_pages = set(re.findall(r"\('(placement-\w+)',", (DOCUMENTS / 'conf.py').read_text()))
        self.assertEqual((commands, commands), (pages_of_commands, manual_pages))

    def test_the_api_reference_describes_every_error_code(self):
        page = (ROOT / 'api-ref' / 'source' / 'errors.rst').read_text()
        described = re.findall(r'^``(placement\.[\w.]+)``$', page, re.MULTILINE)
        self.assertEqual(ERROR_CODES, set(described))

    def test_the_page_of_metrics_lists_every_metric(self):
        page = metrics_of_the_service()
        rows = re.findall(
            r'^``(placement_\w+)`` +(counter|gauge|histogram) +(\w+(?:, \w+)*)  ',
            page,
            re.MULTILINE,
        )
        listed = {name: (kind, labels) for name, kind, labels in rows}
        declared = {
            metric.name: (metric.kind, ', '.join(metric.labels) or 'none')
            for metric in telemetry.METRICS
        }
        self.assertEqual(declared, listed)
        # The queries contain the names of the series of histograms.
        used = {
            re.sub('_(bucket|count|sum)$', '', name)
            for name in re.findall(r'\bplacement_\w+', page)
        }
        self.assertEqual(set(declared), used)

    def test_the_page_of_metrics_lists_every_reason(self):
        listed = re.findall(r'^``(\w+)``  +[A-Z]', metrics_of_the_service(), re.MULTILINE)
        declared = [
            value
            for metric in telemetry.METRICS
            for values in metric.labels.values()
            for value in values
        ]
        self.assertEqual(declared, listed)

    def test_the_page_of_metrics_lists_every_method(self):
        section = metrics_of_the_service().partition('``method``')[2].partition('``status``')[0]
        listed = set(re.findall('``(\\w+)``', section))
        self.assertEqual(requestlog.METHODS | {requestlog.OTHER_METHOD}, listed)

    def test_the_page_of_placement_status_describes_every_check_of_preflight(self):
        page = (DOCUMENTS / 'cli' / 'placement-status.rst').read_text()
        described = ' '.join(re.findall(r'preflight-checks:: (.*)', page)).split()
        modules = [one.run.__module__.rpartition('.')[2] for one in report.CHECKS.values()]
        self.assertEqual(list(dict.fromkeys(modules)), described)
