// Random pods: every kind of container, probe, hook, policy and requirement that the simulated node can tell apart.

import type { Container, Pod } from '../../../client/types.ts';
import { DRIVER_NAME } from '../../../labs/sim/csi-driver.ts';
import type { Dice } from '../../../labs/sim/dice.ts';
import { IMAGES } from '../../../labs/sim/images.ts';
import type { ProbeKind } from '../../../labs/sim/processes.ts';
import { CLAIMS } from '../../../labs/sim/storage-objects.ts';

type Probe = NonNullable<Container['livenessProbe']>;
type Volume = NonNullable<Pod['spec']['volumes']>[number];
type Resources = NonNullable<Container['resources']>;
type Lifecycle = NonNullable<Container['lifecycle']>;
export type PodDraft = Pick<Pod, 'apiVersion' | 'kind' | 'spec'> & { metadata: { name: string } & Pod['metadata'] };

const CLAIM_NAMES = Object.keys(CLAIMS);
const IMAGE_NAMES = [
  ...IMAGES.present,
  ...IMAGES.present,
  ...IMAGES.present,
  ...IMAGES.inRegistry,
  'missing:1',
] as const;

/** Every kind of volume that the simulated node can tell apart, and how often of a hundred pods have it. */
const VOLUMES: Readonly<Record<string, number>> = {
  scratch: 25,
  memory: 10,
  settings: 12,
  secret: 12,
  labels: 8,
  claim: 25,
  inline: 10,
  host: 5,
};

/** In a history that is about storage. */
const STORAGE_VOLUMES = { ...VOLUMES, claim: 75, inline: 35 };

export class PodMaker {
  readonly #dice: Dice;
  readonly #root: string;
  readonly #odds: Readonly<Record<string, number>>;
  #count = 0;

  /** `root`: where the node keeps things; `storage`: most pods have volumes of the driver. */
  constructor(dice: Dice, root: string, storage = false) {
    this.#dice = dice;
    this.#root = root;
    this.#odds = storage ? STORAGE_VOLUMES : VOLUMES;
  }

  #volume(name: string): Volume {
    switch (name) {
      case 'memory':
        return { name, emptyDir: { medium: 'Memory' } };
      case 'settings':
        return { name, configMap: { name: 'settings', optional: this.#dice.chance(0.5) } };
      case 'secret':
        return { name, secret: { secretName: 'secret' } };
      case 'labels':
        return { name, downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } };
      case 'claim':
        return { name, persistentVolumeClaim: { claimName: this.#dice.pick(CLAIM_NAMES) ?? '' } };
      case 'inline':
        return { name, csi: { driver: DRIVER_NAME } };
      case 'host':
        return { name, hostPath: { path: `${this.#root}/host`, type: 'DirectoryOrCreate' } };
      default:
        return { name, emptyDir: {} };
    }
  }

  /** Volumes of a pod; each is mounted by one of its containers, and perhaps by others. */
  #volumes(containers: readonly Container[]): Volume[] {
    const dice = this.#dice;
    const odds = this.#odds;
    const names = Object.keys(odds).filter((name) => dice.below(100) < (odds[name] ?? 0));
    for (const name of names) {
      const first = dice.below(containers.length);
      for (const [index, container] of containers.entries()) {
        if (index !== first && !dice.chance(0.3)) continue;
        container.volumeMounts = [...(container.volumeMounts ?? []), { name, mountPath: `/${name}` }];
      }
    }
    return names.map((name) => this.#volume(name));
  }

  #probe(kind: ProbeKind, port: number): Probe {
    const dice = this.#dice;
    const handler = dice.weighted({ exec: 3, http: 2, tcp: 1 });
    const grace = kind !== 'readiness' && dice.chance(0.2) ? { terminationGracePeriodSeconds: dice.between(1, 5) } : {};
    return {
      ...(handler === 'exec' ? { exec: { command: [kind] } } : {}),
      ...(handler === 'http' ? { httpGet: { port, path: `/${kind}` } } : {}),
      ...(handler === 'tcp' ? { tcpSocket: { port } } : {}),
      periodSeconds: dice.pick([2, 10, 20]),
      initialDelaySeconds: dice.pick([0, 0, 5]),
      failureThreshold: kind === 'startup' ? 10 : dice.between(1, 3),
      timeoutSeconds: 1,
      ...grace,
    };
  }

  #hooks(): { lifecycle?: Lifecycle } {
    const dice = this.#dice;
    if (dice.chance(0.75)) return {};
    const word = (): string => dice.pick(['ok', 'ok', 'fails', 'slow', 'hangs']);
    const preStop = dice.chance(0.3)
      ? { sleep: { seconds: dice.between(1, 8) } }
      : { exec: { command: [word(), 'preStop'] } };
    return {
      lifecycle: {
        ...(dice.chance(0.5) ? { preStop } : {}),
        ...(dice.chance(0.4) ? { postStart: { exec: { command: [dice.pick(['ok', 'ok', 'fails', 'slow'])] } } } : {}),
      },
    };
  }

