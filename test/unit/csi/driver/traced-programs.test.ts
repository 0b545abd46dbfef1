import { expect, test } from 'vitest';
import { probeFilesystem } from '../../../../csi/driver/filesystems.ts';
import { mountDevice } from '../../../../csi/driver/mounts.ts';
import { tracedPrograms } from '../../../../csi/driver/traced-programs.ts';
import type { ExecResult } from '../../../../lib/exec.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';

/** Every program ends like this. */
function programs(result: Partial<ExecResult>) {
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  const whole: ExecResult = { code: 0, signal: null, timedOut: false, stdout: '', stderr: '', ...result };
  return { spans, run: tracedPrograms(tracer, async () => whole) };
}

test('a mount is a span of its own kind, without the options that may be sensitive', async () => {
  const { spans, run } = programs({});
  await mountDevice('/dev/loop3', '/staging', 'ext4', ['noatime', 'password=x'], run);
  expect(spans).toMatchObject([
    {
      kind: 'mount',
      name: 'mount',
      outcome: 'ok',
      attributes: { args: ['-t', 'ext4', '-o', '***', '/dev/loop3', '/staging'], exitCode: 0 },
    },
  ]);
});

test('other programs are spans of the disk, with their words where they fail', async () => {
  const { spans, run } = programs({ code: 8, stderr: 'blkid: ambivalent result\n' });
  await expect(probeFilesystem('/dev/loop3', run)).rejects.toThrow('ambivalent');
  expect(spans).toMatchObject([
    { kind: 'disk', name: 'blkid', outcome: 'error', error: 'blkid: ambivalent result', attributes: { exitCode: 8 } },
  ]);
});
