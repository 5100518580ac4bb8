"""Checks of the configuration files, of their options, and of the policy files.

The functions for all checks: where options are set, and the secrets that they contain.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
import contextlib
import difflib
import os
import re
from typing import Any

from oslo_config import cfg
from oslo_policy import policy as oslo_policy
from oslo_upgradecheck import common_checks, upgradecheck

from placement import messages, policies, policy
from placement.admin.preflight.model import Steps, check, failure, ok, warning
from placement.conf import database_url, sources

# The name of the source of environment variables.
_ENVIRONMENT = 'environment'
POLICY_FORMAT, VALUES = 'Policy File JSON to YAML Migration', 'Option Values'
# The current names of options that libraries do not accept any more, by the old name.
_RENAMED = {
    'admin_password': 'password',
    'admin_tenant_name': 'project_name',
    'admin_user': 'username',
    'auth_uri': 'www_authenticate_uri',
    'identity_uri': 'auth_url',
    'idle_timeout': 'connection_recycle_time',
    'sql_connection': 'connection',
    'sql_idle_timeout': 'connection_recycle_time',
}
# A reference to a rule, also in a list, the old form of an expression.
_REFERENCE = re.compile(r'\brule:([^\s()\[\]\'",]+)')
_RULE_REMEDY = 'Correct the rule, or remove it to use the default.'

# The names that have an effect, by group. The value is the current group and name of the option.
_Known = dict[str, dict[str, str]]


# The options ---------------------------------------------------------------------


def is_debug_on_command_line(config: cfg.ConfigOpts) -> bool:
    """Return whether the command line sets `debug`, which then applies to this command only."""
    return getattr(config.get_location('debug'), 'location', None) is cfg.Locations.command_line


def _known(config: cfg.ConfigOpts, source: str) -> _Known:
    """Return the names that have an effect in a source."""
    names: _Known = {}
    for (group, name), option in sources.registered(config).items():
        names.setdefault(group, {})[name] = current = f'[{group}] {name}'
        # In the environment, deprecated names have no effect.
        for old in option.deprecated_opts if source != _ENVIRONMENT else ():
            names.setdefault(old.group or group, {}).setdefault(old.name or name, current)
    return names


def _set_names(config: cfg.ConfigOpts) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield each source with each group and its names: each file, and the environment.

    :raises OSError: a file cannot be read any more
    :raises cfg.ParseError: a file has another format now
    """
    for path in sources.files(config):
        for group, names in sources.names_in(path).items():
            yield path, group, names
    for variable in sorted(os.environ):
        group, separator, name = variable.removeprefix('OS_').partition('__')
        # oslo.config ignores variables in lower case.
        if variable.startswith('OS_') and separator and variable.isupper():
            yield _ENVIRONMENT, sources.normalized(group), [name.lower()]


def masked(text: str, config: cfg.ConfigOpts) -> str:
    """Return a text with `***` in place of each secret of the configuration.

    The secrets are the values of secret options; in the URLs of databases, only the passwords.
    """
    secrets: set[str] = set()
    for (group, name), option in sources.registered(config).items():
        if option.secret:
            with contextlib.suppress(ValueError, cfg.Error):
                secret = str(sources.value(config, group, name) or '')
                is_url = group == 'placement_database'
                secrets.update(database_url.secrets(secret) if is_url else [secret])
    return messages.masked(text, secrets - {''})


# Checks --------------------------------------------------------------------------


@check('Configuration Files')
def check_files(config: cfg.ConfigOpts) -> Steps:
    """Reports the files that were read."""
    paths = ', '.join(sources.files(config)) or 'no file; the options have their defaults'
    yield ok(f'Read: {paths}.')


@check('Option Names')
def check_names(config: cfg.ConfigOpts) -> Steps:
    """*Warning* for each unknown group and each unknown option in the files and the environment.

    The remedy contains the current name of a renamed option, for example ``www_authenticate_uri``
    for ``auth_uri``, or a similar name. *Warning* for each deprecated name in the files; in
    environment variables, deprecated names have no effect. The check ignores variables of other
    services: a variable whose group resembles no group of Placement causes no warning.
    """
    for source, group, names in _set_names(config):
        known = _known(config, source)
        if group in known:
            for name in names:
                option, current = f'[{group}] {name}', known[group].get(name)
                if current is None:
                    yield warning(
                        f'Unknown option in {source}: {option}. It has no effect.',
                        _did_you_mean(_similar(group, name, known)) or 'Remove the option.',
                    )
                elif current != option:
                    yield warning(f'In {source}: {option} is deprecated.', f'Use {current}.')
        # oslo.middleware reads groups with this prefix, in addition to `[cors]`.
        elif not group.startswith('cors.'):
            close = [f'[{one}]' for one in _closest(group, known)]
            # Other services can have variables of this form in the same environment.
            if close or source != _ENVIRONMENT:
                yield warning(
                    f'Unknown group in {source}: [{group}]. It has no effect.',
                    _did_you_mean(close) or 'Remove the group.',
                )


def _similar(group: str, name: str, known: _Known) -> list[str]:
    """Return the options that an unknown one may mean.

    Its current name is more likely than a similar name, and its group than another one.
    """
    current = _RENAMED.get(name, name)
    groups = [group] if current in known[group] else sorted(known)
    same = [f'[{other}] {current}' for other in groups if current in known[other]]
    return same or [f'[{group}] {match}' for match in _closest(name, known[group])]


def _closest(name: str, names: Iterable[str]) -> list[str]:
    """Return the most similar name, if there is one."""
    folded = {one.casefold(): one for one in sorted(names)}
    return [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, n=1)]


