// What the server shows of itself: /healthz, /livez, /readyz and their checks, /metrics, /metrics/slis. Who may see it is decided before.

import { answerHealth, type HealthCheck, isHealthPath } from '../../lib/health-checks.ts';
import { HealthSlis } from '../../lib/health-slis.ts';
import { METRICS_CONTENT_TYPE } from '../../lib/metrics.ts';
import { methodNotAllowed } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { Reply } from './exchange.ts';
import { PATH_NOT_FOUND } from './paths.ts';
import type { PathRequest } from './request.ts';

const NO_CACHE = { 'Cache-Control': 'no-cache, private' };

export interface OwnPagesParts {
  readonly metrics: Metrics;
  readonly health: readonly HealthCheck[];
  readonly log: (line: string) => void;
}

export class OwnPages {
  readonly #parts: OwnPagesParts;
  readonly #slis = new HealthSlis();

  constructor(parts: OwnPagesParts) {
    this.#parts = parts;
  }

  /** Undefined for any other path. */
  async answer(request: PathRequest): Promise<Reply | undefined> {
    const { path, verb } = request;
    if (isHealthPath(path)) return await this.#health(request);
    if (verb !== 'get') return undefined;
    if (path === '/metrics') return { code: 200, headers: NO_CACHE, ...(await this.#parts.metrics.show()) };
    if (path !== '/metrics/slis') return undefined;
    return { code: 200, headers: NO_CACHE, contentType: METRICS_CONTENT_TYPE, body: this.#slis.text() };
  }

  async #health({ path, verb, query }: PathRequest): Promise<Reply> {
    if (verb !== 'get' && verb !== 'head') throw methodNotAllowed();
    const { health, log } = this.#parts;
    const answer = await answerHealth(path, query, health, this.#slis);
    if (answer === undefined) return PATH_NOT_FOUND;
    const { code, body, failures } = answer;
    if (failures.length > 0) log(`${path} check failed: ${failures.join('; ')}`);
    const headers = { ...NO_CACHE, 'X-Content-Type-Options': 'nosniff' };
    return { code, body, contentType: 'text/plain; charset=utf-8', headers };
  }
}
