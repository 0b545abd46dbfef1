// `nodelet controlplane`: the scheduler and the controllers in one process. Hidden: `nodelet up` starts it, and a real
// cluster has its own.

import { createPrivateKey, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
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
import { madeApart, type ServingCertificate } from '../../lib/made-certificate.ts';
import { Tracer } from '../../lib/trace.ts';
import { type ControllerFlags, controllerFlags, controllerSettings } from './controller-flags.ts';
import { durationOption } from './duration-flag.ts';
import { commaSeparated } from './list-flag.ts';
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
  readonly bindAddress: string;
  readonly securePort: number;
  readonly schedulerSecurePort: number;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
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

/** Throws UserError for files that cannot be read, and where one is named without the other. */
async function servingCertificate(flags: Flags): Promise<ServingCertificate> {
  const { tlsCertFile: certFile, tlsPrivateKeyFile: keyFile, bindAddress } = flags;
  if (certFile === undefined && keyFile === undefined) {
    const names = ['localhost', '127.0.0.1', ...(bindAddress === '0.0.0.0' ? [] : [bindAddress])];
    return await madeApart([...new Set(names)], systemClock.now());
  }
  if (certFile === undefined || keyFile === undefined) {
    throw new UserError('--tls-cert-file and --tls-private-key-file go together');
  }
  try {
    const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
    return { cert, key };
  } catch (error) {
    throw new UserError(`the serving certificate: ${errorMessage(error)}`, { cause: error });
  }
}

async function serving(flags: Flags): Promise<Pick<ControlPlaneOptions, 'serving'>> {
  const { bindAddress: address, securePort, schedulerSecurePort } = flags;
  if (securePort === 0 && schedulerSecurePort === 0) return {};
  const certificate = await servingCertificate(flags);
  const at = (port: number) => (port === 0 ? undefined : { address, port, certificate });
  const [controllers, scheduler] = [at(securePort), at(schedulerSecurePort)];
  return {
    serving: {
      ...(controllers === undefined ? {} : { controllers }),
      ...(scheduler === undefined ? {} : { scheduler }),
    },
  };
}

/** "10259"; 0 is none. Throws InvalidArgumentError, which commander shows. */
function portFlag(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('it must be a port, or 0 for none');
}

/** "10.244.0.240/28". Throws InvalidArgumentError, which commander shows. */
function loadBalancerRange(text: string): string {
  try {
    return addressPool(text).range;
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

export function controlplaneCommand(): Command {
  return controllerFlags(new Command('controlplane'))
    .description('run the scheduler and the controllers')
    .requiredOption('--kubeconfig <file>', 'identity of the controllers (system:kube-controller-manager)')
    .option('--scheduler-kubeconfig <file>', 'identity of the scheduler (system:kube-scheduler); without it none runs')
    .option(
      '--scheduler-config <file>',
      'KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1 (docs/scheduler.md)',
    )
    .option(
      '--controllers <names>',
      'comma-separated list of controllers to run: "*" for all, "-deployment-controller" for all but this one, "" for none',
      '*',
    )
    .option('--leader-elect', 'work only while holding the Leases kube-controller-manager and kube-scheduler', false)
    .option(
      '--leader-elect-identity <name>',
      'holderIdentity of the Leases; that of an earlier process may be used again once it has ended (default: host name and a random part)',
    )
    .addOption(
      durationOption(
        '--leader-elect-lease-duration',
        'how long others wait for a holder that does not renew its lease',
        LEADER_ELECTION_DEFAULTS.leaseDurationMs,
      ),
    )
    .addOption(
      durationOption(
        '--leader-elect-renew-deadline',
        'how long the holder retries to renew its lease before it gives up leadership',
        LEADER_ELECTION_DEFAULTS.renewDeadlineMs,
      ),
    )
    .addOption(
      durationOption(
        '--leader-elect-retry-period',
        'time between two attempts to acquire or renew a lease',
        LEADER_ELECTION_DEFAULTS.retryPeriodMs,
      ),
    )
    .addOption(
      durationOption(
        '--horizontal-pod-autoscaler-sync-period',
        'how often the metrics of HorizontalPodAutoscalers are read',
        AUTOSCALER_DEFAULTS.syncPeriodMs,
      ),
    )
    .addOption(
      durationOption(
        '--horizontal-pod-autoscaler-downscale-stabilization',
        'how long the highest recommendation of replicas holds before a scale-down',
        AUTOSCALER_DEFAULTS.downscaleStabilizationMs,
      ),
    )
    .option(
      '--load-balancer-range <cidr>',
      'addresses that service-lb-controller assigns to Services of type LoadBalancer; without it they get none',
      loadBalancerRange,
    )
    .option(
      '--cluster-signing-cert-file <file>',
      'certificate of the CA that signs CertificateSigningRequests; without it none are signed',
    )
    .option('--cluster-signing-key-file <file>', 'private key of that CA')
    .addOption(
      durationOption('--cluster-signing-duration', 'longest validity of the certificates that are signed', YEAR_MS),
    )
    .option(
      '--service-account-private-key-file <file>',
      'private key that signs the tokens in Secrets of ServiceAccounts; without it they get none',
    )
    .addOption(
      new Option(
        '--csi-endpoint <name=unix://path>',
        'a CSI driver that provisions, attaches, expands and deletes volumes; may be repeated',
      )
        .argParser((text: string, before: readonly DriverEndpoint[]) => [...before, csiEndpoint(text)])
        .default([], 'none'),
    )
    .option('--bind-address <address>', 'where health and metrics are served, by HTTPS', '127.0.0.1')
    .option(
      '--secure-port <port>',
      "port of the controllers' health and metrics, as kube-controller-manager's 10257; 0: none",
      portFlag,
      0,
    )
    .option(
      '--scheduler-secure-port <port>',
      "port of the scheduler's, as kube-scheduler's 10259; 0: none",
      portFlag,
      0,
    )
    .option('--tls-cert-file <file>', 'certificate of both; without it one is made, and signed by itself')
    .option('--tls-private-key-file <file>', 'its key')
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
        controllers: commaSeparated(flags.controllers),
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
        ...(await serving(flags)),
        csiDrivers: flags.csiEndpoint,
        tracer: new Tracer(),
        clock: systemClock,
        log: (line) => log('info', line),
        onReady: () => log('info', 'caches are synced, scheduler and controllers are running'),
        signal: stopSignal(),
      });
    });
}
