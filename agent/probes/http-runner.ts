// Runs httpGet probes. The status decides; the body is read up to its limit and only ever shown in a warning.

import type { Clock } from '../../lib/clock.ts';
import { MAX_OUTPUT_BYTES } from '../../lib/cut.ts';
import { HttpGetError, type HttpGetRequest, httpGet } from '../../lib/http-get.ts';
import type { ProbeOutcome } from './outcome.ts';
import type { ProbeRunner } from './runners.ts';

/** What an answer means. A redirect that is left over led to another host. The failure must not show the body. */
export function outcomeOfResponse(status: number, body: string): ProbeOutcome {
  if (status < 200 || status >= 400) return { kind: 'failure', output: `HTTP probe failed with statuscode: ${status}` };
  if (status < 300) return { kind: 'success', output: body };
  return { kind: 'warning', output: `Probe terminated redirects, Response body: ${body}` };
}

export function createHttpRunner(clock: Clock): ProbeRunner<HttpGetRequest> {
  return async (request, timeoutMs, signal) => {
    try {
      const { status, body } = await httpGet(request, { clock, timeoutMs, maxBodyBytes: MAX_OUTPUT_BYTES, signal });
      return outcomeOfResponse(status, body.toString('utf8'));
    } catch (error) {
      if (!(error instanceof HttpGetError)) throw error;
      const { message } = error;
      return error.duringBody ? { kind: 'error', state: 'failure', message } : { kind: 'failure', output: message };
    }
  };
}
