"""The deployment guide lists the files in etc/, and the package installs them."""

import configparser
from pathlib import Path
import re
import subprocess

from oslotest import base

import placement
from placement.tests.functional.deployment import files

ROOT = Path(placement.__file__).parents[1]
ETC = ROOT / 'etc'
PAGE = ROOT / 'doc' / 'source' / 'admin' / 'deployment.rst'
# The files for the generators of the sample files, which the package does not install.
GENERATORS = ETC / 'placement'
FILES = sorted(
    path
    for path in ETC.rglob('*')
    if path.is_file() and not path.is_relative_to(GENERATORS) and '__pycache__' not in path.parts
)


class DeploymentFilesTest(base.BaseTestCase):
    def test_the_guide_lists_every_file(self) -> None:
        listed = re.findall(r'^``([a-z.]+\d?/[\w.-]+)``  ', PAGE.read_text(), re.MULTILINE)
        self.assertEqual([str(path.relative_to(ETC)) for path in FILES], sorted(listed))

    def test_the_command_of_the_guide_removes_the_path_prefix(self) -> None:
        (expression,) = re.findall(r"sed -i -z '(.+)' FILE", PAGE.read_text())
        marked = [path for path in FILES if re.search(r'^ *#root ', path.read_text(), re.M)]
        self.assertEqual(5, len(marked))
        for path in marked:
            changed = subprocess.check_output(('sed', '-z', expression, path), text=True)
            self.assertEqual(files.without_prefix(path.read_text()), changed)

    def test_the_package_installs_every_file(self) -> None:
        setup = configparser.ConfigParser()
        setup.read(ROOT / 'setup.cfg')
        installed = re.findall(r'etc/\S+', setup['files']['data_files'])
        self.assertEqual([str(path.relative_to(ROOT)) for path in FILES], sorted(installed))
