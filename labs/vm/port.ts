// The guest's end of the serial port to the host: lines, one after the other, each written as a whole.

import { openSync, writeSync } from 'node:fs';
import { RESULTS_PORT } from './plan.ts';

/** Opens the port; what it returns writes one line. */
export function openPort(): (line: string) => void {
  const port = openSync(`/dev/virtio-ports/${RESULTS_PORT}`, 'w');
  return (line) => {
    let rest = Buffer.from(`${line}\n`);
    while (rest.length > 0) rest = rest.subarray(writeSync(port, rest));
  };
}
