// Manifests that are long or made to hurt: each has an answer, and none costs the agent its memory or its time.

import { describe, expect, it } from 'vitest';
import { decodeAside } from '../../../../agent/sources/decode-aside.ts';
import { podOf } from '../../../../agent/sources/manifest.ts';

const MB = 1_000_000;
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

/** What decoding costs this process: the most memory, MB, and the longest time that nothing else could run, ms. */
async function costOf(work: () => Promise<unknown>): Promise<{ outcome: unknown; heapMB: number; blockedMs: number }> {
  let blockedMs = 0;
  let last = performance.now();
  const beat = setInterval(() => {
    blockedMs = Math.max(blockedMs, performance.now() - last - 10);
    last = performance.now();
  }, 10);
  const before = process.memoryUsage().heapUsed;
  const outcome = await work().catch((error) => error);
  clearInterval(beat);
  return { outcome, heapMB: (process.memoryUsage().heapUsed - before) / MB, blockedMs };
}

const origin = { source: 'file', location: '/x', nodeName: 'n1', seen: '' } as const;

describe('a long manifest', () => {
  it('in YAML is read aside, as if it were short', async () => {
    const { outcome, blockedMs } = await costOf(() => decodeAside(long(MB)));
    const pod = podOf(outcome, origin);
    expect(pod.metadata.name).toBe('big-n1');
    expect(pod.spec.containers[0]?.env).toHaveLength(MB / 100);
    expect(blockedMs).toBeLessThan(1_000);
  });

  it('of 10 MB in JSON is read at once', async () => {
    const annotations = { a: 'x'.repeat(9.9 * MB) };
    const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'big', annotations } };
    const value = await decodeAside(JSON.stringify(manifest));
    expect(value).toEqual(manifest);
  });

  it('that is broken is refused in the reader’s words', async () => {
    const { outcome } = await costOf(() => decodeAside(`${long(50_000)}\tx: [\n`));
    expect(String(outcome)).toMatch(/^ManifestError: is neither YAML nor JSON: /);
  });

  it.each<[string, string]>([
    ['nested without end', '['.repeat(200_000)],
    ['of lists in lists', `${'- '.repeat(50_000)}x`],
    ['of nothing but mistakes', '\t: : :\n@@ ]\n'.repeat(20_000)],
  ])(
    '%s is refused, and costs the agent nothing',
    async (_, text) => {
      const { outcome, heapMB, blockedMs } = await costOf(() => decodeAside(text));
      expect(String(outcome)).toMatch(/^ManifestError: (is neither YAML nor JSON|cannot be (read|unfolded))/);
      expect(heapMB).toBeLessThan(60);
      expect(blockedMs).toBeLessThan(1_000);
    },
    60_000,
  );
});
