// Manifests that are long or made to hurt: each has an answer, and none costs the agent its memory or its time.

import { beforeAll, describe, expect, it } from 'vitest';
import { decodeManifest } from '../../../../agent/sources/decode.ts';
import { decodeAside } from '../../../../agent/sources/decode-aside.ts';
import { podOf } from '../../../../agent/sources/manifest.ts';

const MB = 1_000_000;
/** For giving up only: two busy cores may take long over what a quiet machine reads in a second. */
const PATIENCE_MS = 500_000;
const head =
  'apiVersion: v1\nkind: Pod\nmetadata:\n  name: big\nspec:\n  containers:\n  - name: main\n    image: busybox\n';

/** A pod with a long environment. */
function long(bytes: number): string {
  const lines: string[] = [];
  for (let index = 0; index * 100 < bytes; index++) {
    lines.push(`    - name: KEY_${index}\n      value: "${'x'.repeat(70)}"\n`);
  }
  return `${head}    env:\n${lines.join('')}`;
}

/** What decoding costs this process: the memory that it leaves, MB, and this thread's processor time, ms. */
async function costOf(work: () => Promise<unknown>): Promise<{ outcome: unknown; heapMB: number; cpuMs: number }> {
  const before = { heap: process.memoryUsage().heapUsed, cpu: process.threadCpuUsage() };
  const outcome = await work().catch((error) => error);
  const { user, system } = process.threadCpuUsage(before.cpu);
  return { outcome, heapMB: (process.memoryUsage().heapUsed - before.heap) / MB, cpuMs: (user + system) / 1000 };
}

/** What a long manifest costs where it is decoded in this thread. */
let here = Number.NaN;
beforeAll(async () => {
  // Twice: a process with a large heap takes long to start another, whatever that is to read.
  here = (await costOf(async () => [decodeManifest(long(MB)), decodeManifest(long(MB))])).cpuMs;
});

const origin = { source: 'file', location: '/x', nodeName: 'n1', seen: '' } as const;

describe('a long manifest', () => {
  it('in YAML is read aside, as if it were short', async () => {
    const { outcome, cpuMs } = await costOf(() => decodeAside(long(MB), PATIENCE_MS));
    const pod = podOf(outcome, origin);
    console.log(`aside ${cpuMs.toFixed(0)} ms of this thread, here ${here.toFixed(0)} ms`);
    expect(pod.metadata.name).toBe('big-n1');
    expect(pod.spec.containers[0]?.env).toHaveLength(MB / 100);
    expect(cpuMs).toBeLessThan(here / 2);
  });

  it('of 10 MB in JSON is read at once', async () => {
    const annotations = { a: 'x'.repeat(9.9 * MB) };
    const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'big', annotations } };
    const value = await decodeAside(JSON.stringify(manifest));
    expect(value).toEqual(manifest);
  });

  it('that is broken is refused in the reader’s words', async () => {
    const { outcome } = await costOf(() => decodeAside(`${long(50_000)}\tx: [\n`, PATIENCE_MS));
    expect(String(outcome)).toMatch(/^ManifestError: is neither YAML nor JSON: /);
  });

  it('that takes longer to read than it may is refused', async () => {
    const { outcome } = await costOf(() => decodeAside(long(MB), 1));
    expect(String(outcome)).toBe('ManifestError: cannot be read within 0.001 s');
  });

  it.each<[string, string]>([
    ['nested without end', '['.repeat(200_000)],
    ['of lists in lists', `${'- '.repeat(50_000)}x`],
    ['of nothing but mistakes', '\t: : :\n@@ ]\n'.repeat(20_000)],
  ])('%s is refused, and costs the agent nothing', async (_, text) => {
    const { outcome, heapMB, cpuMs } = await costOf(() => decodeAside(text, PATIENCE_MS));
    expect(String(outcome)).toMatch(/^ManifestError: (is neither YAML nor JSON|cannot be (read|unfolded))/);
    expect(heapMB).toBeLessThan(60);
    expect(cpuMs).toBeLessThan(here / 2);
  });
});