  #container(name: string, port: number): Container {
    const dice = this.#dice;
    const probes = (
      [
        ['startupProbe', 'startup', 0.15],
        ['livenessProbe', 'liveness', 0.25],
        ['readinessProbe', 'readiness', 0.3],
      ] as const
    ).flatMap(([field, kind, often]) => (dice.chance(often) ? [[field, this.#probe(kind, port)] as const] : []));
    const image = dice.pick(IMAGE_NAMES);
    return {
      name,
      image,
      imagePullPolicy: dice.weighted({
        IfNotPresent: 12,
        Always: 1,
        Never: IMAGES.present.some((name) => name === image) ? 2 : 0,
      }),
      ports: [{ containerPort: port, ...(dice.chance(0.05) ? { hostPort: 9000 + dice.below(3) } : {}) }],
      ...(dice.chance(0.3) ? { resources: this.#resources(dice.pick(['100m', '500m', '1'])) } : {}),
      ...(dice.chance(0.2)
        ? { env: [{ name: 'KEY', valueFrom: { configMapKeyRef: { name: 'settings', key: 'key' } } }] }
        : {}),
      ...Object.fromEntries(probes),
      ...this.#hooks(),
    };
  }

  /** Never as much requested as the limit: the pod is Burstable. */
  #resources(cpu: string): Resources {
    const dice = this.#dice;
    const limits = {
      ...(dice.chance(0.3) ? { cpu: '4' } : {}),
      ...(dice.chance(0.3) ? { memory: dice.pick(['64Mi', '128Mi']) } : {}),
    };
    return { requests: { cpu }, ...(Object.keys(limits).length === 0 ? {} : { limits }) };
  }

  /** Other resources for a container of a pod that is there. A limit that there is may change, and stays. */
  resized({ resources }: Container): Resources {
    const cpu = this.#dice.pick(['50m', '300m', '2', '64']);
    const limits = { ...resources?.limits, ...this.#resources(cpu).limits };
    // Never less than is requested.
    if (limits['cpu'] !== undefined) limits['cpu'] = cpu === '64' ? '65' : '4';
    return { requests: { cpu }, ...(Object.keys(limits).length === 0 ? {} : { limits }) };
  }

  #initContainers(): Container[] {
    const dice = this.#dice;
    const count = dice.weighted({ none: 6, one: 2, two: 1 });
    return Array.from({ length: { none: 0, one: 1, two: 2 }[count] }, (_, index) => {
      const { readinessProbe: _readiness, ...container } = this.#container(`init-${index}`, 7000 + index);
      if (dice.chance(0.4)) return { ...container, restartPolicy: 'Always' };
      const { startupProbe: _startup, livenessProbe: _liveness, lifecycle: _lifecycle, ...plain } = container;
      return { ...plain, image: 'busybox:stable' };
    });
  }

  /** A name that no pod had before. */
  name(): string {
    return `pod-${this.#count++}`;
  }

  make(name = this.name()): PodDraft {
    const dice = this.#dice;
    const containers = Array.from({ length: dice.pick([1, 1, 2, 3]) }, (_, index) =>
      this.#container(`main-${index}`, 8000 + index),
    );
    const initContainers = this.#initContainers();
    const volumes = this.#volumes([...containers, ...initContainers]);
    const critical = dice.chance(0.05);
    const spec: Pod['spec'] = {
      nodeName: 'node-1',
      restartPolicy: dice.weighted({ Always: 5, OnFailure: 2, Never: 2 }),
      terminationGracePeriodSeconds: dice.pick([0, 1, 5, 30]),
      initContainers,
      containers,
      volumes,
      ...(dice.chance(0.1) ? { hostNetwork: true } : {}),
      ...(dice.chance(0.1) ? { activeDeadlineSeconds: dice.pick([5, 60, 600]) } : {}),
      ...(dice.chance(0.05) ? { nodeSelector: { disk: 'ssd' } } : {}),
      ...(dice.chance(0.1) ? { readinessGates: [{ conditionType: 'example.com/gate' }] } : {}),
      ...(critical ? { priority: 2_000_000_000, priorityClassName: 'system-cluster-critical' } : { priority: 0 }),
    };
    return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'demo', uid: '', resourceVersion: '' }, spec };
  }

  /** An ephemeral container, as kubectl debug adds one. */
  ephemeral(pod: Pod): NonNullable<Pod['spec']['ephemeralContainers']>[number] {
    const count = pod.spec.ephemeralContainers?.length ?? 0;
    return { name: `debug-${count}`, image: 'busybox:stable', imagePullPolicy: 'IfNotPresent' };
  }
}
