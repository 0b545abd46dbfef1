// Runs tcpSocket probes: a connection that can be made is a success, and is closed at once.

import { connect } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { goDialError, joinHostPort } from '../../lib/go-words.ts';
import type { ProbeOutcome } from './outcome.ts';
import type { ProbeRunner } from './runners.ts';
import type { TcpTarget } from './target.ts';

export function createTcpRunner(clock: Clock): ProbeRunner<TcpTarget> {
  return ({ host, port }, timeoutMs, signal) =>
    new Promise((resolve, reject) => {
      const socket = connect({ host, port, signal });
      const done = (outcome: ProbeOutcome): void => {
        timer.cancel();
        socket.destroy();
        resolve(outcome);
      };
      const timer = clock.after(timeoutMs, () =>
        done({ kind: 'failure', output: `dial tcp ${joinHostPort(host, port)}: i/o timeout` }),
      );
      socket.once('connect', () => done({ kind: 'success', output: '' }));
      socket.once('error', (error) => {
        if (signal.aborted) {
          timer.cancel();
          reject(signal.reason);
        } else done({ kind: 'failure', output: goDialError(error, host, port) });
      });
    });
}
