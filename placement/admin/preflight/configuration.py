"""Checks of the configuration: files, names of options, values, and settings for production."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import difflib
from importlib import metadata

from oslo_config import cfg
from oslo_middleware import healthcheck

from placement.admin.preflight import options
from placement.admin.preflight.model import Verdict, failure, ok, warning
from placement.admin.preflight.options import DEFAULT, Option, Source
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


def check_files(config: cfg.ConfigOpts) -> list[Verdict]:
    """Report the configuration files, which oslo.config has read without an error."""
    return [judge_files(sources.files(config))]


def judge_files(paths: Sequence[str]) -> Verdict:
    """Report the configuration files."""
    if not paths:
        return ok('No file. All options are from the environment or have their defaults.')
    return ok(f'Read: {", ".join(paths)}.')


def check_names(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that each name in the files and the environment is the name of an option."""
    known = options.registered(config)
    verdicts = [verdict for source in options.sources(config) for verdict in judge(source, known)]
    return verdicts or [ok('Every option and every group exists.')]


def judge(source: Source, known: Iterable[Option]) -> list[Verdict]:
    """Return a warning for each unknown group and each unknown option of a source."""
    is_file = source.name != options.ENVIRONMENT
    names = _names(known, with_old=is_file)
    verdicts = []
    for group, keys in source.groups.items():
        normalized = group if group == DEFAULT else group.lower()
        if normalized in names:
            unknown = [key for key in keys if key not in names[normalized]]
            verdicts += [_unknown_option(source.name, normalized, key, names) for key in unknown]
        elif not normalized.startswith(_CORS_PREFIX):
            verdicts += _unknown_group(source.name, group, names, is_file)
    return verdicts


def _names(known: Iterable[Option], with_old: bool) -> dict[str, set[str]]:
    """Return the names by group.

    :param with_old: include deprecated names, which have no effect in the environment
    """
    names: dict[str, set[str]] = {}
    for option in known:
        pairs = [(option.group, option.name), *(option.old_names if with_old else ())]
        for group, name in pairs:
            names.setdefault(group, set()).add(name)
    return names


def _unknown_option(source: str, group: str, name: str, names: Mapping[str, set[str]]) -> Verdict:
    return warning(
        f'Unknown option in {source}: [{group}] {name}. It has no effect.',
        _did_you_mean(suggest_option(group, name, names)) or 'Remove the option.',
    )


def suggest_option(group: str, name: str, names: Mapping[str, set[str]]) -> list[str]:
    """Return the options that an unknown one may mean.

    Its current name is more likely than a similar name, and its group than another one.
    """
    current = _RENAMED.get(name, name)
    groups = [group] if current in names[group] else sorted(names)
    same = [f'[{other}] {current}' for other in groups if current in names[other]]
    close = difflib.get_close_matches(name, sorted(names[group]), n=1)
    return same or [f'[{group}] {match}' for match in close]


def _unknown_group(
    source: str, group: str, names: Mapping[str, set[str]], is_file: bool
) -> list[Verdict]:
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(group.casefold(), sorted(folded), n=1)
    if not close and not is_file:
        # Other services can have variables of this form in the same environment.
        return []
    return [
        warning(
            f'Unknown group in {source}: [{group}]. It has no effect.',
            _did_you_mean([f'[{folded[name]}]' for name in close]) or 'Remove the group.',
        )
    ]


def _did_you_mean(candidates: Sequence[str]) -> str:
    return f'Did you mean {" or ".join(candidates)}?' if candidates else ''


