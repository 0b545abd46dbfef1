// What a `fault` step and the node's capacity do in the simulated world.

import { afterEach, describe, expect, it } from 'vitest';
import type { FaultRule, WorldSpec } from '../../../../cli/experiment/model.ts';
import { simCannot } from '../../../../cli/experiment/sim/cannot.ts';
import { createSimWorld } from '../../../../cli/experiment/sim/world.ts';
import type { World } from '../../../../cli/experiment/world.ts';

let world: World | undefined;

afterEach(async () => {
  await world?.close();
  world = undefined;
});

async function started(spec: WorldSpec): Promise<World> {
  world = createSimWorld({ seed: 1 });
  await world.start(spec, new AbortController().signal);
  return world;
}

function pod(name: string, script: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name, image: 'busybox:stable', command: ['sh', '-c', script] }] },
  };
}

function startsOf({ observations }: World, container: string): number[] {
  return observations.flatMap((each) =>
    each.type === 'container' && each.change === 'started' && each.container === container ? [each.at] : [],
  );
}

describe('events of the simulated runtime', () => {
  it('are lost for the pod that a rule names, and the next list finds the exit', async () => {
    const here = await started({});
    const rules: readonly FaultRule[] = [
      { call: 'event CONTAINER_STOPPED_EVENT', pod: 'deaf', action: 'drop' },
      { call: 'event /tasks/exit', pod: 'deaf', action: 'drop' },
    ];
    await here.perform({ fault: { on: 'cri', rules } });
    await here.perform({ apply: [pod('deaf', 'sleep 33; exit 1'), pod('other', 'sleep 33; exit 1')] });
    await here.sleep(60_000);
    const [, deaf = 0] = startsOf(here, 'deaf');
    const [, other = 0] = startsOf(here, 'other');
    expect(other).toBeGreaterThan(0);
    expect(deaf).toBeGreaterThan(other);
  });

  it('are found in lists alone where the runtime has none', async () => {
    const restartedAt = async (runtime: NonNullable<WorldSpec['runtime']>): Promise<number> => {
      const here = await started({ runtime });
      await here.perform({ apply: [pod('crash', 'sleep 33; exit 1')] });
      await here.sleep(60_000);
      const [, second = 0] = startsOf(here, 'crash');
      await here.close();
      return second;
    };
    const withEvents = await restartedAt('containerd-2');
    expect(withEvents).toBeGreaterThan(0);
    expect(await restartedAt('without-events')).toBeGreaterThan(withEvents);
  });

  it('can be dropped, and nothing else', () => {
    const problems = (on: 'cri' | 'api', action: FaultRule['action']): readonly string[] =>
      simCannot({}, [{ fault: { on, rules: [{ call: 'event /tasks/exit', action }] } }]);
    expect(problems('cri', 'drop')).toEqual([]);
    expect(problems('cri', 'delay')).toEqual(['an event of the runtime can be dropped, and nothing else']);
    expect(problems('api', 'drop')).toEqual(['only CRI has events that can be lost']);
  });
});

describe('addresses of the simulated network', () => {
  it('are as many as the world has', async () => {
    const here = await started({ capacity: { addresses: 2 } });
    await here.perform({ apply: ['a', 'b', 'c'].map((name) => pod(name, 'sleep infinity')) });
    await here.sleep(60_000);
    expect(['a', 'b', 'c'].filter((name) => startsOf(here, name).length > 0)).toHaveLength(2);
  });
});
