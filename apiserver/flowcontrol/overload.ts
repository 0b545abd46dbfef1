// The refusal of a request that the server has no room for.

import { StatusError } from '../errors.ts';

/** 429; kube-apiserver sends it as plain text. */
export class OverloadError extends StatusError {
  override name = 'OverloadError';
  /** Seconds. */
  readonly retryAfter: number;
  constructor(retryAfter = 1) {
    const details = { retryAfterSeconds: retryAfter };
    super(429, 'TooManyRequests', 'Too many requests, please try again later.', details);
    this.retryAfter = retryAfter;
  }
}
