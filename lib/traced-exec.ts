// Programs that are run as calls to the outside: each is one span with its arguments and exit code, and with what it read and
// printed as details. Changes nothing of how they run.

import type { Exec, ExecResult } from './exec.ts';
import type { SpanKind, Tracer } from './trace.ts';

/** Ends a span as failed; the caller gets the result all the same. */
class ExitError extends Error {
  readonly result: ExecResult;
  constructor(result: ExecResult) {
    super(result.stderr.trim() || `exit ${result.code ?? result.signal}`);
    this.result = result;
  }
}

type Arguments = readonly string[];

/**
 * `run`, with a span of `kind` for each program, by its name. One that does not exit with 0 has the outcome "error".
 * `shown`: the arguments as the span has them, where some are not for everyone.
 */
export function tracedExec(
  tracer: Tracer,
  kind: SpanKind | ((file: string) => SpanKind),
  run: Exec,
  shown: (args: Arguments) => Arguments = (args) => args,
): Exec {
  return async (file, args, options) => {
    try {
      const its = typeof kind === 'string' ? kind : kind(file);
      return await tracer.span(its, file, { args: shown(args) }, async (span) => {
        const { stdin } = options ?? {};
        if (stdin !== undefined) span.detail(() => ({ stdin: stdin.toString() }));
        const result = await run(file, args, options);
        const { code, stdout, stderr } = result;
        span.set({ exitCode: code ?? undefined });
        span.detail(() => ({ stdout, stderr }));
        if (code !== 0) throw new ExitError(result);
        return result;
      });
    } catch (error) {
      if (error instanceof ExitError) return error.result;
      throw error;
    }
  };
}
