// `nodelet proxy`: kube-proxy's work, with kube-proxy's flags. Hidden: `nodelet up` starts it, and a real cluster has its own.

import { hostname } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import type { ProxyMode } from '../../proxy/main.ts';
import { durationOption } from './duration-flag.ts';
import { commaSeparated } from './list-flag.ts';
import { stopSignal } from './signals.ts';

interface Flags {
  readonly kubeconfig: string;
  readonly hostnameOverride: string;
  readonly proxyMode: ProxyMode;
  readonly clusterCidr?: string;
  readonly masqueradeAll?: boolean;
  readonly iptablesMasqueradeBit: number;
  readonly nodeportAddresses: readonly string[];
  readonly iptablesLocalhostNodeports: boolean;
  readonly syncPeriod: number;
  readonly healthzBindAddress: string;
  readonly metricsBindAddress: string;
  readonly owner: string;
}

function bit(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0 || number > 31) throw new InvalidArgumentError('it is no bit: 0 to 31');
  return number;
}

/** Throws InvalidArgumentError for kube-proxy's "primary" and for IPv6, which are not there. */
function ranges(text: string): readonly string[] {
  const found = commaSeparated(text);
  const wrong = found.find((range) => !/^\d+\.\d+\.\d+\.\d+\/\d+$/.test(range));
  if (wrong !== undefined) throw new InvalidArgumentError(`"${wrong}" is no range of IPv4 addresses`);
  return found;
}

/** "true", "false", or the flag alone. */
function yesOrNo(text: string): boolean {
  if (text !== 'true' && text !== 'false') throw new InvalidArgumentError('it is true or false');
  return text === 'true';
}

export function proxyCommand(): Command {
  return new Command('proxy')
    .description('forward the traffic of Services on this node')
    .requiredOption('--kubeconfig <file>', 'identity of the proxy (system:kube-proxy)')
    .option('--hostname-override <name>', 'name of the node', hostname().toLowerCase())
    .addOption(
      new Option('--proxy-mode <mode>', 'how the kernel is programmed')
        .choices(['iptables', 'nftables'])
        .default('iptables'),
    )
    .option('--cluster-cidr <range>', 'CIDR range of pods: traffic to cluster IPs from outside of it is masqueraded')
    .option('--masquerade-all', 'masquerade all traffic to cluster IPs')
    .option('--iptables-masquerade-bit <bit>', 'bit of the fwmark space that marks packets for masquerading', bit, 14)
    .addOption(
      new Option(
        '--nodeport-addresses <ranges>',
        'comma-separated CIDR ranges: node ports are served at addresses of the node in them',
      )
        .argParser(ranges)
        .default([], 'all'),
    )
    .option(
      '--iptables-localhost-nodeports <true|false>',
      'serve node ports at 127.0.0.1 as well, which needs the sysctl route_localnet',
      yesOrNo,
      false,
    )
    .addOption(durationOption('--sync-period', 'how often the kernel’s rules are compared and repaired', 30_000))
    .option(
      '--healthz-bind-address <address:port>',
      'where /healthz and /livez are served; "" is nowhere',
      '0.0.0.0:10256',
    )
    .option('--metrics-bind-address <address:port>', 'where /metrics is served; "" is nowhere', '127.0.0.1:10249')
    .option('--owner <text>', 'comment of the rules: who owns them', 'nodelet')
    .action(async (flags: Flags) => {
      const { runProxy } = await import('../../proxy/main.ts');
      const log = createLog('proxy');
      await runProxy({
        access: await loadKubeconfig(flags.kubeconfig),
        nodeName: flags.hostnameOverride,
        mode: flags.proxyMode,
        ...(flags.clusterCidr === undefined ? {} : { clusterCidr: flags.clusterCidr }),
        masqueradeAll: flags.masqueradeAll === true,
        masqueradeBit: flags.iptablesMasqueradeBit,
        nodePortAddresses: flags.nodeportAddresses,
        localhostNodePorts: flags.iptablesLocalhostNodeports,
        syncPeriodMs: flags.syncPeriod,
        healthzAddress: flags.healthzBindAddress,
        metricsAddress: flags.metricsBindAddress,
        owner: flags.owner,
        tracer: new Tracer(),
        clock: systemClock,
        log: (line) => log('info', line),
        onReady: () => log('info', 'the rules of all Services are synced'),
        signal: stopSignal(),
      });
    });
}
