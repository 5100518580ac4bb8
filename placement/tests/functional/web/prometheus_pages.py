"""The queries, alert rules, configurations, and the dashboard of Prometheus."""

from collections.abc import Sequence
import json
from pathlib import Path
import re
import subprocess

import yaml

import placement
from placement.tests.functional.web import commands

ROOT = Path(placement.__file__).parents[1]
PAGE = ROOT / 'doc' / 'source' / 'admin' / 'monitoring.rst'
RULES = ROOT / 'etc' / 'prometheus'
DASHBOARD = ROOT / 'etc' / 'grafana' / 'placement-capacity.json'


def part(label: str) -> str:
    """Return a part of the page.

    :param label: `metrics` or `exporter`, the label of the part
    """
    return PAGE.read_text().partition(f'.. _{label}:\n')[2].partition('.. _exporter:\n')[0]


def blocks(label: str, language: str) -> list[str]:
    """Return the code blocks in a language of a part of the page."""
    pattern = rf'^( *)\.\. code-block:: {language}\n\n((?:(?:\1   .*)?\n)+)'
    return [match[2] for match in re.finditer(pattern, part(label), re.MULTILINE)]


def rules_of(queries: Sequence[str]) -> str:
    """Return a file with a rule for each query, because promtool checks only files with rules."""
    rules = [{'record': f'query:{n}', 'expr': query} for n, query in enumerate(queries)]
    return yaml.safe_dump({'groups': [{'name': 'queries', 'rules': rules}]})


def panels(resource_class: str) -> dict[str, list[str]]:
    """Return the queries of each panel of the dashboard, by its title."""
    text = DASHBOARD.read_text().replace('$resourcetype', resource_class)
    return {
        panel['title']: [target['expr'] for target in panel['targets']]
        for panel in json.loads(text)['panels']
    }


def problems(kind: str, text: str, folder: Path) -> str:
    """Return the problems that promtool finds in a file; skip the test if it is not installed.

    :param kind: `rules` or `config`
    :param folder: a directory for the file
    """
    file = folder / f'{kind}.yaml'
    file.write_text(text)
    command = (commands.program('promtool'), 'check', kind, str(file))
    checked = subprocess.run(command, capture_output=True, text=True)
    return checked.stdout + checked.stderr if checked.returncode else ''
