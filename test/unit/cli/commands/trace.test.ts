import { expect, test } from 'vitest';
import { isAbout } from '../../../../cli/commands/trace.ts';
import { epochMs } from '../../../../lib/clock.ts';
import type { Span } from '../../../../lib/trace.ts';

const span: Span = {
  id: 1,
  kind: 'cri',
  name: 'RunPodSandbox',
  pod: { namespace: 'demo', name: 'hello-pod', uid: 'u' },
  start: epochMs(0),
  durationMs: 1,
  outcome: 'ok',
  attributes: {},
};
const { pod: _, ...podless } = span;

test.each([
  ['every span is shown when no pod is asked for', podless, undefined, true],
  ['a pod is found by its name', span, 'hello-pod', true],
  ['a pod is found by namespace and name', span, 'demo/hello-pod', true],
  ['a pod of the same name in another namespace is not', span, 'default/hello-pod', false],
  ['a call for no pod is not shown when one is asked for', podless, 'hello-pod', false],
] as const)('%s', (_sentence, about, pod, shown) => expect(isAbout(about, pod)).toBe(shown));
