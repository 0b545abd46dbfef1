import { expect, test } from 'vitest';
import { GUARDIAN } from '../../../lib/guardian.ts';
import { roleOf } from '../../../scripts/test-run.ts';

test.each([
  ['supervisor', ['/node', '/src/cli/main.ts', 'up', '--root', '/tmp/a']],
  ['supervisor', ['sh', '/src/bin/nodelet', 'demo']],
  ['cleaner', ['/node', '/src/cli/main.ts', 'down', '--root', '/tmp/up']],
  ['cleaner', ['sh', '-c', 'read line', GUARDIAN, '/src/bin/nodelet', '/tmp/a']],
  ['other', ['/node', '/src/cli/main.ts', 'agent', '--root-dir', '/tmp/up']],
  ['other', ['containerd', '--config', '/tmp/down']],
  ['other', []],
])('%s: %j', (role, argv) => expect(roleOf({ argv })).toBe(role));
