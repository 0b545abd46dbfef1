// Faults that the simulated machine and cluster can be given on purpose, so that it can be tested whether rules notice them.
// None of them ever happens by chance.

/** What each fault is. */
export const FAULT_NAMES = [
  'the runtime makes two sandboxes for one call',
  'the runtime says that a container has ended while it runs',
  'CNI DEL gives no address back',
  'the API server takes a phase back',
  'the API server takes a restart count back',
  'the API server drops what others wrote',
  'the API server says that it wrote a status and did not',
  'the API server says that it let a pod go and did not',
  'a driver says that a volume is staged and it is not',
  'a driver says that a volume is unpublished and it is not',
  'CNI ADD gives an address twice',
  'the agent forgets preStop hooks',
  'the agent shortens grace periods',
  'the agent ignores shortened grace periods',
  'the agent stops sidecars with the rest',
  'the agent says that it resized and did not',
  'the agent believes that everything is alive',
  'the agent believes that everything is ready',
  'the agent restarts at once',
  'the API server hides deadlines',
  'the API server shows an old ConfigMap',
  'the memory of processes is not counted',
  'last words are lost',
  'somebody removes the links to logs',
  'logs are left behind',
  'a cgroup counts as gone and is not',
  'the node believes that its runtime answers',
  'the node renews its lease too late',
  'the node claims a pressure that was not measured',
  'the node hides a pressure',
  'the agent restarts too late',
  "the node's transitions move with its heartbeats",
  "the node's heartbeats go back",
  'the node renews its lease into the past',
] as const;
export type Fault = (typeof FAULT_NAMES)[number];
export type Faults = ReadonlySet<Fault>;
