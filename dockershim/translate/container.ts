// CreateContainer's request as what Docker is to create. Pure: images and seccomp profiles are looked up by the caller.

import type { ContainerCreateOptions, DeviceMapping, HostConfig, MountSettings } from 'dockerode';
import type { ContainerConfig__Output } from '../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { Mount__Output } from '../../proto/gen/runtime/v1/Mount.ts';
import type { PodSandboxConfig__Output } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { Signal__Output } from '../../proto/gen/runtime/v1/Signal.ts';
import { invalid, unsupported } from '../errors.ts';
import { type ContainerRecord, containerName, encodeRecord, type SandboxRecord } from '../records.ts';
import type { DockerFacts } from './facts.ts';
import { cgroupFiles, containerResources } from './resources.ts';
import { cgroupParentOf, isHostNetwork } from './sandbox.ts';
import { checkNamespaces, containerSecurity, userOf } from './security.ts';

export interface ContainerContext {
  readonly facts: DockerFacts;
  readonly sandboxId: string;
  readonly sandbox: SandboxRecord;
  /** The id of the image in Docker, and the reference that CRI shows for it. */
  readonly imageId: string;
  readonly imageRef: string;
  /** ns. */
  readonly createdAt: string;
  readonly seccomp?: string | undefined;
}

/** Docker keeps a container's output for the shim until that has written it to CRI's log; no more than this of it. */
const LOG_FILES = { 'max-size': '50m', 'max-file': '4' };

/** From this API version on a read-only mount is read-only below as well, unless the mount asks for the old behaviour (Docker 25). */
const RECURSIVE_READ_ONLY_SINCE = 44;

/** Left open, Docker takes rprivate, but rslave for a mount that contains its own root: it refuses that one as private. */
const PROPAGATION = {
  PROPAGATION_PRIVATE: undefined,
  PROPAGATION_HOST_TO_CONTAINER: 'rslave',
  PROPAGATION_BIDIRECTIONAL: 'rshared',
} as const;

function checkMount(mount: Mount__Output, field: string, facts: DockerFacts): void {
  if (mount.image !== null) throw unsupported(`${field}.image`, 'Docker mounts no images');
  if (mount.host_path === '') throw invalid(`${field}.host_path`, 'missing');
  if (mount.container_path === '') throw invalid(`${field}.container_path`, 'missing');
  if (mount.uidMappings.length + mount.gidMappings.length > 0) {
    throw unsupported(`${field}.uidMappings`, 'Docker maps the users of no single mount');
  }
  if (mount.selinux_relabel && facts.security.has('selinux')) {
    throw unsupported(`${field}.selinux_relabel`, 'the shim does not relabel');
  }
  if (!mount.recursive_read_only) return;
  if (!mount.readonly) throw invalid(`${field}.recursive_read_only`, 'recursive read-only mount must be read-only');
  if (mount.propagation !== 'PROPAGATION_PRIVATE') {
    throw invalid(`${field}.recursive_read_only`, 'the mount must have private propagation');
  }
  if (facts.apiMinor < RECURSIVE_READ_ONLY_SINCE) {
    throw unsupported(`${field}.recursive_read_only`, `Docker ${facts.version} has none; 25 does`);
  }
}

/** Newer than the types: what Docker 25 does below a read-only mount. */
interface ReadOnlyBelow {
  readonly ReadOnlyForceRecursive?: true;
  readonly ReadOnlyNonRecursive?: true;
}

function mountOf(mount: Mount__Output, index: number, facts: DockerFacts): MountSettings {
  checkMount(mount, `mounts[${index}]`, facts);
  const below: ReadOnlyBelow =
    !mount.readonly || facts.apiMinor < RECURSIVE_READ_ONLY_SINCE
      ? {}
      : mount.recursive_read_only
        ? { ReadOnlyForceRecursive: true }
        : { ReadOnlyNonRecursive: true };
  const propagation = PROPAGATION[mount.propagation];
  const bind = { ...(propagation === undefined ? {} : { Propagation: propagation }), ...below };
  return {
    Type: 'bind',
    Source: mount.host_path,
    Target: mount.container_path,
    ReadOnly: mount.readonly,
    // Docker's API lets Propagation out; the types have it as required.
    BindOptions: bind as NonNullable<MountSettings['BindOptions']>,
  };
}

