"""Checks of the policy file and of the policy directories."""

from collections.abc import Iterator, Mapping, Sequence
import difflib
import re
from typing import Any

from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from placement import exception, policies, policy
from placement.admin.preflight.model import Verdict, failure, ok, warning

_SET_BY_OPERATOR = frozenset({
    cfg.Locations.user,
    cfg.Locations.environment,
    cfg.Locations.command_line,
})  # fmt: skip
_REFERENCE = re.compile(r'\brule:([^\s()]+)')
_HTTPS = re.compile(r'\bhttps:')
_NEVER = '!'
_REMEDY = 'Correct the rule, or remove it to use the default.'


def check_files(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the configured files exist and can be parsed."""
    try:
        paths = policy.files(config)
    except OSError as error:
        return [_unusable(error.filename, error.strerror)]
    verdicts = [*_missing(config), *_unread(config, paths), *_unusable_files(paths)]
    if verdicts:
        return verdicts
    return [ok(f'Read: {", ".join(paths)}.' if paths else 'No file. The default rules apply.')]


def _missing(config: cfg.ConfigOpts) -> Iterator[Verdict]:
    """Yield what is wrong with the paths that the operator has configured."""
    file, directories = config.oslo_policy.policy_file, config.oslo_policy.policy_dirs
    if _is_set(config, 'policy_file') and not config.find_file(file):
        yield warning(
            f'The policy file {file} does not exist, so the default rules apply.',
            'Create the file, or remove the option [oslo_policy] policy_file.',
        )
    for directory in directories if _is_set(config, 'policy_dirs') else ():
        if not config.find_file(directory):
            yield warning(
                f'The policy directory {directory} does not exist.',
                'Create the directory, or remove the option [oslo_policy] policy_dirs.',
            )


def _unread(config: cfg.ConfigOpts, paths: Sequence[str]) -> Iterator[Verdict]:
    """Yield the policy file in JSON that other services, and old releases, read by default."""
    path = config.find_file('policy.json')
    if path and path not in paths:
        yield warning(
            f'The policy file {path} is not read.',
            'Convert it with `oslopolicy-convert-json-to-yaml --namespace placement --policy-file '
            f'{path} --output-file {path.removesuffix("json")}yaml`, or remove it.',
        )


def _is_set(config: cfg.ConfigOpts, name: str) -> bool:
    location = config.get_location(name, 'oslo_policy')
    return location is not None and location.location in _SET_BY_OPERATOR


def _unusable_files(paths: Sequence[str]) -> Iterator[Verdict]:
    for path in paths:
        try:
            policy.read(path)
        except exception.InvalidPolicyFile as error:
            yield _unusable(path, error.reason)


def _unusable(path: str, reason: str | None) -> Verdict:
    return failure(
        f'The policy file {path} cannot be used: {reason}',
        'Correct the file. Write one rule a line in the form "name": "expression".',
    )


def check_rules(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the names and the expressions of the rules in the files."""
    rules: dict[str, Any] = {}
    for path in policy.files(config):
        rules |= policy.read(path)
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


def judge_rules(
    rules: Mapping[str, Any], defaults: Sequence[oslo_policy.RuleDefault]
) -> list[Verdict]:
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
    parsed = oslo_policy.Rules.from_dict(rules)
    return text == _NEVER or str(parsed['rule']) != _NEVER


def _judge_references(
    rules: Mapping[str, Any], defaults: Sequence[oslo_policy.RuleDefault]
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
    enforcer = oslo_policy.Enforcer(_empty_configuration(), use_conf=False)
    enforcer.set_rules(oslo_policy.Rules.from_dict(dict(texts)), use_conf=False)
    if enforcer.check_rules():
        return []
    return [failure('A rule refers, directly or through other rules, to itself.', _REMEDY)]


def _empty_configuration() -> cfg.ConfigOpts:
    config = cfg.ConfigOpts()
    config([], default_config_files=[], default_config_dirs=[])
    return config
