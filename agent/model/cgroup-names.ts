// Where a pod's cgroup is: names only, shared by the code that makes the cgroup and the sandbox config.
// Pure; touches no file.

import type { Pod } from '../../client/types.ts';
import { podQOSClass, type QOSClass } from './pod-resources.ts';

/** The kubelet's cgroupDriver: plain directories, or systemd slices. */
export type CgroupDriver = 'cgroupfs' | 'systemd';

export interface CgroupLayout {
  /** KubeletConfiguration.cgroupRoot: the parent of `kubepods`; '/' by default. */
  readonly root: string;
  readonly driver: CgroupDriver;
}

/** A cgroup as the components below the hierarchy's root: `['kubepods', 'burstable', 'pod<uid>']`. */
export type CgroupName = readonly string[];

function rootName(layout: CgroupLayout): string[] {
  return layout.root.split('/').filter((part) => part !== '');
}

/** The cgroup above all pods. */
export function kubepodsName(layout: CgroupLayout): CgroupName {
  return [...rootName(layout), 'kubepods'];
}

/** The cgroup above the pods of one QoS class. Guaranteed pods have no level of their own. */
export function qosName(layout: CgroupLayout, qos: QOSClass): CgroupName {
  const kubepods = kubepodsName(layout);
  return qos === 'Guaranteed' ? kubepods : [...kubepods, qos.toLowerCase()];
}

export function podName(layout: CgroupLayout, uid: string, qos: QOSClass): CgroupName {
  return [...qosName(layout, qos), `pod${uid}`];
}

/**
 * The path of a cgroup below a hierarchy's mount point. systemd nests slices by their full names and reserves '-'
 * for the nesting, so a dash inside a component becomes an underscore:
 * `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice`.
 */
export function cgroupPath(layout: CgroupLayout, name: CgroupName): string {
  if (layout.driver === 'cgroupfs') return `/${name.join('/')}`;
  let prefix = '';
  let path = '';
  for (const part of name) {
    prefix += `${prefix === '' ? '' : '-'}${part.replaceAll('-', '_')}`;
    path += `/${prefix}.slice`;
  }
  return path === '' ? '/' : path;
}

/** The pod uid of the last component of a cgroup path, or undefined when it is no pod's. */
export function podUIDOfCgroup(layout: CgroupLayout, component: string): string | undefined {
  const match =
    layout.driver === 'cgroupfs'
      ? /^pod([0-9A-Za-z-]+)$/.exec(component)
      : /^(?:.*-)?pod([0-9A-Za-z_]+)\.slice$/.exec(component);
  return match?.[1]?.replaceAll('_', '-');
}

/** The value of PodSandboxConfig.linux.cgroup_parent. */
export function cgroupParent(layout: CgroupLayout, pod: Pod): string {
  return cgroupPath(layout, podName(layout, pod.metadata.uid, podQOSClass(pod)));
}
