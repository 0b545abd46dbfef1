// `nodelet controlplane`: the scheduler and the controllers in one process. Hidden: `nodelet up` starts it, and a real
// cluster has its own.

import { Command } from 'commander';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { stopSignal } from './signals.ts';

export function controlplaneCommand(): Command {
  return new Command('controlplane')
    .description('run the scheduler and the controllers')
    .requiredOption('--kubeconfig <file>', 'identity of the controllers (system:kube-controller-manager)')
    .option('--scheduler-kubeconfig <file>', 'identity of the scheduler (system:kube-scheduler); without it none runs')
    .action(async (flags: { kubeconfig: string; schedulerKubeconfig?: string }) => {
      const { runControlPlane } = await import('../../controlplane/main.ts');
      const log = createLog('controlplane');
      await runControlPlane({
        controllerManager: await loadKubeconfig(flags.kubeconfig),
        ...(flags.schedulerKubeconfig === undefined
          ? {}
          : { scheduler: await loadKubeconfig(flags.schedulerKubeconfig) }),
        tracer: new Tracer(),
        clock: systemClock,
        log: (line) => log('info', line),
        onReady: () => log('info', 'every cache is filled, the controllers work'),
        signal: stopSignal(),
      });
    });
}
