"""Checks of the policy file and of the policy directories."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import difflib
import re
from typing import Any

from oslo_config import cfg
from oslo_policy import policy

from placement import policies, policy_files
from placement.admin.preflight.model import Verdict, failure, ok, warning
from placement.policy_files import PolicyFile

_SET_BY_OPERATOR = frozenset({
    cfg.Locations.user,
    cfg.Locations.environment,
    cfg.Locations.command_line,
})  # fmt: skip
_REFERENCE = re.compile(r'\brule:([^\s()]+)')
_HTTPS = re.compile(r'\bhttps:')
_NEVER = '!'
_REMEDY = 'Correct the rule, or remove it to use the default.'


@dataclass(frozen=True, slots=True)
class Location:
    """A configured path of a policy file or directory.

    :param found: the existing path, or None
    :param is_set: whether the operator has set the option
    """

    configured: str
    found: str | None
    is_set: bool


def check_files(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the configured files exist and can be parsed."""
    try:
        contents = policy_files.read(config)
    except OSError as error:
        contents = [PolicyFile(str(error.filename), error=str(error.strerror))]
    return judge_files(_file(config), _directories(config), contents)


def check_rules(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the names and the expressions of the rules in the files."""
    rules: dict[str, Any] = {}
    for file in policy_files.read(config):
        if isinstance(file.content, dict):
            rules |= file.content
    verdicts = judge_rules(rules, policies.list_rules())
    if not config.oslo_policy.remote_ssl_verify_server_crt:
        verdicts += _judge_servers(rules)
    return verdicts


def _judge_servers(rules: Mapping[str, Any]) -> list[Verdict]:
    """Return a warning for each rule with a policy server whose certificate is not verified."""
    return [
        warning(
            f'The certificate of the policy server in the rule {name} is not verified.',
            'Set [oslo_policy] remote_ssl_verify_server_crt to true.',
        )
        for name, text in rules.items()
        if _HTTPS.search(str(text))
    ]


def _file(config: cfg.ConfigOpts) -> Location:
    name = config.oslo_policy.policy_file
    return Location(name, config.find_file(name), _is_set(config, 'policy_file'))


def _directories(config: cfg.ConfigOpts) -> list[Location]:
    is_set = _is_set(config, 'policy_dirs')
    return [
        Location(name, config.find_file(name), is_set) for name in config.oslo_policy.policy_dirs
    ]


def _is_set(config: cfg.ConfigOpts, name: str) -> bool:
    location = config.get_location(name, 'oslo_policy')
    return location is not None and location.location in _SET_BY_OPERATOR


def judge_files(
    file: Location, directories: Iterable[Location], contents: Sequence[PolicyFile]
) -> list[Verdict]:
    """Judge whether the policy files exist and contain rules."""
    verdicts = []
    if file.is_set and not file.found:
        verdicts.append(
            failure(
                f'The policy file {file.configured} does not exist, so the default rules apply.',
                'Create the file, or remove the option [oslo_policy] policy_file.',
            )
        )
    verdicts += [
        warning(
            f'The policy directory {directory.configured} does not exist.',
            'Create the directory, or remove the option [oslo_policy] policy_dirs.',
        )
        for directory in directories
        if directory.is_set and not directory.found
    ]
    verdicts += [verdict for content in contents if (verdict := _judge_content(content))]
    if verdicts:
        return verdicts
    paths = ', '.join(content.path for content in contents)
    return [ok(f'Read: {paths}.' if paths else 'No file. The default rules apply.')]


def _judge_content(file: PolicyFile) -> Verdict | None:
    if not file.error:
        return None
    return failure(
        f'The policy file {file.path} cannot be used: {file.error}',
        'Correct the file. Write one rule a line in the form "name": "expression".',
    )


def judge_rules(rules: Mapping[str, Any], defaults: Sequence[policy.RuleDefault]) -> list[Verdict]:
    """Judge the rules of all policy files together.

    :param rules: the names and expressions; a later file overrides an earlier one
    :param defaults: the rules of the service
    """
    known = {default.name for default in defaults}
    verdicts = [
        *_judge_names(rules, known),
        *_judge_expressions(rules),
        *_judge_references(rules, defaults),
    ]
    if verdicts:
        return verdicts
    same = [default.name for default in defaults if rules.get(default.name) == default.check_str]
    note = f' {len(same)} equal their defaults and can be removed.' if same else ''
    return [ok(f'Changed rules: {len(rules) - len(same)}.{note}')]


def _judge_names(rules: Mapping[str, Any], known: set[str]) -> list[Verdict]:
    """Return a warning for each rule that neither the service nor another rule uses."""
    used = {name for text in rules.values() for name in _REFERENCE.findall(str(text))}
    verdicts = []
    for name in map(str, rules):
        if name in known or name in used:
            continue
        close = difflib.get_close_matches(name, sorted(known), n=1)
        remedy = f'Did you mean {close[0]}?' if close else 'Remove the rule.'
        verdicts.append(warning(f'Unknown rule: {name}. It has no effect.', remedy))
    return verdicts


def _judge_expressions(rules: Mapping[str, Any]) -> list[Verdict]:
    """Return a failure for each expression that oslo.policy replaces by one that denies all."""
    return [
        failure(f'The expression of the rule {name} is invalid, so nobody has access.', _REMEDY)
        for name, text in rules.items()
        if not _is_valid(text)
    ]


def _is_valid(text: Any) -> bool:
    if not isinstance(text, (str, list)):
        return False
    rules: dict[str, Any] = {'rule': text}
    parsed = policy.Rules.from_dict(rules)
    return text == _NEVER or str(parsed['rule']) != _NEVER


def _judge_references(
    rules: Mapping[str, Any], defaults: Sequence[policy.RuleDefault]
) -> list[Verdict]:
    """Return failures for rules that refer to missing rules or, through others, to themselves."""
    texts = {default.name: default.check_str for default in defaults} | {
        name: text for name, text in rules.items() if _is_valid(text)
    }
    missing = [
        failure(f'The rule {name} refers to the rule {used}, which does not exist.', _REMEDY)
        for name, text in texts.items()
        for used in _REFERENCE.findall(str(text))
        if used not in texts and used not in rules
    ]
    return missing or _judge_cycles(texts)


def _judge_cycles(texts: Mapping[str, Any]) -> list[Verdict]:
    enforcer = policy.Enforcer(_empty_configuration(), use_conf=False)
    enforcer.set_rules(policy.Rules.from_dict(dict(texts)), use_conf=False)
    if enforcer.check_rules():
        return []
    return [failure('A rule refers, directly or through other rules, to itself.', _REMEDY)]


def _empty_configuration() -> cfg.ConfigOpts:
    config = cfg.ConfigOpts()
    config([], default_config_files=[], default_config_dirs=[])
    return config
