"""osc-placement: each command of its plugin for the program `openstack`."""

import contextlib
from importlib import metadata
import io
import json
import os
from typing import Any
from unittest import mock
import uuid

from openstackclient import shell

from tools.clients.calls import MismatchError, require
from tools.clients.cloud import PROJECT, REGION, VERSION, Cloud

_CLASS, _OTHER_CLASS, _TRAIT = 'CUSTOM_DISK', 'CUSTOM_TAPE', 'CUSTOM_SLOW'


class _Commands:
    """Runs commands in this process, and remembers their names.

    :param cloud: the cloud that the commands use
    """

    def __init__(self, cloud: Cloud) -> None:
        self._variables = {f'OS_{name.upper()}': value for name, value in cloud.credentials.items()}
        self._variables |= {
            'OS_REGION_NAME': REGION,
            'OS_IDENTITY_API_VERSION': '3',
            'OS_PLACEMENT_API_VERSION': VERSION,
        }
        self._executed: set[str] = set()

    def run(self, words: str, *arguments: str) -> str:
        """Run a command and return its output.

        :param words: the words of the command
        :raises MismatchError: the command fails
        """
        self._executed.add(words.replace(' ', '_'))
        output = io.StringIO()
        with mock.patch.dict(os.environ, self._variables), contextlib.redirect_stdout(output):
            status = shell.main([*words.split(), *arguments])
        if status:
            raise MismatchError(f'openstack {words} {" ".join(arguments)} failed')
        return output.getvalue()

    def json(self, words: str, *arguments: str) -> Any:
        """Run a command that prints an object or a list, and return it."""
        return json.loads(self.run(words, *arguments, '-f', 'json'))

    def require_all(self) -> None:
        """Require that all commands of the plugin were run.

        :raises MismatchError: a command is missing
        """
        commands = {one.name for one in metadata.entry_points(group='openstack.placement.v1')}
        if missing := commands - self._executed:
            raise MismatchError(f'these commands were not run: {sorted(missing)}')


def use(cloud: Cloud) -> None:
    """Run each command."""
    commands = _Commands(cloud)
    provider = commands.json('resource provider create', 'host')['uuid']
    commands.run('resource provider set', provider, '--name', 'renamed')
    require(commands.json('resource provider show', provider)['name'] == 'renamed', 'same name')
    listed = commands.json('resource provider list', '--name', 'renamed')
    require([one['uuid'] for one in listed] == [provider], f'unexpected providers: {listed}')
    _use_classes_and_traits(commands, provider)
    _use_inventories(commands, provider)
    aggregate = str(uuid.uuid4())
    generation = str(commands.json('resource provider show', provider)['generation'])
    commands.run(
        'resource provider aggregate set',
        provider,
        '--aggregate',
        aggregate,
        '--generation',
        generation,
    )
    aggregates = commands.json('resource provider aggregate list', provider)
    require([one['uuid'] for one in aggregates] == [aggregate], f'unexpected: {aggregates}')
    _use_allocations(commands, provider)
    commands.run('resource provider inventory delete', provider)
    commands.run('resource provider delete', provider)
    commands.run('resource class delete', _CLASS)
    commands.run('trait delete', _TRAIT)
    commands.require_all()


def _use_classes_and_traits(commands: _Commands, provider: str) -> None:
    commands.run('resource class create', _CLASS)
    commands.run('resource class set', _OTHER_CLASS)
    commands.run('resource class show', _CLASS)
    commands.run('resource class delete', _OTHER_CLASS)
    names = {one['name'] for one in commands.json('resource class list')}
    require(_CLASS in names and _OTHER_CLASS not in names, f'unexpected classes: {names}')
    commands.run('trait create', _TRAIT)
    commands.run('trait show', _TRAIT)
    listed = commands.json('trait list', '--name', f'in:{_TRAIT}')
    require(listed == [{'name': _TRAIT}], f'unexpected traits: {listed}')
    commands.run('resource provider trait set', provider, '--trait', _TRAIT)
    stored = commands.json('resource provider trait list', provider)
    require(stored == [{'name': _TRAIT}], f'unexpected traits: {stored}')
    commands.run('resource provider trait delete', provider)


def _use_inventories(commands: _Commands, provider: str) -> None:
    commands.run('resource provider inventory set', provider, '--resource', f'{_CLASS}=10')
    commands.run('resource provider inventory class set', provider, _CLASS, '--total', '20')
    shown = commands.json('resource provider inventory show', provider, _CLASS)
    require(shown['total'] == 20, f'unexpected inventory: {shown}')
    require(len(commands.json('resource provider inventory list', provider)) == 1, 'inventories')


def _use_allocations(commands: _Commands, provider: str) -> None:
    consumer = str(uuid.uuid4())
    found = commands.json('allocation candidate list', '--resource', f'{_CLASS}=1')
    require([one['resource provider'] for one in found] == [provider], f'unexpected: {found}')
    commands.run(
        'resource provider allocation set',
        consumer,
        *('--allocation', f'rp={provider},{_CLASS}=2'),
        *('--project-id', PROJECT, '--user-id', 'admin', '--consumer-type', 'INSTANCE'),
    )
    commands.run('resource provider allocation show', consumer)
    used = commands.json('resource provider usage show', provider)
    require([one['usage'] for one in used] == [2], f'unexpected usage: {used}')
    commands.run('resource usage show', PROJECT)
    commands.run('resource provider allocation unset', consumer, '--provider', provider)
    commands.run(
        'resource provider allocation set',
        consumer,
        *('--allocation', f'rp={provider},{_CLASS}=1'),
        *('--project-id', PROJECT, '--user-id', 'admin', '--consumer-type', 'INSTANCE'),
    )
    commands.run('resource provider allocation delete', consumer)


USES = (use,)
