// `nodelet controlplane`: the scheduler and the controllers in one process. Hidden: `nodelet up` starts it, and a real
// cluster has its own.

import { Command, InvalidArgumentError } from 'commander';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import type { DriverEndpoint } from '../../controlplane/storage/drivers.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { stopSignal } from './signals.ts';

interface Flags {
  readonly kubeconfig: string;
  readonly schedulerKubeconfig?: string;
  readonly controllers: string;
  readonly csiEndpoint: readonly DriverEndpoint[];
}

/** "loop.csi.nodelet=unix:///run/csi.sock". Throws InvalidArgumentError, which commander shows. */
export function csiEndpoint(text: string): DriverEndpoint {
  const [, name, endpoint] = /^([^=]+)=(unix:.+|\/.+)$/.exec(text) ?? [];
  if (name === undefined || endpoint === undefined) {
    throw new InvalidArgumentError(`"${text}" is not <driver name>=unix://<path of its socket>`);
  }
  return { name, endpoint };
}

export function controlplaneCommand(): Command {
  return new Command('controlplane')
    .description('run the scheduler and the controllers')
    .requiredOption('--kubeconfig <file>', 'identity of the controllers (system:kube-controller-manager)')
    .option('--scheduler-kubeconfig <file>', 'identity of the scheduler (system:kube-scheduler); without it none runs')
    .option(
      '--controllers <names>',
      'controllers to run, with commas between: "*" for all, "-deployment-controller" for all but this one',
      '*',
    )
    .option(
      '--csi-endpoint <name=unix://path>',
      'a CSI driver to make, attach, grow and delete volumes with; repeatable',
      (text: string, before: readonly DriverEndpoint[]) => [...before, csiEndpoint(text)],
      [],
    )
    .action(async (flags: Flags) => {
      const { runControlPlane } = await import('../../controlplane/main.ts');
      const log = createLog('controlplane');
      await runControlPlane({
        controllerManager: await loadKubeconfig(flags.kubeconfig),
        ...(flags.schedulerKubeconfig === undefined
          ? {}
          : { scheduler: await loadKubeconfig(flags.schedulerKubeconfig) }),
        controllers: flags.controllers.split(',').map((name) => name.trim()),
        csiDrivers: flags.csiEndpoint,
        tracer: new Tracer(),
        clock: systemClock,
        log: (line) => log('info', line),
        onReady: () => log('info', 'every cache is filled, the controllers work'),
        signal: stopSignal(),
      });
    });
}