function devicesOf(config: ContainerConfig__Output): DeviceMapping[] {
  const [cdi] = config.CDI_devices;
  if (cdi !== undefined) throw unsupported(`CDI_devices[${cdi.name}]`, 'the shim injects no CDI devices');
  return config.devices.map(({ host_path, container_path, permissions }) => ({
    PathOnHost: host_path,
    PathInContainer: container_path,
    CgroupPermissions: permissions,
  }));
}

/** "SIGRTMINPLUS3" is Docker's "SIGRTMIN+3"; undefined is the image's own. */
export function stopSignalOf(signal: Signal__Output): string | undefined {
  if (signal === 'RUNTIME_DEFAULT') return undefined;
  return signal.replace('PLUS', '+').replace('MINUS', '-');
}

/** Which namespaces of the sandbox, the node or another container it joins. */
function namespacesOf(config: ContainerConfig__Output, { sandboxId, sandbox }: ContainerContext): HostConfig {
  const options = config.linux?.security_context?.namespace_options ?? sandbox.namespaces;
  checkNamespaces(options);
  const shared = `container:${sandboxId}`;
  const pid = options?.pid ?? 'POD';
  if (pid === 'TARGET' && options?.target_id === '') {
    throw invalid('linux.security_context.namespace_options.target_id', 'missing');
  }
  const pids = { POD: shared, CONTAINER: '', NODE: 'host', TARGET: `container:${options?.target_id}` };
  return {
    NetworkMode: shared,
    UTSMode: isHostNetwork(sandbox) ? 'host' : '',
    IpcMode: options?.ipc === 'NODE' ? 'host' : shared,
    PidMode: pids[pid],
  };
}

/** Absolute; '' for none. */
export function logPathOf(sandbox: Pick<PodSandboxConfig__Output, 'log_directory'> | null, logPath: string): string {
  const directory = sandbox?.log_directory ?? '';
  return directory === '' || logPath === '' ? '' : `${directory}/${logPath}`;
}

export function containerRecord(
  config: ContainerConfig__Output,
  sandboxConfig: PodSandboxConfig__Output | null,
  context: ContainerContext,
): ContainerRecord {
  if (config.metadata === null) throw invalid('config.metadata', 'missing');
  if (config.image === null) throw invalid('config.image', 'missing');
  return {
    kind: 'container',
    sandboxId: context.sandboxId,
    metadata: config.metadata,
    labels: config.labels,
    annotations: config.annotations,
    createdAt: context.createdAt,
    image: config.image,
    imageRef: context.imageRef,
    logPath: logPathOf(sandboxConfig, config.log_path),
    mounts: config.mounts,
    resources: config.linux?.resources ?? null,
    stopSignal: config.stop_signal,
    stdinOnce: config.stdin_once,
  };
}

/** The container. Throws CriError for what Docker cannot do. */
export function containerOptions(
  config: ContainerConfig__Output,
  sandboxConfig: PodSandboxConfig__Output | null,
  context: ContainerContext,
): ContainerCreateOptions {
  const { facts, sandbox } = context;
  if (config.windows !== null) throw unsupported('windows', 'this is Linux');
  const record = containerRecord(config, sandboxConfig, context);
  const security = config.linux?.security_context ?? null;
  const stopSignal = stopSignalOf(config.stop_signal);
  // For its refusals: what Docker has no field for is written after the start.
  cgroupFiles(record.resources);
  return {
    name: containerName(record.metadata, sandbox.metadata),
    Image: context.imageId,
    Labels: encodeRecord(record),
    User: userOf(security),
    Env: config.envs.map(({ key, value }) => `${key}=${value}`),
    // Docker takes the image's own where there is none.
    ...(config.command.length === 0 ? {} : { Entrypoint: config.command }),
    ...(config.args.length === 0 ? {} : { Cmd: config.args }),
    ...(config.working_dir === '' ? {} : { WorkingDir: config.working_dir }),
    Tty: config.tty,
    OpenStdin: config.stdin,
    StdinOnce: config.stdin_once,
    ...(stopSignal === undefined ? {} : { StopSignal: stopSignal }),
    HostConfig: {
      ...containerSecurity(security, facts, context.seccomp),
      ...containerResources(record.resources, facts),
      ...namespacesOf(config, context),
      ...cgroupParentOf(sandboxConfig?.linux?.cgroup_parent ?? '', facts),
      ...(sandbox.runtimeHandler === '' ? {} : { Runtime: sandbox.runtimeHandler }),
      Mounts: config.mounts.map((mount, index) => mountOf(mount, index, facts)),
      Devices: devicesOf(config),
      LogConfig: { Type: 'json-file', Config: LOG_FILES },
      RestartPolicy: { Name: 'no' },
    },
  };
}
