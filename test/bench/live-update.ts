// The benchmark's row "ConfigMap change → file changed": from the request that changes a ConfigMap to the moment at which a
// running pod's file shows it, by inotify.

import { readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import type { RunningLab } from '../../cli/lab/lab.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Pod } from '../../client/types.ts';

export const LIVE_UPDATE = 'nodelet: ConfigMap change → file changed';

const NAME = 'live-update';
const LIMIT_MS = 10_000;

/** Ms of each of `runs` changes, one after the other. `create` runs the pod and resolves when it is Running. */
export async function measureLiveUpdate(
  lab: RunningLab,
  namespace: string,
  runs: number,
  create: (name: string, volumes: NonNullable<Pod['spec']['volumes']>) => Promise<unknown>,
): Promise<readonly number[]> {
  const path = resourcePath('v1', 'configmaps', { namespace, name: NAME });
  const metadata = { name: NAME, namespace };
  await lab.client.create(resourcePath('v1', 'configmaps', { namespace }), {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data: { run: 'start' },
  });
  await create(NAME, [{ name: 'settings', configMap: { name: NAME } }]);
  const pod = await lab.client.get<Pod>(resourcePath('v1', 'pods', { namespace, name: NAME }));
  const volume = join(lab.paths.kubeletDir, 'pods', pod.metadata.uid, 'volumes/kubernetes.io~configmap/settings');
  const samples: number[] = [];
  // Run 0 is not counted: the agent opens its watch with the pod’s start.
  for (let run = 0; run <= runs; run++) {
    const wanted = String(run);
    const seen = changed(volume, 'run', wanted);
    const began = performance.now();
    await lab.client.patch(path, { data: { run: wanted } }, 'merge');
    const took = (await seen) - began;
    if (run > 0) samples.push(took);
  }
  return samples;
}

/** Resolves with the moment (performance.now) at which the file holds `content`. */
function changed(directory: string, file: string, content: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const watcher = watch(directory);
    const timer = setTimeout(() => {
      watcher.close();
      reject(new Error(`${join(directory, file)} did not change within ${LIMIT_MS} ms`));
    }, LIMIT_MS);
    watcher.on('error', reject);
    // Any event: the link to the data is swapped by rename.
    watcher.on('change', () => {
      if (readFileSync(join(directory, file), 'utf8') !== content) return;
      const at = performance.now();
      clearTimeout(timer);
      watcher.close();
      resolve(at);
    });
  });
}
