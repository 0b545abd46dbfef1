// `nodelet dns`: the cluster's DNS, as CoreDNS serves it. Hidden: `nodelet up` starts it, and a real cluster has its own.

import { isIP } from 'node:net';
import { Command, InvalidArgumentError, Option } from 'commander';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { commaSeparated } from './list-flag.ts';
import { stopSignal } from './signals.ts';

interface Flags {
  readonly kubeconfig: string;
  readonly bindAddress: readonly string[];
  readonly conf?: string;
  readonly configMap: string;
}

function addresses(text: string): readonly string[] {
  const all = commaSeparated(text);
  const wrong = all.find((each) => isIP(each) === 0);
  if (wrong !== undefined) throw new InvalidArgumentError(`"${wrong}" is no address`);
  return all;
}

function configMapName(text: string): string {
  if (!/^[^/]+\/[^/]+$/.test(text)) throw new InvalidArgumentError('it is no NAMESPACE/NAME');
  return text;
}

export function dnsCommand(): Command {
  return new Command('dns')
    .description('serve the cluster’s DNS: answer for its names, forward other queries')
    .requiredOption('--kubeconfig <file>', 'identity of the server (system:serviceaccount:kube-system:coredns)')
    .addOption(
      new Option('--bind-address <ips>', 'comma-separated addresses to listen on')
        .argParser(addresses)
        .default(['127.0.0.1'], '127.0.0.1'),
    )
    .option('--config-map <namespace/name>', 'ConfigMap with the Corefile', configMapName, 'kube-system/coredns')
    .option('--conf <file>', 'Corefile to read instead of a ConfigMap')
    .action(async ({ kubeconfig, bindAddress, conf, configMap }: Flags) => {
      const { runDns } = await import('../../dns/main.ts');
      const log = createLog('dns');
      await runDns({
        access: await loadKubeconfig(kubeconfig),
        addresses: bindAddress,
        corefile: conf === undefined ? { configMap } : { file: conf },
        tracer: new Tracer(),
        clock: systemClock,
        log: (level, line) => log(level, line),
        signal: stopSignal(),
      });
    });
}
