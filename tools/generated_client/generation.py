"""Clients that openapi-python-client generates from the documents."""

from pathlib import Path
import subprocess
import sys

from placement.openapi import files
from tools.generated_client.client import MismatchError

# By default, the generator formats the code, which takes most of the time.
_CONFIGURATION = 'post_hooks: []\n'


def package(version: str) -> str:
    """Return the name of the generated package for a microversion."""
    return f'placement_client_{version.replace(".", "_")}'


def generate(version: str, folder: Path) -> None:
    """Write the client of a microversion into a package in a directory.

    :raises MismatchError: the generator fails, or prints a warning
    """
    files.write(folder, [version])
    configuration = folder / 'configuration.yaml'
    configuration.write_text(_CONFIGURATION)
    command = [sys.executable, '-m', 'openapi_python_client', 'generate', '--fail-on-warning']
    command += ['--meta', 'none', '--config', str(configuration)]
    command += ['--path', str(folder / files.file_name(version))]
    command += ['--output-path', str(folder / package(version))]
    result = subprocess.run(command, capture_output=True, text=True)
    output = result.stdout + result.stderr
    if result.returncode or 'warning' in output.lower():
        raise MismatchError(f'the generator does not accept the document of {version}:\n{output}')
