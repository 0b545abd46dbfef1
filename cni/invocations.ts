// Carries out the CNI commands that a container runtime sends through the shim: parses the invocation, runs the operation
// and builds the response. Which network an attachment gets is decided by the operations.

import type { Tracer } from '../lib/trace.ts';
import { errorAnswer, type Invocation, parseInvocation, podOf, type ShimAnswer, type ShimRequest } from './request.ts';
import { formatResult } from './result.ts';
import type { Attachment, CniResult } from './types.ts';
import { SUPPORTED_VERSIONS } from './version.ts';

/** What invocations have carried out. Each rejects with CniError. Operations on one container are kept in order. */
export interface CniOperations {
  add(attachment: Attachment): Promise<CniResult>;
  del(attachment: Attachment): Promise<void>;
  check(attachment: Attachment): Promise<void>;
  status(): Promise<void>;
}

export interface InvocationsOptions {
  readonly operations: CniOperations;
  readonly tracer: Tracer;
  readonly onError: (what: string, error: unknown) => void;
}

export class CniInvocations {
  readonly #options: InvocationsOptions;

  constructor(options: InvocationsOptions) {
    this.#options = options;
  }

  /** `isGone`: the caller has died and will not read the answer. Never rejects. */
  async answer(request: ShimRequest, isGone: () => boolean): Promise<ShimAnswer> {
    let invocation: Invocation;
    try {
      invocation = parseInvocation(request);
    } catch (error) {
      return errorAnswer(error);
    }
    try {
      return { code: 0, stdout: await this.#run(invocation, isGone) };
    } catch (error) {
      return errorAnswer(error, invocation.version);
    }
  }

  #run(invocation: Invocation, isGone: () => boolean): Promise<string> {
    if (!('attachment' in invocation)) return this.#runGlobal(invocation);
    const { attachment, command, version } = invocation;
    const { operations, tracer } = this.#options;
    const pod = podOf(attachment.args);
    const context = { ...(pod === undefined ? {} : { pod }), cause: `CNI ${command} from the container runtime` };
    return tracer.within(context, async () => {
      switch (command) {
        case 'ADD': {
          const result = await operations.add(attachment);
          if (isGone()) await this.#delAbandoned(attachment);
          return JSON.stringify(formatResult(result, version));
        }
        case 'DEL':
          await operations.del(attachment);
          return '';
        case 'CHECK':
          await operations.check(attachment);
          return '';
      }
    });
  }

  async #runGlobal(invocation: Exclude<Invocation, { attachment: Attachment }>): Promise<string> {
    switch (invocation.command) {
      case 'STATUS':
        await this.#options.operations.status();
        return '';
      case 'VERSION':
        return JSON.stringify({ cniVersion: invocation.version, supportedVersions: SUPPORTED_VERSIONS });
      case 'GC':
        // The runtime lists its attachments to the shim; the agent collects the real ones, since it knows the sandboxes.
        return '';
    }
  }

  /** The caller died during ADD: the attachment will not be used, and a DEL for it is not certain. */
  async #delAbandoned(attachment: Attachment): Promise<void> {
    try {
      await this.#options.operations.del(attachment);
    } catch (error) {
      this.#options.onError(`DEL after the abandoned ADD of ${attachment.containerId}`, error);
    }
  }
}
