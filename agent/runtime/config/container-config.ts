// ContainerConfig: CreateContainer's request for a container. Pure.

import type { Container, EphemeralContainer } from '../../../client/types.ts';
import { expandVariables } from '../../../lib/expand.ts';
import type { ContainerConfig } from '../../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { Mount } from '../../../proto/gen/runtime/v1/Mount.ts';
import { Signal } from '../../../proto/gen/runtime/v1/Signal.ts';
import type { ContainerMount, ContainerSpec } from '../../ports/runtime.ts';
import type { NodeSettings } from '../options.ts';
import { containerAnnotations, containerLabels } from './labels.ts';
import type { IdRange } from './namespaces.ts';
import { containerLogFile } from './paths.ts';
import { containerResources } from './resources.ts';
import { containerSecurity } from './security.ts';

const PROPAGATION = {
  private: 'PROPAGATION_PRIVATE',
  hostToContainer: 'PROPAGATION_HOST_TO_CONTAINER',
  bidirectional: 'PROPAGATION_BIDIRECTIONAL',
} as const;

/** Labels are changed only where SELinux is on: runtimes treat the field as mandatory. */
function volumeMount(mount: ContainerMount, selinux: boolean): Mount {
  return {
    container_path: mount.containerPath,
    host_path: mount.hostPath,
    readonly: mount.readOnly,
    recursive_read_only: mount.recursiveReadOnly === true,
    propagation: PROPAGATION[mount.propagation],
    selinux_relabel: selinux && mount.selinuxRelabel === true,
    ...(mount.image === undefined
      ? {}
      : {
          image: { image: mount.image.id ?? mount.image.reference, user_specified_image: mount.image.reference },
          image_sub_path: mount.image.subPath,
        }),
  };
}

/** Files that the adapter made on the host for this container. */
export interface ContainerFiles {
  /** Undefined for a pod without an address, whose containers keep the image's own /etc/hosts. */
  readonly etcHosts: string | undefined;
  /** Undefined when the container has no terminationMessagePath. */
  readonly terminationLog: string | undefined;
}

const ETC_HOSTS = '/etc/hosts';

function mounts(spec: ContainerSpec, { node, files, userns }: ContainerContext): Mount[] {
  const selinux_relabel = node.selinux;
  const list = spec.mounts.map((mount) => volumeMount(mount, node.selinux));
  // A volume that the user put there himself wins.
  if (files.etcHosts !== undefined && !spec.mounts.some((mount) => mount.containerPath === ETC_HOSTS)) {
    list.push({ container_path: ETC_HOSTS, host_path: files.etcHosts, readonly: false, selinux_relabel });
  }
  const path = terminationPath(spec.container);
  if (files.terminationLog !== undefined && path !== undefined) {
    list.push({ container_path: path, host_path: files.terminationLog, readonly: false, selinux_relabel });
  }
  if (userns === undefined) return list;
  // Files that root owns on the node are root's in the pod as well (KEP-127).
  const mapping = [{ container_id: 0, host_id: userns.hostId, length: userns.length }];
  return list.map((mount) => ({ ...mount, uidMappings: mapping, gidMappings: mapping }));
}

/** Where the container writes its last words, or undefined when it has no such place. */
export function terminationPath(container: Container | EphemeralContainer): string | undefined {
  const path = container.terminationMessagePath ?? '/dev/termination-log';
  return path === '' ? undefined : path;
}

/** lifecycle.stopSignal (KEP-4960), which is newer than the types. */
function stopSignal(container: Container | EphemeralContainer): Signal | undefined {
  const name: unknown = container.lifecycle === undefined ? undefined : Reflect.get(container.lifecycle, 'stopSignal');
  return Object.values(Signal).find((signal) => signal === name);
}

export interface ContainerContext {
  readonly node: NodeSettings;
  readonly files: ContainerFiles;
  readonly userns: IdRange | undefined;
}

export function containerConfig(spec: ContainerSpec, context: ContainerContext): ContainerConfig {
  const { pod, container } = spec;
  const env = new Map(spec.env.map(({ name, value }) => [name, value]));
  const expand = (text: string): string => expandVariables(text, (name) => env.get(name));
  const signal = stopSignal(container);
  return {
    metadata: { name: container.name, attempt: spec.restartCount },
    image: { image: spec.image.id, user_specified_image: container.image ?? '' },
    command: (container.command ?? []).map(expand),
    args: (container.args ?? []).map(expand),
    working_dir: container.workingDir ?? '',
    envs: spec.env.map(({ name, value }) => ({ key: name, value })),
    mounts: mounts(spec, context),
    devices: spec.devices.map((device) => ({
      host_path: device.hostPath,
      container_path: device.containerPath,
      permissions: device.permissions,
    })),
    labels: containerLabels(pod, container),
    annotations: containerAnnotations(spec),
    log_path: containerLogFile(container.name, spec.restartCount),
    stdin: container.stdin === true,
    stdin_once: container.stdinOnce === true,
    tty: container.tty === true,
    linux: {
      resources: containerResources(pod, container, context.node),
      security_context: containerSecurity(pod, container, spec.image, {
        settings: context.node,
        userns: context.userns,
        groups: spec.supplementalGroups ?? [],
        ...(spec.targetContainerId === undefined ? {} : { targetId: spec.targetContainerId }),
      }),
    },
    ...(signal === undefined ? {} : { stop_signal: signal }),
  };
}
