// `nodelet node`: orders to the nodes of a lab that runs with several of them.

import { Command } from 'commander';
import { type NodeOrder, sendOrder } from '../lab/node/control.ts';
import type { NodeView } from '../lab/node/orders.ts';
import { DEFAULT_ROOT } from '../lab/paths.ts';
import { labAt } from '../lab/take-root.ts';

interface Flags {
  readonly root: string;
}

const ORDERS: readonly (readonly [NodeOrder, string])[] = [
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

async function order(flags: Flags, method: 'GET' | 'POST', path: string, body?: Record<string, string>): Promise<void> {
  const { controlSocket } = await labAt(flags.root);
  process.stdout.write(`${nodeTable(await sendOrder(controlSocket, method, path, body))}\n`);
}

function rooted(command: Command): Command {
  return command.option('--root <dir>', 'the lab’s directory', DEFAULT_ROOT);
}

export function nodeCommand(): Command {
  const node = new Command('node').description(
    'list, add, stop, kill, cut off the nodes of a lab with several of them',
  );
  rooted(node.command('list').description('the nodes, and what condition they are in')).action((flags: Flags) =>
    order(flags, 'GET', '/nodes'),
  );
  rooted(node.command('add').description('one more node; returns when it is Ready'))
    .argument('[name]', 'its name (default: node- and its number)')
    .option('--zone <zone>', 'its zone (default: the lab’s zones in turn)')
    .action((name: string | undefined, flags: Flags & { readonly zone?: string }) =>
      order(flags, 'POST', '/nodes', {
        ...(name === undefined ? {} : { name }),
        ...(flags.zone === undefined ? {} : { zone: flags.zone }),
      }),
    );
  for (const [word, about] of ORDERS) {
    rooted(node.command(word).description(about))
      .argument('<name>', 'the node')
      .action((name: string, flags: Flags) => order(flags, 'POST', `/nodes/${encodeURIComponent(name)}/${word}`));
  }
  return node;
}
