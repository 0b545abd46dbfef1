// Runs stock kubectl against the embedded API server alone: with what environment, and what they printed.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLabApiServer } from '../../../apiserver/main.ts';
import type { RunningApiServer } from '../../../apiserver/options.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { RUN_VARIABLE } from '../../../scripts/test-run.ts';
import { KUBECTL_ENVIRONMENT } from '../support/kubectl-environment.ts';

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Kubectl {
  /** Runs to the end, whatever its exit code. */
  run(args: readonly string[], input?: string, env?: Record<string, string>): Promise<Outcome>;
  /** Runs and returns stdout. Throws when it exits with anything but 0. */
  ok(...args: readonly string[]): Promise<string>;
  /** Applies or creates from a manifest. Throws when it exits with anything but 0. */
  feed(manifest: string, ...args: readonly string[]): Promise<string>;
  /** Runs until it has written this to its error output, then stops it. Throws when it ends by itself, or after two minutes. */
  untilError(args: readonly string[], text: RegExp): Promise<void>;
  /** Runs until its output satisfies `enough`, then stops it. Throws after two minutes. */
  until(
    args: readonly string[],
    enough: (stdout: string) => boolean,
    onStart?: () => Promise<unknown>,
  ): Promise<string>;
}

const UNTIL_DEADLINE_MS = 120_000;

export function kubectlFor(command: string, kubeconfig: string, home: string): Kubectl {
  const environment = (extra: Record<string, string> = {}): Record<string, string> => ({
    PATH: process.env['PATH'] ?? '',
    KUBECONFIG: kubeconfig,
    HOME: home,
    ...KUBECTL_ENVIRONMENT,
    // So that one that is left is found at the end of the run.
    [RUN_VARIABLE]: process.env[RUN_VARIABLE] ?? '',
    ...extra,
  });
  const run = (args: readonly string[], input?: string, env?: Record<string, string>): Promise<Outcome> =>
    new Promise((resolve, reject) => {
      const child = spawn(command, args, { env: environment(env), stdio: ['pipe', 'pipe', 'pipe'] });
      let stdout = '';
      let stderr = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
      });
      child.on('error', reject);
      child.on('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
      child.stdin.end(input ?? '');
    });
  const must = async (args: readonly string[], input?: string): Promise<string> => {
    const { code, stdout, stderr } = await run(args, input);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} exited with ${code}: ${stderr}${stdout}`);
    return stdout;
  };
  const untilError: Kubectl['untilError'] = (args, text) =>
    new Promise((resolve, reject) => {
      const child = spawn(command, args, { env: environment(), stdio: ['ignore', 'ignore', 'pipe'] });
      let stderr = '';
      let stopped = false;
      const deadline = setTimeout(() => child.kill(), UNTIL_DEADLINE_MS);
      child.stderr.setEncoding('utf8').on('data', (more: string) => {
        stderr += more;
        if (!text.test(stderr)) return;
        stopped = true;
        child.kill();
      });
      child.on('error', reject);
      child.on('close', () => {
        clearTimeout(deadline);
        if (stopped) resolve();
        else reject(new Error(`kubectl ${args.join(' ')} ended without ${text}: ${stderr}`));
      });
    });
  const until: Kubectl['until'] = (args, enough, onStart) =>
    new Promise((resolve, reject) => {
      const child = spawn(command, args, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
      let stdout = '';
      let stderr = '';
      let started = false;
      const deadline = setTimeout(() => child.kill(), UNTIL_DEADLINE_MS);
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
      });
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
        if (!started) {
          started = true;
          onStart?.().catch(reject);
        }
        if (enough(stdout)) child.kill();
      });
      child.on('error', reject);
      child.on('close', () => {
        clearTimeout(deadline);
        if (enough(stdout)) resolve(stdout);
        else reject(new Error(`kubectl ${args.join(' ')} never showed what was waited for: ${stdout}${stderr}`));
      });
    });
  const feed: Kubectl['feed'] = (manifest, ...args) => must(args, manifest);
  return { run, ok: (...args) => must(args), feed, until, untilError };
}

export interface TestServer {
  readonly server: RunningApiServer;
  readonly root: string;
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

/** The API server alone, on a free port, with a root that vanishes with it. */
export async function startTestServer(): Promise<TestServer> {
  const root = await mkdtemp(join(tmpdir(), 'nodelet-kubectl-'));
  const server = await startLabApiServer({
    root,
    bindAddress: '127.0.0.1',
    port: 0,
    tracer: new Tracer(),
    clock: systemClock,
  });
  return {
    server,
    root,
    kubeconfig: join(root, 'kubeconfig'),
    stop: async () => {
      await server.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
