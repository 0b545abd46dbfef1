// The `nodelet` command. One file per subcommand in commands/. Only the file of the chosen one is loaded, and it imports what
// it needs only when it runs: the modules of all of them take 0.1 s of processor time at each start. Whatever the user can
// mend is one line on stderr and exit code 1.

import { Command, CommanderError } from 'commander';
import { errorMessage, UserError } from '../lib/errors.ts';
import { resolveRelativeImports } from '../lib/relative-imports.ts';
import { parseTricks, TRICKS_VARIABLE } from '../lib/tricks.ts';
import { type WithoutReader, whenReaderGoes } from './commands/reader-gone.ts';

interface Subcommand {
  readonly load: () => Promise<Command>;
  /** Not in the list of commands. */
  readonly hidden?: true;
  /** Undefined: it has its own rule. */
  readonly withoutReader?: WithoutReader;
}

/** By name, in the order of the help. */
const SUBCOMMANDS: ReadonlyMap<string, Subcommand> = new Map([
  ['demo', { load: async () => (await import('./commands/demo.ts')).demoCommand() }],
  ['up', { load: async () => (await import('./commands/lab.ts')).upCommand() }],
  ['down', { load: async () => (await import('./commands/lab.ts')).downCommand() }],
  ['node', { load: async () => (await import('./commands/node.ts')).nodeCommand() }],
  ['agent', { load: async () => (await import('./commands/agent.ts')).agentCommand() }],
  ['apiserver', { load: async () => (await import('./commands/apiserver.ts')).apiserverCommand() }],
  ['csi-driver', { load: async () => (await import('./commands/csi-driver.ts')).csiDriverCommand() }],
  [
    'csi-sanity',
    { load: async () => (await import('./commands/csi-sanity.ts')).csiSanityCommand(), withoutReader: 'goes on' },
  ],
  [
    'kubeconfig',
    { load: async () => (await import('./commands/kubeconfig.ts')).kubeconfigCommand(), withoutReader: 'ends' },
  ],
  ['explain', { load: async () => (await import('./commands/explain.ts')).explainCommand(), withoutReader: 'ends' }],
  ['trace', { load: async () => (await import('./commands/trace.ts')).traceCommand(), withoutReader: 'ends' }],
  ['timeline', { load: async () => (await import('./commands/timeline.ts')).timelineCommand(), withoutReader: 'ends' }],
  ['ui', { load: async () => (await import('./commands/ui.ts')).uiCommand(), withoutReader: 'goes on' }],
  [
    'experiment',
    { load: async () => (await import('./commands/experiment.ts')).experimentCommand(), withoutReader: 'goes on' },
  ],
  ['tap', { load: async () => (await import('./commands/tap.ts')).tapCommand(), withoutReader: 'goes on' }],
  ['dockershim', { load: async () => (await import('./commands/dockershim.ts')).dockershimCommand() }],
  ['crictl', { load: async () => (await import('./commands/crictl.ts')).crictlCommand() }],
  ['lab', { load: async () => (await import('./commands/exercises.ts')).exercisesCommand(), withoutReader: 'goes on' }],
  [
    'csi-call',
    {
      load: async () => (await import('./commands/csi-call.ts')).csiCallCommand(),
      withoutReader: 'goes on',
      hidden: true,
    },
  ],
  [
    'controlplane',
    { load: async () => (await import('./commands/controlplane.ts')).controlplaneCommand(), hidden: true },
  ],
  ['proxy', { load: async () => (await import('./commands/proxy.ts')).proxyCommand(), hidden: true }],
  ['netpol', { load: async () => (await import('./commands/netpol.ts')).netpolCommand(), hidden: true }],
  ['registry', { load: async () => (await import('./commands/registry.ts')).registryCommand(), hidden: true }],
  ['dns', { load: async () => (await import('./commands/dns.ts')).dnsCommand(), hidden: true }],
]);

/** The program with the subcommand that `words` begin with; with all of them for help and for what is none. */
async function buildProgram([word = '']: readonly string[]): Promise<Command> {
  const program = new Command('nodelet');
  program
    .description('A kubelet you can read: runs real pods on this machine, and shows every step.')
    .showHelpAfterError('(try --help)')
    .configureHelp({ sortSubcommands: false })
    // A command and the commands below it may have options of the same name.
    .enablePositionalOptions()
    .exitOverride();
  const chosen = SUBCOMMANDS.get(word);
  for (const { load, hidden } of chosen === undefined ? SUBCOMMANDS.values() : [chosen]) {
    program.addCommand(await load(), { hidden: hidden === true });
  }
  for (const command of program.commands) command.exitOverride();
  return program;
}

async function main(): Promise<number> {
  try {
    const { withoutReader } = SUBCOMMANDS.get(process.argv[2] ?? '') ?? {};
    if (withoutReader !== undefined) whenReaderGoes(withoutReader, process);
    if (parseTricks(process.env[TRICKS_VARIABLE]).has('imports')) resolveRelativeImports();
    await (await buildProgram(process.argv.slice(2))).parseAsync(process.argv);
    return typeof process.exitCode === 'number' ? process.exitCode : 0;
  } catch (error) {
    // Commander has printed its own message (or the requested help).
    if (error instanceof CommanderError) return error.exitCode;
    if (error instanceof UserError) {
      process.stderr.write(`nodelet: ${error.message}\n`);
      return 1;
    }
    process.stderr.write(`nodelet: ${error instanceof Error ? (error.stack ?? error.message) : errorMessage(error)}\n`);
    return 1;
  }
}

if (import.meta.main) {
  const code = await main();
  // A command that failed half-way may have left a socket or a timer behind; which must not keep it running.
  if (code !== 0) process.exit(code);
  process.exitCode = code;
}