def _did_you_mean(candidates: Collection[str]) -> str:
    return f'Did you mean {" or ".join(candidates)}?' if candidates else ''


@check(VALUES)
def check_values(config: cfg.ConfigOpts) -> Steps:
    """*Failure* for each option with an invalid value.

    The check includes the options of libraries and of the auth plugin.
    """
    for (group, name), option in sources.registered(config).items():
        try:
            sources.value(config, group, name)
        except (ValueError, cfg.Error) as error:
            # The message of oslo.config contains the representation of an internal object.
            cause = error if isinstance(error, sources.UnresolvedReference) else error.__context__
            reason = '.' if option.secret else f': {" ".join(str(cause or error).split())}'
            yield failure(f'The value of [{group}] {name} is invalid{reason}', 'Correct the value.')


@check('Authentication Strategy')
def check_authentication(config: cfg.ConfigOpts) -> Steps:
    """*Warning* if ``[api] auth_strategy`` is ``noauth2``, which is for tests only."""
    if config.api.auth_strategy == 'noauth2':
        yield warning('Every client chooses its roles.', 'Set [api] auth_strategy to keystone.')


@check('Health Checks')
def check_health(config: cfg.ConfigOpts) -> Steps:
    """*Warning* if ``[healthcheck] backends`` does not contain ``placement_database``."""
    if 'placement_database' not in config.healthcheck.backends:
        yield warning(
            'Health checks omit the database.', 'Add placement_database to [healthcheck] backends.'
        )


@check('Policy Files')
def check_policy_files(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if a file is not readable, is not YAML, or is not a mapping.

    *Warning* if the configured policy file or a configured policy directory does not exist, because
    the service then starts with the default rules. *Warning* if there is a ``policy.json`` beside
    the configuration that the service does not read.
    """
    paths = policy.files(config)
    for name in ('policy_file', 'policy_dirs'):
        value, where = config.oslo_policy[name], config.get_location(name, 'oslo_policy')
        is_set = where is not None and where.location.is_user_controlled
        for path in [value] if isinstance(value, str) else value:
            if is_set and not config.find_file(path):
                yield warning(
                    f'The path {path} does not exist. The service starts without its rules.',
                    f'Create it, or remove the option [oslo_policy] {name}.',
                )
    unread = config.find_file('policy.json')
    if unread and unread not in paths:
        # Other services, and old releases, read this file by default.
        yield warning(
            f'The policy file {unread} is not read.',
            'Convert it with `oslopolicy-convert-json-to-yaml --namespace placement --policy-file '
            f'{unread} --output-file {unread.removesuffix("json")}yaml`, or remove it.',
        )
    for path in paths:
        policy.read(path)
    return f'Read: {", ".join(paths)}.' if paths else 'No file. The default rules apply.'


@check('Policy Rules', needs='Policy Files')
def check_rules(config: cfg.ConfigOpts) -> Steps:
    """*Warning* for each rule that neither the service nor another rule uses.

    *Failure* for an invalid expression, a reference to a missing rule, or a rule that refers to
    itself. *Warning* for each rule with a policy server whose certificate is not verified.
    """
    # A later file overrides an earlier one.
    rules: dict[str, Any] = {}
    for path in policy.files(config):
        rules |= policy.read(path)
    defaults = {default.name: default.check_str for default in policies.list_rules()}
    yield from _problems(config, rules, defaults)
    unverified = not config.oslo_policy.remote_ssl_verify_server_crt
    for name, text in rules.items():
        if unverified and re.search(r'\bhttps:', str(text)):
            yield warning(
                f'The certificate of the policy server in the rule {name} is not verified.',
                'Set [oslo_policy] remote_ssl_verify_server_crt to true.',
            )
    return f'Rules in the files: {len(rules)}.'


def _problems(config: cfg.ConfigOpts, rules: dict[str, Any], defaults: dict[str, str]) -> Steps:
    """Yield the unused rules, the invalid ones, those with a wrong reference, and a cycle."""
    texts = {**defaults, **rules}
    enforcer = oslo_policy.Enforcer(config, use_conf=False)
    enforcer.set_rules(oslo_policy.Rules.from_dict(texts))
    used = set(_REFERENCE.findall(' '.join(map(str, texts.values()))))
    for name in rules:
        if name not in used | defaults.keys():
            remedy = _did_you_mean(_closest(name, defaults)) or 'Remove the rule.'
            yield warning(f'Unknown rule: {name}. It has no effect.', remedy)
    for name, text in rules.items():
        missing = [one for one in _REFERENCE.findall(str(text)) if one not in texts]
        # oslo.policy replaces an invalid expression by `!`.
        if text is None or (text != '!' and str(enforcer.rules[name]) == '!'):
            problem = f'The expression of the rule {name} is invalid, so nobody has access.'
            yield failure(problem, _RULE_REMEDY)
        elif missing:
            problem = f'The rule {name} refers to the rule {missing[0]}, which does not exist.'
            yield failure(problem, _RULE_REMEDY)
    enforcer.skip_undefined_check = True
    if not enforcer.check_rules():
        yield failure('A rule refers, directly or through other rules, to itself.', _RULE_REMEDY)


@check(POLICY_FORMAT)
def check_policy_format(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if the policy file is in JSON. This is an upgrade check, too."""
    result = common_checks.check_policy_json(upgradecheck.UpgradeCommands(), config)
    if result.code:
        remedy = 'Run `oslopolicy-convert-json-to-yaml --namespace placement`.'
        yield failure(str(result.details), remedy)
