// Three projects: `unit` needs neither root nor a container runtime; `e2e` runs real containerd, CNI and kubectl; `services`
// is what needs root, the kernel or kubectl, but no containerd and no lab: it runs beside `e2e` and fills its waits.

import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';
import { SERVICES } from './test/support/services.ts';

/** For giving up only: whatever waits inside a test has a deadline of its own and says what it waited for. */
const patient = {
  testTimeout: 600_000,
  hookTimeout: 600_000,
  // What is polled in a lab is often a program's answer: kubectl alone takes a tenth of a second of processor time.
  expect: { poll: { timeout: 120_000, interval: 150 } },
  setupFiles: ['test/support/patience.ts'],
  // As for the unit tests: each file in a process of its own would load some 300 modules again.
  isolate: false,
  // A lab waits for the kernel and for grace periods. With four files at a time two cores have nothing to do for 3 % of it; with
  // more, each test only takes longer.
  maxWorkers: 4,
};

export default defineConfig({
  test: {
    // Node itself loads what is tested, as it does in production: nothing is transformed, and compiled code comes from the
    // cache of scripts/node24. No test replaces a module, which is what vitest's own loader is for.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongestFirst },
    // The labs that files have shared are stopped and looked after at the end.
    teardownTimeout: 300_000,
    projects: [
      {
        test: {
          name: 'unit',
          // A worker keeps its modules from file to file: loading them anew for each took two thirds of the processor time.
          isolate: false,
          include: ['test/unit/**/*.test.ts', 'test/sim/**/*.test.ts'],
          // For giving up only, as below.
          testTimeout: 600_000,
          hookTimeout: 600_000,
          expect: { poll: { timeout: 120_000 } },
          setupFiles: ['test/support/patience.ts'],
          // vitest leaves one core to itself, which on two is half of the machine.
          maxWorkers: Math.max(2, availableParallelism()),
        },
      },
      {
        test: {
          ...patient,
          name: 'e2e',
          globalSetup: ['test/e2e/support/lab-keeper.ts'],
          include: ['test/e2e/**/*.test.ts', 'test/hostile/**/*.test.ts'],
          exclude: [...SERVICES],
        },
      },
      { test: { ...patient, name: 'services', include: [...SERVICES] } },
    ],
  },
});
