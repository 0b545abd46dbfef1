import { describe, expect, test } from 'vitest';
import { type FlagSpec, parseArguments, parsePairs, UsageError } from '../../../../cli/crictl/arguments.ts';
import { COMMANDS } from '../../../../cli/crictl/commands.ts';
import { GLOBAL_FLAGS } from '../../../../cli/crictl/settings.ts';

const SPECS: readonly FlagSpec[] = [
  { name: 'tty', aliases: ['t'], kind: 'bool', usage: '' },
  { name: 'stdin', aliases: ['i'], kind: 'bool', usage: '' },
  { name: 'output', aliases: ['o'], kind: 'text', usage: '', preset: 'table' },
  { name: 'last', aliases: ['n'], kind: 'int', usage: '' },
  { name: 'label', kind: 'list', usage: '' },
  { name: 'pull-timeout', aliases: ['pt'], kind: 'duration', usage: '', env: 'PULL' },
];

const parse = (words: readonly string[], flagsFirst = false, env = {}) =>
  parseArguments(SPECS, words, { env, flagsFirst });

describe('a command line', () => {
  test.each([
    [['-it', 'a'], ['a']],
    [['-i', '-t', 'a'], ['a']],
    [['--tty', '-stdin', 'a'], ['a']],
    [['a', '--tty=true', '--stdin=1'], ['a']],
    [['-ti', '--', 'a'], ['a']],
  ])('%j sets both booleans', (words, args) => {
    const parsed = parse(words);
    expect([parsed.flags.bool('tty'), parsed.flags.bool('stdin')]).toEqual([true, true]);
    expect(parsed.args).toEqual(args);
  });

  test.each([
    [['-o', 'json'], 'json'],
    [['-o=json'], 'json'],
    [['--output=a=b'], 'a=b'],
    [['-output', 'yaml'], 'yaml'],
    [['-to', 'json'], 'json'],
    [['-o', '-x'], '-x'],
    [[], 'table'],
  ])('%j gives the text %j', (words, text) => {
    expect(parse(words).flags.text('output')).toBe(text);
  });

  test('lists collect, with commas and without', () => {
    expect(parse(['--label', 'a=b,c=d', '--label', 'e=f']).flags.list('label')).toEqual(['a=b', 'c=d', 'e=f']);
  });

  test('flags end at the first word where the rest is another program’s', () => {
    const { flags, args } = parse(['-t', 'id', 'ls', '-i', '--', 'x'], true);
    expect([flags.bool('tty'), flags.bool('stdin'), args]).toEqual([true, false, ['id', 'ls', '-i', '--', 'x']]);
  });

  test('a dash alone and negative numbers of values are no flags', () => {
    expect(parse(['-', 'a']).args).toEqual(['-', 'a']);
    expect(parse(['-n', '-1']).flags.number('last')).toBe(-1);
  });

  test('the environment sets what the command line does not', () => {
    expect(parse([], false, { PULL: '2s' }).flags.number('pull-timeout')).toBe(2000);
    expect(parse(['-pt', '1m'], false, { PULL: '2s' }).flags.number('pull-timeout')).toBe(60_000);
    expect(parse([], false, { PULL: '' }).flags.isSet('pull-timeout')).toBe(false);
  });

  test.each([
    [['--nothing'], 'flag provided but not defined: -nothing'],
    [['-tz'], 'flag provided but not defined: -tz'],
    [['-ot'], 'flag provided but not defined: -ot'],
    [['-o'], 'flag needs an argument: -o'],
    [['-n', 'x'], 'invalid value "x" for flag -last'],
    [['--tty=maybe'], 'invalid value "maybe" for flag -tty'],
    [['-pt', '5'], 'invalid value "5" for flag -pull-timeout'],
  ])('%j is refused', (words, message) => {
    expect(() => parse(words)).toThrow(new UsageError(message));
  });

  test('help is noticed, wherever flags may be', () => {
    expect(parse(['a', '--help']).help).toBe(true);
    expect(parse(['a', '-h'], true)).toMatchObject({ help: false, args: ['a', '-h'] });
  });

  test('a flag that a command does not have is a mistake of ours', () => {
    expect(() => parse([]).flags.bool('output')).toThrow(TypeError);
  });
});

test('labels are pairs', () => {
  expect(parsePairs(['a=b', 'constructor=x'])).toEqual({ a: 'b', constructor: 'x' });
  expect(() => parsePairs(['a'])).toThrow('incorrectly specified label: a');
  expect(() => parsePairs(['a=b=c'])).toThrow('incorrectly specified label: a=b=c');
});

test('no two flags of a command share a name', () => {
  for (const { name, flags } of [...COMMANDS, { name: 'crictl', flags: GLOBAL_FLAGS }]) {
    const names = flags.flatMap((flag) => [flag.name, ...(flag.aliases ?? [])]);
    expect(new Set(names).size, name).toBe(names.length);
  }
  const commands = COMMANDS.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  expect(new Set(commands).size).toBe(commands.length);
});
