// Where the runtime is and how long to wait for it: flags before the environment, both before the config file, which is
// before the endpoints that everybody tries. Pure.

import { UserError } from '../../lib/errors.ts';
import { type FlagSpec, type Flags, UsageError } from './arguments.ts';
import { type CrictlConfig, DEFAULT_CONFIG_PATH } from './config-file.ts';

/** Tried in this order when no endpoint is given. */
export const DEFAULT_ENDPOINTS: readonly string[] = [
  'unix:///run/containerd/containerd.sock',
  'unix:///run/crio/crio.sock',
  'unix:///var/run/cri-dockerd.sock',
];

export const DEFAULT_TIMEOUT_MS = 2000;

export const GLOBAL_FLAGS: readonly FlagSpec[] = [
  {
    name: 'config',
    aliases: ['c'],
    kind: 'text',
    env: 'CRI_CONFIG_FILE',
    preset: DEFAULT_CONFIG_PATH,
    usage: 'location of the client config file',
  },
  { name: 'debug', aliases: ['D'], kind: 'bool', usage: 'print requests and answers' },
  {
    name: 'explain',
    kind: 'bool',
    usage: 'print which step of the kubelet each CRI call stands for (an addition of nodelet)',
  },
  {
    name: 'image-endpoint',
    aliases: ['i'],
    kind: 'text',
    env: 'IMAGE_SERVICE_ENDPOINT',
    usage: 'endpoint of the CRI image service (default: the runtime endpoint)',
  },
  { name: 'lab', kind: 'bool', usage: 'use the containerd of the lab under its default root (an addition of nodelet)' },
  {
    name: 'root',
    kind: 'text',
    value: 'dir',
    usage: 'use the containerd of the lab under this directory (an addition of nodelet)',
  },
  {
    name: 'runtime-endpoint',
    aliases: ['r'],
    kind: 'text',
    env: 'CONTAINER_RUNTIME_ENDPOINT',
    usage: `endpoint of the CRI runtime service (default: the first that answers of ${DEFAULT_ENDPOINTS.join(', ')})`,
  },
  {
    name: 'timeout',
    aliases: ['t'],
    kind: 'duration',
    preset: '2s',
    usage: 'time limit of calls, e.g. 2s, 20s; 0 or less is the default',
  },
];

/** Flags of crictl that are refused by name. */
export const REFUSED_GLOBAL_FLAGS: readonly string[] = [
  'enable-tracing',
  'tracing-endpoint',
  'tracing-sampling-rate-per-million',
  'profile-cpu',
  'profile-mem',
];

export interface Settings {
  /** Undefined: look among DEFAULT_ENDPOINTS. */
  readonly runtimeEndpoint: string | undefined;
  /** Undefined: the runtime endpoint. */
  readonly imageEndpoint: string | undefined;
  readonly timeoutMs: number;
  readonly debug: boolean;
  readonly explain: boolean;
  readonly pullOnCreate: boolean;
  readonly pullOnRun: boolean;
}

/** The endpoint of a lab's containerd, from the directory given with --root, or the default one. */
export type LabEndpoint = (root: string | undefined) => string;

const given = (text: string): string | undefined => (text === '' ? undefined : text);

/** `onCommandLine`: whether the flag was given there, and not by the environment. Throws UserError. */
export function resolveSettings(
  flags: Flags,
  onCommandLine: (flag: string) => boolean,
  config: CrictlConfig,
  labEndpoint: LabEndpoint,
): Settings {
  const lab = flags.bool('lab') || flags.isSet('root');
  if (lab && (onCommandLine('runtime-endpoint') || onCommandLine('image-endpoint'))) {
    throw new UsageError('--lab and --root name the endpoint already: give either them or an endpoint');
  }
  for (const name of ['runtime-endpoint', 'image-endpoint']) {
    if (flags.isSet(name) && flags.text(name) === '') throw new UserError(`--${name} is not set`);
  }
  const timeout = flags.isSet('timeout') ? flags.number('timeout') : config.timeout * 1000;
  const shared = {
    timeoutMs: timeout > 0 ? timeout : DEFAULT_TIMEOUT_MS,
    debug: flags.isSet('debug') ? flags.bool('debug') : config.debug,
    explain: flags.bool('explain'),
    pullOnCreate: config['pull-image-on-create'],
    pullOnRun: !config['disable-pull-on-run'],
  };
  if (lab) {
    const endpoint = labEndpoint(flags.isSet('root') ? flags.text('root') : undefined);
    return { ...shared, runtimeEndpoint: endpoint, imageEndpoint: endpoint };
  }
  return {
    ...shared,
    runtimeEndpoint: given(flags.text('runtime-endpoint')) ?? given(config['runtime-endpoint']),
    imageEndpoint: given(flags.text('image-endpoint')) ?? given(config['image-endpoint']),
  };
}
