"""Hands the build over to pbr, which reads setup.cfg.

pbr derives the version from the git history. Without the complete history, for example in an
archive or in a shallow clone, it fails or returns a version such as 0.0.0. In that case, this
script selects the version in setup.cfg.
"""

import configparser
import os
from pathlib import Path
import subprocess

import setuptools

ROOT = Path(__file__).resolve().parent


def has_version() -> bool:
    """Whether pbr finds the version: in the environment, in an sdist, or in the git history."""
    return 'PBR_VERSION' in os.environ or (ROOT / 'PKG-INFO').exists() or is_complete_clone()


def is_complete_clone() -> bool:
    """Whether this directory is the top directory of a git repository with its whole history."""
    if not (ROOT / '.git').exists():
        # An archive can be unpacked inside of another repository.
        return False
    command = ('git', 'rev-parse', '--is-shallow-repository')
    try:
        completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return False
    return completed.stdout.strip() == 'false'


if not has_version():
    declarations = configparser.ConfigParser()
    declarations.read(ROOT / 'setup.cfg', encoding='utf-8')
    os.environ['PBR_VERSION'] = declarations['metadata']['version']

setuptools.setup(setup_requires=['pbr>=6.0.0'], pbr=True)
