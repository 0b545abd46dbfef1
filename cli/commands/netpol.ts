// `nodelet netpol`: enforces NetworkPolicy on one node. Hidden: `nodelet up` starts it, and a real cluster has its network plugin for it.

import { hostname } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { durationOption } from './duration-flag.ts';
import { stopSignal } from './signals.ts';

interface Flags {
  readonly kubeconfig: string;
  readonly nodeName: string;
  readonly table: string;
  readonly syncPeriod: number;
  readonly metricsBindAddress: string;
}

function tableName(text: string): string {
  if (!/^[a-z][a-z0-9-]{0,63}$/.test(text)) throw new InvalidArgumentError('it is no name of a table');
  return text;
}

export function netpolCommand(): Command {
  return new Command('netpol')
    .description('enforce NetworkPolicies on this node')
    .requiredOption('--kubeconfig <file>', 'identity, which may list and watch pods, namespaces and NetworkPolicies')
    .option('--node-name <name>', 'name of the node', hostname().toLowerCase())
    .option('--table <name>', 'name of the nftables table (family inet)', tableName, 'nodelet-netpol')
    .addOption(durationOption('--sync-period', 'how often the kernel’s table is compared and repaired', 30_000))
    .option('--metrics-bind-address <address:port>', 'where /metrics is served; "" is nowhere', '')
    .action(async ({ kubeconfig, nodeName, table, syncPeriod, metricsBindAddress }: Flags) => {
      const { runNetpol } = await import('../../netpol/main.ts');
      const log = createLog('netpol');
      await runNetpol({
        access: await loadKubeconfig(kubeconfig),
        nodeName,
        table,
        syncPeriodMs: syncPeriod,
        ...(metricsBindAddress === '' ? {} : { metricsAddress: metricsBindAddress }),
        tracer: new Tracer(),
        clock: systemClock,
        log: (line) => log('info', line),
        onReady: () => log('info', 'the rules of all NetworkPolicies are synced'),
        signal: stopSignal(),
      });
    });
}
