// Pods with data on volumes of every kind, for campaigns that hurt a node: what to apply, and what must still be there
// afterwards. Makes directories and files; never talks to a lab.

import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../../lib/errors.ts';
import type { Random } from '../random.ts';

/** A directory of the machine whose files are a user's: none of them may ever change. */
export interface HostData {
  readonly directory: string;
  /** Names below the directory, and the SHA-256 of their contents in hex. */
  readonly sums: ReadonlyMap<string, string>;
}

export interface DataPod {
  readonly name: string;
  readonly kind: string;
  /** The pod and what it needs, in the order in which they are made. */
  readonly objects: readonly object[];
  /** Absent where the volume is the pod's own. */
  readonly host?: HostData;
  /**
   * How the container writes its data once, and shows a checksum of it: a shell command each. Absent where the data is
   * the API server's.
   */
  readonly own?: { readonly write: string; readonly sum: string };
  /** What the pod's files have to be, by path in the container; for volumes made from API objects. */
  readonly files?: ReadonlyMap<string, string>;
}

const SECRET_VALUE = 'a secret that only its own pods may read\n';
const CONFIG_VALUE = 'key=value\n'.repeat(500);

const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex');

/** Makes a directory with files of random bytes, nested as a user's are. */
export async function makeHostData(directory: string, random: Random): Promise<HostData> {
  const sums = new Map<string, string>();
  for (const name of ['one.bin', 'two.bin', 'nested/three.bin', 'nested/deeper/four.bin', 'used/five.bin']) {
    const content = Uint8Array.from({ length: 4096 }, () => random.below(256));
    const path = join(directory, name);
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, content, { flush: true });
    sums.set(name, sha256(content));
  }
  return { directory, sums };
}

/** The files of `data` that are gone or changed, by path. */
export async function damaged(data: HostData): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const [name, sum] of data.sums) {
    const path = join(data.directory, name);
    try {
      if (sha256(await readFile(path)) !== sum) wrong.push(`${path} has changed`);
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
      wrong.push(`${path} is gone`);
    }
  }
  return wrong;
}

/** Files that a user's directory has and had not: a pod's own data in the wrong place. */
export async function extraFiles(data: HostData): Promise<readonly string[]> {
  const names = await readdir(data.directory, { recursive: true, withFileTypes: true });
  return names
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !data.sums.has(path.slice(data.directory.length + 1)));
}

const FOREVER = 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done';

interface VolumeKind {
  readonly kind: string;
  /** A user's directory on the machine is what the pod uses. */
  readonly usesHost?: true;
  /** The volume and the mount of one pod; further objects come before the pod. */
  make(
    name: string,
    directory: string,
    node: string,
  ): {
    readonly volume: object;
    readonly mount?: object;
    readonly device?: object;
    readonly before?: readonly object[];
    readonly files?: ReadonlyMap<string, string>;
  };
}

const claim = (name: string, spec: object): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } }, ...spec },
});

function persistentVolume(name: string, source: object): readonly object[] {
  const volume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '32Mi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: '',
      ...source,
    },
  };
  return [volume, claim(name, { storageClassName: '', volumeName: name })];
}

const onNode = (node: string): object => ({
  required: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }],
  },
});

const ofClaim = (claimName: string): object => ({ persistentVolumeClaim: { claimName } });

