// hostPath volumes: a path of the machine, checked against the type that the pod expects. Nothing is mounted and
// nothing is ever removed.

import { chmod, mkdir, open, stat } from 'node:fs/promises';
import { isErrno } from '../../lib/errors.ts';
import type { VolumePlan, VolumeType } from './volume-type.ts';

export type HostPathType =
  | ''
  | 'DirectoryOrCreate'
  | 'Directory'
  | 'FileOrCreate'
  | 'File'
  | 'Socket'
  | 'CharDevice'
  | 'BlockDevice';

export interface HostPathPlan extends VolumePlan {
  readonly type: HostPathType;
}

type Kind = 'Directory' | 'File' | 'Socket' | 'CharDevice' | 'BlockDevice';

/** What may exist at the path, what the kubelet calls it, and what is made when nothing exists. */
const RULES: Readonly<
  Record<Exclude<HostPathType, ''>, { kind: Kind; description: string; create?: 'directory' | 'file' }>
> = {
  DirectoryOrCreate: { kind: 'Directory', description: 'a directory', create: 'directory' },
  Directory: { kind: 'Directory', description: 'a directory' },
  FileOrCreate: { kind: 'File', description: 'a file', create: 'file' },
  File: { kind: 'File', description: 'a file' },
  Socket: { kind: 'Socket', description: 'a socket file' },
  CharDevice: { kind: 'CharDevice', description: 'a character device' },
  BlockDevice: { kind: 'BlockDevice', description: 'a block device' },
};

function isHostPathType(text: string): text is HostPathType {
  return text === '' || Object.hasOwn(RULES, text);
}

/** What is at `path`, links followed; undefined when nothing is. */
async function kindAt(path: string): Promise<Kind | 'other' | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return 'Directory';
    if (found.isFile()) return 'File';
    if (found.isSocket()) return 'Socket';
    if (found.isCharacterDevice()) return 'CharDevice';
    return found.isBlockDevice() ? 'BlockDevice' : 'other';
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

export const hostPathVolume: VolumeType<HostPathPlan> = {
  plugin: 'kubernetes.io/host-path',
  plan({ volume }) {
    const { path = '', type = '' } = volume.hostPath ?? {};
    if (!isHostPathType(type)) throw new Error(`hostPath type "${type}" is not supported`);
    if (path.split('/').includes('..')) throw new Error(`hostPath ${path} must not contain '..'`);
    return { path: path.startsWith('/') ? path : `/${path}`, type, readOnly: false, managed: false };
  },
  async mount({ path, type }) {
    if (type === '') return;
    const rule = RULES[type];
    const found = await kindAt(path);
    if (found === undefined && rule.create === 'directory') {
      await mkdir(path, { recursive: true });
      await chmod(path, 0o755);
      return;
    }
    if (found === undefined && rule.create === 'file') {
      // The parent has to exist, as the API documents.
      const handle = await open(path, 'a', 0o644);
      await handle.close();
      return;
    }
    if (found !== rule.kind) throw new Error(`hostPath type check failed: ${path} is not ${rule.description}`);
  },
};
