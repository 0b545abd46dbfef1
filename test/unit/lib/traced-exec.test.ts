import { expect, test } from 'vitest';
import { exec } from '../../../lib/exec.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { tracedExec } from '../../../lib/traced-exec.ts';

function traced() {
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  tracer.wantDetail();
  return { spans, run: tracedExec(tracer, 'netfilter', exec) };
}

test('a program is a span with its arguments, exit code, input and output', async () => {
  const { spans, run } = traced();
  expect(await run('cat', ['-'], { stdin: 'add table ip t' })).toMatchObject({ code: 0, stdout: 'add table ip t' });
  expect(spans).toMatchObject([
    {
      kind: 'netfilter',
      name: 'cat',
      outcome: 'ok',
      attributes: { args: ['-'], exitCode: 0 },
      detail: { stdin: 'add table ip t', stdout: 'add table ip t', stderr: '' },
    },
  ]);
});

test('one that fails: the caller gets its result, the span has what it printed as its error', async () => {
  const { spans, run } = traced();
  expect(await run('sh', ['-c', 'echo busy >&2; exit 4'])).toMatchObject({ code: 4, stderr: 'busy\n' });
  expect(spans).toMatchObject([{ name: 'sh', outcome: 'error', error: 'busy', attributes: { exitCode: 4 } }]);
});

test('one that is not there rejects, as it does without a span', async () => {
  const { spans, run } = traced();
  await expect(run('/no/such/program', [])).rejects.toThrow('ENOENT');
  expect(spans).toMatchObject([{ outcome: 'error' }]);
});
