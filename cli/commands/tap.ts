// `nodelet tap`: what a client asks of a container runtime, passed on and recorded; and what one does with recordings.

import { Command, CommanderError, Option } from 'commander';
import { whenAborted } from '../../lib/abort.ts';
import { UserError } from '../../lib/errors.ts';
import { stopSignal } from './signals.ts';

interface TapFlags {
  readonly listen?: string;
  readonly to?: string;
  readonly record?: string;
  readonly redact?: boolean;
  readonly fault?: string;
}

const log = (line: string): void => void process.stderr.write(`tap: ${line}\n`);

async function proxy(flags: TapFlags): Promise<void> {
  const { runTap } = await import('../tap/run.ts');
  const { listen, to } = flags;
  // Not required of commander: it would ask for them of the commands below, too.
  if (listen === undefined || to === undefined) throw new UserError('--listen and --to are needed: two sockets');
  log(await runTap({ ...flags, listen, to }, stopSignal(), log));
}

function withEndpoints(command: Command): Command {
  return command
    .option('--listen <socket>', 'the socket that clients call, unix:///run/tap.sock')
    .option('--to <socket>', 'the runtime’s socket, unix:///run/containerd/containerd.sock')
    .option('--record <file>', 'record every call; the file must not be there yet, and will hold secrets')
    .option('--redact', 'mask registry credentials in the recording');
}

interface ShowFlags {
  readonly pod?: string;
  readonly container?: string;
  readonly call?: string;
  readonly since?: string;
  readonly until?: string;
  readonly output: 'text' | 'json';
  readonly full?: boolean;
}

const note = (problem: string): void => log(`note: ${problem}`);

function showCommand(): Command {
  return new Command('show')
    .description('print a recording, one line a call')
    .argument('<recording>')
    .option('--pod <name>', 'only calls about this pod: name or namespace/name, * for any characters')
    .option('--container <name>', 'only calls about this container')
    .option('--call <method>', 'only calls of this method: RunPodSandbox, List*, /runtime.v1.RuntimeService/Version')
    .option('--since <time>', 'only calls that end later: 12.5s after the start, or RFC 3339')
    .option('--until <time>', 'only calls that begin earlier')
    .addOption(
      new Option('-o, --output <format>', 'text, or one JSON object a call').choices(['text', 'json']).default('text'),
    )
    .option('--full', 'with all messages, decoded')
    .action(async (recording: string, flags: ShowFlags) => {
      const { show } = await import('../tap/show.ts');
      const { problems } = await show(recording, flags, (line) => void process.stdout.write(`${line}\n`));
      problems.forEach(note);
    });
}

async function diff(paths: readonly [string, string], flags: { readonly ignore?: string }): Promise<number> {
  const [{ compareRecordings }, { printDiff }, { readIgnoreFile }, { loadRecording }, { loadSchema }] =
    await Promise.all([
      import('../tap/diff.ts'),
      import('../tap/diff-report.ts'),
      import('../tap/ignore.ts'),
      import('../tap/recording.ts'),
      import('../tap/schema.ts'),
    ]);
  const rules = flags.ignore === undefined ? undefined : await readIgnoreFile(flags.ignore);
  const [a, b] = [await loadRecording(paths[0]), await loadRecording(paths[1])];
  const found = compareRecordings(a, b, loadSchema(), rules);
  const side = (path: string, { info, calls }: typeof a) => ({ path, info, calls: calls.length });
  process.stdout.write(`${printDiff(found, side(paths[0], a), side(paths[1], b)).join('\n')}\n`);
  for (const [name, { info }] of [
    ['A', a],
    ['B', b],
  ] as const)
    for (const problem of info.problems) note(`${name}: ${problem}`);
  return found.count === 0 ? 0 : 1;
}

function diffCommand(): Command {
  return new Command('diff')
    .description('compare two recordings; exit code 0: equal, 1: different, 2: they could not be compared')
    .argument('<a>')
    .argument('<b>')
    .option('--ignore <file>', 'differences to leave out, and texts that stand for each other (YAML)')

    .action(async (a: string, b: string, flags: { readonly ignore?: string }) => {
      try {
        process.exitCode = await diff([a, b], flags);
      } catch (error) {
        if (!(error instanceof UserError)) throw new CommanderError(2, 'tap.diff', String(error));
        process.stderr.write(`nodelet: ${error.message}\n`);
        process.exitCode = 2;
      }
    });
}

function replayCommand(): Command {
  return new Command('replay')
    .description('a runtime without containers: answer CRI calls from a recording')
    .argument('<recording>')
    .requiredOption('--listen <socket>', 'the socket that a kubelet calls, unix:///run/replay.sock')
    .action(async (recording: string, flags: { readonly listen: string }) => {
      const [{ socketPath }, { ReplayServer }] = await Promise.all([
        import('../tap/endpoint.ts'),
        import('../tap/replay.ts'),
      ]);
      const signal = stopSignal();
      const server = new ReplayServer({ recording, listen: socketPath(flags.listen, '--listen'), log });
      await server.listen();
      await whenAborted(signal);
      await server.close();
    });
}

function faultCommand(): Command {
  return withEndpoints(new Command('fault'))
    .description('a tap that delays, fails, drops, duplicates or hangs calls by rules')
    .argument('<rules>', 'YAML: see docs/tap.md')
    .action((rules: string, flags: TapFlags) => proxy({ ...flags, fault: rules }));
}

export function tapCommand(): Command {
  const tap = withEndpoints(new Command('tap'))
    .description('stand between a kubelet or crictl and a runtime: pass every CRI call on unchanged, and record it')
    .option('--fault <file>', 'delay, fail, drop, duplicate or hang calls by the rules in this file')
    .enablePositionalOptions()
    .action(proxy);
  for (const command of [showCommand(), diffCommand(), replayCommand(), faultCommand()])
    tap.addCommand(command.exitOverride());
  // Its exit code 1 says that recordings differ.
  tap.commands
    .find((command) => command.name() === 'diff')
    ?.exitOverride((error) => {
      throw error.exitCode === 0 ? error : new CommanderError(2, error.code, error.message);
    });
  return tap;
}
