"""Checks of the configuration files, of their options, and of the policy files."""

from collections.abc import Collection, Iterator, Mapping, Sequence
import difflib
from importlib import metadata
import importlib.util
import os
from pathlib import Path
import re
from typing import Any

from oslo_config import cfg
from oslo_middleware import healthcheck
from oslo_policy import policy as oslo_policy

from placement import exception, policies, policy, telemetry
from placement.admin import upgrade_checks
from placement.admin.preflight import options
from placement.admin.preflight.model import (
    Skipped,
    Steps,
    Verdict,
    check,
    failure,
    judged,
    ok,
    warning,
)
from placement.admin.preflight.options import ENVIRONMENT, Name
from placement.conf import base, sources

# oslo.middleware reads groups with this prefix, in addition to `[cors]`.
_CORS_PREFIX = 'cors.'
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

# Where an operator sets an option.
_SET_BY_OPERATOR = frozenset({
    cfg.Locations.user,
    cfg.Locations.environment,
    cfg.Locations.command_line,
})  # fmt: skip
_REFERENCE = re.compile(r'\brule:([^\s()]+)')
_HTTPS = re.compile(r'\bhttps:')
_NEVER = '!'
_RULE_REMEDY = 'Correct the rule, or remove it to use the default.'

# The names of options by group.
Known = Mapping[str, set[str]]


@check('Configuration Files')
def check_files(config: cfg.ConfigOpts) -> Steps:
    """Reports the files that were read."""
    paths = ', '.join(sources.files(config))
    none = 'No file. All options are from the environment or have their defaults.'
    yield ok(f'Read: {paths}.' if paths else none)
    return ''


@check('Option Names')
def check_names(config: cfg.ConfigOpts) -> Steps:
    """*Warning* for each unknown group and each unknown option in the files and the environment.

    The remedy contains the current name of a renamed option, for example ``www_authenticate_uri``
    for ``auth_uri``, or a similar name. The check ignores variables of other services: a variable
    whose group resembles no group of Placement causes no warning.
    """
    registered = options.registered(config)
    for source, groups in options.set_names(config):
        known: dict[str, set[str]] = {}
        for current, option in registered.items():
            # In the environment, deprecated names have no effect.
            old = [] if source == ENVIRONMENT else options.old_names(current, option)
            for group, name in (current, *old):
                known.setdefault(group, set()).add(name)
        for group, names in groups.items():
            yield from _unknown(source, group, names, known)
    return 'Every option and every group exists.'


def _unknown(source: str, group: str, names: Sequence[str], known: Known) -> Iterator[Verdict]:
    """Yield a warning for an unknown group, or for each unknown option in it."""
    normalized = options.normalized(group)
    if normalized in known:
        for name in names:
            if name not in known[normalized]:
                yield warning(
                    f'Unknown option in {source}: [{normalized}] {name}. It has no effect.',
                    _did_you_mean(_similar(normalized, name, known)) or 'Remove the option.',
                )
    elif not normalized.startswith(_CORS_PREFIX):
        folded = {name.casefold(): f'[{name}]' for name in known}
        close = difflib.get_close_matches(normalized.casefold(), sorted(folded), n=1)
        # Other services can have variables of this form in the same environment.
        if close or source != ENVIRONMENT:
            yield warning(
                f'Unknown group in {source}: [{group}]. It has no effect.',
                _did_you_mean([folded[name] for name in close]) or 'Remove the group.',
            )


def _similar(group: str, name: str, known: Known) -> list[str]:
    """Return the options that an unknown one may mean.

    Its current name is more likely than a similar name, and its group than another one.
    """
    current = _RENAMED.get(name, name)
    groups = [group] if current in known[group] else sorted(known)
    same = [f'[{other}] {current}' for other in groups if current in known[other]]
    close = difflib.get_close_matches(name, sorted(known[group]), n=1)
    return same or [f'[{group}] {match}' for match in close]


def _did_you_mean(candidates: Sequence[str]) -> str:
    return f'Did you mean {" or ".join(candidates)}?' if candidates else ''


@check('Deprecated Options')
def check_deprecated(config: cfg.ConfigOpts) -> Steps:
    """*Warning* for each deprecated name in the files. The remedy contains the current name.

    In environment variables, deprecated names have no effect.
    """
    registered = options.registered(config)
    for source, groups in options.set_names(config):
        used = {(options.normalized(group), name) for group in groups for name in groups[group]}
        for current, option in registered.items():
            yield from _deprecated(source, used, current, option)
    return 'No option is deprecated.'


def _deprecated(source: str, used: set[Name], current: Name, option: cfg.Opt) -> Iterator[Verdict]:
    for old in options.old_names(current, option) if source != ENVIRONMENT else ():
        if old in used and old != current:
            yield warning(f'In {source}: {_text(old)} is deprecated.', f'Use {_text(current)}.')
    if option.deprecated_for_removal and current in used:
        detail = f'In {source}: {_text(current)} is deprecated. {option.deprecated_reason or ""}'
        yield warning(' '.join(detail.split()), 'Remove the option.')


