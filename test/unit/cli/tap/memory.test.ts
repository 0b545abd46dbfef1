// A tap runs for days: what it holds does not depend on how many calls have passed.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { ConnectionObserver } from '../../../../cli/tap/calls.ts';
import { Recorder } from '../../../../cli/tap/recorder.ts';
import { RecordingWriter } from '../../../../cli/tap/recording-writer.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { message } from './support.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const literal = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.from([0x40, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);

/** One call on a connection; its metadata differs from call to call, as deadlines and traces do. */
function pass(observer: ConnectionObserver, stream: number): void {
  const head = Buffer.concat([literal(':path', '/a.B/C'), literal('grpc-timeout', `${stream}u`)]);
  observer.fromClient(Buffer.concat([frame(1, 4, stream, head), frame(0, 1, stream, message('x'.repeat(200)))]));
  observer.fromServer(
    Buffer.concat([frame(1, 4, stream, Buffer.from([0x88])), frame(0, 0, stream, message('y'.repeat(200)))]),
  );
  observer.fromServer(frame(1, 5, stream, literal('grpc-status', '0')));
}

test('memory after 30,000 calls is as after 5,000', async () => {
  let bytes = 0;
  const writer = new RecordingWriter({
    file: {
      append: async (part) => {
        bytes += part.length;
        return part.length;
      },
    },
    clock: new VirtualClock(),
    at: () => 0,
    onLoss: () => undefined,
  });
  const recorder = new Recorder({ start: '', to: '', redact: false, at: () => 0, write: (line) => writer.add(line) });
  const observer = new ConnectionObserver(1, recorder);
  observer.fromClient(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'));
  let stream = 1;
  const written = async (): Promise<void> => {
    while (writer.queuedBytes > 0) await new Promise((resolve) => setImmediate(resolve));
  };
  const heapAfter = async (calls: number): Promise<number> => {
    for (let index = 0; index < calls; index++, stream += 2) {
      pass(observer, stream);
      if (index % 1000 === 0) await written();
    }
    await written();
    collectGarbage();
    // Only the heap: Node frees unreferenced buffers outside it at a time of its own.
    return process.memoryUsage().heapUsed;
  };
  const early = await heapAfter(5_000);
  const late = await heapAfter(25_000);
  expect(recorder.calls).toBe(30_000);
  expect(bytes).toBeGreaterThan(30_000 * 500);
  // A call that left 50 bytes behind would show.
  expect(late - early).toBeLessThan(50 * 25_000);
});
