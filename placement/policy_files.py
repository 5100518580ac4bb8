"""Find and read the policy file and the files in the policy directories."""

from collections.abc import Sequence
from dataclasses import dataclass
import pathlib
from typing import Any

from oslo_config import cfg
import yaml


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy file.

    :param content: the parsed YAML
    :param error: why the file cannot be used, with the line if it is known; empty if it can
    """

    path: str
    content: Any = None
    error: str = ''


def paths(config: cfg.ConfigOpts) -> list[pathlib.Path]:
    """Return the paths of the existing files in the order in which oslo.policy applies them.

    :raises OSError: a policy directory cannot be read
    """
    options = config.oslo_policy
    found = [pathlib.Path(path) for path in [config.find_file(options.policy_file)] if path]
    for name in options.policy_dirs:
        if directory := config.find_file(name):
            # oslo.policy ignores hidden files and subdirectories.
            entries = sorted(pathlib.Path(directory).iterdir())
            found += [path for path in entries if path.name[0] != '.' and not path.is_dir()]
    return found


def read(config: cfg.ConfigOpts) -> list[PolicyFile]:
    """Read all policy files.

    :raises OSError: a policy directory cannot be read
    """
    return [_read(path) for path in paths(config)]


def state(config: cfg.ConfigOpts) -> Sequence[Any]:
    """Return a value that changes if a policy file is changed, added, removed or replaced."""
    try:
        return [(path, _attributes(path)) for path in paths(config)]
    except OSError as error:
        return [str(error)]


def _attributes(path: pathlib.Path) -> Any:
    try:
        status = path.stat()
    except OSError as error:
        return str(error)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(path: pathlib.Path) -> PolicyFile:
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        return PolicyFile(str(path), error=str(error.strerror))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b'\n') + 1
        return PolicyFile(str(path), error=f'line {line} is not UTF-8')
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        # PyYAML does not convert all errors of values, for example of 2026-99-99, to YAMLError.
        # The YAML parser indents an excerpt of the file, which is not readable in one line.
        lines = [line for line in str(error).splitlines() if not line.startswith('    ')]
        return PolicyFile(str(path), error=' '.join(' '.join(lines).split()).rstrip(':'))
    return PolicyFile(str(path), content, _mistake(content))


def _mistake(content: Any) -> str:
    """Return why the content does not map names of rules to expressions, or an empty text."""
    if content is None:
        return ''
    if not isinstance(content, dict):
        return 'it does not map names of rules to texts'
    for name, text in content.items():
        if not isinstance(name, str) or not _is_expression(text):
            return f'it does not map names of rules to texts, for example the rule {name}'
    return ''


def _is_expression(value: Any) -> bool:
    """Return whether the value is a text, nothing, or a list of lists, the old form."""
    if isinstance(value, list):
        return all(_is_expression(part) for part in value)
    return value is None or isinstance(value, str)