def _text(name: Name) -> str:
    group, option = name
    return f'[{group}] {option}'


@check('Option Values')
def check_values(config: cfg.ConfigOpts) -> Steps:
    """*Failure* for each option with an invalid value.

    The check includes the options of libraries and of the auth plugin.
    """
    registered = options.registered(config)
    for name, option in registered.items():
        try:
            with sources.explaining_references(config):
                options.value(config, name)
        except (ValueError, cfg.Error) as error:
            # The message of oslo.config contains the representation of an internal object.
            cause = error if isinstance(error, sources.UnresolvedReference) else error.__context__
            reason = '.' if option.secret else f': {" ".join(str(cause or error).split())}'
            yield failure(
                f'The value of {_text(name)} is invalid{reason}',
                'Correct the value; see the configuration reference.',
            )
    return f'The values of all {len(registered)} options are valid.'


@check('Authentication Strategy')
def check_authentication(config: cfg.ConfigOpts) -> Steps:
    """*Warning* if ``[api] auth_strategy`` is ``noauth2``, which is for tests only."""
    if config.api.auth_strategy == 'noauth2':
        yield warning(
            'Every client that can connect chooses its roles (noauth2, for tests only).',
            'Set [api] auth_strategy to keystone.',
        )
    return 'Clients need a token of Keystone.'


@check('Debug Logging')
def check_debug(config: cfg.ConfigOpts) -> Steps:
    """*Warning* if the configuration sets ``debug`` to true."""
    # On the command line, the option applies to this command only.
    if config.debug and not options.is_on_command_line(config, 'debug'):
        yield warning(
            'The service logs at the level DEBUG, which is slow and makes large files.',
            'Set [DEFAULT] debug to false.',
        )
    return 'The log level is not DEBUG.'


@check('Proxy Headers')
def check_proxy_headers(config: cfg.ConfigOpts) -> Steps:
    """Reports whether the service trusts ``Forwarded`` and ``X-Forwarded`` headers.

    If it does, the proxy must remove these headers from the requests of clients.
    """
    if config.oslo_middleware.enable_proxy_headers_parsing:
        yield ok(
            'The service trusts Forwarded and X-Forwarded headers. The proxy must remove these '
            'headers from requests of clients.'
        )
    return 'The service ignores Forwarded and X-Forwarded headers.'


