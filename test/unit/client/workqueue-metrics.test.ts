// What work queues do, as metrics: how many keys came, how long they waited and were worked on, how many were to come back later.

import { expect, it } from 'vitest';
import { WorkQueue } from '../../../client/workqueue.ts';
import { WorkQueueMetrics } from '../../../client/workqueue-metrics.ts';
import { MetricsText } from '../../../lib/metrics.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

function setUp() {
  const clock = new VirtualClock();
  const queue = new WorkQueue({ clock });
  const metrics = new WorkQueueMetrics(clock);
  const samples = (): string[] => {
    const page = new MetricsText();
    metrics.show(page);
    return `${page}`.split('\n').filter((line) => line !== '' && !line.startsWith('#') && !line.includes('_bucket'));
  };
  return { clock, queue, metrics, samples };
}

it('shows a queue from the beginning, with what waits already', () => {
  const { queue, metrics, samples } = setUp();
  queue.add('early');
  metrics.follow('job', queue);
  expect(samples()).toEqual([
    'workqueue_depth{name="job"} 1',
    'workqueue_unfinished_work_seconds{name="job"} 0',
    'workqueue_longest_running_processor_seconds{name="job"} 0',
    'workqueue_adds_total{name="job"} 1',
    'workqueue_retries_total{name="job"} 0',
  ]);
});

it('counts a key once while it waits, and again when it comes while it is worked on', async () => {
  const { clock, queue, metrics, samples } = setUp();
  metrics.follow('job', queue);
  for (const key of ['a', 'a', 'b']) queue.add(key);
  await clock.advance(2000);
  await queue.take();
  queue.add('a');
  queue.add('a');
  await clock.advance(3000);
  expect(samples()).toEqual([
    'workqueue_depth{name="job"} 2',
    'workqueue_unfinished_work_seconds{name="job"} 3',
    'workqueue_longest_running_processor_seconds{name="job"} 3',
    'workqueue_adds_total{name="job"} 3',
    'workqueue_retries_total{name="job"} 0',
    'workqueue_queue_duration_seconds_sum{name="job"} 2',
    'workqueue_queue_duration_seconds_count{name="job"} 1',
  ]);
  queue.done('a');
  const now = samples();
  expect(now).toContain('workqueue_work_duration_seconds_sum{name="job"} 3');
  expect(now).toContain('workqueue_unfinished_work_seconds{name="job"} 0');
  // b, and a for the second time.
  expect([await queue.take(), await queue.take()]).toEqual(['b', 'a']);
  expect(samples()).toContain('workqueue_depth{name="job"} 0');
});

it('a key that one waits for is taken at once; one for later is a retry', async () => {
  const { clock, queue, metrics, samples } = setUp();
  metrics.follow('job', queue);
  const taken = queue.take();
  queue.addAfter('a', 500);
  expect(samples()).toContain('workqueue_adds_total{name="job"} 0');
  await clock.advance(500);
  expect(await taken).toBe('a');
  expect(samples()).toEqual(
    expect.arrayContaining([
      'workqueue_adds_total{name="job"} 1',
      'workqueue_retries_total{name="job"} 1',
      'workqueue_queue_duration_seconds_count{name="job"} 1',
    ]),
  );
});
