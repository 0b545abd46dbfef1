// The control plane's node controllers on a simulated cluster: the real ones, with a connection of their own to the API
// server, which stays when the agent's is cut. Put together as controlplane/main.ts does.

import { resourcePath } from '../../../client/paths.ts';
import { EVENT_DELAY_MS, Recorder } from '../../../client/recorder.ts';
import { Reflector } from '../../../client/reflector.ts';
import type { Identified, ReadableStore } from '../../../client/store.ts';
import type { Lease, Node, Pod } from '../../../client/types.ts';
import { NodeLifecycleController } from '../../../controlplane/controllers/node-lifecycle/node-lifecycle.ts';
import { TaintEvictionController } from '../../../controlplane/controllers/taint-eviction/taint-eviction.ts';
import { runController } from '../../../controlplane/runtime.ts';
import { lineError } from '../../../labs/sim/api-server.ts';
import type { VirtualClock } from '../../../labs/sim/clock.ts';
import { Dice } from '../../../labs/sim/dice.ts';
import { Life } from '../../../labs/sim/life.ts';
import { Line } from '../../../labs/sim/line.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { Tracer } from '../../../lib/trace.ts';
import type { ExperimentMachine } from './machine.ts';

export interface RunningControllers {
  /** Whether the API server answers them. */
  reach(answers: boolean): void;
  stop(): void;
}

/** How long a call takes at most, ms. */
const USUAL_MS = 5;

/** `note`: a line for the journal. */
export function startControllers(
  { server, cluster }: ExperimentMachine,
  world: VirtualClock,
  note: (line: string) => void,
): RunningControllers {
  const life = new Life();
  const clock = life.clock(world);
  const stopped = new AbortController();
  // Chance of their own: a world is the same with them and without.
  const dice = new Dice(1);
  const random = (): number => dice.next();
  const line = new Line({
    name: 'controllers',
    clock: world,
    dice: dice.fork(),
    journal: { note: (what) => note(`${world.monotonic()} ${what}`) },
    weather: { bad: () => undefined },
    error: lineError,
    usualMs: USUAL_MS,
    dropsAbandoned: true,
  });
  const client = life.port(server.via(line));
  const log = (message: string): void => note(`${world.monotonic()} controllers: ${message}`);
  const followed = <T extends Identified>(path: string): ReadableStore<T> => {
    const onFailure = (error: unknown): void => log(`${path}: ${errorMessage(error)}`);
    const reflector = new Reflector<T>({ client, path, clock, random, onFailure });
    void reflector.run(stopped.signal);
    return reflector.store;
  };
  const recorder = new Recorder({
    client: life.port(cluster.eventsVia(line)),
    clock,
    random,
    tracer: new Tracer(() => world.now()),
    component: 'node-controller',
    delayMs: EVENT_DELAY_MS,
  });
  const informers = {
    pods: followed<Pod>(resourcePath('v1', 'pods')),
    nodes: followed<Node>(resourcePath('v1', 'nodes')),
    nodeLeases: followed<Lease>(resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-node-lease' })),
  };
  const refused = (): Promise<never> => Promise.reject(new Error('the node controllers make no objects'));
  const context = { client: { ...client, create: refused, replace: refused }, clock, recorder, log };
  const controllers = [
    new NodeLifecycleController(context, informers),
    new TaintEvictionController(context, informers),
  ];
  // With half the objects a controller would decide wrongly.
  void Promise.all(Object.values(informers).map((store) => store.whenSynced())).then(() => {
    for (const controller of controllers) void runController(controller, log, stopped.signal);
  });
  return {
    reach: (answers) => {
      if (answers) line.down = false;
      else line.cut();
    },
    stop: () => {
      life.over = true;
      stopped.abort(new Error('the controllers stop'));
      recorder.close();
    },
  };
}
