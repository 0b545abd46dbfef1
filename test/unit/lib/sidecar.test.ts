import { expect, test } from 'vitest';
import { isSidecar } from '../../../lib/sidecar.ts';

test.each([
  ['Always', true],
  ['OnFailure', false],
  ['Never', false],
  ['', false],
  [undefined, false],
])('an init container with restartPolicy %s is a sidecar: %s', (restartPolicy, expected) => {
  expect(isSidecar({ restartPolicy })).toBe(expected);
});