const KINDS: readonly [VolumeKind, ...VolumeKind[]] = [
  {
    kind: 'hostPath with a subPath',
    usesHost: true,
    make: (_name, path) => ({ volume: { hostPath: { path } }, mount: { subPath: 'used' } }),
  },
  { kind: 'hostPath', usesHost: true, make: (_name, path) => ({ volume: { hostPath: { path, type: 'Directory' } } }) },
  {
    kind: 'local PersistentVolume',
    usesHost: true,
    make: (name, path, node) => ({
      volume: ofClaim(name),
      before: persistentVolume(name, { local: { path }, nodeAffinity: onNode(node) }),
    }),
  },
  {
    kind: 'hostPath PersistentVolume with a subPath',
    usesHost: true,
    make: (name, path) => ({
      volume: ofClaim(name),
      mount: { subPath: 'nested/deeper' },
      before: persistentVolume(name, { hostPath: { path } }),
    }),
  },
  {
    kind: 'CSI claim, ext4',
    make: (name) => ({ volume: ofClaim(name), before: [claim(name, { storageClassName: 'loop' })] }),
  },
  {
    kind: 'CSI claim, ext4, with a subPath',
    make: (name) => ({
      volume: ofClaim(name),
      mount: { subPath: 'part' },
      before: [claim(name, { storageClassName: 'loop' })],
    }),
  },
  {
    kind: 'CSI claim, block device',
    make: (name) => ({
      volume: ofClaim(name),
      device: { devicePath: '/dev/data' },
      before: [claim(name, { storageClassName: 'loop', volumeMode: 'Block' })],
    }),
  },
  {
    kind: 'CSI inline',
    make: () => ({
      volume: { csi: { driver: 'loop.csi.nodelet', fsType: 'ext4', volumeAttributes: { size: '32Mi' } } },
    }),
  },
  {
    kind: 'generic ephemeral',
    make: () => ({
      volume: {
        ephemeral: {
          volumeClaimTemplate: {
            spec: {
              accessModes: ['ReadWriteOnce'],
              storageClassName: 'loop',
              resources: { requests: { storage: '32Mi' } },
            },
          },
        },
      },
    }),
  },
  { kind: 'emptyDir', make: () => ({ volume: { emptyDir: {} } }) },
  { kind: 'emptyDir with a subPath', make: () => ({ volume: { emptyDir: {} }, mount: { subPath: 'part' } }) },
  { kind: 'emptyDir in memory', make: () => ({ volume: { emptyDir: { medium: 'Memory' } } }) },
  {
    kind: 'configMap, secret and downward API',
    make: (name) => ({
      volume: {
        projected: {
          sources: [
            { configMap: { name } },
            { secret: { name } },
            { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
          ],
        },
      },
      before: [
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name, namespace: 'default' },
          data: { config: CONFIG_VALUE },
        },
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name, namespace: 'default' },
          stringData: { secret: SECRET_VALUE },
        },
      ],
      files: new Map([
        ['/data/config', CONFIG_VALUE],
        ['/data/secret', SECRET_VALUE],
        ['/data/name', name],
      ]),
    }),
  },
];

/** How many kinds of volumes there are. */
export const KIND_COUNT = KINDS.length;

const WRITE_FILE =
  '[ -e /data/own ] || { head -c 49152 /dev/urandom > /data/own.tmp && sync /data/own.tmp && mv /data/own.tmp /data/own; }';

/** Pod number `index`, of the kind that is next; `directory` is where a user's data may be made. */
export async function dataPod(index: number, directory: string, node: string, random: Random): Promise<DataPod> {
  const { kind, usesHost, make } = KINDS[index % KINDS.length] ?? KINDS[0];
  const name = `data-${index}`;
  const hostDirectory = join(directory, name);
  const host = usesHost === undefined ? undefined : await makeHostData(hostDirectory, random);
  const { volume, mount, device, before = [], files } = make(name, hostDirectory, node);
  // On a device the data lies behind its first block; a user's directory gets no file of the pod's.
  const own =
    host !== undefined || files !== undefined
      ? undefined
      : device === undefined
        ? { write: WRITE_FILE, sum: 'sha256sum < /data/own' }
        : {
            write:
              '[ "$(head -c 4 /dev/data)" = DATA ] || { { printf DATA; head -c 49148 /dev/urandom; } | dd of=/dev/data bs=4096 conv=fsync 2>/dev/null; }',
            sum: 'head -c 49152 /dev/data | sha256sum',
          };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      terminationGracePeriodSeconds: 1,
      // Without a token's tmpfs nothing else is mounted in the pod's directory.
      automountServiceAccountToken: index % 2 === 0,
      containers: [
        {
          name: 'main',
          image: 'busybox:stable',
          command: ['sh', '-c', own === undefined ? FOREVER : `${own.write}; ${FOREVER}`],
          ...(device === undefined
            ? { volumeMounts: [{ name: 'data', mountPath: '/data', ...mount }] }
            : { volumeDevices: [{ name: 'data', ...device }] }),
        },
      ],
      volumes: [{ name: 'data', ...volume }],
    },
  };
  return {
    name,
    kind,
    objects: [...before, pod],
    ...(host === undefined ? {} : { host }),
    ...(own === undefined ? {} : { own }),
    ...(files === undefined ? {} : { files }),
  };
}
