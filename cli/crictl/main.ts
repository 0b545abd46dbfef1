// `nodelet crictl`: reads the command line and the config file, runs one command, and says how it ended: exit code 1 and
// "FATA[…] …" for what went wrong, 3 for a command that does not exist.

import { errorMessage, UserError } from '../../lib/errors.ts';
import { labPaths } from '../lab/paths.ts';
import { readLabState, runtimeSocket } from '../lab/state.ts';
import { type ParsedArguments, parseArguments, UsageError } from './arguments.ts';
import { COMMANDS } from './commands.ts';
import { NO_CONFIG, parseConfig, readConfigFile } from './config-file.ts';
import { Console, type Terminal } from './console.ts';
import type { Cri } from './cri.ts';
import { commandHelp, programHelp } from './help.ts';
import { type CommandSpec, ShowHelp } from './invocation.ts';
import { GLOBAL_FLAGS, REFUSED_GLOBAL_FLAGS, resolveSettings, type Settings } from './settings.ts';

const NO_SUCH_COMMAND = 3;

function parseGlobals(words: readonly string[], terminal: Terminal): ParsedArguments {
  for (const word of words) {
    const refused = REFUSED_GLOBAL_FLAGS.find((name) => new RegExp(`^--?${name}(=|$)`).test(word));
    if (refused !== undefined) throw new UserError(`--${refused} is not supported`);
    if (!word.startsWith('-')) break;
  }
  return parseArguments(GLOBAL_FLAGS, words, { env: terminal.env, flagsFirst: true });
}

async function settingsOf({ flags }: ParsedArguments, words: readonly string[]): Promise<Settings> {
  const path = flags.text('config');
  const text = await readConfigFile(path);
  if (text === undefined && flags.isSet('config')) {
    throw new UserError(`load config file: stat ${path}: no such file or directory`);
  }
  const written = parseArguments(GLOBAL_FLAGS, words, { env: {}, flagsFirst: true }).flags;
  const config = text === undefined ? NO_CONFIG : parseConfig(text);
  const isLab = flags.bool('lab') || flags.isSet('root');
  const paths = labPaths(flags.isSet('root') ? flags.text('root') : undefined);
  const lab = isLab ? await readLabState(paths) : undefined;
  const labEndpoint = (root: string | undefined): string => `unix://${runtimeSocket(labPaths(root), lab)}`;
  return resolveSettings(flags, (name) => written.isSet(name), config, labEndpoint);
}

async function runCommand(
  command: CommandSpec,
  globals: ParsedArguments,
  words: readonly string[],
  console: Console,
  signal: AbortSignal,
): Promise<void> {
  const { terminal } = console;
  const flagsFirst = command.flagsFirst === true;
  const { flags, args, help } = parseArguments(command.flags, globals.args.slice(1), { env: terminal.env, flagsFirst });
  if (help) throw new ShowHelp();
  const configPath = globals.flags.text('config');
  // The one command that works without a config file, and makes it.
  const settings =
    command.name === 'config'
      ? resolveSettings(
          globals.flags,
          () => false,
          NO_CONFIG,
          () => '',
        )
      : await settingsOf(globals, words);
  let cri: Promise<Cri> | undefined;
  const openCri = (): Promise<Cri> => {
    cri ??= import('./cri.ts').then((module) => module.openCri(settings, console, signal));
    return cri;
  };
  try {
    await command.run({ flags, args, settings, configPath, console, signal, openCri });
  } finally {
    // The command has reported one that could not be opened.
    await cri?.then(
      (open) => open.close(),
      () => undefined,
    );
  }
}

/** `words`: the arguments after `nodelet crictl`. Resolves with the exit code; rejects only on bugs of this program. */
export async function runCrictl(words: readonly string[], terminal: Terminal, signal: AbortSignal): Promise<number> {
  const console = new Console(terminal);
  let shown = programHelp(COMMANDS, GLOBAL_FLAGS);
  try {
    const globals = parseGlobals(words, terminal);
    const [name] = globals.args;
    if (globals.help || name === undefined) {
      console.print(shown);
      return 0;
    }
    const wanted = name === 'help' || name === 'h' ? globals.args[1] : name;
    const command = COMMANDS.find((each) => each.name === wanted || each.aliases?.includes(wanted ?? '') === true);
    if (command === undefined && wanted !== undefined) {
      terminal.stderr.write(`No help topic for '${wanted}'\n`);
      return NO_SUCH_COMMAND;
    }
    if (command === undefined || wanted !== name) {
      console.print(command === undefined ? shown : commandHelp(command));
      return 0;
    }
    shown = commandHelp(command);
    await runCommand(command, globals, words, console, signal);
    return 0;
  } catch (error) {
    if (error instanceof ShowHelp) {
      console.print(shown);
      return 0;
    }
    if (error instanceof UsageError) {
      terminal.stderr.write(`Incorrect Usage: ${error.message}\n\n${shown}`);
      console.log('FATA', error.message);
      return 1;
    }
    if (!(error instanceof UserError)) throw error;
    console.log('FATA', errorMessage(error));
    return 1;
  }
}
