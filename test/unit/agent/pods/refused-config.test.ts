// A container that the node itself refuses to ask the runtime for: its own configuration is what is wrong.

import { afterEach, expect, it } from 'vitest';
import { RuntimeError } from '../../../../agent/ports/runtime.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

let node: FakeNode;
afterEach(() => node.agent.stop());

const refusal = 'container has runAsNonRoot and image will run as root (pod: "web-pod_demo(uid)", container: web)';

it('waits with CreateContainerConfigError and the reason', async () => {
  node = new FakeNode((one) => ({
    runtime: new Proxy(one.runtime, {
      get(target, key) {
        if (key === 'createContainer') {
          return () => Promise.reject(new RuntimeError('GenerateContainerConfig', 'FAILED_PRECONDITION', refusal));
        }
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    }),
  }));
  node.api.put(makePod('web-pod'));
  await node.clock.advance(500);
  expect(node.api.status('web-pod').containerStatuses?.[0]?.state?.waiting).toEqual({
    reason: 'CreateContainerConfigError',
    message: refusal,
  });
  expect(node.recorder.of('Failed')).toEqual([`Error: ${refusal}`]);
});
