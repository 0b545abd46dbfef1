// `nodelet controlplane`: the scheduler and the controllers in one process. Hidden: `nodelet up` starts it, and a real
// cluster has its own.

import { createPrivateKey, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { LEADER_ELECTION_DEFAULTS } from '../../client/leader-election.ts';
import { AUTOSCALER_DEFAULTS } from '../../controlplane/controllers/horizontal-pod-autoscaler/pod-groups.ts';
import { addressPool } from '../../controlplane/controllers/service-lb/addresses.ts';
import type { DriverEndpoint } from '../../controlplane/csi/shared/drivers.ts';
import type { ControlPlaneOptions } from '../../controlplane/main.ts';
import type { SchedulerSettings } from '../../controlplane/scheduler/config/model.ts';
import { systemClock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { type ControllerFlags, controllerFlags, controllerSettings } from './controller-flags.ts';
import { durationFlag } from './duration-flag.ts';
import { stopSignal } from './signals.ts';

/** kube-controller-manager's. ms. */
const YEAR_MS = 365 * 24 * 3_600_000;

interface Flags extends ControllerFlags {
  readonly kubeconfig: string;
  readonly schedulerKubeconfig?: string;
  readonly schedulerConfig?: string;
  readonly controllers: string;
  readonly leaderElect: boolean;
  readonly leaderElectIdentity?: string;
  readonly leaderElectLeaseDuration: number;
  readonly leaderElectRenewDeadline: number;
  readonly leaderElectRetryPeriod: number;
  readonly horizontalPodAutoscalerSyncPeriod: number;
  readonly horizontalPodAutoscalerDownscaleStabilization: number;
  readonly loadBalancerRange?: string;
  readonly clusterSigningCertFile?: string;
  readonly clusterSigningKeyFile?: string;
  readonly clusterSigningDuration: number;
  readonly serviceAccountPrivateKeyFile?: string;
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

/** Throws UserError for a file that cannot be read, or is no configuration that this scheduler can have. */
async function schedulerSettings(path: string): Promise<SchedulerSettings> {
  const { decodeSchedulerConfiguration } = await import('../../controlplane/scheduler/config/decode.ts');
  try {
    return decodeSchedulerConfiguration(await readFile(path, 'utf8'));
  } catch (error) {
    throw new UserError(`--scheduler-config ${path}: ${errorMessage(error)}`, { cause: error });
  }
}

/** Throws UserError where the figures contradict each other. */
function leaderElection(flags: Flags) {
  const { leaderElectLeaseDuration: leaseDurationMs, leaderElectRenewDeadline: renewDeadlineMs } = flags;
  const retryPeriodMs = flags.leaderElectRetryPeriod;
  if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs) {
    throw new UserError(
      '--leader-elect-lease-duration must be greater than the renew deadline, and that than the retry period',
    );
  }
  const identity = flags.leaderElectIdentity ?? `${hostname()}_${randomUUID()}`;
  return { identity, leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

/** Throws UserError for a file that cannot be read, and where one is named without the other. */
async function signingAuthority(flags: Flags): Promise<Pick<ControlPlaneOptions, 'signing'>> {
  const { clusterSigningCertFile: certFile, clusterSigningKeyFile: keyFile, clusterSigningDuration } = flags;
  if (certFile === undefined && keyFile === undefined) return {};
  if (certFile === undefined || keyFile === undefined) {
    throw new UserError('--cluster-signing-cert-file and --cluster-signing-key-file go together');
  }
  try {
    const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
    return { signing: { cert, key, durationMs: clusterSigningDuration } };
  } catch (error) {
    throw new UserError(`the CA for certificate requests: ${errorMessage(error)}`, { cause: error });
  }
}

/** Throws UserError for a file that cannot be read or is no private key. */
async function serviceAccountKey({ serviceAccountPrivateKeyFile: path }: Flags) {
  if (path === undefined) return {};
  try {
    const key = await readFile(path, 'utf8');
    createPrivateKey(key);
    return { serviceAccountKey: key };
  } catch (error) {
    throw new UserError(`--service-account-private-key-file ${path}: ${errorMessage(error)}`, { cause: error });
  }
}

/** "10.244.0.240/28". Throws InvalidArgumentError, which commander shows. */
function loadBalancerRange(text: string): string {
  try {
    return addressPool(text).range;
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

/** "*,-deployment-controller"; "" is none. Pure. */
export function controllerNames(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

export function controlplaneCommand(): Command {
  return controllerFlags(new Command('controlplane'))
    .description('run the scheduler and the controllers')
    .requiredOption('--kubeconfig <file>', 'identity of the controllers (system:kube-controller-manager)')
    .option('--scheduler-kubeconfig <file>', 'identity of the scheduler (system:kube-scheduler); without it none runs')
    .option(
      '--scheduler-config <file>',
      'KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1: docs/scheduler.md',
    )
    .option(
      '--controllers <names>',
      'controllers to run, with commas between: "*" for all, "-deployment-controller" for all but this one, "" for none',
      '*',
    )
    .option('--leader-elect', 'work only while holding the leases kube-controller-manager and kube-scheduler', false)
    .option(
      '--leader-elect-identity <name>',
      'holder of the leases; one that an earlier process had may be used again once that has ended (default: host name and a random part)',
    )
    .option(
      '--leader-elect-lease-duration <duration>',
      'how long others wait for a holder that does not renew',
      durationFlag('--leader-elect-lease-duration'),
      LEADER_ELECTION_DEFAULTS.leaseDurationMs,
    )
    .option(
      '--leader-elect-renew-deadline <duration>',
      'how long the holder works without having renewed',
      durationFlag('--leader-elect-renew-deadline'),
      LEADER_ELECTION_DEFAULTS.renewDeadlineMs,
    )
    .option(
      '--leader-elect-retry-period <duration>',
      'between two tries',
      durationFlag('--leader-elect-retry-period'),
      LEADER_ELECTION_DEFAULTS.retryPeriodMs,
    )
    .option(
      '--horizontal-pod-autoscaler-sync-period <duration>',
      'how often autoscalers look at their metrics',
      durationFlag('--horizontal-pod-autoscaler-sync-period'),
      AUTOSCALER_DEFAULTS.syncPeriodMs,
    )
    .option(
      '--horizontal-pod-autoscaler-downscale-stabilization <duration>',
      'how long autoscalers stay at a higher number that was needed',
      durationFlag('--horizontal-pod-autoscaler-downscale-stabilization'),
      AUTOSCALER_DEFAULTS.downscaleStabilizationMs,
    )
    .option(
      '--load-balancer-range <cidr>',
      'addresses that service-lb-controller gives to Services of type LoadBalancer; without it they get none',
      loadBalancerRange,
    )
    .option(
      '--cluster-signing-cert-file <file>',
      'certificate of the CA that signs certificate requests; without it none is',
    )
    .option('--cluster-signing-key-file <file>', 'its key')
    .option(
      '--cluster-signing-duration <duration>',
      'how long the certificates are valid at most',
      durationFlag('--cluster-signing-duration'),
      YEAR_MS,
    )
    .option(
      '--service-account-private-key-file <file>',
      'key that signs the tokens in Secrets of service accounts; without it they get none',
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
        ...(flags.schedulerConfig === undefined
          ? {}
          : { schedulerSettings: await schedulerSettings(flags.schedulerConfig) }),
        ...(flags.leaderElect ? { leaderElection: leaderElection(flags) } : {}),
        controllers: controllerNames(flags.controllers),
        controllerSettings: {
          ...controllerSettings(flags),
          ...(await serviceAccountKey(flags)),
          ...(flags.loadBalancerRange === undefined ? {} : { loadBalancerRange: flags.loadBalancerRange }),
          autoscaler: {
            ...AUTOSCALER_DEFAULTS,
            syncPeriodMs: flags.horizontalPodAutoscalerSyncPeriod,
            downscaleStabilizationMs: flags.horizontalPodAutoscalerDownscaleStabilization,
          },
        },
        ...(await signingAuthority(flags)),
        csiDrivers: flags.csiEndpoint,
        tracer: new Tracer(),
        clock: systemClock,
        log: (line) => log('info', line),
        onReady: () => log('info', 'every cache is filled, the controllers work'),
        signal: stopSignal(),
      });
    });
}
