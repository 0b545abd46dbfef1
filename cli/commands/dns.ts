// `nodelet dns`: the cluster's DNS, as CoreDNS serves it. Hidden: `nodelet up` starts it, and a real cluster has its own.

import { isIP } from 'node:net';
import { Command, InvalidArgumentError } from 'commander';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { stopSignal } from './signals.ts';

interface Flags {
  readonly kubeconfig: string;
  readonly bindAddress: readonly string[];
  readonly conf?: string;
  readonly configMap: string;
}

function addresses(text: string): readonly string[] {
  const all = text.split(',');
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
    .description('answer DNS questions of the cluster’s names, and forward others')
    .requiredOption('--kubeconfig <file>', 'identity of the server (system:serviceaccount:kube-system:coredns)')
    .option('--bind-address <ips>', 'where it listens, with commas between', addresses, ['127.0.0.1'])
    .option('--config-map <namespace/name>', 'ConfigMap with the Corefile', configMapName, 'kube-system/coredns')
    .option('--conf <file>', 'a file with the Corefile instead')
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
