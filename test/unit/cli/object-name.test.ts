// Names of objects on the command line.

import { expect, test } from 'vitest';
import { parseObjectName } from '../../../cli/object-name.ts';

test.each([
  ['web', { namespace: 'default', name: 'web' }],
  ['demo/web', { namespace: 'demo', name: 'web' }],
])('%s', (text, expected) => {
  expect(parseObjectName(text)).toEqual(expected);
});

test.each(['', '/web', 'demo/', 'a/b/c'])('"%s" is refused', (text) => {
  expect(() => parseObjectName(text)).toThrow(`"${text}" is not NAMESPACE/NAME`);
});
