// Runs tcpSocket probes: a connection that can be made is a success, and is closed at once.

import { connect } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { goDialError, joinHostPort } from '../../lib/go-words.ts';
import type { ProbeOutcome } from './outcome.ts';
import type { ProbeRunner } from './runners.ts';
import type { TcpTarget } from './target.ts';

export function createTcpRunner(clock: Clock): ProbeRunner<TcpTarget> {
  return async ({ host, port }, timeoutMs, signal) => {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port });
      // Not connect's own `signal`: that makes an error with its stack of each connection that is closed.
      const end = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', aborted);
        socket.destroy();
      };
      const done = (outcome: ProbeOutcome): void => {
        end();
        resolve(outcome);
      };
      const aborted = (): void => {
        end();
        reject(signal.reason);
      };
      const timer = clock.after(timeoutMs, () =>
        done({ kind: 'failure', output: `dial tcp ${joinHostPort(host, port)}: i/o timeout` }),
      );
      signal.addEventListener('abort', aborted);
      socket.once('connect', () => done({ kind: 'success', output: '' }));
      socket.once('error', (error) => done({ kind: 'failure', output: goDialError(error, host, port) }));
    });
  };
}
