// `nodelet node`: controls the nodes of a lab that runs with several of them.

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { Command } from 'commander';
import { UserError } from '../../lib/errors.ts';
import type { NodeView } from '../lab/node/actions.ts';
import { type NodeAction, sendControlRequest } from '../lab/node/control.ts';
import { DEFAULT_ROOT } from '../lab/paths.ts';
import { labAt } from '../lab/take-root.ts';

interface Flags {
  readonly root: string;
}

const ACTIONS: readonly (readonly [NodeAction, string])[] = [
  ['stop', 'shut it down in order: agent, pods, containerd; its disk stays'],
  ['kill', 'pull its plug: everything of it ends at once; its disk stays'],
  ['start', 'start it again after stop or kill'],
  ['partition', 'take its link down: it runs without a network'],
  ['heal', 'put its link up again'],
];

/** A table as kubectl prints it. Pure. */
export function nodeTable(nodes: readonly NodeView[]): string {
  const rows = [
    ['NAME', 'CONDITION', 'ZONE', 'ADDRESS', 'PODS'],
    ...nodes.map(({ name, condition, zone, address, podCIDR }) => [
      name,
      condition,
      zone ?? '<none>',
      address,
      podCIDR,
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}

async function request(
  flags: Flags,
  method: 'GET' | 'POST',
  path: string,
  body?: Record<string, string>,
): Promise<void> {
  const { controlSocket } = await labAt(flags.root);
  process.stdout.write(`${nodeTable(await sendControlRequest(controlSocket, method, path, body))}\n`);
}

async function nodeNamed(flags: Flags, name: string): Promise<NodeView> {
  const { controlSocket } = await labAt(flags.root);
  const found = (await sendControlRequest(controlSocket, 'GET', '/nodes')).find((node) => node.name === name);
  if (found === undefined) throw new UserError(`the lab has no node ${name}`);
  if (found.condition === 'stopped' || found.condition === 'killed')
    throw new UserError(`${name} is ${found.condition}`);
  return found;
}

/** Resolves with the program's exit code; 128 and more when a signal ended it, as in a shell. */
async function execOn({ netns, runtimeSocket }: NodeView, command: readonly string[]): Promise<number> {
  const child = spawn('nsenter', [`--net=${netns}`, '--', ...command], {
    stdio: 'inherit',
    env: { ...process.env, CONTAINER_RUNTIME_ENDPOINT: `unix://${runtimeSocket}` },
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

function rooted(command: Command): Command {
  return command.option('--root <dir>', 'the lab’s directory', DEFAULT_ROOT);
}

export function nodeCommand(): Command {
  const node = new Command('node')
    .enablePositionalOptions()
    .description('list, add, stop, kill, cut off the nodes of a lab with several of them');
  rooted(node.command('list').description('the nodes, and what condition they are in')).action((flags: Flags) =>
    request(flags, 'GET', '/nodes'),
  );
  rooted(node.command('add').description('one more node; returns when it is Ready'))
    .argument('[name]', 'its name (default: node- and its number)')
    .option('--zone <zone>', 'its zone (default: the lab’s zones in turn)')
    .action((name: string | undefined, flags: Flags & { readonly zone?: string }) =>
      request(flags, 'POST', '/nodes', {
        ...(name === undefined ? {} : { name }),
        ...(flags.zone === undefined ? {} : { zone: flags.zone }),
      }),
    );
  rooted(node.command('exec').description('run a program in the node’s network namespace, with the node’s containerd'))
    .argument('<name>', 'the node')
    .argument('<command...>', 'the program and its arguments')
    .passThroughOptions()
    .action(async (name: string, command: readonly string[], flags: Flags) => {
      process.exitCode = await execOn(await nodeNamed(flags, name), command);
    });
  for (const [word, about] of ACTIONS) {
    rooted(node.command(word).description(about))
      .argument('<name>', 'the node')
      .action((name: string, flags: Flags) => request(flags, 'POST', `/nodes/${encodeURIComponent(name)}/${word}`));
  }
  return node;
}
