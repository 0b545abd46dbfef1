// The help of crictl and of each of its commands. Pure.

import type { FlagSpec } from './arguments.ts';
import type { CommandSpec } from './invocation.ts';

function flagLine({ name, aliases = [], kind, value, preset, env, usage }: FlagSpec): readonly [string, string] {
  const names = [name, ...aliases].map((each) => (each.length === 1 ? `-${each}` : `--${each}`)).join(', ');
  const notes = [
    ...(preset === undefined || preset === '' || preset === '-1' ? [] : [`(default: ${preset})`]),
    ...(env === undefined ? [] : [`[$${env}]`]),
  ];
  return [kind === 'bool' ? names : `${names} ${value ?? 'value'}`, [usage, ...notes].join(' ')];
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `   ${left.padEnd(width)}  ${right}\n`).join('');
}

const byName = (a: FlagSpec, b: FlagSpec): number => (a.name < b.name ? -1 : 1);

const HELP: FlagSpec = { name: 'help', aliases: ['h'], kind: 'bool', usage: 'show help' };

function options(flags: readonly FlagSpec[]): string {
  return columns([...[...flags].sort(byName), HELP].map(flagLine));
}

export function programHelp(commands: readonly CommandSpec[], flags: readonly FlagSpec[]): string {
  const rows = commands.map(({ name, aliases = [], usage }) => [[name, ...aliases].join(', '), usage] as const);
  return [
    'NAME:\n   nodelet crictl - client for CRI\n',
    'USAGE:\n   nodelet crictl [global options] command [command options] [arguments...]\n',
    `COMMANDS:\n${columns(rows)}`,
    `GLOBAL OPTIONS:\n${options(flags)}`,
  ].join('\n');
}

export function commandHelp({ name, usage, args, flags }: CommandSpec): string {
  return [
    `NAME:\n   nodelet crictl ${name} - ${usage}\n`,
    `USAGE:\n   nodelet crictl ${name} [command options]${args === undefined ? '' : ` ${args}`}\n`,
    `OPTIONS:\n${options(flags)}`,
  ].join('\n');
}