def check_deprecated(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check for deprecated names in the files."""
    known = options.registered(config)
    verdicts = [
        verdict for source in options.sources(config) for verdict in judge_deprecated(source, known)
    ]
    return verdicts or [ok('No option is deprecated.')]


def judge_deprecated(source: Source, known: Iterable[Option]) -> list[Verdict]:
    """Return a warning for each deprecated option of a source."""
    used = {
        (group if group == DEFAULT else group.lower(), name)
        for group, names in source.groups.items()
        for name in names
    }
    verdicts = []
    for option in known:
        current = (option.group, option.name)
        verdicts += [
            warning(f'In {source.name}: [{old[0]}] {old[1]} is deprecated.', f'Use {option}.')
            for old in option.old_names
            if old in used and old != current and source.name != options.ENVIRONMENT
        ]
        if option.removal is not None and current in used:
            detail = f'In {source.name}: {option} is deprecated. {option.removal}'.strip()
            verdicts.append(warning(' '.join(detail.split()), 'Remove the option.'))
    return verdicts


def check_values(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the value of each option is valid, including the options of libraries."""
    known = options.registered(config)
    errors = {option: _error(config, option) for option in known}
    return judge_values(errors)


def _error(config: cfg.ConfigOpts, option: Option) -> str | None:
    try:
        with sources.explaining_references(config):
            options.value(config, option)
    except sources.UnresolvedReference as error:
        return str(error)
    except (ValueError, cfg.Error) as error:
        # The message of oslo.config contains the representation of an internal object.
        return str(error.__context__ or error)
    return None


def judge_values(errors: Mapping[Option, str | None]) -> list[Verdict]:
    """Return a failure for each option that has an error message."""
    verdicts = [
        failure(
            f'The value of {option} is invalid.'
            if option.secret
            else f'The value of {option} is invalid: {" ".join(message.split())}',
            'Correct the value; see the configuration reference.',
        )
        for option, message in errors.items()
        if message is not None
    ]
    return verdicts or [ok(f'The values of all {len(errors)} options are valid.')]


def check_authentication(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that clients need a valid token."""
    return [judge_authentication(config.api.auth_strategy)]


def judge_authentication(strategy: str) -> Verdict:
    """Judge the value of `[api] auth_strategy`."""
    if strategy == 'noauth2':
        return warning(
            'Every client that can connect chooses its roles (noauth2, for tests only).',
            'Set [api] auth_strategy to keystone.',
        )
    return ok('Clients need a token of Keystone.')


def check_debug(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the log level is not DEBUG."""
    # On the command line, the option applies to this command only.
    return [judge_debug(config.debug and not options.is_on_command_line(config, 'debug'))]


def judge_debug(debug: bool) -> Verdict:
    """Judge the value of `[DEFAULT] debug`."""
    if debug:
        return warning(
            'The service logs at the level DEBUG, which is slow and makes large files.',
            'Set [DEFAULT] debug to false.',
        )
    return ok('The log level is not DEBUG.')


def check_proxy_headers(config: cfg.ConfigOpts) -> list[Verdict]:
    """Report whether the service trusts the headers of a proxy."""
    return [judge_proxy_headers(config.oslo_middleware.enable_proxy_headers_parsing)]


def judge_proxy_headers(enabled: bool) -> Verdict:
    """Report the value of `[oslo_middleware] enable_proxy_headers_parsing`."""
    if enabled:
        return ok(
            'The service trusts Forwarded and X-Forwarded headers. The proxy must remove these '
            'headers from requests of clients.'
        )
    return ok('The service ignores Forwarded and X-Forwarded headers.')


def check_health(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the backends of `/healthcheck`."""
    installed = metadata.entry_points(group=healthcheck.Healthcheck.NAMESPACE).names
    return [judge_health(config.healthcheck.backends, installed)]


def judge_health(backends: Sequence[str], installed: Collection[str]) -> Verdict:
    """Judge `[healthcheck] backends`."""
    if missing := sorted({*backends} - {*installed}):
        return failure(
            f'[healthcheck] backends contains unknown names: {", ".join(missing)}. Every health '
            'check fails.',
            'Correct the names.',
        )
    if not {*backends}.issuperset(base.HEALTH_BACKENDS):
        return warning(
            'Health checks pass without the database.',
            f'Add {", ".join(base.HEALTH_BACKENDS)} to [healthcheck] backends.',
        )
    return ok(f'Backends: {", ".join(backends)}.')
