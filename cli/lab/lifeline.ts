// The connection by which a lab's program learns that its supervisor is gone, however it went: a socket that nothing is
// ever written to. The kernel closes the supervisor's end with the supervisor. Stops nothing itself.

import { Socket } from 'node:net';

/** Names the descriptor in the child's environment. */
export const LIFELINE_VARIABLE = 'NODELET_LIFELINE';

/** Calls `onEnd` once when the other end is closed. Does nothing in a program that was started without a lifeline. */
export function watchLifeline(onEnd: () => void): void {
  const descriptor = process.env[LIFELINE_VARIABLE];
  if (descriptor === undefined) return;
  // Programs that this one starts have none.
  delete process.env[LIFELINE_VARIABLE];
  const socket = new Socket({ fd: Number(descriptor), readable: true, writable: false });
  socket.once('close', onEnd);
  // A reset is an end like any other; `close` follows.
  socket.on('error', () => undefined);
  socket.resume();
  socket.unref();
}
