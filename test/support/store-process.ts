// A process of its own that opens a store: `node store-process.ts <file> write <count> [<prefix>]` writes pods and kills
// itself, so that they are in the write-ahead log only; `hold` keeps the store open until it is killed.

import { Store } from '../../apiserver/storage/store.ts';
import { systemClock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';

const [, , path = '', what = '', count = '0', prefix = 'pod'] = process.argv;
try {
  const store = new Store(path, { clock: systemClock });
  for (let i = 0; i < Number(count); i++) {
    const name = `${prefix}-${i}`;
    const key = { resource: '/pods', namespace: 'ns', name };
    store.put(key, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, value: 'x'.repeat(500) }, store.get(key));
  }
  process.stdout.write('open\n');
  if (what === 'write') process.kill(process.pid, 'SIGKILL');
} catch (error) {
  process.stdout.write(`${errorMessage(error)}\n`);
  process.exitCode = 1;
}
