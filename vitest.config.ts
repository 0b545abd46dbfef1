// Two projects: `unit` needs neither root nor a container runtime; `e2e` runs real containerd, CNI and kubectl.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'test/sim/**/*.test.ts'],
          testTimeout: 60_000,
          expect: { poll: { timeout: 30_000 } },
          setupFiles: ['test/support/patience.ts'],
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts', 'test/hostile/**/*.test.ts'],
          // For giving up only: whatever waits inside a test has a deadline of its own and says what it waited for.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          expect: { poll: { timeout: 60_000 } },
          setupFiles: ['test/support/patience.ts'],
          // Each file starts a real lab; two cores carry two at a time.
          maxWorkers: 2,
        },
      },
    ],
  },
});
