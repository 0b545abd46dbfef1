// The agent's network in a process of its own, as in production: options as JSON in argv, "ready" when it serves,
// ends when its standard input does.

import { createAgentNetwork } from '../../../agent/network/agent-network.ts';
import type { AgentNetworkOptions } from '../../../agent/network/options.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';

const options: Pick<AgentNetworkOptions, 'confDir' | 'binDirs' | 'cacheDir' | 'socketPath' | 'shim'> = JSON.parse(
  process.argv[2] ?? '{}',
);
const network = createAgentNetwork({
  ...options,
  tracer: new Tracer(),
  clock: systemClock,
  onError: (what, error) => console.error(what, error),
});
await network.start();
process.stdout.write('ready\n');
process.stdin.resume().once('end', () => void network.close().then(() => process.exit(0)));
