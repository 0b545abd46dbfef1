// What is put between the agent of an experiment's lab and what it calls, as far as the steps need it: links that can be cut, proxies
// and plugins that fail on request. Made before the lab starts, healed before it stops, closed after it.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import type { Clock } from '../../../lib/clock.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { type LabPaths, labPaths } from '../../lab/paths.ts';
import { readLabState } from '../../lab/state.ts';
import { FaultProxy, type FaultProxyOptions } from '../../tap/fault-proxy.ts';
import { ApiFaultsOfLab } from './api-faults-of-lab.ts';
import { Link } from './link.ts';
import { makeCniWrappers, type Needs } from './prepare.ts';

const NO_FAULTS = { seed: 1, rules: [] };

export interface Interposed {
  readonly directory: string;
  readonly apiserver?: { readonly link: Link; readonly server: string };
  readonly apiFaults?: ApiFaultsOfLab;
  readonly runtime?: Link;
  readonly proxy?: FaultProxy;
  /** The socket that the agent calls; undefined for containerd's own. */
  readonly runtimeSocket?: string;
  readonly cniDirectory?: string;
  readonly csiFaultFile?: string;
  readonly staticPodDirectory?: string;
}

export interface InterposeOptions {
  /** Of the run: sockets and files are made there. */
  readonly directory: string;
  /** Of the lab that will start. */
  readonly root: string;
  readonly needs: Needs;
  readonly clock: Clock;
  readonly say: (line: string) => void;
  /** Records the CRI calls that pass the proxy. */
  readonly sink: (runtimeSocket: string) => FaultProxyOptions['sink'];
  /** Called with all that there is after each part: the caller closes it even when the next part fails. */
  readonly made: (interposed: Interposed) => void;
}

export async function interpose(options: InterposeOptions): Promise<Interposed> {
  const { directory, root, needs, made } = options;
  await mkdir(root, { recursive: true, mode: 0o711 });
  const paths = labPaths(root);
  let interposed: Interposed = { directory };
  const add = (more: Partial<Interposed>): void => {
    interposed = { ...interposed, ...more };
    made(interposed);
  };
  await beforeRuntime(options, paths.containerd.socket, add);
  if (needs.apiserverLink) await beforeApiServer(options, paths, add);
  if (needs.cniFaults) add({ cniDirectory: await makeCniWrappers(join(directory, 'cni'), paths.cni.binDir) });
  if (needs.csiFaults) {
    const file = join(directory, 'csi-faults.json');
    await writeFileAtomic(file, '[]');
    add({ csiFaultFile: file });
  }
  if (needs.staticPods) {
    const staticPodDirectory = join(directory, 'static-pods');
    await mkdir(staticPodDirectory);
    add({ staticPodDirectory });
  }
  return interposed;
}

/** The proxy calls the runtime, and the link the proxy. */
async function beforeRuntime(
  { directory, needs, clock, say, sink }: InterposeOptions,
  containerd: string,
  add: (more: Partial<Interposed>) => void,
): Promise<void> {
  let runtime = containerd;
  if (needs.criFaults) {
    const listen = join(directory, 'faults.sock');
    const log = (line: string): void => say(`fault: ${line}`);
    const proxy = new FaultProxy({ listen, to: runtime, faults: NO_FAULTS, log, sink: sink(containerd), clock });
    await proxy.listen();
    add({ proxy });
    runtime = listen;
  }
  if (needs.runtimeLink) {
    const [listen, to] = [join(directory, 'runtime.sock'), runtime];
    const link = new Link({ to: async () => ({ path: to }) });
    await link.listenAt(listen);
    add({ runtime: link });
    runtime = listen;
  }
  if (runtime !== containerd) add({ runtimeSocket: runtime });
}

async function beforeApiServer(
  { directory, needs, clock, say }: InterposeOptions,
  paths: LabPaths,
  add: (more: Partial<Interposed>) => void,
): Promise<void> {
  const log = (line: string): void => say(`fault: ${line}`);
  const faults = needs.apiFaults ? new ApiFaultsOfLab(paths, join(directory, 'api.sock'), { clock, log }) : undefined;
  if (faults !== undefined) add({ apiFaults: faults });
  const link = new Link({
    to: async () => {
      if (faults !== undefined) return await faults.socket();
      const state = await readLabState(paths);
      return state === undefined ? undefined : { host: '127.0.0.1', port: state.apiserverPort };
    },
  });
  add({ apiserver: { link, server: `https://127.0.0.1:${await link.listenOnPort()}` } });
}

/** Everything passes again: the agent has to reach all of it to end its pods. */
export async function heal({ apiserver, runtime, proxy, apiFaults, cniDirectory }: Interposed): Promise<void> {
  apiserver?.link.heal();
  runtime?.heal();
  proxy?.setFaults(NO_FAULTS);
  await apiFaults?.setFaults([]);
  if (cniDirectory !== undefined) await removeTree(join(cniDirectory, 'rules'));
}

export async function closeInterposed({ apiserver, runtime, proxy, apiFaults }: Interposed): Promise<void> {
  await apiserver?.link.close();
  await apiFaults?.close();
  await runtime?.close();
  await proxy?.close();
}