@check('Health Checks')
def check_health(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if ``[healthcheck] backends`` contains an unknown name.

    Every health check then fails. *Warning* if it does not contain ``placement_database``.
    """
    backends = config.healthcheck.backends
    installed = metadata.entry_points(group=healthcheck.Healthcheck.NAMESPACE).names
    if missing := sorted({*backends} - installed):
        yield failure(
            f'[healthcheck] backends contains unknown names: {", ".join(missing)}. Every health '
            'check fails.',
            'Correct the names.',
        )
    elif not {*backends}.issuperset(base.HEALTH_BACKENDS):
        yield warning(
            'Health checks pass without the database.',
            f'Add {", ".join(base.HEALTH_BACKENDS)} to [healthcheck] backends.',
        )
    return f'Backends: {", ".join(backends)}.'


@check('Metrics')
def check_metrics(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if the metrics are enabled and the extra ``metrics`` is not installed.

    *Warning* if the directory ``PROMETHEUS_MULTIPROC_DIR`` does not exist or is not writable.
    """
    if 'metrics' not in config or not config.metrics.enabled:
        raise Skipped('The metrics are not enabled.')
    directory = os.environ.get(telemetry.DIRECTORY)
    if importlib.util.find_spec('prometheus_client') is None:
        yield failure(
            '[metrics] enabled is true, but prometheus_client is not installed. The service does '
            'not start.',
            "Run `pip install 'openstack-placement[metrics]'`.",
        )
    elif directory is None:
        return (
            'The library is installed. If the service has several processes, set '
            f'{telemetry.DIRECTORY} in their environment.'
        )
    elif not (Path(directory).is_dir() and os.access(directory, os.W_OK)):
        yield warning(
            f'The directory {directory} ({telemetry.DIRECTORY}) does not exist or is not writable.',
            'Create the directory for the user of the service.',
        )
    return f'The library is installed. Processes share {directory}.'


@check('Policy Files')
def check_policy_files(config: cfg.ConfigOpts) -> Steps:
    """*Failure* if a file is not readable, is not YAML, or is not a mapping.

    *Warning* if the configured policy file or a configured policy directory does not exist, because
    the service then starts with the default rules. *Warning* if there is a ``policy.json`` beside
    the configuration that the service does not read.
    """
    try:
        paths = policy.files(config)
    except OSError as error:
        yield _unusable(error.filename, error.strerror)
        return ''
    yield from _missing_files(config)
    unread = config.find_file('policy.json')
    if unread and unread not in paths:
        # Other services, and old releases, read this file by default.
        yield warning(
            f'The policy file {unread} is not read.',
            'Convert it with `oslopolicy-convert-json-to-yaml --namespace placement --policy-file '
            f'{unread} --output-file {unread.removesuffix("json")}yaml`, or remove it.',
        )
    for path in paths:
        try:
            policy.read(path)
        except exception.InvalidPolicyFile as error:
            yield _unusable(path, error.reason)
    return f'Read: {", ".join(paths)}.' if paths else 'No file. The default rules apply.'


def _missing_files(config: cfg.ConfigOpts) -> Iterator[Verdict]:
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


def _is_set(config: cfg.ConfigOpts, name: str) -> bool:
    location = config.get_location(name, 'oslo_policy')
    return location is not None and location.location in _SET_BY_OPERATOR


def _unusable(path: str, reason: str | None) -> Verdict:
    return failure(
        f'The policy file {path} cannot be used: {reason}',
        'Correct the file. Write one rule a line in the form "name": "expression".',
    )


@check('Policy Rules', needs='Policy Files')
def check_rules(config: cfg.ConfigOpts) -> Steps:
    """*Warning* for each rule that neither the service nor another rule uses.

    *Failure* for an invalid expression, a reference to a missing rule, or a rule that refers to
    itself. *Warning* for each rule with a policy server whose certificate is not verified. The
    details report the number of rules that equal their defaults.
    """
    # A later file overrides an earlier one.
    rules: dict[str, Any] = {}
    for path in policy.files(config):
        rules |= policy.read(path)
    defaults = {default.name: default.check_str for default in policies.list_rules()}
    same = [name for name, text in defaults.items() if rules.get(name) == text]
    note = f' {len(same)} equal their defaults and can be removed.' if same else ''
    invalid = [name for name, text in rules.items() if not _is_valid(text)]
    problems = [
        *_unused_rules(rules, defaults),
        *(
            failure(
                f'The expression of the rule {name} is invalid, so nobody has access.', _RULE_REMEDY
            )
            for name in invalid
        ),
        *_wrong_references(config, defaults | rules, invalid),
    ]
    yield from problems or [ok(f'Changed rules: {len(rules) - len(same)}.{note}')]
    if not config.oslo_policy.remote_ssl_verify_server_crt:
        for name, text in rules.items():
            if _HTTPS.search(str(text)):
                yield warning(
                    f'The certificate of the policy server in the rule {name} is not verified.',
                    'Set [oslo_policy] remote_ssl_verify_server_crt to true.',
                )
    return ''


def _unused_rules(rules: Mapping[str, Any], defaults: Mapping[str, str]) -> Iterator[Verdict]:
    """Yield a warning for each rule that neither the service nor another rule uses."""
    used = {name for text in rules.values() for name in _REFERENCE.findall(str(text))}
    for name in rules:
        if name not in defaults and name not in used:
            close = difflib.get_close_matches(name, sorted(defaults), n=1)
            remedy = f'Did you mean {close[0]}?' if close else 'Remove the rule.'
            yield warning(f'Unknown rule: {name}. It has no effect.', remedy)


def _is_valid(text: Any) -> bool:
    """Return whether oslo.policy accepts an expression, and does not replace it by `!`."""
    if text is None:
        return False
    rules: dict[str, Any] = {'rule': text}
    return text == _NEVER or str(oslo_policy.Rules.from_dict(rules)['rule']) != _NEVER


def _wrong_references(
    config: cfg.ConfigOpts, rules: Mapping[str, Any], invalid: Collection[str]
) -> Iterator[Verdict]:
    """Yield a failure for each reference to a missing rule or, without one, for a cycle."""
    valid = {name: text for name, text in rules.items() if name not in invalid}
    missing = False
    for name, text in valid.items():
        for used in _REFERENCE.findall(str(text)):
            if used not in rules:
                missing = True
                yield failure(
                    f'The rule {name} refers to the rule {used}, which does not exist.',
                    _RULE_REMEDY,
                )
    enforcer = oslo_policy.Enforcer(config, use_conf=False)
    enforcer.set_rules(oslo_policy.Rules.from_dict(valid), use_conf=False)
    enforcer.skip_undefined_check = True
    if not missing and not enforcer.check_rules():
        yield failure('A rule refers, directly or through other rules, to itself.', _RULE_REMEDY)


@check(upgrade_checks.POLICY_FORMAT)
def check_policy_format(config: cfg.ConfigOpts) -> Steps:
    """The upgrade check of this name."""
    remedy = 'Run `oslopolicy-convert-json-to-yaml --namespace placement`.'
    return (yield from judged(upgrade_checks.check_policy_format(config), remedy))
