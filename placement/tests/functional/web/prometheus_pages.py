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
FOLDER = ROOT / 'doc' / 'source' / 'admin'
RULES = ROOT / 'etc' / 'prometheus'
DASHBOARD = ROOT / 'etc' / 'grafana' / 'placement-capacity.json'


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in a language.

    :param page: the name of the page in the administration guide, without its suffix
    """
    pattern = rf'^( *)\.\. code-block:: {language}\n\n((?:(?:\1   .*)?\n)+)'
    text = (FOLDER / f'{page}.rst').read_text()
    return [match[2] for match in re.finditer(pattern, text, re.MULTILINE)]


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
